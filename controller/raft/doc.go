// Package raft is the core of KRaft (KIP-595, KIP-853): who leads the
// metadata quorum in which epoch, who votes, and how far the log is committed.
//
// It sees offsets, epochs, and the voter sets and kraft.version that the log
// holds; never other records. It is a plain struct: inputs with the time go in,
// Effects come out, and the shell (controller/quorum) carries them out in the
// order their comments state. No goroutine, lock, clock, I/O or randomness.
//
// Now a single voter elects itself, and a replica that does not vote follows the
// leader of other nodes (an observer: Follow makes it one). Candidates, and voters
// that follow, come with the quorum of several nodes, as further inputs to the same
// Core; what already counts several voters (the high watermark) does so for that
// reason.
//
// Who follows has one Fetch or FetchSnapshot on its way at most. It is sent to the
// leader, or, while that is not known, rests after a failure or has been silent for
// the fetch timeout, to a bootstrap server, whose answer tells of the leader. The
// shell's duties for an answer stand in the order of the fields of Effects: first the
// state is durable, then the log is cut, or appended to, or a snapshot takes its
// place, and the core is told what the log is now.
//
// Invariants, checked in production: the epoch and, within an epoch, the high
// watermark never fall; the high watermark never passes what a majority of the
// voters holds durably; an epoch has one leader; a log is never cut below the high
// watermark.
//
// Start reading at core.go, then follow.go; the stories under testdata/follow show it.
package raft
