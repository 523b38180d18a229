package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/producer"
	"ottla/storage/segment"
)

const (
	// txnEntryBytes is the size of an entry of a .txnindex (AbortedTxn.json).
	txnEntryBytes = 34
	// mostProducers is how many a replay remembers before it gives up.
	mostProducers = 1 << 20
)

// producerCheck replays the producers of a log, to compare them with the snapshots.
type producerCheck struct {
	files []protocol.Offset // snapshots that the walk has not passed yet
	state *producer.State
	known bool // the state is that of the log so far
	weak  bool // it was, until offsets were missing: what compaction removed is not known
}

// begin starts with nothing, which is right for a log from offset 0 on; any other starts at its first snapshot.
func (p *producerCheck) begin(base protocol.Offset) {
	p.state = producer.New(math.MaxInt64 * time.Nanosecond)
	p.known = base == 0
}

// forget gives up until the next snapshot.
func (p *producerCheck) forget() { p.known = false }

func (l *logCheck) snapshotFile(at protocol.Offset) string { return l.segmentFile(at, snapshotSuffix) }

// passSnapshots compares the snapshots of offsets up to the given one, whose batch comes next.
func (l *logCheck) passSnapshots(upTo protocol.Offset) {
	p := &l.producers
	for len(p.files) > 0 && p.files[0] <= upTo {
		at := p.files[0]
		p.files = p.files[1:]
		producers, ok := l.readProducers(at)
		switch {
		case !ok:
		case at < l.next && !l.lost:
			l.note(LeftOver, l.snapshotFile(at), -1, l.name, "it is of an offset within a batch; a start removes it")
		case p.known:
			l.compareProducers(at, producers)
		default:
			p.state.Load(producers, at, 0)
			p.known, p.weak = true, l.sparse
		}
	}
}

// readProducers reads a snapshot and looks for what no replay gives.
func (l *logCheck) readProducers(at protocol.Offset) ([]producer.Producer, bool) {
	file := l.snapshotFile(at)
	data := l.readSmall(l.d, file)
	if data == nil {
		return nil, false
	}
	producers, err := producer.ReadSnapshot(data)
	if err == nil {
		err = possible(producers, at)
	}
	if err != nil {
		// It is not made durable before the recovery point is, since what it says can be replayed.
		l.tell(l.d.clean, ProducerSnapshot, file, -1, l.name, "%v", err)
		return nil, false
	}
	return producers, true
}

func possible(producers []producer.Producer, at protocol.Offset) error {
	ids, opened := map[protocol.ProducerID]bool{}, map[protocol.Offset]bool{}
	for i := range producers {
		p := &producers[i]
		switch {
		case p.ID < 0 || ids[p.ID]:
			return fmt.Errorf("producer %d is in it twice, or is none", p.ID)
		case p.TxnFirstOffset >= at || p.TxnFirstOffset >= 0 && opened[p.TxnFirstOffset]:
			return fmt.Errorf("producer %d cannot have a transaction open since offset %d", p.ID, p.TxnFirstOffset)
		}
		for _, b := range p.Batches() {
			if b.LastOffset >= at || b.OffsetDelta < 0 || b.FirstOffset() < 0 {
				return fmt.Errorf("producer %d cannot have written the offsets %d to %d", p.ID, b.FirstOffset(), b.LastOffset)
			}
		}
		ids[p.ID] = true
		opened[p.TxnFirstOffset] = true
	}
	return nil
}

