package main

import (
	"slices"
	"time"
)

// allLines are all measured loads, in the order of the report.
func allLines(s settings) []*line {
	scale, seconds, idle := 1.0, 8.0, 5*time.Second
	if s.quick {
		scale, seconds, idle = 0.4, 3, 2*time.Second
	}
	n := func(full int) int { return int(float64(full) * scale) }
	return append([]*line{
		startLine(idle),
		produceLoad{connections: 1, requests: n(1024), records: 1024, batchBytes: 1 << 20, window: 5}.line("produce 1 MiB, 1 connection"),
		produceLoad{connections: 1, requests: n(1024), records: 1024, batchBytes: 1 << 20, window: 5, idempotent: true}.line("produce 1 MiB, 1 connection, idempotent"),
		produceLoad{connections: 10, requests: n(3000), records: 16, batchBytes: 16 << 10, window: 5, small: true}.line("produce 16 KiB, 10 connections"),
		produceLoad{connections: 10, requests: n(3000), records: 16, batchBytes: 16 << 10, window: 5, small: true, idempotent: true}.line("produce 16 KiB, 10 connections, idempotent"),
		rateLoad{connections: 1, perSecond: 1000, seconds: seconds, recordBytes: 1100}.line("produce 1 KB records, 1,000/s"),
		rateLoad{connections: 10, perSecond: 10_000, seconds: seconds, recordBytes: 1100, idempotent: true}.line("produce 1 KB records, 10,000/s, idempotent"),
		txnLoad{partitions: 10, every: 100 * time.Millisecond, records: 1, batchBytes: 1100, perSecond: 1000, seconds: seconds}.line("transactions, 100 ms commits, 1 KB records, 1,000/s"),
		txnLoad{partitions: 10, every: 100 * time.Millisecond, records: 16, batchBytes: 16 << 10, requests: n(20_000), window: 50}.line("transactions, 100 ms commits, 16 KiB batches"),
		tail{rateLoad{perSecond: 1000, seconds: seconds, recordBytes: 1100}}.line("end to end 1 KB records, 1,000/s"),
		(&catchUp{connections: 2, batches: n(8192), passes: 4, topics: map[string]string{}}).line("fetch 1 MiB, 2 connections"),
		(&groupLoad{members: 100, partitions: 1000, topics: map[string]string{}}).line("group of 100, 1,000 partitions, classic"),
		(&groupLoad{members: 100, partitions: 1000, next: true, topics: map[string]string{}}).line("group of 100, 1,000 partitions, KIP-848"),
	}, slices.Concat(clientLines(s, n(600_000)), flushLines(s), clusterLines(s, n, seconds))...)
}
