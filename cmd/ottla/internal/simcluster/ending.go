package simcluster

import (
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
)

// patience is how long after the faults all must be well again, in the time of the run.
const patience = 60 * time.Second

// heal ends the faults.
func (s *Simulation) heal() {
	s.ending = true
	s.network.Healthy = true
	clear(s.network.Cut)
	for _, m := range s.machines {
		m.pausedUntil, m.doom.In = time.Time{}, 0
		if !m.up {
			m.boot()
		}
	}
	s.AllWell("are all well", 100*time.Millisecond, 100*time.Millisecond, patience, s.unwell, func() {
		s.verify()
		s.over = true
	})
}

// unwell tells what is not yet as it should be.
func (s *Simulation) unwell() string {
	for _, p := range s.producers {
		if !p.done {
			return "a producer of " + p.tp.String() + " has no answer"
		}
	}
	for _, m := range s.machines {
		if m.manager == nil {
			return m.name() + " is down"
		}
	}
	for _, tp := range s.tps {
		state := s.controller.image().partitions[tp]
		if len(state.ISR) != len(state.Replicas) || len(state.Replicas) != 3 {
			return tp.String() + " has replicas that are not in sync"
		}
		if state.Leader < 1 {
			return tp.String() + " has no leader"
		}
		leader, err := s.machines[state.Leader-1].manager.Describe(tp)
		if err != nil || leader.HighWatermark != leader.LogEndOffset {
			return "not all records of " + tp.String() + " are committed"
		}
		for _, id := range state.Replicas {
			m := s.machines[id-1]
			d, err := m.manager.Describe(tp)
			if err != nil || d.HighWatermark != leader.HighWatermark || d.LogEndOffset != leader.LogEndOffset {
				return fmt.Sprintf("%d has %s from %d to %d with %d committed, but the leader from %d to %d",
					m.id, tp, d.LogStartOffset, d.LogEndOffset, d.HighWatermark, leader.LogStartOffset, leader.LogEndOffset)
			}
		}
	}
	return ""
}

// verify: all replicas are equal, and have what was acknowledged, once.
func (s *Simulation) verify() {
	for _, tp := range s.tps {
		var first map[protocol.Offset]stamp
		start := protocol.Offset(0) // where all logs begin: a power cut may have undone deletions
		replicas := s.controller.image().partitions[tp].Replicas
		for _, id := range replicas {
			m := s.machines[id-1]
			start = max(start, m.store.Log(tp).View().LogStartOffset)
		}
		for _, id := range replicas {
			m := s.machines[id-1]
			found := map[protocol.Offset]stamp{}
			s.newBatches(tp, m.store.Log(tp), start, m.store.Log(tp).View().LogEndOffset, func(b record.Batch) {
				if b.NextOffset() > start {
					found[b.BaseOffset()] = stamp{b.PartitionLeaderEpoch(), b.CRC()}
				}
			})
			if first == nil {
				first = found
				s.verifyValues(tp, m)
				continue
			}
			s.compare(tp, m, first, found)
		}
	}
}

func (s *Simulation) compare(tp protocol.TopicPartition, m *machine, first, found map[protocol.Offset]stamp) {
	least := protocol.Offset(-1)
	for offset, is := range first {
		if found[offset] != is && (least < 0 || offset < least) {
			least = offset
		}
	}
	if least >= 0 || len(first) != len(found) {
		s.Violate("%d has another log of %s than 1 has, from %d on (%d batches, not %d)", m.id, tp, least, len(found), len(first))
	}
}

// verifyValues looks for what was acknowledged, and for what is there twice.
func (s *Simulation) verifyValues(tp protocol.TopicPartition, m *machine) {
	at := map[protocol.Offset]string{}
	once := map[string]protocol.Offset{}
	view := m.store.Log(tp).View()
	s.newBatches(tp, m.store.Log(tp), view.LogStartOffset, view.LogEndOffset, func(b record.Batch) {
		offset := b.BaseOffset()
		for r, err := range record.Records(b, s.pool, 1<<20) {
			must(err)
			value := string(r.Value)
			if before, twice := once[value]; twice && s.safe() && s.deletedUpTo[tp] == 0 {
				s.Violate("%s is in %s twice, at %d and %d", value, tp, before, offset)
			}
			once[value], at[offset] = offset, value
			offset++
		}
	})
	if !s.safe() {
		return
	}
	for _, a := range s.acked {
		for i, value := range a.values {
			offset := a.base + protocol.Offset(i)
			if a.tp == tp && offset >= max(view.LogStartOffset, s.deletedUpTo[tp]) && at[offset] != value {
				s.Violate("%s was acknowledged at offset %d of %s, where there is %q", value, offset, tp, at[offset])
			}
		}
	}
}
