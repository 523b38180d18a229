// Package cluster is the core of the active controller: it decides what
// requests about brokers, topics, partitions, features and producer ids turn
// into as records of __cluster_metadata.
//
// It is a machine.Machine: Handle decides against the pending Image (all that
// was decided so far), Apply is the only thing that changes it, and the shell
// (controller/quorum) holds replies until the records are committed. If the
// append fails, the shell restores the Image from the log; so there is one Image
// here and not two.
//
// Volatile state, lost with every Activate: when each broker was last heard of.
// Everything else is in the Image. A new active controller grants each unfenced
// broker a whole session.
//
// It is not the authorizer, does not forward, and does not know who asks: the
// api package has checked that. It has no lock, goroutine, clock or I/O.
//
// Start reading at controller.go; then one file a subject: registration.go,
// heartbeat.go, topic_create.go, topic_delete.go, partitions.go, leaders.go.
package cluster
