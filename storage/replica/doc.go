// Package replica is the shell around the partitions of one node: it ties each
// partition's core (package partition) to its log (package log) and keeps those
// who wait: producers for acks=all, consumers and followers for more records,
// DeleteRecords for the low watermark.
//
// It is not a network or coordinator package: results are given to callbacks,
// and where they go is the caller's business. It never starts a goroutine and
// reads no clock. Package api calls Append, Fetch, ListOffset, EpochEnd,
// DeleteRecords, Move and the describing methods; package broker calls Apply, Remove
// and SetOptions as metadata changes; node calls Tick when NextDeadline comes;
// controller/shard appends and reads coordinators' records.
//
// # Locks
//
// Each Replica has two, taken in this order and never the other way round:
//
//   - appendMu: whoever changes the log (appends, truncation, moving the log
//     start, maintenance). Append never waits for it: who does not get it leaves
//     the batch in the queue, and the holder looks into the queue again after
//     letting go (pump.go).
//   - stateMu: the core and the lists of waiters. It is never held over I/O or
//     a callback.
//
// Reads take neither: the core's View and the high watermark are published
// atomically, and so is the log's own View. A reader loads them in that order,
// so the log end it sees is never older than the high watermark.
//
// The log of a replica that moves to another directory is replaced under appendMu;
// a reader who has the former one finds it closed and reads from the new one (onLog).
//
// Callbacks named done are called exactly once, without any lock held, by
// whoever moved the state: another producer, a follower's fetch, Tick, Apply.
// They must not block, nor call Apply, Remove, SetOptions or Close; Append, Fetch
// and the rest they may.
//
// # Invariants
//
//   - The high watermark is never beyond the log end (asserted when published);
//     the last stable offset is never beyond the high watermark.
//   - A leader's epoch is in the log's epoch cache before its first batch can be
//     read (asserted in Apply).
//   - A waiting fetch holds no file, region or lock. Each region is released
//     exactly once: by whoever got it in a FetchResult, or here.
//   - An append that found its role gone answers NOT_LEADER_OR_FOLLOWER though
//     the bytes are in the log: truncation, which takes appendMu, removes them.
//
// Start reading at append.go, then pump.go; fetch.go, then read.go; move.go.
package replica
