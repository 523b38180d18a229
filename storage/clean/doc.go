// Package clean compacts logs: of the records of a key only the latest one stays (cleanup.policy=compact).
//
// What it is: the choice of the log that gains most (choose.go), the map of the latest offset of each key in the part of
// it that is new (offsetmap.go), the decision what stays of a batch (filter.go, transactions.go), the rewriting of
// sealed segments, small ones together (round.go, rewrite.go, group.go), and the schedule of all that (cleaner.go). What goes and what stays is
// what Cleaner, LogCleanerManager and MemoryRecords.filterTo of Apache Kafka 4.4.0 decide, batch by batch and byte by byte but
// for what compressors make of the same records.
//
// What it is not: it does not delete old segments (storage/log does, by retention), it does not write checkpoints
// (storage/store), and it knows no roles. It starts no goroutine and reads no clock: Tick hands short pieces of work to
// the workers of the node.
//
// Who calls it: cmd/ottla/internal/node makes one Cleaner and ticks it; tests and tools use Compact.
//
// Invariants:
//   - Offsets are never renumbered; a batch keeps its range of offsets, its producer, epoch, sequence and leader epoch.
//   - Nothing at or beyond the last stable offset, the high watermark or the base of the active segment is touched.
//   - The last batch of each known producer stays, if need be without records, and so does the batch that ends at the
//     high watermark.
//   - A marker stays until no batch of its transaction is left, and then for delete.retention.ms; so do tombstones.
//   - A batch of which nothing is removed is copied as bytes. No batch is copied whose checksum is wrong.
//   - A log is as it was until a compacted segment is complete and durable; then it is replaced as a whole.
//   - A log that cannot be compacted is tried again, later and later, and never given up.
//
// Start reading at cleaner.go, then round.go and filter.go.
package clean