// compareProducers holds a snapshot against the replay.
func (l *logCheck) compareProducers(at protocol.Offset, producers []producer.Producer) {
	p, file := &l.producers, l.snapshotFile(at)
	settled := l.sure(at - 1)
	told := map[protocol.ProducerID]bool{}
	for i := range producers {
		have := &producers[i]
		told[have.ID] = true
		if why := differs(have, p.state.Lookup(have.ID), p.weak || l.sparse); why != "" {
			l.tell(settled, ProducerState, file, -1, l.name, "producer %d: %s", have.ID, why)
			return
		}
	}
	unseen := 0
	for _, replayed := range p.state.Producers() {
		if told[replayed.ID] || p.weak || l.sparse {
			continue
		}
		if replayed.TxnFirstOffset != protocol.NoOffset {
			l.tell(settled, ProducerState, file, -1, l.name, "producer %d has a transaction open since offset %d, and is not in it", replayed.ID, replayed.TxnFirstOffset)
			return
		}
		unseen++
	}
	if unseen > 0 {
		l.note(ProducerUnseen, file, -1, l.name, "the log has %s that it does not have: they may have expired", count(int64(unseen), "producer"))
	}
}

// differs tells how a producer of a snapshot differs from that of the replay.
func differs(have, replayed *producer.Producer, weak bool) string {
	if replayed == nil {
		if weak {
			return ""
		}
		return "the log up to the snapshot's offset has no batch of it"
	}
	last := func(p *producer.Producer) (b producer.Batch) {
		b = producer.Batch{LastSequence: record.NoSequence, LastOffset: protocol.NoOffset}
		if n := len(p.Batches()); n > 0 {
			b = p.Batches()[n-1]
		}
		b.TimestampMs = 0 // a snapshot has one timestamp for all
		return b
	}
	if weak {
		if have.Epoch < replayed.Epoch || last(have).LastOffset < last(replayed).LastOffset && have.Epoch == replayed.Epoch {
			return fmt.Sprintf("its epoch %d and last offset %d are behind those of the log, %d and %d",
				have.Epoch, last(have).LastOffset, replayed.Epoch, last(replayed).LastOffset)
		}
		return ""
	}
	switch {
	case have.Epoch != replayed.Epoch:
		return fmt.Sprintf("its epoch is %d, that of the log %d", have.Epoch, replayed.Epoch)
	case last(have) != last(replayed):
		return fmt.Sprintf("its last batch is %+v, that of the log %+v", last(have), last(replayed))
	case have.LastTimestampMs != replayed.LastTimestampMs:
		return fmt.Sprintf("its timestamp is %d, that of the log %d", have.LastTimestampMs, replayed.LastTimestampMs)
	case have.CoordinatorEpoch != replayed.CoordinatorEpoch:
		return fmt.Sprintf("its coordinator epoch is %d, that of the log %d", have.CoordinatorEpoch, replayed.CoordinatorEpoch)
	case have.TxnFirstOffset != replayed.TxnFirstOffset:
		return fmt.Sprintf("its open transaction begins at %d, that of the log at %d (-1: none)", have.TxnFirstOffset, replayed.TxnFirstOffset)
	}
	return ""
}

// applyProducer enters a batch into the replay.
func (s *segmentCheck) applyProducer(f found, b record.Batch) {
	p := &s.producers
	if !p.known {
		s.exact = false
		return
	}
	var marker *producer.Marker
	if b.IsControl() && b.HasProducerID() && f.whole {
		if m, err := producer.ReadMarker(b); err == nil {
			marker = &m
		}
	}
	if done, ended := p.state.Apply(b, marker); ended && done.Aborted {
		s.aborted = append(s.aborted, segment.AbortedTxn{
			ProducerID: done.ProducerID, FirstOffset: done.FirstOffset, LastOffset: done.LastOffset, LastStableOffset: done.LastStableOffset,
		})
	}
	p.state.Replicated(b.NextOffset())
	if p.state.Len() > mostProducers {
		s.note(NotRead, s.file, f.position, s.name, "the log has more than %d producers, so they are not compared with the snapshots behind", mostProducers)
		p.files = slices.DeleteFunc(p.files, func(protocol.Offset) bool { return true })
		p.state.Reset(b.NextOffset())
		p.forget()
	}
}

func describeAborted(t segment.AbortedTxn) string {
	return fmt.Sprintf("the transaction of producer %d from offset %d to %d (last stable offset %d)", t.ProducerID, t.FirstOffset, t.LastOffset, t.LastStableOffset)
}
