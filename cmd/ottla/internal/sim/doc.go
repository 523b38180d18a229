// Package sim runs a whole node, and clients against it, in one goroutine and in
// virtual time: one seed decides the configuration, the work, the delays and the
// faults, and the same seed gives the same run bit for bit.
//
// What runs is the production code: node.Node on a disk in memory (vfs.Mem), with
// requests that are encoded, decoded, ordered and answered by protocol/server as
// those of a socket are (server.Local). What is simulated is what surrounds it: the
// time, the network, the workers, the process and its machine, and the clients,
// which are small and strict rather than faithful copies of anybody's.
//
// It is not a test of sockets, goroutines or locks: those are races and compat's.
// Only tests use it; nothing imports it.
//
// The parts: package seeded (events and random choices), host.go (a machine: disk, process, parts,
// tasks), network.go (connections), faults.go, swarm.go (what a seed chooses), producer.go,
// consumer.go, admin.go (clients), transactor.go and transacting.go (producers and
// copiers in transactions; txreading.go, txending.go: what must be true of them, with
// compat/history over all that they saw), loads.go (what coordinators load once their
// logs were compacted), script.go and nospace.go (a fixed piece of work, each of whose
// writes can be made to fail), model.go and observe.go (what must be true), files.go (of
// the files that a process has left), ending.go (after the faults). A host is one of several by construction: a client
// and a node's channel name the host they talk to.
//
// Invariants of the package itself: no map is iterated where the order can reach an
// event; client code never runs inside a call of the node; everything that a dead
// process had scheduled is dropped.
//
// Start reading at simulation.go. A failure prints its seed;
// OTTLA_SIM_SEED=n go test -run TestSeed$ ./cmd/ottla/internal/sim -v
// runs it again with one line an event.
package sim
