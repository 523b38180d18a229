// Package simbrokers runs three or four nodes that are only brokers, and a model of the controllers' quorum that they follow, in one
// goroutine and in virtual time: one seed decides the settings, the work, the network and the faults, and the same seed gives
// the same run bit for bit.
//
// What runs is the production code: node.Node with its observer, channel, registration, in-sync replicas and fetchers, on disks in memory
// whose power can be cut; requests between brokers and of clients go through protocol/server and api as bytes; what the active controller
// decides is controller/cluster over controller/quorum. What is a model is that the quorum has several members: the log of the active
// controller is committed a little after it was written, and who leads next begins with what was committed, or with more of it
// (controllers.go). So observers also get what nobody commits, cut it, and are told by nodes that do not know yet who leads.
//
// It is not a test of elections among controllers (they are chosen by the seed), of sockets or of goroutines. Only tests use it.
//
// Clients write records, and transactions with offsets of groups, through the coordinators on these brokers (transactions.go). Leaders move
// because brokers come and go, and because an administrator has another replica lead while the former leader lives on and has not heard of it.
//
// In fifteen seeds of sixteen more is changed: disks are lost, and replaced by empty ones; partitions get other replicas, more of them or
// fewer, by one change after the other (an administrator's request is not decided while somebody has lost something: a replica
// that is taken away on purpose then may be the last); and a topic is deleted and made again under its name, while clients write to it
// and read it. A machine that is in sync nowhere may lose its disk whatever becomes of the others; any other only if another has all.
//
// What must be true (observe.go): an Image that a node publishes is the one that the committed log adds up to at the same offset; no
// replica has a role that was not committed; high watermarks do not fall; a registration tells the broker epoch of the last
// clean stop, or that there was none (KIP-966); nothing acknowledged by all is lost, though whatever is last in sync may lose its power
// (the seed never takes the only other one that has all); who is alone with its transactional id is never fenced, nor refused in another
// way that ends it; of a transaction all is visible or nothing, as its client was told; no node has a replica that its Image does not
// give it, nor one of a topic before of the same name; what a reader was given stays where it was, and is of the topic that was asked
// for; and after the faults all is well again, and no disk has files of a replica that has gone.
//
// The parts: simulation.go (a run), controllers.go and serving.go (the model of the quorum), machine.go (a broker and its machine),
// faults.go, clients.go, transactions.go, passing.go (the topic that goes, readers, reassignments), observe.go, ending.go.
//
// Start reading at simulation.go. OTTLA_SIM_SEED=n go test -run TestSeed$ ./cmd/ottla/internal/simbrokers -v shows a seed.
package simbrokers
