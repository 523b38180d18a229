// Package move copies the log of a partition into its successor, the log in another directory that is to take its
// place.
//
// What it is: Step, which makes the successor agree with the source (log start, leader epochs, truncation) and copies a
// bounded number of bytes, batch by batch as they lie in the file; and Limit, how many bytes a second all moves of a
// node may copy.
//
// What it is not: it does not know directories, roles or who decides that a replica moves (storage/replica), and does
// not put the successor in place (storage/store).
//
// Who calls it: storage/replica.
//
// Invariants:
//   - A successor never has a batch that its source has not, but for batches that the source has cut off since; these
//     go with the next Step, before anything is copied.
//   - The source is only read, and may be appended to, truncated and shortened meanwhile.
//
// Start reading at step.go.
package move
