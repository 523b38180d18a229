// Package scenario is the one list of what every client must be able to do, each written once over the suite's client
// interfaces. The list says which clients take part in a scenario; a dot in the table of results means that the client cannot
// express it (kcat cannot send an empty value, say), never that it was left out. librdkafka sends lz4 only to servers that
// advertise FindCoordinator v0, so its lz4 cells come with groups.
//
// A scenario judges with two pairs of eyes: what its own client reads, and what franz-go or the segment files show. It may
// assume nothing of the server but Kafka's protocol and Kafka's files.
//
// Invariants: every cell has topics of its own, so cells may run at the same time; nothing sleeps and nothing asserts a
// duration, a cell that hangs is ended by its context.
//
// Start reading at list.go; course.go takes the clients that share a restart through it, told.go says what is known of one that hangs.
package scenario
