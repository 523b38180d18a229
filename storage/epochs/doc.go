// Package epochs makes the leader epochs of a partition's log fit its batches when the log is opened: which epoch began
// at which offset is in leader-epoch-checkpoint, and, where that file is lost, late or wrong, in the batches themselves.
//
// What it is not: it keeps no list while the log is open (storage/log), and knows neither the format of the file
// (storage/checkpoint) nor what followers do with epochs (storage/partition).
//
// Who calls it: storage/log, once for each log that is opened.
//
// Invariants: it changes no file; epochs and their offsets strictly rise in what it returns.
//
// Start reading at recover.go.
package epochs
