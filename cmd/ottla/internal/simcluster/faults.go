package simcluster

import (
	"slices"
	"time"

	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// faults has something go wrong now and then.
func (s *Simulation) faults() {
	r := s.random.Fork()
	s.NowAndThen("a fault is due", r.Between(300*time.Millisecond, 600*time.Millisecond), func() (time.Duration, bool) {
		if s.ending {
			return 0, true
		}
		s.fault(r)
		return r.Between(0, s.plan.calm), false
	})
}

func (s *Simulation) fault(r *seeded.Random) {
	m := s.machines[r.Below(len(s.machines))]
	tp := s.tps[r.Below(len(s.tps))]
	switch choice := r.Below(20); {
	case choice < 6:
		s.cutLinks(r)
	case choice < 8:
		if m.up {
			s.counts.Pauses++
			m.pausedUntil = s.Now.Add(r.Between(20*time.Millisecond, 2*s.plan.lagMax))
			s.Linef("%d pauses", m.id)
		}
	case choice < 10:
		s.controller.moveLeader(tp, m.id)
	case choice == 10:
		s.controller.reassign(tp, s.machines[r.Below(len(s.machines))].id, m.id)
	case choice == 11 && s.plan.kind == wild:
		s.controller.electUnclean(tp, m.id)
	case choice == 12 && s.plan.kind == flush && r.Chance(300):
		for _, each := range s.machines {
			s.strike(r, each)
		}
	case choice == 13 && s.plan.deletes:
		s.deleteRecords(r, m, tp)
	case choice > 13:
		if s.mayFail(m) {
			s.strike(r, m)
		}
	}
}

// mayFail tells whether a machine may stop, in this kind of run, at this moment.
func (s *Simulation) mayFail(m *machine) bool {
	if !m.up || m.manager == nil {
		return false
	}
	if s.plan.kind != minority {
		return true
	}
	// Two others must have what is acknowledged, whatever becomes of this one.
	for _, tp := range s.tps {
		state := s.controller.image().partitions[tp]
		if !slices.Contains(state.Replicas, m.id) {
			continue
		}
		healthy := 0
		for _, id := range state.ISR {
			other := s.machines[id-1]
			noticed := s.controller.incarnations[id].incarnation == other.incarnation
			if other != m && other.up && other.doom.In == 0 && noticed && len(other.suspect) == 0 && s.controller.image().active(id) {
				healthy++
			}
		}
		if healthy < 2 {
			return false
		}
	}
	return true
}

// strike ends a process, in one way or another.
func (s *Simulation) strike(r *seeded.Random, m *machine) {
	if !m.up || m.stopping {
		return
	}
	back := r.Between(time.Millisecond, 3*time.Second)
	if r.Chance(300) {
		back = r.Between(time.Millisecond, 50*time.Millisecond) // before anybody notices
	}
	switch choice := r.Below(13); {
	case choice >= 10:
		m.doom = seeded.Doom{In: 1 + r.Below(30), LosesPower: r.Chance(700), Back: back}
		incarnation := m.incarnation
		s.After(500*time.Millisecond, "a crash is due", func() {
			if m.up && m.incarnation == incarnation && !s.ending {
				m.die(m.disk.Kill(), back)
			}
		})
	case choice < 2 && m.image != nil:
		s.counts.Stops++
		m.stopping = true
		s.controller.shutDown(m.id)
		s.Linef("%d is to stop", m.id)
		incarnation := m.incarnation
		s.After(time.Second, "a stop takes too long", func() {
			if m.up && m.incarnation == incarnation {
				m.die(m.disk.Kill(), back)
			}
		})
		s.rebootWhenDown(m, back)
		return
	case choice < 4:
		s.counts.Kills++
		s.Linef("%d is killed", m.id)
		m.die(m.disk.Kill(), back)
	case choice < 7 || s.plan.kind == flush:
		s.counts.PowerCuts++
		s.Linef("%d loses its power", m.id)
		m.loses()
		m.die(m.disk.Crash(), back)
	default:
		s.wipe(m, back)
	}
}

// loseWhileJoining takes a machine's disk away while the wish to let it in is under way (KAFKA-14139).
func (s *Simulation) loseWhileJoining(r *seeded.Random, m *machine) bool {
	if s.ending || s.plan.kind != minority || !s.mayFail(m) {
		return false
	}
	s.After(0, "a replica that is about to join loses its disk", func() {
		if m.up && !m.stopping && s.mayFail(m) {
			s.wipe(m, r.Between(time.Millisecond, 30*time.Millisecond))
		}
	})
	return true
}

func (s *Simulation) wipe(m *machine, back time.Duration) {
	s.counts.Wipes++
	s.Linef("%d loses its disk", m.id)
	m.loses()
	m.format()
	m.die(m.disk, back)
}

// loses notes that what the machine has acknowledged may be missing from now on.
func (m *machine) loses() {
	for _, tp := range m.s.tps {
		end, _ := m.manager.LogEnd(tp) // of one that is not here nothing was acknowledged
		m.suspect[tp] = max(m.suspect[tp], m.s.truth.of(tp).end, end)
	}
}

// die ends the process, and boots another one later.
func (m *machine) die(disk *diskOf, back time.Duration) {
	m.end(disk, false)
	m.s.After(back, "a machine boots", func() {
		if !m.up {
			m.boot()
		}
	})
}

// rebootWhenDown boots a machine some time after it has stopped in order.
func (s *Simulation) rebootWhenDown(m *machine, back time.Duration) {
	s.After(back+50*time.Millisecond, "a stopped machine boots", func() {
		switch {
		case m.up && m.stopping:
			s.rebootWhenDown(m, back)
		case !m.up:
			m.boot()
		}
	})
}

func (s *Simulation) cutLinks(r *seeded.Random) {
	s.counts.Cuts++
	until := s.Now.Add(r.Between(10*time.Millisecond, 3*s.plan.lagMax))
	s.network.CutSome(r, []int{controllerEnd, 1, 2, 3, 4}[:1+len(s.machines)], until)
}

func (s *Simulation) deleteRecords(r *seeded.Random, m *machine, tp protocol.TopicPartition) {
	if !m.up || m.image == nil {
		return
	}
	highWatermark, err := m.manager.HighWatermark(tp)
	if err != nil || highWatermark < 1 {
		return
	}
	upTo := protocol.Offset(r.Next() % uint64(highWatermark+1))
	m.enter("deletes records", func() {
		m.manager.DeleteRecords(s.Now, tp, upTo, 100*time.Millisecond, func(_ protocol.Offset, err error) {
			s.Linef("records of %s are deleted up to %d: %v", tp, upTo, err)
		})
	})
	if d, err := m.manager.Describe(tp); err == nil && d.LogStartOffset >= upTo {
		s.counts.Deletes++
		s.deletedUpTo[tp] = max(s.deletedUpTo[tp], upTo)
	}
}
