// Package follow puts into a follower's log what its leader has sent: batches as they are, in one write, checked as far as a
// follower can.
//
// What it is not: it knows no roles, epochs of roles or high watermarks (storage/partition, storage/replica), and fetches
// nothing (storage/fetcher).
//
// Who calls it: storage/replica, which serialises it with all other changes of the log.
//
// Invariants: what is appended continues the log without a batch in between that was refused; an error that is a
// *protocol.Error lies with what the leader sent, any other with the disk.
//
// Start reading at append.go.
package follow
