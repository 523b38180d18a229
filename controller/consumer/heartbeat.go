package consumer

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/assign"
	"ottla/protocol"
)

// heartbeatHasMemberID is the version from which on a member makes its own id.
const heartbeatHasMemberID = 1

// Validate checks what a heartbeat must be whatever group it is for, in the order
// of Apache Kafka 4.4.0.
func Validate(m *kmsg.ConsumerGroupHeartbeatRequest, settings *Settings) error {
	invalid := func(text string) error { return protocol.Errorf(protocol.InvalidRequest, "%s", text) }
	empty := func(text *string) bool { return text != nil && strings.TrimSpace(*text) == "" }
	named := m.Version >= heartbeatHasMemberID || m.MemberEpoch > 0 || m.MemberEpoch == leaveEpoch
	switch {
	case named && empty(&m.MemberID):
		return invalid("MemberId can't be empty.")
	case empty(&m.Group):
		return invalid("GroupId can't be empty.")
	case empty(m.InstanceID):
		return invalid("InstanceId can't be empty.")
	case empty(m.RackID):
		return invalid("RackId can't be empty.")
	case m.MemberEpoch == 0 && m.RebalanceTimeoutMillis == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case m.MemberEpoch == 0 && (m.Topics == nil || len(m.Topics) > 0):
		return invalid("TopicPartitions must be empty when (re-)joining.")
	case m.MemberEpoch == 0 && m.SubscribedTopicNames == nil && m.SubscribedTopicRegex == nil:
		return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case m.MemberEpoch == staticAway && m.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case m.MemberEpoch < staticAway:
		return invalid("MemberEpoch is invalid.")
	case m.ServerAssignor != nil && !slices.Contains(settings.Assignors, *m.ServerAssignor):
		return protocol.Errorf(protocol.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.",
			*m.ServerAssignor, strings.Join(settings.Assignors, ", "))
	}
	return nil
}

// Leaves tells whether a heartbeat is a member's last one.
func Leaves(m *kmsg.ConsumerGroupHeartbeatRequest) bool {
	return m.MemberEpoch == leaveEpoch || m.MemberEpoch == staticAway
}

// Heartbeat takes a member in or keeps it, and brings it one step nearer to what
// it is to have. memberID is the request's, or a new one.
func (g *Group) Heartbeat(t *Turn, m *kmsg.ConsumerGroupHeartbeatRequest, memberID string, from Sender) (*kmsg.ConsumerGroupHeartbeatResponse, error) {
	if err := g.full(t, m.MemberID, m.InstanceID); err != nil {
		return nil, err
	}
	owned := ownedTopics(m.Topics)
	member, err := g.heartbeatOf(t, m, memberID, owned)
	if err != nil {
		return nil, err
	}
	updated := member.told(m, from)
	namesChanged := g.maybeWriteMember(t, member, updated)
	regex, err := g.updateRegex(t, member, updated)
	if err != nil {
		return nil, err
	}
	bump := namesChanged || regex == regexResolved || g.preferred(t, member, member) != g.preferred(t, member, updated)
	epoch := g.epoch
	if bump || g.seen != t.Topics.image {
		epoch = g.updateTopics(t, bump, member, updated)
	}
	target, targetEpoch := g.updateTarget(t, epoch, member, updated)
	before := updated
	updated, err = g.reconcile(t, updated, step{
		target: target, targetEpoch: targetEpoch, subscriptionChanged: namesChanged || regex != regexSame, owned: owned,
	})
	if err != nil {
		return nil, err
	}
	t.arm(Session, updated.ID, t.sessionTimeoutMs(g.id))
	response := m.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	response.MemberID, response.MemberEpoch, response.HeartbeatIntervalMillis = &updated.ID, updated.Epoch, t.heartbeatIntervalMs(g.id)
	full := m.RebalanceTimeoutMillis != -1 && (m.SubscribedTopicNames != nil || m.SubscribedTopicRegex != nil) && m.Topics != nil
	changed := updated != before && !member.Assigned.equal(updated.Assigned)
	if m.MemberEpoch == 0 || full || changed {
		response.Assignment = updated.Assigned.response()
	}
	return response, nil
}

// heartbeatOf finds the member that a heartbeat is of, or makes it.
func (g *Group) heartbeatOf(t *Turn, m *kmsg.ConsumerGroupHeartbeatRequest, memberID string, owned map[protocol.TopicID][]int32) (*Member, error) {
	joins := m.MemberEpoch == 0
	if m.InstanceID == nil {
		member := g.members[memberID]
		switch {
		case member != nil:
		case joins:
			member = newMember(memberID)
		default:
			return nil, g.unknownMember(memberID)
		}
		return member, member.checkEpoch(m.MemberEpoch, owned)
	}
	member := g.static(m.InstanceID)
	switch {
	case joins && member == nil:
		if member = g.members[memberID]; member == nil {
			member = newMember(memberID)
		}
		return member, nil
	case joins && member.Classic == nil && member.Epoch != staticAway:
		return nil, protocol.Errorf(protocol.UnreleasedInstanceID,
			"Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", memberID, *m.InstanceID, member.ID)
	case joins:
		return g.replace(t, member, memberID), nil
	}
	if err := g.checkStatic(member, memberID, *m.InstanceID); err != nil {
		return nil, err
	}
	return member, member.checkEpoch(m.MemberEpoch, owned)
}

