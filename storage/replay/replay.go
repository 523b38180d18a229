package replay

import (
	"errors"
	"slices"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/producer"
	"ottla/storage/segment"
)

// Never is an offset that no log reaches.
const Never protocol.Offset = 1<<63 - 1

// Snapshots are the producer snapshots of a log.
type Snapshots interface {
	// Offsets lists them, ascending.
	Offsets() []protocol.Offset
	// Read gives one; nil if it was damaged, and is gone now.
	Read(at protocol.Offset) ([]producer.Producer, error)
	// Store writes the present state as that of an offset, unless there is one.
	Store(at protocol.Offset) error
}

// Replay is one; the caller fills in what is exported.
type Replay struct {
	Segments  []*segment.Segment // at least one, by base offset
	Producers *producer.State
	Snapshots Snapshots
	To        protocol.Offset   // end of the log
	TxnsFrom  protocol.Offset   // base of the first segment whose .txnindex is in doubt; Never: none
	Wanted    []protocol.Offset // segment bases where a snapshot should be
	NowMs     int64             // for producers that have expired

	Batches   int64 // that were met
	Bytes     int64 // of these
	Rewritten int   // .txnindex files

	from    protocol.Offset
	aborted []segment.AbortedTxn // of the present segment
}

// Run replays. A *segment.Damage tells that durable bytes are damaged; other errors are the environment's.
func (r *Replay) Run() error {
	if err := r.load(min(r.To, r.TxnsFrom)); err != nil {
		return err
	}
	return r.run()
}

// holding is the index of the segment where an offset lies; -1 before the first.
func (r *Replay) holding(offset protocol.Offset) int {
	i, found := slices.BinarySearchFunc(r.Segments, offset, func(s *segment.Segment, o protocol.Offset) int {
		return int(min(max(s.Base()-o, -1), 1))
	})
	if !found {
		i--
	}
	return i
}

// load finds the newest usable snapshot at or before limit; without one the state begins empty at the first segment.
func (r *Replay) load(limit protocol.Offset) error {
	snapshots := r.Snapshots.Offsets()
	for i := len(snapshots) - 1; i >= 0; i-- {
		at := snapshots[i]
		if at > limit {
			continue
		}
		producers, err := r.read(at)
		if err != nil {
			return err
		}
		if producers != nil {
			r.from = at
			r.Producers.Load(producers, at, r.NowMs)
			return nil
		}
	}
	r.from = min(r.Segments[0].Base(), r.To)
	r.Producers.Reset(r.from)
	return nil
}

// read reads a snapshot; nil: it is of no use.
func (r *Replay) read(at protocol.Offset) ([]producer.Producer, error) {
	producers, err := r.Snapshots.Read(at)
	if err != nil {
		return nil, err
	}
	return producers, r.endCompacted(producers, at)
}

// endCompacted ends the transactions of an older snapshot that compaction has taken away since, with their markers. What
// is undecided is never compacted, so where the first batch is, the transaction is open.
func (r *Replay) endCompacted(producers []producer.Producer, at protocol.Offset) error {
	for i := range producers {
		p := &producers[i]
		if p.TxnFirstOffset == protocol.NoOffset || p.TxnFirstOffset < r.Segments[0].Base() {
			continue // none, or retention has deleted its first batch
		}
		open := false
		err := r.walk(p.TxnFirstOffset, func(b segment.Batch) error {
			h := b.Header
			if h.ProducerID() != p.ID {
				return nil
			}
			if h.BaseOffset() < at { // one of its batches is left
				open = h.IsTransactional() && !h.IsControl()
			} else { // or its marker; a batch may be of a later one, but not where nothing was compacted yet
				open = h.IsControl() || h.IsTransactional() && at >= r.Segments[len(r.Segments)-1].Base()
			}
			return segment.ErrStop
		})
		if err != nil {
			return err
		}
		if !open {
			p.TxnFirstOffset = protocol.NoOffset
		}
	}
	return nil
}

