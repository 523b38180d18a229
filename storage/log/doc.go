// Package log is the log of one partition: a list of segments, the leader epochs, the producers, and the files
// beside them (leader-epoch-checkpoint, partition.metadata, NNN.snapshot).
//
// What it is: append, read, look up by offset and by time, truncate, roll, retain, flush and recover.
//
// What it is not: it knows no roles, replicas or high-watermark rules (storage/partition), no other
// partitions, directories or checkpoints of the node (storage/store), and does not compact (storage/clean). It
// starts no goroutine and reads no clock: Maintain(now) is its schedule.
//
// Who calls it: storage/replica and controller/quorum on the hot paths; storage/store to open and maintain.
//
// Which calls may overlap: the caller serialises Append, TruncateTo, TruncateFullyAndStartAt,
// AdvanceLogStart, AssignEpoch, Maintain, Replace, SetOptions, MarkDeleted and Close (the replica's appendMu). All other
// methods may be called at any time from anywhere.
//
// Invariants, asserted in production too:
//   - the base offset of an appended batch is the old end of the log;
//   - a leader epoch is in the cache, and in its file, before its first batch can be read;
//   - LogStartOffset <= FirstUnstableOffset (if any); DurableEnd <= LogEndOffset;
//   - after a failed write or fsync other than for want of space the log is poisoned: nothing is written or
//     flushed any more, and every attempt returns the first error (RELIABILITY: fsync is not retried over).
//
// Recovery (Open) is told how much to trust the files. Whatever was made durable is never cut off silently:
// damage there is a *DamagedError, and the partition is offline. What can be rebuilt is rebuilt.
//
// Start reading at log.go, then append.go and read.go; open.go and recover.go tell how a directory is opened, successor.go
// how one log takes the place of another.
package log
