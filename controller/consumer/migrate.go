package consumer

import (
	"ottla/controller/assign"
	"ottla/protocol"
)

// ClassicMember is a member of a classic group on its way from or to one of the
// next generation.
type ClassicMember struct {
	ID                 string
	InstanceID         *string
	ClientID           string
	ClientHost         string
	RebalanceTimeoutMs int32
	Classic
}

// Upgrading is a classic group that is to become one of the next generation
// because a member of that has come.
type Upgrading struct {
	ProtocolType string
	Protocol     *string // that the group has selected; nil: it never has
	Generation   int32
	Members      []ClassicMember
	Assignments  [][]byte // by the place in Members
}

// MayUpgrade checks whether a classic group may be upgraded.
func (u *Upgrading) MayUpgrade(t *Turn, group string) error {
	refuse := func(why string) error {
		return protocol.Errorf(protocol.GroupIDNotFound, "Cannot upgrade classic group %s to consumer group because %s.", group, why)
	}
	switch {
	case !t.Settings.Upgrade:
		return refuse("online upgrade is disabled")
	case u.ProtocolType != protocolType:
		return refuse("the group does not use the consumer embedded protocol")
	case len(u.Members) > t.Settings.MaxSize:
		return refuse("the group size exceeds the consumer group maximum size")
	case u.Protocol == nil:
		return protocol.Errorf(protocol.UnknownServerError, "the classic group %s has not selected a protocol yet", group)
	}
	return nil
}

// Upgrade makes a group out of a classic one, with the same members, assignments
// and generation, and writes it; the caller has written that the classic one is
// gone. The group is not the one that Replay will make of the records, but a
// decision may go on with it.
func Upgrade(t *Turn, id string, u *Upgrading) (*Group, error) {
	refuse := func(why string) (*Group, error) {
		return nil, protocol.Errorf(protocol.GroupIDNotFound, "Cannot upgrade classic group %s to consumer group because %s.", id, why)
	}
	if err := u.MayUpgrade(t, id); err != nil {
		return nil, err
	}
	g := New(id)
	g.epoch, g.targetEpoch = u.Generation, u.Generation
	for i := range u.Members {
		c := &u.Members[i]
		target := assign.Assignment{}
		if len(u.Assignments[i]) > 0 {
			assignment, err := readAssignment(u.Assignments[i])
			switch {
			case err != nil:
				return refuse("the embedded consumer protocol is malformed")
			case len(assignment.UserData) > 0:
				return refuse("an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor before re-attempting the upgrade")
			}
			for _, topic := range assignment.Topics {
				if topicID, exists := t.Topics.id(topic.Topic); exists {
					target[topicID] = sortedPartitions(topic.Partitions)
				}
			}
		}
		m, err := c.upgrade(*u.Protocol, u.Generation, target)
		if err != nil {
			return refuse("the embedded consumer protocol is malformed")
		}
		g.adopt(m, target)
	}
	g.metadataHash = t.Topics.hash(g.wantedTopics(noMember, noMember))
	g.WriteAll(t)
	for _, id := range g.memberIDs() {
		t.arm(Session, id, g.members[id].Classic.SessionTimeoutMs)
	}
	return g, nil
}

// upgrade gives a classic member as a group of the next generation has it.
func (c *ClassicMember) upgrade(selected string, generation int32, target assign.Assignment) (*Member, error) {
	m := newMember(c.ID)
	var metadata []byte
	for _, p := range c.Protocols {
		if p.Name == selected {
			metadata = p.Metadata
			break
		}
	}
	subscription, err := readSubscription(metadata)
	if err != nil {
		return nil, err
	}
	m.InstanceID, m.ClientID, m.ClientHost, m.RebalanceTimeoutMs = c.InstanceID, c.ClientID, c.ClientHost, c.RebalanceTimeoutMs
	if subscription.Rack != nil && *subscription.Rack != "" {
		m.RackID = subscription.Rack
	}
	classic := c.Classic
	m.Classic, m.Topics = &classic, distinct(subscription.Topics)
	m.Epoch, m.PreviousEpoch, m.Assigned = generation, generation, Owned{}
	for topic, partitions := range target {
		for _, partition := range partitions {
			m.Assigned.put(topic, partition, generation)
		}
	}
	return m, nil
}

// adopt takes a whole member into a group that is being made.
func (g *Group) adopt(m *Member, target assign.Assignment) {
	g.members[m.ID], g.target[m.ID] = m, target
	g.count(m, 1)
	g.claim(m)
}

// Downgraded is what a group becomes when only members of the classic protocol
// remain: a classic group with them in this order, Stable or, if Rebalance says
// so, about to rebalance.
type Downgraded struct {
	Generation int32
	Members    []ClassicMember
	Targets    []assign.Assignment // by the place in Members
	Rebalance  bool
}

// mayDowngrade tells whether the group is to become a classic one when members
// leave.
func (g *Group) mayDowngrade(t *Turn, leaving []*Member) bool {
	classics, remain := g.classics, len(g.members)-len(leaving)
	for _, m := range leaving {
		if m.Classic != nil {
			classics--
		}
	}
	return remain > 0 && classics == remain && t.Settings.Downgrade && remain <= t.Settings.ClassicMaxSize
}

// mayDowngradeFor tells whether the group is to become a classic one when a member
// of the classic protocol takes another's place.
func (g *Group) mayDowngradeFor(t *Turn, replaced *Member) bool {
	return replaced.Classic == nil && g.classics == len(g.members)-1 && t.Settings.Downgrade && len(g.members) <= t.Settings.ClassicMaxSize
}

// downgrade makes the group a classic one: without those who leave, or with one
// that takes another's place. The caller makes that group out of t.Classic.
func (g *Group) downgrade(t *Turn, leaving []*Member, joining *Member, rebalance bool) {
	t.Classic = &Downgraded{Generation: g.epoch, Rebalance: rebalance}
	var replaced *Member
	if joining != nil {
		replaced = g.static(joining.InstanceID)
		g.writeTombstones(t, replaced.ID, joining.ID)
	} else {
		g.WriteTombstones(t)
	}
	gone := map[string]bool{}
	for _, m := range leaving {
		gone[m.ID] = true
	}
	for _, id := range g.memberIDs() {
		t.cancelAll(id)
		if m := g.members[id]; !gone[id] && m != replaced {
			t.Classic.add(m, g.target[id])
		}
	}
	if joining != nil {
		t.cancelAll(joining.ID)
		t.Classic.add(joining, g.target[replaced.ID])
	}
	t.cancel(Regex, "")
}

func (d *Downgraded) add(m *Member, target assign.Assignment) {
	d.Members = append(d.Members, ClassicMember{
		ID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
		RebalanceTimeoutMs: m.RebalanceTimeoutMs, Classic: *m.Classic,
	})
	d.Targets = append(d.Targets, target)
}
