// Package offline is what works on directories and files without a server: format, which makes log directories
// ready for their first start, dump, which prints any file of a log directory, and adopt, which says what was found in the
// directories of a stopped node.
//
// What it is not: the command line. It takes resolved options and writers; cmd/ottla parses flags and settings, and
// the node calls Format when it formats an empty directory by itself. For adopt it makes the start whose findings are
// printed here (node.Examine).
//
// Invariants:
//   - Format checks everything before it writes anything, and puts meta.properties in place last, so that a directory
//     counts as formatted only when all of it is there, and the first only when all are written; what a crash leaves is
//     overwritten by the next try, or ended by FinishFormat.
//   - Format writes the files of StorageTool of Apache Kafka 4.4.0, record by record.
//   - Dump changes nothing, reads to the end where it can, and names every damage with its position; its error is
//     ErrDamaged then, so that the exit status tells.
//
// Start reading at format.go, dump.go and adopt.go.
package offline
