// Package raft is the core of KRaft (KIP-595, KIP-853): who leads the
// metadata quorum in which epoch, who votes, and how far the log is committed.
//
// It sees offsets, epochs, and the voter sets and kraft.version that the log
// holds; never other records. It is a plain struct: inputs with the time go in,
// Effects come out, and the shell (controller/quorum) carries them out in the
// order their comments state. No goroutine, lock, clock, I/O or randomness.
//
// Now a single voter elects itself: of KRaft's roles the reachable ones are
// Unattached, Leader and Resigned. Candidates, followers and observers come
// with the quorum of several nodes, as further inputs to the same Core; what
// already counts several voters (the high watermark) does so for that reason.
//
// Invariants, checked in production: the epoch and, within an epoch, the high
// watermark never fall; the high watermark never passes what a majority of the
// voters holds durably; an epoch has one leader.
//
// Start reading at core.go.
package raft
