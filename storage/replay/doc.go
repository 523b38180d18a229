// Package replay rebuilds what a log remembers of its producers from a producer snapshot and the batches after it, as when
// a log is opened or was truncated.
//
// What it is not: it knows neither which snapshot files there are nor how they lie on the disk (storage/log lends them), and
// does not judge batches (storage/producer). A .txnindex that is in doubt it compares with the batches, and writes anew.
//
// Who calls it: storage/log.
//
// Invariants: the state afterwards is that of the batches up to To; only a .txnindex that does not fit its segment is changed.
//
// Start reading at replay.go.
package replay
