// Package logdir reads and writes what a log directory says of itself and of all its partitions together.
//
// What it is: the formats and the rules of meta.properties, .kafka_cleanshutdown, the boot id (ours) and the four offset
// checkpoints; and what a name in a log directory stands for.
//
// What it is not: it opens no log, decides no trust and keeps no schedule. When a file is written, and what a missing one
// means, is up to storage/store.
//
// Who calls it: storage/store; cmd/ottla/internal/offline for meta.properties.
//
// Invariants:
//   - A file is replaced whole and durably, or left as it is.
//   - A recovery point on disk is never above what Lower has held it down to, until Lift.
//   - A damaged meta.properties is an error that names it; a damaged marker is none; a damaged checkpoint is empty, named,
//     and replaced by the next Write.
//
// Start reading at meta.go, then marker.go and checkpoints.go.
package logdir
