// Package simcluster runs the replication of a small cluster in one goroutine and in virtual time: one seed decides the
// settings, the work, the network and the faults, and the same seed gives the same run bit for bit.
//
// What runs is the production code: partition cores, replica shells and logs on disks in memory whose power can be cut
// (vfs.Mem), fetchers, fetch sessions. What is simulated: the controller, a small and strict model of what
// Apache Kafka's decides (controller.go); the network, which drops, delays, duplicates, reorders and cuts one way; the
// workers; the machines, which are killed, lose their power or their disk, and pause; producers and consumers.
//
// There are three machines, or four, among which replicas are then moved; each partition has three replicas.
//
// It is not a test of sockets, of requests' bytes or of the metadata log: the broker's own parts are package sim's.
// Only tests use it.
//
// The parts: simulation.go (a run), plan.go (what a seed chooses), machine.go (a broker and its
// machine), serving.go (Fetch and ListOffsets of a broker), controller.go, faults.go, clients.go, observe.go (what must be
// true after every event), ending.go (after the faults).
//
// Three kinds of runs. "minority": min.insync.replicas is 2, one machine at a time fails, in any way, also with the loss of
// its disk; nothing acknowledged by all may be lost. "flush": flush.messages is 1, and any machines fail at any time, also all
// at once, but keep what they have synced; nothing acknowledged by all may be lost. "wild": leaders are also elected
// uncleanly, and disks are lost at any time; logs must agree all the same.
//
// Start reading at simulation.go. A failure prints its seed;
// OTTLA_SIM_SEED=n go test -run TestSeed$ ./cmd/ottla/internal/simcluster -v runs it again with one line an event.
package simcluster
