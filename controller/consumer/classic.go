package consumer

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// protocolType is that of all members.
const protocolType = "consumer"

// joinKnowsMemberID is the version of JoinGroup from which on a dynamic member
// gets its id first and joins with it (KIP-394).
const joinKnowsMemberID = 4

// Join takes in a member of the classic protocol. It waits for nobody: the
// generation that it is told is its epoch, and it learns of the next one by a
// heartbeat. rebalanceTimeoutMs is the request's or what stands for it.
func (g *Group) Join(t *Turn, m *kmsg.JoinGroupRequest, rebalanceTimeoutMs int32, from Sender, newID func() string) (*kmsg.JoinGroupResponse, error) {
	response := m.ResponseKind().(*kmsg.JoinGroupResponse)
	id := m.MemberID
	if id == "" {
		id = newID()
	}
	if err := g.mayJoin(t, m, id); err != nil {
		return nil, err
	}
	if m.Version >= joinKnowsMemberID && m.InstanceID == nil && m.MemberID == "" {
		response.MemberID, response.ErrorCode = id, int16(protocol.MemberIDRequired)
		return response, nil
	}
	member, err := g.joiner(t, m, id)
	if err != nil {
		return nil, err
	}
	subscription, err := readSubscription(m.Protocols[0].Metadata)
	if err != nil {
		return nil, protocol.Errorf(protocol.InconsistentGroupProtocol, "Malformed embedded consumer protocol in subscription deserialization.")
	}
	updated := member.joined(m, subscription, rebalanceTimeoutMs, from)
	if updated, err = g.settleJoin(t, member, updated, subscription); err != nil {
		return nil, err
	}
	if t.Classic == nil {
		t.cancel(Join, updated.ID)
		t.arm(Session, updated.ID, m.SessionTimeoutMillis)
		t.arm(Sync, updated.ID, rebalanceTimeoutMs)
	}
	response.MemberID, response.Generation = updated.ID, updated.Epoch
	response.ProtocolType, response.Protocol = kmsg.StringPtr(protocolType), kmsg.StringPtr(updated.Classic.Protocols[0].Name)
	return response, nil
}

// mayJoin checks a JoinGroup before it changes anything.
func (g *Group) mayJoin(t *Turn, m *kmsg.JoinGroupRequest, id string) error {
	if !t.Settings.Upgrade && !t.Settings.Downgrade {
		return protocol.Errorf(protocol.InconsistentGroupProtocol,
			"Cannot join the consumer group %s with the classic protocol because the group migration is disabled.", g.id)
	}
	if err := g.full(t, id, m.InstanceID); err != nil {
		return err
	}
	supported := slices.ContainsFunc(m.Protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return g.protocols[p.Name] == g.classics })
	if m.ProtocolType != protocolType || !supported {
		return protocol.Errorf(protocol.InconsistentGroupProtocol, "Member %s's protocols are not supported.", id)
	}
	return nil
}

// joiner finds the member that a JoinGroup is of, or makes it.
func (g *Group) joiner(t *Turn, m *kmsg.JoinGroupRequest, id string) (*Member, error) {
	known := g.members[id]
	if m.InstanceID != nil {
		static := g.static(m.InstanceID)
		switch {
		case m.MemberID != "":
			return static, g.checkStatic(static, id, *m.InstanceID)
		case static != nil:
			return g.replace(t, static, id), nil
		}
	}
	if known == nil {
		known = newMember(id)
	}
	return known, nil
}

// joined gives the member with what a JoinGroup tells.
func (m *Member) joined(r *kmsg.JoinGroupRequest, subscription *kmsg.ConsumerMemberMetadata, rebalanceTimeoutMs int32, from Sender) *Member {
	next := *m
	if r.InstanceID != nil {
		next.InstanceID = r.InstanceID
	}
	if subscription.Rack != nil && *subscription.Rack != "" {
		next.RackID = subscription.Rack
	}
	next.RebalanceTimeoutMs, next.Topics, next.Regex = rebalanceTimeoutMs, distinct(subscription.Topics), new(string)
	next.ClientID, next.ClientHost = from.ClientID, from.ClientHost
	next.Classic = &Classic{SessionTimeoutMs: r.SessionTimeoutMillis}
	for _, p := range r.Protocols {
		next.Classic.Protocols = append(next.Classic.Protocols, ClassicProtocol{p.Name, bytes.Clone(p.Metadata)})
	}
	return &next
}

