package simcluster

import (
	"slices"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

type diskOf = vfs.Mem

// truth is what was ever seen in any log.
type truth struct {
	written   map[written]uint32 // the checksum of a batch: of an epoch and offset there is one
	committed map[protocol.TopicPartition]*committed
}

type written struct {
	tp    protocol.TopicPartition
	epoch protocol.LeaderEpoch
	base  protocol.Offset
}

// committed is what is below anybody's high watermark.
type committed struct {
	end     protocol.Offset
	batches map[protocol.Offset]stamp
}

type stamp struct {
	epoch protocol.LeaderEpoch
	crc   uint32
}

func newTruth() truth {
	return truth{written: map[written]uint32{}, committed: map[protocol.TopicPartition]*committed{}}
}

func (t *truth) of(tp protocol.TopicPartition) *committed {
	c := t.committed[tp]
	if c == nil {
		c = &committed{batches: map[protocol.Offset]stamp{}}
		t.committed[tp] = c
	}
	return c
}

// seen is what was looked at already of a replica of a process.
type seen struct {
	end           protocol.Offset
	highWatermark protocol.Offset
	epoch         protocol.LeaderEpoch
	role          partition.Role
}

// observe holds what must be true against every replica that has changed.
func (s *Simulation) observe() {
	for _, m := range s.machines {
		if m.manager == nil || m.image == nil {
			continue
		}
		for _, tp := range s.tps {
			s.observeReplica(m, tp)
		}
	}
}

func (s *Simulation) observeReplica(m *machine, tp protocol.TopicPartition) {
	l := m.store.Log(tp)
	d, err := m.manager.Describe(tp)
	if l == nil || err != nil {
		delete(m.seen, tp)
		return
	}
	last := m.seen[tp]
	if last == nil {
		last = &seen{end: d.LogStartOffset, highWatermark: d.LogStartOffset, epoch: -1}
		m.seen[tp] = last
	}
	view := d.View
	now := seen{d.LogEndOffset, d.HighWatermark, view.LeaderEpoch, view.Role}
	if now == *last {
		return
	}
	if d.HighWatermark > d.LogEndOffset {
		s.Violate("the high watermark %d of %s on %d is beyond its end %d", d.HighWatermark, tp, m.id, d.LogEndOffset)
	}
	sameRole := now.epoch == last.epoch && now.role == last.role
	if now.highWatermark < last.highWatermark && (s.safe() || sameRole && now.role == partition.Leader) {
		s.Violate("the high watermark of %s on %d moves back from %d to %d", tp, m.id, last.highWatermark, now.highWatermark)
	}
	if now.end < last.end {
		s.counts.Truncations++
		if sameRole && now.role == partition.Leader {
			s.Violate("the leader %d of %s truncates its log from %d to %d", m.id, tp, last.end, now.end)
		}
	}
	s.newBatches(tp, l, max(min(last.end, now.end), d.LogStartOffset), now.end, func(b record.Batch) { s.wrote(m, tp, b) })
	if s.safe() && now.highWatermark > last.highWatermark {
		s.newBatches(tp, l, max(last.highWatermark, d.LogStartOffset), now.highWatermark, func(b record.Batch) { s.commit(tp, b, m.name()) })
	}
	if m.suspect[tp] <= d.LogEndOffset {
		delete(m.suspect, tp)
	}
	if now.role == partition.Leader {
		if last.role != partition.Leader || last.epoch != now.epoch {
			s.counts.Elections++
			s.elected(m, tp, view, d.LogEndOffset)
		}
		s.leading(m, tp, view, now)
	}
	*last = now
}

func (m *machine) name() string { return string(rune('0' + m.id)) }

// newBatches visits the batches of a stretch of a log.
func (s *Simulation) newBatches(tp protocol.TopicPartition, l *log.Log, from, to protocol.Offset, visit func(b record.Batch)) {
	for from < to {
		read, err := l.Read(from, 1<<20, to, true)
		if err != nil {
			s.Violate("%s cannot be read at %d: %v", tp, from, err)
			return
		}
		bytes, err := read.Region.ReadAll()
		read.Region.Release()
		if err != nil || len(bytes) == 0 {
			return
		}
		for len(bytes) > 0 {
			batch, rest, err := record.Next(bytes)
			if err != nil {
				s.Violate("%s holds at %d what is no batch: %v", tp, from, err)
				return
			}
			visit(batch)
			from, bytes = batch.NextOffset(), rest
		}
	}
}

// wrote: of an epoch and an offset there is one batch, in all logs, for ever.
func (s *Simulation) wrote(m *machine, tp protocol.TopicPartition, b record.Batch) {
	key := written{tp, b.PartitionLeaderEpoch(), b.BaseOffset()}
	crc := b.CRC()
	if before, known := s.truth.written[key]; known && before != crc {
		s.Violate("%d has another batch at offset %d of epoch %d of %s than there was", m.id, key.base, key.epoch, tp)
	}
	s.truth.written[key] = crc
}

// commit: what was committed once stays so.
func (s *Simulation) commit(tp protocol.TopicPartition, b record.Batch, who string) {
	c := s.truth.of(tp)
	is := stamp{b.PartitionLeaderEpoch(), b.CRC()}
	if before, known := c.batches[b.BaseOffset()]; known && before != is {
		s.Violate("%s has for committed at %d of %s what is of epoch %d, but it was of epoch %d", who, b.BaseOffset(), tp, is.epoch, before.epoch)
	} else if !known && b.BaseOffset() < c.end {
		s.Violate("%s has a batch at %d of %s, where there was none when it was committed", who, b.BaseOffset(), tp)
	}
	c.batches[b.BaseOffset()] = is
	c.end = max(c.end, b.NextOffset())
}

// elected: who is elected from the in-sync replicas has all that is committed.
func (s *Simulation) elected(m *machine, tp protocol.TopicPartition, view *partition.View, end protocol.Offset) {
	if c := s.truth.of(tp); s.safe() && end < c.end && view.LeaderEpoch == s.controller.image().partitions[tp].LeaderEpoch {
		s.Violate("%d leads %s in epoch %d with a log up to %d, but %d was committed", m.id, tp, view.LeaderEpoch, end, c.end)
	}
}

// joins: who is let in has all that is committed. Of a process that has not registered yet the controller cannot know.
func (s *Simulation) joins(tp protocol.TopicPartition, id protocol.NodeID) {
	m := s.machines[id-1]
	if !s.safe() || m.manager == nil || s.controller.incarnations[id].incarnation != m.incarnation {
		return
	}
	c := s.truth.of(tp)
	if end, err := m.manager.LogEnd(tp); err == nil && end < c.end {
		s.Violate("%d is let in for %s with a log up to %d, but %d is committed", id, tp, end, c.end)
	}
}

// leading: the high watermark is not beyond what the maximal in-sync replicas have, and the controller's are among these.
func (s *Simulation) leading(m *machine, tp protocol.TopicPartition, view *partition.View, now seen) {
	state := s.controller.image().partitions[tp]
	if state.LeaderEpoch != view.LeaderEpoch {
		return
	}
	for _, id := range state.ISR {
		if !slices.Contains(view.MaximalISR, id) {
			s.Violate("%d is in sync in %s for the controller, but the leader %d counts %v", id, tp, m.id, view.MaximalISR)
		}
	}
	if !s.safe() {
		return
	}
	for _, id := range view.MaximalISR {
		other := s.machines[id-1]
		if other.manager == nil || other.suspect[tp] > 0 {
			continue
		}
		if end, err := other.manager.LogEnd(tp); err == nil && end < now.highWatermark {
			s.Violate("the leader %d of %s has committed %d, but %d, which is in sync, ends at %d", m.id, tp, now.highWatermark, id, end)
		}
	}
}
