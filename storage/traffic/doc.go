// Package traffic counts what goes in and out of the partitions of a node, a topic at a time (BrokerTopicMetrics).
//
// It is not a place for rates or quotas: the counters are plain, and metrics reads them.
//
// Who calls it: storage/replica counts; cmd/ottla/internal/metrics reads.
//
// Invariant: the sums of all topics never fall, also when a topic is gone.
//
// Start reading at traffic.go.
package traffic
