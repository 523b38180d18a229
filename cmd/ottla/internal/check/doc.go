// Package check holds every file of log directories against what must be true of it and of the files beside it.
//
// What it is: a reader of directories that Apache Kafka or Ottla left, or has in use. A broken invariant is a fault, with
// its name, the file and the position in it; what both leave in order, and what a start puts right by itself, is a note
// (faults.go has the names and what they mean).
//
// What it is not: a repair, a start or a dump. It opens files for reading only, takes no lock, and never asks whether
// this build would serve what it finds (that is adopt).
//
// Who calls it: cmd/ottla, for ottla check.
//
// Invariants:
//   - Nothing is written, no file is created, no lock is taken.
//   - Of a log, no more is in memory than a batch (largestBatch), what it expands to (Options.MaxDecompressed), and what
//     is known of its producers; of the metadata and of coordinators, what their nodes hold too. No number in a file
//     makes it larger.
//   - One broken byte is told once: what follows from it is not reported again.
//   - Where a crash may have left it so, in what lies beyond the recovery point of a directory that was not closed, it is
//     a note.
//
// Start reading at check.go, then partition.go and segment.go.
package check
