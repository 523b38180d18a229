package simcluster

import (
	"slices"
	"time"

	"ottla/protocol"
)

// faults has something go wrong now and then.
func (s *Simulation) faults() {
	r := s.random.fork()
	var next func()
	next = func() {
		if s.ending {
			return
		}
		s.fault(r)
		s.after(r.between(0, s.plan.calm), "a fault is due", next)
	}
	s.after(r.between(300*time.Millisecond, 600*time.Millisecond), "a fault is due", next)
}

func (s *Simulation) fault(r *random) {
	m := s.machines[r.below(len(s.machines))]
	tp := s.tps[r.below(len(s.tps))]
	switch choice := r.below(20); {
	case choice < 6:
		s.cutLinks(r)
	case choice < 8:
		if m.up {
			s.counts.Pauses++
			m.pausedUntil = s.now.Add(r.between(20*time.Millisecond, 2*s.plan.lagMax))
			s.linef("%d pauses", m.id)
		}
	case choice < 10:
		s.controller.moveLeader(tp, m.id)
	case choice == 10:
		s.controller.reassign(tp, s.machines[r.below(len(s.machines))].id, m.id)
	case choice == 11 && s.plan.kind == wild:
		s.controller.electUnclean(tp, m.id)
	case choice == 12 && s.plan.kind == flush && r.chance(300):
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
			if other != m && other.up && other.crashIn == 0 && noticed && len(other.suspect) == 0 && s.controller.image().active(id) {
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
func (s *Simulation) strike(r *random, m *machine) {
	if !m.up || m.stopping {
		return
	}
	back := r.between(time.Millisecond, 3*time.Second)
	if r.chance(300) {
		back = r.between(time.Millisecond, 50*time.Millisecond) // before anybody notices
	}
	switch choice := r.below(13); {
	case choice >= 10:
		m.crashIn, m.losesPower, m.back = 1+r.below(30), r.chance(700), back
		incarnation := m.incarnation
		s.after(500*time.Millisecond, "a crash is due", func() {
			if m.up && m.incarnation == incarnation && !s.ending {
				m.die(m.disk.Kill(), back)
			}
		})
	case choice < 2 && m.image != nil:
		s.counts.Stops++
		m.stopping = true
		s.controller.shutDown(m.id)
		s.linef("%d is to stop", m.id)
		incarnation := m.incarnation
		s.after(time.Second, "a stop takes too long", func() {
			if m.up && m.incarnation == incarnation {
				m.die(m.disk.Kill(), back)
			}
		})
		s.rebootWhenDown(m, back)
		return
	case choice < 4:
		s.counts.Kills++
		s.linef("%d is killed", m.id)
		m.die(m.disk.Kill(), back)
	case choice < 7 || s.plan.kind == flush:
		s.counts.PowerCuts++
		s.linef("%d loses its power", m.id)
		m.loses()
		m.die(m.disk.Crash(), back)
	default:
		s.wipe(m, back)
	}
}

// loseWhileJoining takes a machine's disk away while the wish to let it in is under way (KAFKA-14139).
func (s *Simulation) loseWhileJoining(r *random, m *machine) bool {
	if s.ending || s.plan.kind != minority || !s.mayFail(m) {
		return false
	}
	s.after(0, "a replica that is about to join loses its disk", func() {
		if m.up && !m.stopping && s.mayFail(m) {
			s.wipe(m, r.between(time.Millisecond, 30*time.Millisecond))
		}
	})
	return true
}

func (s *Simulation) wipe(m *machine, back time.Duration) {
	s.counts.Wipes++
	s.linef("%d loses its disk", m.id)
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
	m.s.after(back, "a machine boots", func() {
		if !m.up {
			m.boot()
		}
	})
}

// rebootWhenDown boots a machine some time after it has stopped in order.
func (s *Simulation) rebootWhenDown(m *machine, back time.Duration) {
	s.after(back+50*time.Millisecond, "a stopped machine boots", func() {
		switch {
		case m.up && m.stopping:
			s.rebootWhenDown(m, back)
		case !m.up:
			m.boot()
		}
	})
}

func (s *Simulation) cutLinks(r *random) {
	s.counts.Cuts++
	until := s.now.Add(r.between(10*time.Millisecond, 3*s.plan.lagMax))
	ends := []int{controllerEnd, 1, 2, 3, 4}[:1+len(s.machines)]
	if r.chance(500) { // one way between two
		from, to := ends[r.below(len(ends))], ends[r.below(len(ends))]
		s.network.cut[[2]int{from, to}] = until
		s.linef("nothing passes from %d to %d", from, to)
		return
	}
	one := ends[r.below(len(ends))]
	for _, other := range ends { // one is cut off, both ways
		s.network.cut[[2]int{one, other}] = until
		s.network.cut[[2]int{other, one}] = until
	}
	s.linef("%d is cut off", one)
}

func (s *Simulation) deleteRecords(r *random, m *machine, tp protocol.TopicPartition) {
	if !m.up || m.image == nil {
		return
	}
	highWatermark, err := m.manager.HighWatermark(tp)
	if err != nil || highWatermark < 1 {
		return
	}
	upTo := protocol.Offset(r.next() % uint64(highWatermark+1))
	m.enter("deletes records", func() {
		m.manager.DeleteRecords(s.now, tp, upTo, 100*time.Millisecond, func(_ protocol.Offset, err error) {
			s.linef("records of %s are deleted up to %d: %v", tp, upTo, err)
		})
	})
	if d, err := m.manager.Describe(tp); err == nil && d.LogStartOffset >= upTo {
		s.counts.Deletes++
		s.deletedUpTo[tp] = max(s.deletedUpTo[tp], upTo)
	}
}
