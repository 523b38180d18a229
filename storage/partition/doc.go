// Package partition is the core of one replica of a partition: its role, the
// epochs that fence it, how far the followers are, the in-sync replicas, and
// the high watermark.
//
// It is not a log and holds no records, files or waiters: package replica is
// the shell that owns one Partition and one log, tells the core what happened
// and does what the returned Effects ask. It has no lock, channel, clock or
// I/O; time comes in as now. The caller's duties:
//
//   - serialise the calls that change a Partition;
//   - after each, publish View and HighWatermark to whoever reads without the
//     lock (a View never changes once published), and carry out the Effects;
//   - make a new leader epoch durable in the log's epoch cache before calling
//     Lead, so that no batch of the epoch can be read before the epoch is known;
//   - call CanAppend before and Appended after each append, the latter with the
//     epoch that the batches carry;
//   - feed the controller's answer to an AlterPartition back through ISRAltered.
//
// Invariants, asserted in production too: the high watermark is never beyond
// the log end and never moves back within a leader epoch; the leader is always
// in its own maximal ISR; the high watermark does not pass the least log end of
// the maximal ISR.
//
// Only package replica (and a simulator) calls this package. Start reading at
// state.go, then leader.go; the rules are those of Partition.scala and KIP-101,
// KIP-207, KIP-320, KIP-497, KIP-841, KIP-903 and KIP-966.
package partition
