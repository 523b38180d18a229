package log

import (
	"cmp"
	"errors"
	"slices"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/segment"
)

// Read is a stretch of whole batches.
type Read struct {
	Region           wire.Region     // release it once; empty if there is nothing in [from, bound)
	FirstBatchOffset protocol.Offset // base offset of the first batch, which may be below from; from if empty
	// NextOffset is not below the end of the last batch and not above the next one's base: what AbortedIn takes
	// as its end.
	NextOffset  protocol.Offset
	SegmentBase protocol.Offset
}

// Read finds whole batches from the one that holds from on, up to maxBytes, none of which reaches bound. With
// atLeastOne the first batch comes even if it is larger than maxBytes. It reads within one segment. An offset
// outside [LogStartOffset, LogEndOffset] is protocol.OffsetOutOfRange.
func (l *Log) Read(from protocol.Offset, maxBytes int, bound protocol.Offset, atLeastOne bool) (Read, error) {
	for attempt := 0; ; attempt++ {
		p := l.shown.Load()
		read, err := l.readOnce(p, from, maxBytes, bound, atLeastOne)
		if err == nil || attempt == readAttempts || !l.changed(p) {
			return read, err
		}
		// Truncation or retention took away what was being read; the new view has the answer.
	}
}

const readAttempts = 3

// changed tells that segments went away, were cut or compacted since p was published. A list of them is never changed.
func (l *Log) changed(p *published) bool {
	now := l.shown.Load()
	return now.truncations != p.truncations || now.LogStartOffset != p.LogStartOffset || &now.segments[0] != &p.segments[0]
}

func (l *Log) readOnce(p *published, from protocol.Offset, maxBytes int, bound protocol.Offset, atLeastOne bool) (Read, error) {
	if from < p.LogStartOffset || from > p.LogEndOffset {
		return Read{}, protocol.Errorf(protocol.OffsetOutOfRange, "offset %d is not within %d to %d of %s",
			from, p.LogStartOffset, p.LogEndOffset, l.tp)
	}
	if l.closed.Load() {
		return Read{}, ErrClosed
	}
	bound = min(bound, p.LogEndOffset)
	none := Read{FirstBatchOffset: from, NextOffset: from, SegmentBase: p.ActiveSegmentBase}
	if from >= bound {
		return none, nil
	}
	for i := max(p.holding(from), 0); i < len(p.segments); i++ {
		s := p.segments[i]
		if s.Base() >= bound {
			break
		}
		inner := bound
		if bound >= p.endOf(i) {
			inner = protocol.NoOffset // all of this segment
		}
		found, err := s.Read(from, int64(maxBytes), inner, p.limit(i), atLeastOne)
		if errors.Is(err, segment.ErrBeyond) {
			continue // offsets may be missing at a segment's end after compaction
		}
		if err != nil {
			return Read{}, err
		}
		if found.Next == protocol.NoOffset {
			found.Next = p.endOf(i)
		}
		return Read{found.Region, found.FirstBase, found.Next, s.Base()}, nil
	}
	return none, nil
}

// AbortedIn lists the aborted transactions that have records in [from, to), by first offset. Never nil.
func (l *Log) AbortedIn(from, to protocol.Offset) ([]wire.AbortedTransaction, error) {
	for attempt := 0; ; attempt++ {
		p := l.shown.Load()
		list, err := abortedIn(p, from, to)
		if err == nil || attempt == readAttempts || !l.changed(p) {
			return list, err
		}
	}
}

func abortedIn(p *published, from, to protocol.Offset) ([]wire.AbortedTransaction, error) {
	list := []wire.AbortedTransaction{}
	for i := max(p.holding(from), 0); i < len(p.segments) && from < to; i++ {
		more, err := p.segments[i].Aborted(from, func(t segment.AbortedTxn) bool {
			if t.FirstOffset < to {
				list = append(list, wire.AbortedTransaction{ProducerID: t.ProducerID, FirstOffset: t.FirstOffset})
			}
			return t.LastStableOffset < to // what is decided later began later
		})
		if err != nil {
			return list, err
		}
		if !more {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b wire.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return list, nil
}
