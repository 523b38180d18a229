package partition

import (
	"slices"
	"time"

	"ottla/protocol"
)

// Role is what this node is for a partition.
type Role int8

// The roles.
const (
	None     Role = iota // no assignment has been seen yet
	Leader               // takes appends and serves reads
	Follower             // copies another node's log
	Offline              // its directory failed; only a restart leaves this role
)

func (r Role) String() string {
	switch r {
	case Leader:
		return "leader"
	case Follower:
		return "follower"
	case Offline:
		return "offline"
	}
	return "none"
}

// State is the controller's decision about a partition, as the metadata image
// holds it. The core keeps the slices; callers must not change them afterwards.
type State struct {
	TopicID        protocol.TopicID
	Leader         protocol.NodeID // NoNode: nobody leads
	LeaderEpoch    protocol.LeaderEpoch
	PartitionEpoch int32             // counts every change of the partition's record
	ISR            []protocol.NodeID // the committed in-sync replicas
	Replicas       []protocol.NodeID // the assignment, preferred leader first
	Recovering     bool              // the leader was elected uncleanly (KIP-704)
}

// Options are what the core needs to know besides the State.
type Options struct {
	NodeID protocol.NodeID
	// LagTimeMax is replica.lag.time.max.ms: a follower that was not caught up
	// for longer leaves the ISR.
	LagTimeMax time.Duration
	// MinInSyncReplicas is min.insync.replicas of the topic; what counts is the
	// smaller of it and the number of replicas.
	MinInSyncReplicas int
	// FlushBeforeAck makes only what is durable count for the leader's own share
	// of the high watermark.
	FlushBeforeAck bool
}

// Broker is what the metadata says of a broker when the ISR is about to grow.
type Broker struct {
	Alive        bool // registered and not fenced
	ShuttingDown bool // in controlled shutdown
	Epoch        protocol.BrokerEpoch
}

// Brokers looks a broker up in the metadata of the moment. A nil Brokers says
// that every broker is alive, with the epoch that it claims.
type Brokers func(protocol.NodeID) Broker

// Ends says how far the local log goes.
type Ends struct {
	Start   protocol.Offset // log start offset
	End     protocol.Offset // log end offset
	Durable protocol.Offset // everything below is on stable storage
}

// Effects is what the shell has to do after a call.
type Effects struct {
	// HighWatermark: it moved. Publish it, wake consumers and acks=all.
	HighWatermark bool
	// Role: the View changed in role, leader or epoch. Publish it, wake everyone.
	Role bool
	// ISR: the in-sync replicas changed. Publish the View, look at acks=all again.
	ISR bool
	// LowWatermark: the least log start offset of the replicas may have risen.
	LowWatermark bool
	// Alter, if not nil, is to be sent to the controller.
	Alter *AlterPartition
}

// Any tells whether there is something to do.
func (e Effects) Any() bool {
	return e.HighWatermark || e.Role || e.ISR || e.LowWatermark || e.Alter != nil
}

// AlterPartition asks the controller for another ISR (KIP-497). The epochs say
// what the wish is based on.
type AlterPartition struct {
	TopicID        protocol.TopicID
	LeaderEpoch    protocol.LeaderEpoch
	PartitionEpoch int32
	ISR            []ISRMember // recovery state RECOVERED goes with it always (KIP-704)
}

// ISRMember is a replica with the epoch of the broker's registration that
// fetched, so that a broker restarted since then is not let in (KIP-903).
type ISRMember struct {
	ID          protocol.NodeID
	BrokerEpoch protocol.BrokerEpoch // -1: not known; the sender fills in its own
}

// View is what readers need to decide by themselves, without the lock. It is
// replaced, never changed.
type View struct {
	State
	Role Role
	// EpochStart is the log end when this leader's epoch began; NoOffset unless
	// leader.
	EpochStart protocol.Offset
	// MaximalISR is the ISR together with a member whose joining is not yet
	// confirmed.
	MaximalISR []protocol.NodeID
	// MinISR is the effective min.insync.replicas.
	MinISR int
}

// InSync tells whether a node is in the committed ISR.
func (v *View) InSync(id protocol.NodeID) bool { return slices.Contains(v.ISR, id) }

// CheckEpoch compares the leader epoch that a request carries with ours
// (KIP-320): FENCED_LEADER_EPOCH if the request is behind, UNKNOWN_LEADER_EPOCH
// if we are. NoLeaderEpoch is not compared.
func (v *View) CheckEpoch(current protocol.LeaderEpoch) error {
	switch {
	case current == protocol.NoLeaderEpoch || current == v.LeaderEpoch:
		return nil
	case current < v.LeaderEpoch:
		return protocol.Errorf(protocol.FencedLeaderEpoch, "the leader epoch %d of the request is older than %d", current, v.LeaderEpoch)
	}
	return protocol.Errorf(protocol.UnknownLeaderEpoch, "the leader epoch %d of the request is newer than %d", current, v.LeaderEpoch)
}

// CheckRead decides whether a request may read here: the epoch first, then, if
// leaderOnly, the role (Partition.localLogWithEpochOrThrow).
func (v *View) CheckRead(current protocol.LeaderEpoch, leaderOnly bool) error {
	if v.Role == Offline {
		return protocol.Errorf(protocol.KafkaStorageError, "the log directory of the partition is offline")
	}
	if err := v.CheckEpoch(current); err != nil {
		return err
	}
	if v.Role == None || leaderOnly && v.Role != Leader {
		return protocol.Errorf(protocol.NotLeaderOrFollower, "this node is not the leader of the partition")
	}
	return nil
}

// CheckFollower decides whether a replica that fetches is one of ours. With a
// matching epoch in the request it may be about to be added, so it is told to
// retry; without one nobody knows whose view is stale.
func (v *View) CheckFollower(replica protocol.NodeID, current protocol.LeaderEpoch) error {
	if slices.Contains(v.Replicas, replica) && replica != v.Leader {
		return nil
	}
	if current != protocol.NoLeaderEpoch {
		return protocol.Errorf(protocol.UnknownLeaderEpoch, "node %d is not yet known as a replica of the partition", replica)
	}
	return protocol.Errorf(protocol.NotLeaderOrFollower, "node %d is not known as a replica of the partition", replica)
}

// CheckLatest refuses to name the latest offset while the high watermark has
// not yet reached what earlier leaders had committed: OFFSET_NOT_AVAILABLE
// (KIP-207).
func (v *View) CheckLatest(highWatermark protocol.Offset) error {
	if v.Role == Leader && v.EpochStart > highWatermark {
		return protocol.Errorf(protocol.OffsetNotAvailable,
			"the high watermark %d is still behind the start %d of leader epoch %d", highWatermark, v.EpochStart, v.LeaderEpoch)
	}
	return nil
}
