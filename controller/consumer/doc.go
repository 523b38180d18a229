// Package consumer is one consumer group of the next generation (KIP-848):
// whose members tell by ConsumerGroupHeartbeat what they subscribe to and own,
// while the coordinator decides who is to own what and brings them there, step
// by step. It is also what members of the classic protocol find in such a
// group, and how a group goes from one protocol to the other while it is alive.
//
// It is not a machine and holds no more than one group: controller/group, its
// only caller, finds the group, hands in a Turn (the time, the cluster's topics,
// the settings), applies the records that the Turn gathered and sets the alarms.
// What assignors do is controller/assign's. There is no lock, clock or I/O.
//
// # State
//
// Everything is durable by its own record: the group's epoch and the hash of its
// topics, each member's subscription, the target assignment of each member and
// its epoch, what each member has now, what regular expressions have found.
// Decisions read the Group and write records; only Replay changes it, for them as
// for a log that Apache Kafka has written. Volatile are only the alarms
// (sessions and deadlines of rebalances), kept by the caller, and when a group
// last looked at its topics; all of it may vanish at any moment.
//
// Three epochs tell where a group stands. The group epoch rises when something
// changes that assignments depend on. The target assignment has the group epoch
// that it was made for. A member's epoch is the target's that it has reached: it
// first gives up what is not its any more (revoking), then takes what others have
// given up (releasing).
//
// # Invariants
//
//   - A partition is owned by one member at a time: what is assigned to it or
//     being revoked from it. Others wait for it.
//   - A group's epoch only rises, and no member is ahead of the target's.
//   - A member's commit is taken only if it was made under the assignment by
//     which it has the partition now (KIP-1251).
//   - What reaches a record or reply never depends on the order of a map.
//
// Start reading at group.go and member.go (the state), then heartbeat.go and
// reconcile.go; classic.go and migrate.go are about the classic protocol.
package consumer
