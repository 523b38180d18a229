package consumer

import (
	"fmt"
	"reflect"
)

// Check tells of a broken invariant of the group. Tests call it after every step:
// it looks at everything.
func (g *Group) Check() error {
	fresh := New(g.id)
	for id, m := range g.members {
		if m.ID != id {
			return fmt.Errorf("group %q has the member %q as %q", g.id, m.ID, id)
		}
		if m.Epoch > g.targetEpoch {
			return fmt.Errorf("member %q of %q is at epoch %d, the target at %d", id, g.id, m.Epoch, g.targetEpoch)
		}
		if m.State == Stable && len(m.Pending) > 0 || m.State == Releasing && len(m.Pending) > 0 {
			return fmt.Errorf("member %q of %q is in state %d with partitions to give up", id, g.id, m.State)
		}
		if err := fresh.claimOnce(m); err != nil {
			return err
		}
		fresh.count(m, 1)
	}
	for _, found := range g.resolved {
		for _, topic := range found.topics {
			addSubscribers(fresh.topics, topic, subscribers{regexes: 1})
		}
	}
	for id := range g.target {
		if g.members[id] == nil {
			return fmt.Errorf("group %q has a target for %q, who is not in it", g.id, id)
		}
	}
	counts := func(of *Group) []any {
		return []any{of.instances, of.topics, of.regexes, of.assignors, of.owners, of.classics, of.protocols}
	}
	if kept, made := counts(g), counts(fresh); !reflect.DeepEqual(kept, made) {
		return fmt.Errorf("group %q has lost count: %v, and there are %v", g.id, kept, made)
	}
	if g.targetEpoch > g.epoch {
		return fmt.Errorf("the target of group %q is of epoch %d, the group at %d", g.id, g.targetEpoch, g.epoch)
	}
	return nil
}

// claimOnce is claim, where nobody may have a partition twice.
func (g *Group) claimOnce(m *Member) error {
	for _, owned := range []Owned{m.Assigned, m.Pending} {
		for topic, partitions := range owned {
			for partition := range partitions {
				if owner, taken := g.owners[topic][partition]; taken {
					return fmt.Errorf("%v-%d in %q is both %q's and %q's", topic, partition, g.id, owner, m.ID)
				}
			}
		}
		g.claim(&Member{ID: m.ID, Assigned: owned})
	}
	return nil
}
