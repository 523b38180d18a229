package consumer

import (
	"maps"
	"slices"

	"ottla/controller/assign"
	"ottla/protocol"
)

// step is what a member's next step depends on.
type step struct {
	target              assign.Assignment
	targetEpoch         int32
	subscriptionChanged bool
	owned               map[protocol.TopicID][]int32 // what the member says it has; nil: it does not say
}

// reconcile brings a member one step nearer to the target and writes where it
// stands, if that has changed.
func (g *Group) reconcile(t *Turn, m *Member, s step) (*Member, error) {
	if !s.subscriptionChanged && m.reconciled(s.targetEpoch) {
		return m, nil
	}
	next, err := g.next(t, m, s)
	if err != nil {
		return nil, err
	}
	if next.standsTheSame(m) {
		return next, nil
	}
	g.writeCurrent(t, next)
	switch {
	case next.Classic != nil:
	case next.State == Revoking:
		t.Alarms = append(t.Alarms, Alarm{Timer: Timer{Rebalance, next.ID}, AfterMs: next.RebalanceTimeoutMs, Epoch: next.Epoch})
	default:
		t.cancel(Rebalance, next.ID)
	}
	return next, nil
}

// next is the member after its next step (CurrentAssignmentBuilder of Apache
// Kafka 4.4.0).
func (g *Group) next(t *Turn, m *Member, s step) (*Member, error) {
	switch m.State {
	case Stable:
		switch {
		case m.Epoch != s.targetEpoch:
			return g.toTarget(t, m, m.Epoch, s), nil
		case s.subscriptionChanged:
			return g.withoutUnwanted(t, m, s), nil
		}
		return m, nil
	case Revoking:
		switch {
		case !has(s.owned, m.Pending):
			return g.toTarget(t, m, m.Epoch, s), nil
		case s.subscriptionChanged:
			return g.withoutUnwanted(t, m, s), nil
		}
		return m, nil
	case Releasing:
		return g.toTarget(t, m, m.Epoch, s), nil
	}
	if s.owned == nil || len(s.owned) > 0 {
		return nil, protocol.Errorf(protocol.FencedMemberEpoch,
			"The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.")
	}
	return g.toTarget(t, m, s.targetEpoch, s), nil
}

// has tells whether a member has any of the partitions still. If it does not say,
// it has.
func has(owned map[protocol.TopicID][]int32, any Owned) bool {
	if owned == nil {
		return true
	}
	for topic, partitions := range owned {
		if slices.ContainsFunc(partitions, func(partition int32) bool { return any.has(topic, partition) }) {
			return true
		}
	}
	return false
}

// wants tells which topics a member subscribes to, of those that exist.
func (g *Group) wants(t *Turn, m *Member) func(protocol.TopicID) bool {
	names := g.topicNames(m)
	return func(id protocol.TopicID) bool {
		topic := t.Topics.image.TopicByID(id)
		if topic == nil {
			return false
		}
		_, found := slices.BinarySearch(names, topic.Name)
		return found
	}
}

// withoutUnwanted takes from a member, at its epoch, what it does not subscribe to
// any more: the target may be old.
func (g *Group) withoutUnwanted(t *Turn, m *Member, s step) *Member {
	wants := g.wants(t, m)
	assigned, pending := maps.Clone(m.Assigned), maps.Clone(m.Pending)
	changed := len(g.topicNames(m)) == 0 && len(m.Pending) == 0 // Kafka does not look at what there is to take
	for topic, partitions := range m.Assigned {
		if wants(topic) {
			continue
		}
		changed = true
		delete(assigned, topic)
		if pending == nil {
			pending = Owned{}
		}
		merged := maps.Clone(pending[topic])
		if merged == nil {
			merged = map[int32]int32{}
		}
		maps.Copy(merged, partitions)
		pending[topic] = merged
	}
	switch {
	case !changed:
		return m
	case len(pending) > 0 && has(s.owned, pending):
		return m.moved(Revoking, m.Epoch, assigned, pending)
	}
	return m.moved(m.State, m.Epoch, assigned, m.Pending)
}

// toTarget takes from a member what the target does not give it; once it has
// nothing of that, it goes to the target's epoch and gets what is free.
func (g *Group) toTarget(t *Turn, m *Member, epoch int32, s step) *Member {
	wants := g.wants(t, m)
	assigned, pending := Owned{}, Owned{}
	for topic, partitions := range m.Assigned {
		keeps := s.target[topic]
		if !wants(topic) {
			keeps = nil
		}
		for partition, since := range partitions {
			if _, kept := slices.BinarySearch(keeps, partition); kept {
				assigned.put(topic, partition, since)
			} else {
				pending.put(topic, partition, since)
			}
		}
	}
	if len(pending) > 0 && has(s.owned, pending) {
		return m.moved(Revoking, epoch, assigned, pending)
	}
	state := Stable
	for topic, partitions := range s.target {
		if !wants(topic) {
			continue
		}
		for _, partition := range partitions {
			switch {
			case m.Assigned.has(topic, partition):
			case g.free(topic, partition) || m.Pending.has(topic, partition):
				assigned.put(topic, partition, s.targetEpoch)
			default:
				state = Releasing
			}
		}
	}
	return m.moved(state, s.targetEpoch, assigned, nil)
}

// free tells that nobody has a partition.
func (g *Group) free(topic protocol.TopicID, partition int32) bool {
	_, taken := g.owners[topic][partition]
	return !taken
}
