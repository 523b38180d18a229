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
// Who leads a partition, who is in its ISR and who is eligible besides (KIP-966)
// is decided in one place, the proposal of change.go, which has the rules of
// Kafka's PartitionChangeBuilder. Whatever happens to brokers and directories
// chooses partitions and lets each have its proposal built. The records are those
// that Apache Kafka 4.4.0 writes in the same situation (records_test.go), except
// that partitions come by topic name, and that a broker in the controller's own
// process, or one that was told that it may stop, is not made to wait for the
// session of its predecessor to end.
//
// What reads all partitions, at a few milliseconds for 50,000: a broker that is
// fenced, unfenced, registered anew, or asks whether it may stop.
//
// Volatile state, lost with every Activate: when each broker was last heard of,
// up to where it has replayed, and from when on it may stop. Everything else is in
// the Image. A new active controller grants each unfenced broker a whole session.
//
// It is not the authorizer, does not forward, and does not know who asks: the
// api package has checked that. It has no lock, goroutine, clock or I/O.
//
// Start reading at controller.go; then one file a subject: registration.go,
// heartbeat.go, change.go, leaders.go, topic_create.go, topic_delete.go,
// partitions.go, placement.go, configs.go, elections.go, reassign.go, features.go. testdata/stories tells what happens when.
package cluster
