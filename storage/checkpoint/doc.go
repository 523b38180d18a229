// Package checkpoint reads and writes the small text files that say how things stand: the offset checkpoints of a log
// directory, the leader-epoch-checkpoint and partition.metadata of a partition; and it keeps lists of leader epochs.
//
// What it is: the formats of CheckpointFile.java and PartitionMetadataFile.java, and the rules of
// LeaderEpochFileCache.java as pure functions on slices.
//
// What it is not: it decides nothing. When a file is written, and what a missing or damaged one means, is up to
// storage/log and storage/store, which call it; cmd/ottla/internal/offline shows the files.
//
// Invariants: a file is replaced whole and durably, never changed in place; epochs and their start offsets strictly
// rise; a damaged file is an error that wraps ErrDamaged, never a guess.
//
// Start reading at checkpoint.go, then epochs.go.
package checkpoint
