// Package batches walks the record batches of a file from its first byte to its last, or to where no batch stands.
//
// What it is: how the commands that look at files (check, dump, adopt) read segments, snapshots of the metadata and
// bootstrap.checkpoint. It needs no index, no configuration and no lock, and goes on where only the content of a batch is
// wrong: offsets, checksums and records are the caller's to judge.
//
// What it is not: the walk of a start, which refuses what does not follow (storage/segment).
//
// Who calls it: cmd/ottla/internal/check and cmd/ottla/internal/offline.
//
// Invariants: files are opened for reading only. What is held is 1 MiB of the file, or the one batch that was asked for
// by Load; no number in a file makes that larger than the file.
//
// Start reading at batches.go.
package batches
