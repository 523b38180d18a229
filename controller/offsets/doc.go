// Package offsets is what groups have committed, and what producers are about to
// commit for them in transactions: the part of the group coordinator's state that
// is neither members nor generations. A Store holds the offsets of all groups of
// one partition of __consumer_offsets.
//
// It does not decide who may commit or which groups there are (controller/group
// does, which calls it), and writes nothing to a log: it makes the records and
// takes over what the log has of them.
//
// An offset that a producer commits in a transaction is pending from its record on
// until the marker of that producer: a committed marker makes it the group's, an
// aborted one forgets it. While it is pending, who asks for stable offsets is told
// UNSTABLE_OFFSET_COMMIT (KIP-447). Of two commits of a partition the one that is
// later in the log counts, not the one whose transaction ended later.
//
// Invariants:
//   - All of it is durable state: it changes only by records and markers, in the
//     order of the log.
//   - What is open for a partition is exactly what some producer has pending there.
//   - Visits are in the order of names and numbers.
//
// Start reading at store.go.
package offsets
