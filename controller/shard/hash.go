package shard

import (
	"math"
	"unicode/utf16"
)

// PartitionFor is the partition that holds a group or a transactional id:
// Utils.abs(key.hashCode()) % partitions of Apache Kafka, where hashCode is
// Java's over UTF-16 units, and abs is the absolute value (it does not clear the
// sign bit as Utils.toPositive does), but 0 for the least integer. Tools
// calculate it too.
func PartitionFor(key string, partitions int) int32 {
	hash := int(javaHash(key))
	switch {
	case hash == math.MinInt32:
		hash = 0
	case hash < 0:
		hash = -hash
	}
	return int32(hash % partitions)
}

func javaHash(s string) int32 {
	var hash int32
	for _, r := range s {
		if high, low := utf16.EncodeRune(r); r > 0xffff {
			hash = (hash*31+high)*31 + low
			continue
		}
		hash = hash*31 + r
	}
	return hash
}
