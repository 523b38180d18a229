// Package seeded is what a simulation needs to give the same run for the same seed: virtual time with its events, random
// choices, a hash of what has happened, a network between machines, and what a process on one of them is made of.
//
// It is not a simulation: sim, simcluster and simbrokers, which use it, say what the events are. Only tests run any of it.
//
// Invariants: nothing depends on the machine, the Go version, the real clock or the order of a map; a line that is only for a
// reader (Note) changes no hash.
//
// Start reading at scheduler.go.
package seeded
