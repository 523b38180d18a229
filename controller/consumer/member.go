package consumer

import (
	"bytes"
	"maps"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// State is where a member stands on its way to the target assignment. The values
// are those of its record.
type State int8

// What a member may be doing. A state that is not known stands for that of a
// newer Kafka.
const (
	Stable     State = 0 // it has what the target of its epoch gives it
	Revoking   State = 1 // it is to give up partitions before it goes on
	Releasing  State = 2 // it waits for partitions that others still have
	unknown    State = 127
	noEpoch          = -1 // its current assignment was deleted
	leaveEpoch       = -1 // in a request: it leaves
	staticAway       = -2 // a static member has left and will come back
)

// Owned is what a member has: topic → partition → the epoch at which it was given
// to the member. No topic has no partitions.
type Owned map[protocol.TopicID]map[int32]int32

// Member is a member of a group. It is not changed once it is in one: a decision
// or a record makes another.
type Member struct {
	ID string

	// What it has told.
	InstanceID         *string // nil: a dynamic member
	RackID             *string
	ClientID           string
	ClientHost         string
	Topics             []string // that it subscribes to by name; sorted, each once
	Regex              *string  // nil and "" are none
	RebalanceTimeoutMs int32
	Assignor           *string // that it prefers; nil: any
	Classic            *Classic

	// Where it stands.
	Epoch, PreviousEpoch int32
	State                State
	Assigned             Owned
	Pending              Owned // pending revocation: not its any more, and nobody else's yet
}

// Classic is what a member of the classic protocol has joined with; nil for the
// others.
type Classic struct {
	SessionTimeoutMs int32
	Protocols        []ClassicProtocol // in the order of its preference
}

// ClassicProtocol is one of a classic member's protocols.
type ClassicProtocol struct {
	Name     string
	Metadata []byte // a ConsumerProtocolSubscription, with its version
}

// newMember is a member that has told nothing yet.
func newMember(id string) *Member {
	return &Member{ID: id, Regex: new(string), RebalanceTimeoutMs: -1, PreviousEpoch: noEpoch}
}

// regex is the regular expression that it subscribes by, "" for none.
func (m *Member) regex() string {
	if m.Regex == nil {
		return ""
	}
	return *m.Regex
}

func (m *Member) reconciled(targetEpoch int32) bool {
	return m.State == Stable && m.Epoch == targetEpoch
}

// tellsTheSame compares what two members have told.
func (m *Member) tellsTheSame(o *Member) bool {
	return m.ID == o.ID && equal(m.InstanceID, o.InstanceID) && equal(m.RackID, o.RackID) && m.ClientID == o.ClientID &&
		m.ClientHost == o.ClientHost && slices.Equal(m.Topics, o.Topics) && equal(m.Regex, o.Regex) &&
		m.RebalanceTimeoutMs == o.RebalanceTimeoutMs && equal(m.Assignor, o.Assignor) && m.Classic.equal(o.Classic)
}

// standsTheSame compares where two members stand.
func (m *Member) standsTheSame(o *Member) bool {
	return m.Epoch == o.Epoch && m.PreviousEpoch == o.PreviousEpoch && m.State == o.State &&
		m.Assigned.equal(o.Assigned) && m.Pending.equal(o.Pending)
}

// moved gives a member that has gone to an epoch.
func (m *Member) moved(state State, epoch int32, assigned, pending Owned) *Member {
	next := *m
	next.State, next.Epoch, next.PreviousEpoch, next.Assigned, next.Pending = state, epoch, m.Epoch, assigned, pending
	return &next
}

// assignmentEpoch is the epoch at which a partition was given to the member.
func (m *Member) assignmentEpoch(topic protocol.TopicID, partition int32) (epoch int32, has bool) {
	if epoch, has = m.Assigned[topic][partition]; !has {
		epoch, has = m.Pending[topic][partition]
	}
	return epoch, has
}

func (c *Classic) equal(o *Classic) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.SessionTimeoutMs == o.SessionTimeoutMs && slices.EqualFunc(c.Protocols, o.Protocols, func(a, b ClassicProtocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

func (o Owned) equal(other Owned) bool {
	return maps.EqualFunc(o, other, func(a, b map[int32]int32) bool { return maps.Equal(a, b) })
}

func (o Owned) has(topic protocol.TopicID, partition int32) bool {
	_, has := o[topic][partition]
	return has
}

// put gives o a partition; o must not be shared.
func (o Owned) put(topic protocol.TopicID, partition, epoch int32) {
	if o[topic] == nil {
		o[topic] = map[int32]int32{}
	}
	o[topic][partition] = epoch
}

// at gives the same partitions with one epoch for all.
func (o Owned) at(epoch int32) Owned {
	reset := Owned{}
	for topic, partitions := range o {
		for partition := range partitions {
			reset.put(topic, partition, epoch)
		}
	}
	return reset
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// tell takes over what a record says of a member's subscription.
func (m *Member) tell(value *schema.ConsumerGroupMemberMetadataValue) *Member {
	next := *m
	next.InstanceID, next.RackID, next.ClientID, next.ClientHost = value.InstanceID, value.RackID, value.ClientID, value.ClientHost
	next.Topics, next.Regex = distinct(value.SubscribedTopicNames), value.SubscribedTopicRegex
	next.RebalanceTimeoutMs, next.Assignor, next.Classic = value.RebalanceTimeoutMs, value.ServerAssignor, nil
	if c := value.ClassicMemberMetadata; c != nil {
		next.Classic = &Classic{SessionTimeoutMs: c.SessionTimeoutMs}
		for _, p := range c.SupportedProtocols {
			next.Classic.Protocols = append(next.Classic.Protocols, ClassicProtocol{p.Name, p.Metadata})
		}
	}
	return &next
}

// distinct gives names sorted and each once.
func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// stand takes over what a record says of where a member stands; nil: deleted.
func (m *Member) stand(value *schema.ConsumerGroupCurrentMemberAssignmentValue) *Member {
	next := *m
	if value == nil {
		next.Epoch, next.PreviousEpoch, next.Assigned, next.Pending = noEpoch, noEpoch, nil, nil
		return &next
	}
	next.Epoch, next.PreviousEpoch, next.State = value.MemberEpoch, value.PreviousMemberEpoch, State(value.State)
	if next.State < Stable || next.State > Releasing {
		next.State = unknown
	}
	next.Assigned = ownedOf(value.AssignedPartitions, value.MemberEpoch)
	next.Pending = ownedOf(value.PartitionsPendingRevocation, value.MemberEpoch)
	return &next
}

// ownedOf reads partitions of a record. Before 4.4 they have no epochs: the
// member's stands for them.
func ownedOf(topics []schema.ConsumerGroupCurrentMemberAssignmentTopicPartitions, memberEpoch int32) Owned {
	owned := Owned{}
	for _, topic := range topics {
		for i, partition := range topic.Partitions {
			epoch := max(0, memberEpoch)
			if len(topic.AssignmentEpochs) == len(topic.Partitions) {
				epoch = topic.AssignmentEpochs[i]
			}
			owned.put(topic.TopicID, partition, epoch)
		}
	}
	return owned
}
