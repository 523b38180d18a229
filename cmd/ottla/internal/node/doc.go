// Package node puts a node together out of its parts, and runs it.
//
// Node itself is step-driven: New reads and checks the directories, Start
// elects, replays and opens the logs, and after that every part has a Tick and
// a deadline (Parts). It starts no goroutine and reads no clock, so that package
// sim can run a whole node under its own scheduler. Only run.go knows
// goroutines, sockets and the time: it pumps the parts, binds the listeners and
// ends in order; and stall.go, where operations on disks that may hang run.
//
// A node that is a broker and no controller starts in two steps: Begin follows the
// metadata of other nodes' quorum, which alone is ticked until the node is CaughtUp,
// and Open does the rest. Until then the log directories stay as they were.
//
// The order of a start: check (nothing changes) → metadata log → begin (markers
// are taken away) → election and replay → logs → roles → registration →
// listeners. The order of a stop: leave the cluster → listeners → roles as they
// are → coordinators → replicas → metadata log → logs, checkpoints and, last, the clean-shutdown
// markers.
//
// Nobody but cmd/ottla and sim imports it. Start reading at node.go; observer.go and
// catchup.go are what is particular to a broker under other controllers.
package node