func (g *Group) unknownMember(id string) error {
	return protocol.Errorf(protocol.UnknownMemberID, "Member %s is not a member of group %s.", id, g.id)
}

// checkStatic checks that an instance id is known and is the member's.
func (g *Group) checkStatic(member *Member, memberID, instanceID string) error {
	switch {
	case member == nil:
		return protocol.Errorf(protocol.UnknownMemberID, "Instance id %s is unknown.", instanceID)
	case member.ID != memberID:
		return protocol.Errorf(protocol.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", memberID, instanceID, member.ID)
	}
	return nil
}

// replace gives a static member that comes back its new id, with everything that
// the old one has.
func (g *Group) replace(t *Turn, old *Member, id string) *Member {
	next := *old
	next.ID, next.Epoch, next.PreviousEpoch = id, 0, 0
	g.removeMember(t, old.ID)
	g.writeMember(t, &next)
	g.writeTarget(t, id, g.target[old.ID])
	g.writeCurrent(t, &next)
	t.cancelAll(old.ID)
	return &next
}

// full refuses a new member for which there is no room.
func (g *Group) full(t *Turn, memberID string, instanceID *string) error {
	if g.static(instanceID) != nil || len(g.members) < t.Settings.MaxSize || memberID != "" && g.members[memberID] != nil {
		return nil
	}
	return protocol.Errorf(protocol.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", t.Settings.MaxSize)
}

// checkEpoch refuses a member that is not where it should be. One step behind is
// fine if it has no more than is assigned to it: it has missed an answer.
func (m *Member) checkEpoch(epoch int32, owned map[protocol.TopicID][]int32) error {
	text := ""
	switch {
	case epoch == 0 || epoch == m.Epoch:
		return nil
	case epoch > m.Epoch:
		text = "greater"
	case epoch == m.PreviousEpoch && m.Assigned.covers(owned):
		return nil
	default:
		text = "smaller"
	}
	return protocol.Errorf(protocol.FencedMemberEpoch,
		"The consumer group member has a %s member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.",
		text, epoch, m.Epoch)
}

// covers tells that a member has told what it owns, and that it is all here.
func (o Owned) covers(owned map[protocol.TopicID][]int32) bool {
	if owned == nil {
		return false
	}
	for topic, partitions := range owned {
		if o[topic] == nil {
			return false
		}
		for _, partition := range partitions {
			if !o.has(topic, partition) {
				return false
			}
		}
	}
	return true
}

// told gives the member with what a heartbeat tells.
func (m *Member) told(r *kmsg.ConsumerGroupHeartbeatRequest, from Sender) *Member {
	next := *m
	update := func(field **string, value *string) {
		if value != nil {
			*field = value
		}
	}
	update(&next.InstanceID, r.InstanceID)
	update(&next.RackID, r.RackID)
	update(&next.Assignor, r.ServerAssignor)
	update(&next.Regex, r.SubscribedTopicRegex)
	if r.RebalanceTimeoutMillis != -1 {
		next.RebalanceTimeoutMs = r.RebalanceTimeoutMillis
	}
	if r.SubscribedTopicNames != nil {
		next.Topics = distinct(r.SubscribedTopicNames)
	}
	next.ClientID, next.ClientHost, next.Classic = from.ClientID, from.ClientHost, nil
	return &next
}

// maybeWriteMember writes what a member has told if it is new, and tells whether
// the topics are others.
func (g *Group) maybeWriteMember(t *Turn, member, updated *Member) (namesChanged bool) {
	if updated.tellsTheSame(member) {
		return false
	}
	g.writeMember(t, updated)
	return !slices.Equal(updated.Topics, member.Topics)
}

// ownedTopics is what a member says it has; nil: it does not say.
func ownedTopics(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) map[protocol.TopicID][]int32 {
	if topics == nil {
		return nil
	}
	owned := map[protocol.TopicID][]int32{}
	for _, topic := range topics {
		owned[topic.TopicID] = append(owned[topic.TopicID], topic.Partitions...)
	}
	return owned
}

func (o Owned) response() *kmsg.ConsumerGroupHeartbeatResponseAssignment {
	assignment := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	for _, topic := range sortedTopics(o) {
		one := kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{TopicID: topic, Partitions: partitionsOf(o[topic])}
		assignment.Topics = append(assignment.Topics, one)
	}
	return &assignment
}

// Leave lets a member go: for good, or, a static one, until it comes back.
func (g *Group) Leave(t *Turn, m *kmsg.ConsumerGroupHeartbeatRequest) (*kmsg.ConsumerGroupHeartbeatResponse, error) {
	response := m.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	response.MemberID, response.MemberEpoch = &m.MemberID, m.MemberEpoch
	if m.InstanceID == nil {
		member := g.members[m.MemberID]
		if member == nil {
			return nil, g.unknownMember(m.MemberID)
		}
		g.fence(t, member)
		return response, nil
	}
	member := g.static(m.InstanceID)
	if err := g.checkStatic(member, m.MemberID, *m.InstanceID); err != nil {
		return nil, err
	}
	if m.MemberEpoch != staticAway {
		g.fence(t, member)
		return response, nil
	}
	// Its partitions stay with it until its session ends; of commits it makes no
	// more, the epochs at which it got them are no one's.
	away := *member
	away.Epoch, away.Pending, away.Assigned = staticAway, nil, member.Assigned.at(0)
	g.writeCurrent(t, &away)
	return response, nil
}

// noTarget is what a member is to have of which no target tells.
var noTarget = assign.Assignment{}
