package main

import "testing"

func TestBatchHasTheSizeAskedFor(t *testing.T) {
	for _, c := range []struct{ records, size int }{{1, 1100}, {16, 16 << 10}, {64, 64 << 10}, {1024, 1 << 20}} {
		if got := len(newBatch(c.records, c.size)); got != c.size {
			t.Errorf("%d records: %d bytes, want %d", c.records, got, c.size)
		}
	}
}
