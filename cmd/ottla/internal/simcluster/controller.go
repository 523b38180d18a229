package simcluster

import (
	"maps"
	"slices"

	"ottla/protocol"
	"ottla/storage/partition"
)

// image is the cluster as one version of the metadata says. It never changes.
type image struct {
	version    int
	brokers    map[protocol.NodeID]broker
	partitions map[protocol.TopicPartition]partition.State
	// eligible are replicas that are not in sync any more but have all that is committed: while fewer than min.insync.replicas
	// are in sync, nothing more is (KIP-966).
	eligible map[protocol.TopicPartition][]protocol.NodeID
	last     map[protocol.TopicPartition]protocol.NodeID // who led last
}

type broker struct {
	epoch        protocol.BrokerEpoch
	fenced       bool
	shuttingDown bool
}

// controller is the model of what decides about leaders and in-sync replicas (ReplicationControlManager).
type controller struct {
	s         *Simulation
	images    []*image
	heard     map[protocol.NodeID]int64 // milliseconds of the last heartbeat
	lastEpoch protocol.BrokerEpoch
	unclean   int // elections that lost data, perhaps

	incarnations map[protocol.NodeID]registered
	leaving      map[protocol.TopicPartition]protocol.NodeID // who is to go, once the new replica is in sync
}

// registered is the last registration of a broker.
type registered struct {
	incarnation int
	epoch       protocol.BrokerEpoch
	version     int
}

func newController(s *Simulation) *controller {
	c := &controller{
		s: s, heard: map[protocol.NodeID]int64{}, incarnations: map[protocol.NodeID]registered{},
		leaving: map[protocol.TopicPartition]protocol.NodeID{},
	}
	first := &image{
		version: 0, brokers: map[protocol.NodeID]broker{}, partitions: map[protocol.TopicPartition]partition.State{},
		eligible: map[protocol.TopicPartition][]protocol.NodeID{}, last: map[protocol.TopicPartition]protocol.NodeID{},
	}
	all := []protocol.NodeID{1, 2, 3} // a fourth machine gets its replicas later
	for i, tp := range s.tps {
		replicas := append(slices.Clone(all[i%3:]), all[:i%3]...)
		first.partitions[tp] = partition.State{
			TopicID: topicID, Leader: protocol.NoNode, LeaderEpoch: 0, PartitionEpoch: 0, ISR: replicas, Replicas: replicas,
		}
	}
	c.images = []*image{first}
	return c
}

func (c *controller) image() *image { return c.images[len(c.images)-1] }

// change makes the next version.
func (c *controller) change(decide func(next *image)) {
	last := c.image()
	next := &image{
		version: last.version + 1, brokers: map[protocol.NodeID]broker{}, partitions: map[protocol.TopicPartition]partition.State{},
		eligible: maps.Clone(last.eligible), last: maps.Clone(last.last),
	}
	for id, b := range last.brokers {
		next.brokers[id] = b
	}
	for tp, state := range last.partitions {
		next.partitions[tp] = state
	}
	decide(next)
	c.images = append(c.images, next)
}

// register gives a broker that starts a new epoch. It is fenced until it knows of that; where it did not stop in order it
// leaves the in-sync and the eligible replicas, as it may have lost what it had acknowledged (KIP-966).
func (c *controller) register(id protocol.NodeID, incarnation int, clean bool) (protocol.BrokerEpoch, int) {
	c.heard[id] = c.s.Now.UnixMilli()
	if known := c.incarnations[id]; known.incarnation == incarnation {
		return known.epoch, known.version // it asks again
	}
	c.lastEpoch++
	c.change(func(next *image) {
		next.brokers[id] = broker{epoch: c.lastEpoch, fenced: true}
		for _, tp := range c.s.tps {
			c.fenceIn(next, tp, id, !clean)
		}
	})
	c.incarnations[id] = registered{incarnation, c.lastEpoch, c.image().version}
	c.s.Linef("controller: %d registers with epoch %d", id, c.lastEpoch)
	return c.lastEpoch, c.image().version
}

// heartbeat tells a broker what is new, and lets it in once it has followed so far. False: it is to register anew.
func (c *controller) heartbeat(id protocol.NodeID, epoch protocol.BrokerEpoch, applied, needed int) bool {
	known := c.image().brokers[id]
	if known.epoch != epoch {
		return false
	}
	c.heard[id] = c.s.Now.UnixMilli()
	if known.fenced && applied >= needed {
		c.s.Linef("controller: %d is let in", id)
		c.change(func(next *image) {
			known.fenced = false
			next.brokers[id] = known
			c.electAll(next)
		})
	}
	return true
}

