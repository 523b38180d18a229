package simbrokers

import (
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/vfs"
)

// faults has something go wrong now and then.
func (s *Simulation) faults() {
	r := s.random.Fork()
	s.NowAndThen("a fault is due", r.Between(time.Second, 3*time.Second), func() (time.Duration, bool) {
		if s.ending {
			return 0, true
		}
		s.fault(r)
		return r.Between(0, s.plan.calm), false
	})
}

func (s *Simulation) fault(r *seeded.Random) {
	m := s.machines[r.Below(len(s.machines))]
	switch choice := r.Below(20); {
	case choice < 5:
		s.controllers.failover()
	case choice < 9:
		s.cutLinks(r)
	case choice < 11:
		if m.up {
			s.counts.Pauses++
			m.pausedUntil = s.Now.Add(r.Between(20*time.Millisecond, 2*s.plan.session))
			s.Linef("%d pauses", m.id)
		}
	case choice > 12:
		s.strike(r, m)
	}
}

// mayLose tells whether a machine may lose what it has not synced: another one that is there has all that is committed of each
// partition, and the controllers know it.
func (s *Simulation) mayLose(m *machine) bool {
	for _, other := range s.machines {
		if other != m && (!other.up || !other.opened || other.doom.In > 0 || other.suspect || !s.controllers.truth.registered(other)) {
			return false
		}
	}
	for tp, state := range s.controllers.decided() {
		if !slices.Contains(state.ISR, m.id) && !slices.Contains(state.ELR, m.id) && !state.IsReassigning() {
			continue
		}
		others := slices.DeleteFunc(append(slices.Clone(state.ISR), state.ELR...), func(id protocol.NodeID) bool {
			return id == m.id || slices.Contains(state.RemovingReplicas, id)
		})
		if len(others) == 0 {
			s.Note(tp.String() + " has nobody else")
			return false
		}
	}
	return true
}

// isOutside tells whether nothing counts on a machine: it is in sync nowhere, and nobody is about to go in its favour. What leaders
// have asked for may still make it a member: it must be the only one of which the controllers think so wrongly, or who has
// all may stop in order while they think that there are enough.
func (s *Simulation) isOutside(m *machine) bool {
	if slices.ContainsFunc(s.machines, func(other *machine) bool { return other != m && (other.suspect || other.doom.In > 0) }) {
		return false
	}
	for _, state := range s.controllers.decided() {
		if slices.Contains(state.ISR, m.id) || slices.Contains(state.ELR, m.id) || state.IsReassigning() && state.HasReplica(m.id) {
			return false
		}
	}
	return true
}

// decided gives the states of all partitions as they are committed, and as they will be if all is that was decided.
func (c *controllers) decided() iter.Seq2[protocol.TopicPartition, *metadata.Partition] {
	return func(yield func(protocol.TopicPartition, *metadata.Partition) bool) {
		for _, image := range []*metadata.Image{c.truth.loader.Image(), c.latest.core.Image()} {
			for tp, state := range partitionsOf(image) {
				if !yield(tp, state) {
					return
				}
			}
		}
	}
}

// mayBeWiped tells whether a machine may lose its disk.
func (s *Simulation) mayBeWiped(m *machine) bool { return s.isOutside(m) || s.mayLose(m) }

// wiped gives an empty disk in the place of a machine's.
func (s *Simulation) wiped(m *machine) *vfs.Mem {
	s.counts.Wipes++
	if s.isOutside(m) {
		s.counts.WipesOutside++
	}
	s.Linef("%d loses its disk", m.id)
	m.suspect = true
	return m.newDisk()
}

// wishes is told of a wish for other in-sync replicas as it is sent. Now and then one that is named in it loses its disk at this moment
// (KAFKA-14139).
func (s *Simulation) wishes(req *kmsg.AlterPartitionRequest) {
	if !s.plan.wipes || s.ending || !s.losing.Chance(100) || len(req.Topics) == 0 {
		return
	}
	wish := &req.Topics[0].Partitions[0]
	m := s.machine(int(wish.NewEpochISR[s.losing.Below(len(wish.NewEpochISR))].BrokerID))
	back := s.losing.Between(time.Millisecond, 50*time.Millisecond)
	s.After(0, "a replica that is about to join loses its disk", func() {
		if !s.ending && m.up && m.opened && !m.stopping && m.doom.In == 0 && m.id != protocol.NodeID(req.BrokerID) && s.mayBeWiped(m) {
			s.counts.WipesInWish++
			m.die(s.wiped(m), back)
		}
	})
}

