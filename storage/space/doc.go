// Package space decides who may still write to a log directory when its file system fills up, so that the disk is not
// full before anyone is told.
//
// What it is: for each directory the space that is left, as of the last look and less what was written since; two marks
// derived from the settings and the size of the file system; and the state that follows. Above the clients' mark everyone
// writes. Below it clients' records are refused, so that fetches, deletions, offset commits and the ends of transactions
// find the room that they need. Below the reserve the node's own topics are refused too, and what is left is the metadata
// log's and the checkpoints'.
//
// What it is not: it does no I/O and knows no clock. Whoever looks (cmd/ottla/internal/node) asks the file system and tells
// Looked; whoever writes (storage/log) asks Admit. It does not make room: that is retention's business and the operator's.
//
// Who calls it: storage/log before each append, storage/store where it chooses a directory, storage/clean before it writes
// copies, node, which looks, and metrics.
//
// Invariants:
//   - What was admitted since a look began counts against what that look found, so a fast producer cannot pass the mark
//     between two looks.
//   - Once clients are refused they stay refused until a look has found more than the mark (see next): what is freed is
//     not taken again by the first who comes.
//   - A directory that was never looked at refuses nobody.
//
// Start reading at directory.go; limits.go has the marks.
package space