// tick fences brokers that are not heard of.
func (c *controller) tick() {
	for _, tp := range c.s.tps {
		c.completeReassignment(tp)
	}
	for n := range c.s.plan.machines {
		id := protocol.NodeID(n + 1)
		known, registered := c.image().brokers[id]
		if !registered || known.fenced || c.s.Now.UnixMilli()-c.heard[id] <= c.s.plan.session.Milliseconds() {
			continue
		}
		c.s.Linef("controller: %d is fenced", id)
		c.change(func(next *image) {
			known.fenced = true
			next.brokers[id] = known
			for _, tp := range c.s.tps {
				c.fenceIn(next, tp, id, false)
			}
		})
	}
}

// shutDown moves what a broker leads that is about to stop in order.
func (c *controller) shutDown(id protocol.NodeID) {
	c.change(func(next *image) {
		b := next.brokers[id]
		b.shuttingDown = true
		next.brokers[id] = b
		for _, tp := range c.s.tps {
			c.fenceIn(next, tp, id, false)
		}
	})
}

// fenceIn takes a broker out of a partition's leadership and its in-sync replicas; one that may have lost data also out of
// those that are eligible.
func (c *controller) fenceIn(next *image, tp protocol.TopicPartition, id protocol.NodeID, lostData bool) {
	state := next.partitions[tp]
	before := state
	but := func(list []protocol.NodeID) []protocol.NodeID {
		return slices.DeleteFunc(slices.Clone(list), func(member protocol.NodeID) bool { return member == id })
	}
	state.ISR = but(state.ISR)
	if state.Leader == id {
		state.Leader = protocol.NoNode
	}
	c.note(next, tp, before, state)
	if lostData {
		next.eligible[tp] = but(next.eligible[tp])
	}
	c.elect(next, tp, &state)
	if state.Leader != before.Leader || !slices.Equal(state.ISR, before.ISR) {
		c.store(next, tp, before, state)
	}
}

// note keeps the eligible replicas: who leaves the in-sync ones while these are too few, until they are enough again.
func (c *controller) note(next *image, tp protocol.TopicPartition, before, state partition.State) {
	if len(state.ISR) >= c.s.plan.minISR {
		next.eligible[tp] = nil
		return
	}
	var eligible []protocol.NodeID
	for _, id := range state.Replicas {
		was := slices.Contains(before.ISR, id) || slices.Contains(next.eligible[tp], id)
		if was && !slices.Contains(state.ISR, id) {
			eligible = append(eligible, id)
		}
	}
	next.eligible[tp] = eligible
}

// electAll gives a leader to the partitions that have none.
func (c *controller) electAll(next *image) {
	for _, tp := range c.s.tps {
		state := next.partitions[tp]
		before := state
		c.elect(next, tp, &state)
		if state.Leader != before.Leader {
			c.store(next, tp, before, state)
		}
	}
}

// active tells a broker that may lead and be in sync.
func (next *image) active(id protocol.NodeID) bool {
	b, registered := next.brokers[id]
	return registered && !b.fenced && !b.shuttingDown
}

// elect chooses a leader among the in-sync replicas, in the order of the assignment; then among the eligible ones; and where
// nobody is left who is known to have all that is committed, it waits for the last leader.
func (c *controller) elect(next *image, tp protocol.TopicPartition, state *partition.State) {
	if state.Leader != protocol.NoNode && next.active(state.Leader) {
		return
	}
	state.Leader = protocol.NoNode
	choose := func(among []protocol.NodeID) bool {
		for _, id := range state.Replicas {
			if next.active(id) && slices.Contains(among, id) {
				state.Leader = id
				return true
			}
		}
		return false
	}
	if choose(state.ISR) {
		return
	}
	last, led := next.last[tp]
	if choose(next.eligible[tp]) || led && len(state.ISR)+len(next.eligible[tp]) == 0 && choose([]protocol.NodeID{last}) {
		before := *state
		before.ISR = nil
		state.ISR = []protocol.NodeID{state.Leader}
		c.note(next, tp, before, *state)
	}
}

// store counts the epochs of a change.
func (c *controller) store(next *image, tp protocol.TopicPartition, before, state partition.State) {
	state.PartitionEpoch = before.PartitionEpoch + 1
	if state.Leader != before.Leader {
		state.LeaderEpoch = before.LeaderEpoch + 1
	}
	next.partitions[tp] = state
	if state.Leader != protocol.NoNode {
		next.last[tp] = state.Leader
	}
	c.s.Linef("controller: %s leader %d epoch %d.%d isr %v, eligible %v",
		tp, state.Leader, state.LeaderEpoch, state.PartitionEpoch, state.ISR, next.eligible[tp])
}