// tooLate tells which requests of an administrator are not decided any more: none that takes a replica away that may be needed, as
// another one has lost something; and nothing that changes after the faults what is then looked at.
func (s *Simulation) tooLate(req kmsg.Request) bool {
	switch req := req.(type) {
	case *kmsg.AlterPartitionAssignmentsRequest:
		suspects := slices.ContainsFunc(s.machines, func(m *machine) bool { return m.suspect || m.doom.In > 0 })
		return s.plan.reassigns && (s.ending || suspects || s.neverEnds(req))
	case *kmsg.CreateTopicsRequest:
		return s.ending && req.Topics[0].Topic == passingName
	case *kmsg.DeleteTopicsRequest:
		return s.ending
	}
	return false
}

// neverEnds tells a change of replicas in which one would be added and removed at once: it overtakes another that adds it, and adds
// nobody itself. Apache Kafka 4.4.0 keeps what is being added then, as the core does, until somebody takes it back.
func (s *Simulation) neverEnds(req *kmsg.AlterPartitionAssignmentsRequest) bool {
	asked := &req.Topics[0].Partitions[0]
	now := s.controllers.latest.core.Image().Partition(protocol.TopicPartition{Topic: req.Topics[0].Topic, Partition: asked.Partition})
	if now == nil || asked.Replicas == nil {
		return false
	}
	adds := slices.ContainsFunc(asked.Replicas, func(id int32) bool { return !now.HasReplica(protocol.NodeID(id)) })
	return !adds && slices.ContainsFunc(now.AddingReplicas, func(id protocol.NodeID) bool { return !slices.Contains(asked.Replicas, int32(id)) })
}

// strike ends a process, in one way or another.
func (s *Simulation) strike(r *seeded.Random, m *machine) {
	if !m.up || !m.opened || m.stopping || m.doom.In > 0 {
		return
	}
	back := r.Between(time.Millisecond, 3*time.Second)
	if r.Chance(300) {
		back = r.Between(time.Millisecond, 50*time.Millisecond) // before anybody notices
	}
	choice := r.Below(10)
	if choice < 3 {
		s.stopCleanly(m, back)
		return
	}
	if s.plan.wipes && choice == 3 {
		if s.mayBeWiped(m) {
			m.die(s.wiped(m), back)
		}
		return
	}
	if !s.mayLose(m) {
		return
	}
	switch {
	case choice < 5:
		s.counts.Kills++
		s.Linef("%d is killed", m.id)
		m.die(m.disk.Kill(), back)
	case choice < 8:
		s.counts.PowerCuts++
		s.Linef("%d loses its power", m.id)
		m.suspect = true
		m.die(m.disk.Crash(), back)
	default:
		m.doom = seeded.Doom{In: 1 + r.Below(30), LosesPower: r.Chance(700), Back: back}
		incarnation := m.incarnation
		s.After(500*time.Millisecond, "a crash is due", func() {
			if m.runs(incarnation) && m.doom.In > 0 {
				m.doom.In = 0
			}
		})
	}
}

func (s *Simulation) stopCleanly(m *machine, back time.Duration) {
	m.stopping = true
	s.Linef("%d is to stop", m.id)
	m.Later(0, "leaves", func() { m.enter("leaves", m.node.Leave) })
	incarnation := m.incarnation
	var look func(tries int)
	look = func(tries int) {
		switch {
		case !m.up:
			if s.plan.wipes && !s.ending && s.losing.Chance(200) && s.mayBeWiped(m) {
				m.disk, m.previous = s.wiped(m), -1
			}
			m.boot()
		case !m.runs(incarnation):
		case tries > 20 && s.mayLose(m):
			s.Linef("%d is not let go, and is killed", m.id)
			m.die(m.disk.Kill(), back)
		default:
			s.After(back+300*time.Millisecond, "a machine is to boot", func() { look(tries + 1) })
		}
	}
	s.After(back+50*time.Millisecond, "a machine is to boot", func() { look(0) })
}

func (s *Simulation) cutLinks(r *seeded.Random) {
	s.counts.Cuts++
	until := s.Now.Add(r.Between(10*time.Millisecond, 2*s.plan.session))
	ends := []int{1, 2, 3, 4}[:s.plan.machines]
	s.network.CutSome(r, append(ends, firstController, firstController+1, firstController+2), until)
}