// settleJoin decides where a member that joins stands. One that takes the place of
// the last member of the next generation makes the group a classic one.
func (g *Group) settleJoin(t *Turn, member, updated *Member, subscription *kmsg.ConsumerMemberMetadata) (*Member, error) {
	replaced := g.static(updated.InstanceID)
	downgrade := replaced != nil && g.mayDowngradeFor(t, replaced)
	changed := g.maybeWriteMember(t, member, updated)
	regex, err := g.updateRegex(t, member, updated)
	if err != nil {
		return nil, err
	}
	changed = changed || regex != regexSame
	epoch := g.epoch
	if changed || g.seen != t.Topics.image {
		epoch = g.updateTopics(t, changed, member, updated)
	}
	s := step{subscriptionChanged: changed, owned: t.Topics.owned(subscription)}
	if !downgrade {
		s.target, s.targetEpoch = g.updateTarget(t, epoch, member, updated)
		return g.reconcile(t, updated, s)
	}
	rebalance := g.targetEpoch < epoch
	if !rebalance {
		s.target, s.targetEpoch = g.targetOf(updated), g.targetEpoch
		if updated, err = g.reconcile(t, updated, s); err != nil {
			return nil, err
		}
	}
	g.downgrade(t, nil, updated, rebalance)
	return updated, nil
}

// Sync tells a member of the classic protocol what it has.
func (g *Group) Sync(t *Turn, m *kmsg.SyncGroupRequest) (*kmsg.SyncGroupResponse, error) {
	member, err := g.classicMember(m.MemberID, m.InstanceID, m.Generation)
	if err != nil {
		return nil, err
	}
	protocolName := member.Classic.Protocols[0].Name
	switch {
	case m.ProtocolType != nil && *m.ProtocolType != protocolType, m.Protocol != nil && *m.Protocol != protocolName:
		return nil, protocol.InconsistentGroupProtocol.Err()
	}
	response := m.ResponseKind().(*kmsg.SyncGroupResponse)
	if g.targetEpoch > member.Epoch && member.State != Revoking {
		t.armIfUnset(Join, member.ID, member.RebalanceTimeoutMs)
		response.ErrorCode = int16(protocol.RebalanceInProgress)
		return response, nil
	}
	t.cancel(Sync, member.ID)
	t.arm(Session, member.ID, member.Classic.SessionTimeoutMs)
	response.ProtocolType, response.Protocol = m.ProtocolType, m.Protocol
	response.MemberAssignment = t.Topics.AppendAssignment(nil, member.Assigned.partitions(), member.Classic.Protocols[0].Metadata)
	return response, nil
}

// Beat prolongs the session of a member of the classic protocol, and tells it to
// join again if there is another step for it.
func (g *Group) Beat(t *Turn, m *kmsg.HeartbeatRequest) error {
	member, err := g.classicMember(m.MemberID, m.InstanceID, m.Generation)
	if err != nil {
		return err
	}
	t.arm(Session, member.ID, member.Classic.SessionTimeoutMs)
	if member.Epoch < g.targetEpoch || member.State == Revoking || member.State == Releasing && !g.waits(member) {
		t.armIfUnset(Join, member.ID, member.RebalanceTimeoutMs)
		return protocol.RebalanceInProgress.Err()
	}
	return nil
}

// waits tells that others still have partitions that a member is to get.
func (g *Group) waits(m *Member) bool {
	for topic, partitions := range g.target[m.ID] {
		for _, partition := range partitions {
			if !m.Assigned.has(topic, partition) && !g.free(topic, partition) {
				return true
			}
		}
	}
	return false
}

// classicMember checks that a member is of the classic protocol and speaks of its
// generation.
func (g *Group) classicMember(id string, instanceID *string, generation int32) (*Member, error) {
	m := g.members[id]
	if instanceID != nil {
		m = g.static(instanceID)
		if err := g.checkStatic(m, id, *instanceID); err != nil {
			return nil, err
		}
	}
	switch {
	case m == nil, m.Classic == nil:
		return nil, protocol.UnknownMemberID.Err()
	case m.Epoch != generation:
		return nil, protocol.IllegalGeneration.Err()
	}
	return m, nil
}

// LeaveClassic removes members by LeaveGroup, of whatever protocol they are.
func (g *Group) LeaveClassic(t *Turn, leavers []kmsg.LeaveGroupRequestMember) (outcomes []protocol.ErrorCode) {
	var leaving []*Member
	for _, leaver := range leavers {
		m := g.members[leaver.MemberID]
		outcome := protocol.None
		switch {
		case leaver.InstanceID != nil:
			m = g.static(leaver.InstanceID)
			if m == nil || leaver.MemberID != "" {
				outcome = protocol.CodeOf(g.checkStatic(m, leaver.MemberID, *leaver.InstanceID))
			}
		case m == nil:
			outcome = protocol.UnknownMemberID
		}
		if outcome == protocol.None && !slices.Contains(leaving, m) {
			leaving = append(leaving, m)
		}
		outcomes = append(outcomes, outcome)
	}
	if len(leaving) > 0 {
		g.fence(t, leaving...)
	}
	return outcomes
}
