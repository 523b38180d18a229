package simbrokers

import (
	"slices"
	"time"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/protocol"
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
	for tp, state := range s.controllers.truth.partitions() {
		others := slices.DeleteFunc(append(slices.Clone(state.ISR), state.ELR...), func(id protocol.NodeID) bool { return id == m.id })
		if len(others) == 0 {
			s.Note(tp.String() + " has nobody else")
			return false
		}
	}
	return true
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
	s.network.CutSome(r, []int{1, 2, 3, firstController, firstController + 1, firstController + 2}, until)
}
