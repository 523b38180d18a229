package shard

import "unicode/utf16"

// PartitionFor is the partition that holds a group or a transactional id:
// Utils.abs(key.hashCode()) % partitions, where hashCode is Java's over UTF-16
// units and abs clears the sign bit. Tools calculate it too.
func PartitionFor(key string, partitions int) int32 {
	return int32(int(javaHash(key)&0x7fffffff) % partitions)
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