// walk visits batches from the one that holds an offset on, until segment.ErrStop.
func (r *Replay) walk(from protocol.Offset, visit func(segment.Batch) error) error {
	stopped := false
	for _, s := range r.Segments[r.holding(from):] {
		err := s.Batches(max(from, s.Base()), s.Size(), func(b segment.Batch) error {
			err := visit(b)
			stopped = errors.Is(err, segment.ErrStop)
			return err
		})
		if err != nil || stopped {
			return err
		}
	}
	return nil
}

func (r *Replay) run() error {
	if r.from == r.To && r.TxnsFrom == Never {
		return nil
	}
	for i := max(r.holding(r.from), 0); i < len(r.Segments); i++ {
		s := r.Segments[i]
		start := max(s.Base(), r.from)
		if err := r.passSnapshot(s.Base()); err != nil {
			return err
		}
		r.aborted = r.aborted[:0]
		err := s.Batches(start, s.Size(), func(b segment.Batch) error { return r.apply(s, b) })
		if err != nil {
			return err
		}
		if s.Base() >= r.TxnsFrom && s.Base() >= r.from {
			if err := r.compareTxns(s); err != nil {
				return err
			}
		}
	}
	r.Producers.SetEnd(r.To)
	return nil
}

// passSnapshot takes from a segment's snapshot what the replay cannot know, or writes one that should be there.
func (r *Replay) passSnapshot(base protocol.Offset) error {
	if base < r.from {
		return nil
	}
	r.Producers.SetEnd(base)
	if slices.Contains(r.Snapshots.Offsets(), base) && base > r.from {
		producers, err := r.read(base)
		if err != nil {
			return err
		}
		r.Producers.Adopt(producers, r.NowMs)
	}
	if slices.Contains(r.Wanted, base) {
		return r.Snapshots.Store(base)
	}
	return nil
}

func (r *Replay) apply(s *segment.Segment, b segment.Batch) error {
	if b.Header.BaseOffset() >= r.To {
		return segment.ErrStop
	}
	if b.Header.BaseOffset() < r.from {
		return nil
	}
	r.Batches++
	r.Bytes += b.Size
	batch, marker, err := readMarker(s, b)
	if err != nil {
		return err
	}
	done, ended := r.Producers.Apply(batch, marker)
	if ended && done.Aborted {
		r.aborted = append(r.aborted, segment.AbortedTxn{
			ProducerID: done.ProducerID, FirstOffset: done.FirstOffset,
			LastOffset: done.LastOffset, LastStableOffset: done.LastStableOffset,
		})
	}
	return nil
}

// largestMarker bounds the control batches that are read whole: one record of a few bytes.
const largestMarker = 64 << 10

// readMarker reads the transaction marker out of a control batch of a producer.
func readMarker(s *segment.Segment, b segment.Batch) (record.Batch, *producer.Marker, error) {
	if !b.Header.IsControl() || !b.Header.HasProducerID() || b.Size > largestMarker {
		return b.Header, nil, nil
	}
	batch, err := s.Load(b)
	if err != nil {
		return nil, nil, err
	}
	if err := batch.CheckCRC(); err != nil {
		return nil, nil, &segment.Damage{File: s.LogName(), Position: b.Position, Reason: err.Error()} // consumers would wait for it for ever
	}
	marker, err := producer.ReadMarker(batch)
	if err != nil {
		return batch, nil, nil //nolint:nilerr // another kind of control batch: nothing ends with it
	}
	return batch, &marker, nil
}

// compareTxns makes the .txnindex of a segment that of its batches.
func (r *Replay) compareTxns(s *segment.Segment) error {
	have, err := s.ReadTxnIndex(r.To)
	if err != nil && !errors.Is(err, segment.ErrTxnIndex) {
		return err
	}
	if err == nil && slices.Equal(have, r.aborted) {
		return nil
	}
	r.Rewritten++
	if err := s.WriteTxnIndex(r.aborted); err != nil {
		return err
	}
	return s.SyncIndexes()
}
