package shard

import "testing"

// TestPartitionFor: the numbers are Utils.abs(key.hashCode()) % n of Apache Kafka
// 4.4.0, calculated by Java.
func TestPartitionFor(t *testing.T) {
	for _, c := range []struct {
		key       string
		of50, of7 int32
	}{
		{"", 0, 0},
		{"a", 47, 6},
		{"group", 47, 3},
		{"my-consumer-group", 13, 5},
		{"connect-cluster", 13, 5},
		{"😀", 49, 2},
		{"grüppe", 12, 3},
		{"polygenelubricants", 0, 0}, // its hash is the least of all integers
		{"a\x00b", 15, 5},
		{"ゲート-7", 44, 4},
		{"x😀y", 10, 0},
		{"test-group-12345678901234567890", 7, 5},
	} {
		if a, b := PartitionFor(c.key, 50), PartitionFor(c.key, 7); a != c.of50 || b != c.of7 {
			t.Errorf("%q: partition %d of 50 and %d of 7, want %d and %d", c.key, a, b, c.of50, c.of7)
		}
	}
}
