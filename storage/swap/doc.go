// Package swap has the steps by which files of a log take the place of others, and go.
//
// What it is: the segment that compaction is making (making.go); the steps that put it in the place of those it was made from, and
// that can go on later where one found no room (swap.go); and the files that have their .deleted suffix and wait for their
// removal (doomed.go).
//
// What it is not: it knows no records, no locks of a log and no clock, and it does not say when anything is due. What a start does
// with what a crash has left of these steps is segment.Tidy's.
//
// Who calls it: storage/log.
//
// Invariants:
//   - As long as a segment is not complete and durable its .log ends in .cleaned, and a start undoes everything at or after it.
//   - At most one segment of a log has .cleaned or .swap files: a start could not tell two apart.
//   - A step is durable before the next begins.
//   - What finds no room leaves files that the same call goes on with.
//
// Start reading at swap.go.
package swap
