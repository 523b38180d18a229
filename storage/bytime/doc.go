// Package bytime finds records by timestamp in the segments of a log: what ListOffsets asks for.
//
// What it is not: it does not know which segments there are, or that they may go away meanwhile (storage/log tells, and
// asks again), and it has no index of its own (storage/segment).
//
// Who calls it: storage/log.
//
// Invariants: an answer is a record that is there, at or after the log's start and before the end of the view; the
// indexes cost or save time only.
//
// Start reading at find.go.
package bytime