// moveLeader elects another in-sync replica, as an administrator or the preferred leader's return does. With the same
// leader it only counts a new epoch.
func (c *controller) moveLeader(tp protocol.TopicPartition, to protocol.NodeID) {
	now := c.image().partitions[tp]
	if !slices.Contains(now.ISR, to) || !c.image().active(to) {
		return
	}
	c.change(func(next *image) {
		state := now
		state.Leader = to
		if to == now.Leader {
			state.LeaderEpoch++
		}
		c.store(next, tp, now, state)
	})
}

// reassign adds a replica that is to take another one's place (KIP-455).
func (c *controller) reassign(tp protocol.TopicPartition, from, to protocol.NodeID) {
	now := c.image().partitions[tp]
	_, under := c.leaving[tp]
	if under || !slices.Contains(now.Replicas, from) || slices.Contains(now.Replicas, to) {
		return
	}
	c.leaving[tp] = from
	c.change(func(next *image) {
		state := now
		state.Replicas = append(slices.Clone(now.Replicas), to)
		c.store(next, tp, now, state)
	})
}

// completeReassignment takes the old replica out.
func (c *controller) completeReassignment(tp protocol.TopicPartition) {
	now := c.image().partitions[tp]
	from, under := c.leaving[tp]
	to := now.Replicas[len(now.Replicas)-1]
	but := func(list []protocol.NodeID) []protocol.NodeID {
		return slices.DeleteFunc(slices.Clone(list), func(id protocol.NodeID) bool { return id == from })
	}
	if !under || !slices.Contains(now.ISR, to) || len(but(now.ISR)) < c.s.plan.minISR {
		return
	}
	delete(c.leaving, tp)
	c.s.counts.Reassigned++
	c.change(func(next *image) {
		state := now
		state.Replicas, state.ISR = but(now.Replicas), but(now.ISR)
		if state.Leader == from {
			state.Leader = protocol.NoNode
			c.elect(next, tp, &state)
		}
		c.note(next, tp, now, state)
		c.store(next, tp, now, state)
	})
}

// electUnclean lets a replica lead that is not in sync.
func (c *controller) electUnclean(tp protocol.TopicPartition, to protocol.NodeID) {
	now := c.image().partitions[tp]
	if slices.Contains(now.ISR, to) || !slices.Contains(now.Replicas, to) || !c.image().active(to) {
		return
	}
	c.unclean++
	c.change(func(next *image) {
		state := now
		state.Leader, state.ISR = to, []protocol.NodeID{to}
		next.eligible[tp] = nil
		c.store(next, tp, now, state)
	})
}

// alter decides about a leader's wish for other in-sync replicas (validateAlterPartitionData).
func (c *controller) alter(from protocol.NodeID, epoch protocol.BrokerEpoch, tp protocol.TopicPartition, wish *partition.AlterPartition) partition.AlterResult {
	now := c.image().partitions[tp]
	refuse := func(code protocol.ErrorCode) partition.AlterResult { return partition.AlterResult{Error: code} }
	switch {
	case c.image().brokers[from].epoch != epoch:
		return refuse(protocol.StaleBrokerEpoch)
	case wish.TopicID != now.TopicID:
		return refuse(protocol.UnknownTopicID)
	case wish.LeaderEpoch > now.LeaderEpoch || wish.PartitionEpoch > now.PartitionEpoch:
		return refuse(protocol.NotController)
	case wish.LeaderEpoch < now.LeaderEpoch:
		return refuse(protocol.FencedLeaderEpoch)
	case from != now.Leader:
		return refuse(protocol.InvalidRequest)
	case wish.PartitionEpoch < now.PartitionEpoch:
		return refuse(protocol.InvalidUpdateVersion)
	}
	var isr []protocol.NodeID
	for _, member := range wish.ISR {
		known := c.image().brokers[member.ID]
		if !c.image().active(member.ID) || member.BrokerEpoch != -1 && member.BrokerEpoch != known.epoch {
			return refuse(protocol.IneligibleReplica)
		}
		isr = append(isr, member.ID)
	}
	if !slices.Contains(isr, from) {
		return refuse(protocol.InvalidRequest)
	}
	for _, id := range isr {
		if !slices.Contains(now.ISR, id) {
			c.s.joins(tp, id)
		}
	}
	c.change(func(next *image) {
		state := now
		state.ISR = isr
		c.note(next, tp, now, state)
		c.store(next, tp, now, state)
	})
	state := c.image().partitions[tp]
	return partition.AlterResult{LeaderEpoch: state.LeaderEpoch, PartitionEpoch: state.PartitionEpoch, ISR: state.ISR}
}
