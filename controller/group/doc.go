// Package group is the core of the group coordinator: it decides what requests
// of consumers and administrators about groups and their offsets turn into, as
// records of one partition of __consumer_offsets, which holds many groups.
//
// It is a machine.Machine. Handle takes a Request (a message of the protocol and
// who sent it) or a TopicsDeleted; the reply is a kmsg.Response of the request's
// version, or machine.Parked for a JoinGroup or SyncGroup that waits for other
// members, answered later by a machine.Respond. Every other request is answered
// at once. There is no other effect. Refuse shapes the errors of requests that
// never reach a Coordinator, or wait in one when its state is dropped.
//
// It is not the authorizer, and does not know which partition a group belongs to:
// the api package has looked up rights, names and ids, and the shell
// (controller/shard) has chosen the partition, splits requests that name groups of
// several partitions and merges the answers. Of the cluster it sees what
// Options.Image gives, for the sake of consumer groups. It has no lock, goroutine,
// clock or I/O. Log compaction is the log's affair.
//
// A group is of one kind: a classic group, whose members assign partitions among
// themselves, is in this package; a consumer group (KIP-848) is a consumer.Group,
// and consumer.go finds it, hands it its Turn, takes over its records and sets its
// alarms. An empty group of one kind becomes one of the other when a member of that
// protocol comes. So does one with members, if they all speak the consumers'
// embedded protocol and group.consumer.migration.policy lets it: a classic group
// when a member of the next generation joins it, a consumer group when only members
// of the classic protocol remain.
//
// # What is durable
//
// Only Apply changes what is durable; everything else may vanish at any moment
// (a failover, a failed append) and members find their way back by the errors
// that the protocol has for it.
//
//	state                                                  made durable by
//	committed offset, its leader epoch, metadata, times     OffsetCommit (a null value: deleted)
//	an offset that is pending in a transaction              TxnOffsetCommit, until the marker
//	a group that only commits (no protocol type)            its OffsetCommit records
//	classic group: generation, protocol, leader,            GroupMetadata: when the leader's
//	  members with subscription and assignment, when          SyncGroup ends a rebalance, when the
//	  it became Empty                                         group becomes Empty, when a static
//	                                                          member gets a new member id, and when
//	                                                          a JoinGroup makes a new group
//	state while rebalancing, the generation of a rebalance  nothing
//	  that no SyncGroup has ended, members that joined it,
//	  their protocols other than the selected one
//	member ids given out and not yet used (KIP-394)         nothing
//	session, join and sync deadlines, parked requests       nothing
//	consumer group: epochs, members, targets, current       its own records; see controller/consumer
//	  assignments, what regular expressions have found
//	its members' alarms                                     nothing
//
// After the volatile part vanished a group stands where its last GroupMetadata
// record left it: Stable with its members, each with a whole session to show
// up, or Empty. A member that knows of a later generation is told
// ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and joins again.
//
// A decision changes the volatile part at once, as if its records were committed
// already: the shell holds all replies until they are, and drops the whole state
// if they never will be. Of a consumer group it changes nothing but alarms: there
// a deadline stands alone (deadlines.go), for the next one reads what Apply has
// made of its records.
//
// # Transactions
//
// Offsets that a producer commits in its transaction (TxnOffsetCommit) are pending
// until its marker comes: package offsets keeps them apart. Their result names the
// transaction, and nothing changes before the log has taken the records, which the
// shell then hands to ApplyTransactional, and the marker to ApplyMarker.
//
// # What has its place here and is not built
//
// Share and streams groups: a kind in group.go, cases in replayRecord and serve;
// their records are passed over by replay and stay in the log.
//
// # Invariants
//
//   - A generation only rises, and what was handed out under one generation is
//     accepted under no other: requests with another generation are refused.
//   - A member id is of one member; an instance id names one member id at a time.
//   - A parked request is answered exactly once.
//   - A committed offset changes by a commit, a deletion, its expiry or the
//     deletion of its topic, and by nothing else.
//   - What reaches a record, reply or effect never depends on the order of a map.
//
// Start reading at coordinator.go, then group.go, classic.go and consumer.go (the
// kinds); after that one file an API.
package group
