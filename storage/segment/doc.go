// Package segment keeps one segment of a partition's log: the record batches in NNN.log, and the three small
// files that make them findable: NNN.index (offset to position), NNN.timeindex (timestamp to offset) and
// NNN.txnindex (aborted transactions). NNN is the segment's base offset in twenty digits.
//
// What it is: append at the tail, lookups, regions to send, truncation, rebuilding the indexes from the .log,
// and the bounded cache of open files that every log of the node shares.
//
// What it is not: it does not know its neighbours, epochs, producers, retention or recovery points. It never
// decides that bytes are damage to be cut; it walks batches and tells its caller, storage/log, where the
// walk stopped and why.
//
// Who calls it: storage/log; storage/clean (later) for segments it writes; offline tools for the decoders.
//
// Invariants:
//   - Bytes of the .log below the published size never change except by truncation, which bumps Generation.
//   - The index files hold what Apache Kafka 4.4.0 would have written for the same batches appended one by
//     one: OffsetIndex.java, TimeIndex.java, TransactionIndex.java. They are neither mapped nor preallocated;
//     the newest entries of the active segment are only in memory until Spill or Seal.
//   - An index is a hint: what it points at is checked before it is believed, and where it is wrong the
//     segment is walked from its start. So a damaged index costs time, never a wrong record.
//   - Index entries strictly rise; that is asserted, in production too.
//
// Files of a segment are opened through a FileCache and pinned while in use; an idle segment has none open.
//
// One writer (the log's caller serialises), any number of readers.
//
// Start reading at segment.go, then append.go and read.go; index.go, timeindex.go and txnindex.go are the
// formats; walk.go reads batch headers from a file.
package segment
