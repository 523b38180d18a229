package segment

import (
	"errors"
	"fmt"
	"io"

	"ottla/protocol"
)

// NoCheck as first offset to check means that no checksum is computed.
const NoCheck protocol.Offset = 1<<63 - 1

// Walked is what a walk over a segment's batches found. Damage is nil if it reached the end of the .log.
type Walked struct {
	End     int64           // position after the last whole, valid batch
	Next    protocol.Offset // offset after it; the base if there is none
	Batches int64
	Checked int64 // bytes whose checksum was computed
	Damage  *Damage
}

// ErrIndex says that an index cannot be what was written for the .log; Rebuild makes a new one.
var ErrIndex = errors.New("an index of the segment is damaged")

// Sane looks at the index files of a sealed segment from outside: they are there, and hold whole entries.
func (s *Segment) Sane(present Present) bool {
	return present.Index >= 0 && present.TimeIndex >= 0 && present.Index%OffsetEntryBytes == 0 &&
		present.TimeIndex%TimeEntryBytes == 0 && (present.Log > 0 || present.Index == 0)
}

// Verify compares the last entries of a sealed segment's indexes with the .log, and finds the offset after its last
// batch. ErrIndex: an index is damaged. A *Damage: the .log does not end with a whole batch.
func (s *Segment) Verify() (next protocol.Offset, err error) {
	next = s.base
	if s.Size() == 0 {
		return next, nil
	}
	if err := s.checkLastOffset(s.offsets.len()); err != nil {
		return next, err
	}
	if _, err := s.LoadLargest(); err != nil {
		return next, err
	}
	next, err = s.endFrom(s.lastEntry.Position)
	if err == nil && (s.Damaged() || s.lastEntry.Offset >= next) {
		err = fmt.Errorf("%w: it does not fit the log", ErrIndex)
	}
	return next, err
}

// endFrom walks from the batch at position to the end.
func (s *Segment) endFrom(position int64) (protocol.Offset, error) {
	next := s.base
	if err := s.log.pin(false); err != nil {
		return next, err
	}
	defer s.log.Release()
	c := s.borrow(position, s.Size())
	defer s.giveBack(c)
	for {
		b, err := c.step()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return next, s.explain(err)
		}
		next = b.Header.NextOffset()
	}
}

// checkLastOffset verifies the last of count offset entries against the .log and makes it lastEntry.
func (s *Segment) checkLastOffset(count int) error {
	s.lastEntry = OffsetEntry{Offset: s.base}
	if count == 0 {
		return nil
	}
	entry, err := s.offsets.at(count - 1)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	last := s.decodeOffset(entry[:])
	if last.Offset < s.base || last.Position <= 0 || last.Position >= s.Size() {
		return fmt.Errorf("%w: its last entry is (%d, %d)", ErrIndex, last.Offset, last.Position)
	}
	if err := s.log.pin(false); err != nil {
		return err
	}
	defer s.log.Release()
	c := s.borrow(last.Position, s.Size())
	defer s.giveBack(c)
	b, err := c.step()
	if isDamage(err) || err == nil && b.Header.BaseOffset() > last.Offset {
		return fmt.Errorf("%w: no batch begins at its last entry (%d, %d)", ErrIndex, last.Offset, last.Position)
	}
	if err != nil {
		return err
	}
	s.lastEntry = last
	return nil
}

// Doubt says which batches of a walk are checked, and how.
type Doubt struct {
	From protocol.Offset // those that end at or after it; NoCheck: none
	// Dense: after a power cut, offsets and leader epochs in doubt must follow each other. The checksum does not
	// cover them, and nothing that was compacted is in doubt.
	Dense bool
}

// Trusting doubts nothing.
var Trusting = Doubt{From: NoCheck}

// Resume makes the last segment ready for appends: from the last index entry on, batches are walked and entered into
// the indexes, in memory. Batches in doubt are checked. visit sees each batch that is walked. Nothing is cut; see Finish. ErrIndex: Rebuild instead.
//
// Index files that Apache Kafka preallocated, and a kill left with zeros at the end, are understood.
func (s *Segment) Resume(present Present, doubt Doubt, visit func(Batch) error) (Walked, error) {
	if present.Index < 0 || present.TimeIndex < 0 || present.Index%OffsetEntryBytes != 0 || present.TimeIndex%TimeEntryBytes != 0 {
		return Walked{}, fmt.Errorf("%w: a file is missing or has a broken entry at its end", ErrIndex)
	}
	if err := s.offsets.load(); err != nil {
		return Walked{}, err
	}
	_, last, err := s.offsets.last(func(e []byte) bool { return s.decodeOffset(e).Position > 0 })
	if err == nil {
		err = s.checkLastOffset(last + 1)
	}
	if err != nil {
		return Walked{}, err
	}
	if err := s.offsets.cut(last + 1); err != nil {
		return Walked{}, err
	}
	if err := s.resumeTimes(); err != nil {
		return Walked{}, err
	}
	s.unstored = s.Size() - s.lastEntry.Position
	return s.walkOn(doubt, visit)
}

// Unstored tells how many bytes of the .log the index files of a segment that was resumed do not cover, and whether those are
// in order otherwise: if not, Finish mends them.
func (s *Segment) Unstored(present Present) (sizeBytes int64, exact bool) {
	return s.unstored, s.offsets.exact(present.Index) && s.times.exact(present.TimeIndex)
}

// resumeTimes brings the time index to the state it had when the last offset entry was added.
func (s *Segment) resumeTimes() error {
	if s.offsets.len() == 0 {
		s.lastTime = TimeEntry{-1, s.base}
		s.times.forget(0)
		return nil
	}
	err := s.times.load()
	first := [12]byte{}
	if err == nil {
		first, err = s.times.at(0)
	}
	if err != nil {
		return fmt.Errorf("%w: the time index is empty", ErrIndex)
	}
	start := s.decodeTime(first[:])
	entry, i, err := s.times.last(func(e []byte) bool {
		t := s.decodeTime(e)
		return (t == start || t.TimestampMs > start.TimestampMs) && t.Offset <= s.lastEntry.Offset
	})
	if err != nil || i < 0 {
		return fmt.Errorf("%w: the time index does not fit the offset index", ErrIndex)
	}
	last := s.decodeTime(entry[:])
	if last == start && i > 0 {
		return fmt.Errorf("%w: the time index is zeros", ErrIndex)
	}
	b, err := s.FindTime(last.TimestampMs, last.Offset, s.Size())
	if err != nil || b.Header.BaseOffset() > last.Offset || b.Header.MaxTimestamp() != last.TimestampMs {
		return fmt.Errorf("%w: the time index does not fit the log", ErrIndex)
	}
	s.lastTime = last
	// The file keeps what Seal added: it is overwritten by the next entries, and if there are none it is right.
	s.times.forget(i + 1)
	return nil
}

// walkOn enters the batches from the last index entry on.
func (s *Segment) walkOn(doubt Doubt, visit func(Batch) error) (Walked, error) {
	s.sinceEntry = 0
	largest := s.lastTime
	s.largest.Store(&largest)
	return s.walk(s.lastEntry.Position, doubt, s.leave(visit))
}

// Rebuild makes the indexes anew, in memory, from all batches of the .log. See Resume for the rest.
func (s *Segment) Rebuild(doubt Doubt, visit func(Batch) error) (Walked, error) {
	s.offsets.reset()
	s.times.reset()
	s.lastEntry, s.lastTime = OffsetEntry{Offset: s.base}, TimeEntry{-1, s.base}
	s.firstKnown = false
	w, err := s.walkOn(doubt, visit)
	s.damaged.Store(false)
	return w, err
}

func (s *Segment) walk(position int64, doubt Doubt, visit func(Batch) error) (Walked, error) {
	found := Walked{End: position, Next: s.base}
	if s.Size() == 0 {
		return found, nil
	}
	if err := s.log.pin(false); err != nil {
		return found, err
	}
	defer s.log.Release()
	span := s.cache.spans.Get().(*[spanBytes]byte)
	defer s.cache.spans.Put(span)
	var w walker
	w.start(s, position, s.Size(), span[:])
	epoch := protocol.NoLeaderEpoch
	var last Batch           // that was not checked
	var base protocol.Offset // of last
	for {
		b, err := w.step()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		checked := err == nil && b.Header.LastOffset() >= doubt.From
		if checked {
			found.Checked += b.Size
			if err = w.checkCRC(b); err == nil && doubt.Dense {
				err = s.follows(b, found, epoch)
			}
		}
		if errors.As(err, &found.Damage) {
			return found, s.blame(&w, last, base, &found)
		}
		if err != nil {
			return found, s.explain(err)
		}
		s.note(b)
		epoch = b.Header.PartitionLeaderEpoch()
		found.End, found.Next = b.Position+b.Size, b.Header.NextOffset()
		found.Batches++
		if last, base = b, b.Header.BaseOffset(); checked {
			last = Batch{}
		}
		if visit == nil {
			continue
		}
		if err := visit(b); err != nil {
			return found, err
		}
	}
}

// blame looks at the batch before damage, if nobody checked it: where its length is wrong, what comes after it is not at
// fault.
func (s *Segment) blame(w *walker, last Batch, base protocol.Offset, found *Walked) error {
	if last.Size == 0 {
		return nil
	}
	var again walker
	again.start(s, last.Position, last.Position+last.Size, w.buf)
	b, err := again.step()
	if err == nil {
		err = again.checkCRC(b)
	}
	if damage := (*Damage)(nil); errors.As(err, &damage) {
		found.Damage, found.End, found.Next = damage, last.Position, base
		return nil
	}
	return err
}

// follows tells a batch that continues what was walked from one that something older, or damage, put there.
func (s *Segment) follows(b Batch, before Walked, epoch protocol.LeaderEpoch) error {
	if b.Header.BaseOffset() != before.Next {
		return &Damage{s.LogName(), b.Position, fmt.Sprintf("a batch has offset %d where %d should be", b.Header.BaseOffset(), before.Next)}
	}
	if b.Header.PartitionLeaderEpoch() < epoch {
		return &Damage{s.LogName(), b.Position, fmt.Sprintf("a batch has leader epoch %d after %d", b.Header.PartitionLeaderEpoch(), epoch)}
	}
	return nil
}

// Sparse tells that offsets are missing within the segment, as compaction leaves it.
func (s *Segment) Sparse() (bool, error) {
	expected, sparse := s.base, false
	err := s.Batches(s.base, s.Size(), func(b Batch) error {
		h := b.Header
		if h.BaseOffset() != expected || int64(h.Count()) != int64(h.LastOffsetDelta())+1 {
			sparse = true
			return ErrStop
		}
		expected = h.NextOffset()
		return nil
	})
	return sparse, err
}

// Finish cuts the .log to what a walk found, and writes the index files: exact entries, exact sizes.
func (s *Segment) Finish(w Walked) error {
	if w.End < s.Size() {
		if err := s.cutLog(w.End); err != nil {
			return fmt.Errorf("cannot cut %s: %w", s.LogName(), err)
		}
	}
	if err := s.Store(); err != nil {
		return err
	}
	if err := s.times.trim(); err != nil {
		return err
	}
	return s.offsets.trim()
}

// Truncate cuts the segment before the first batch that ends at or after offset, and makes it ready for appends, even
// if it was sealed. next is the offset it now ends at. The cut is durable: after a power cut what was cut off must not
// stand behind what was appended since.
func (s *Segment) Truncate(offset protocol.Offset, nowMs int64) (next protocol.Offset, err error) {
	position := int64(-1)
	err = s.Batches(offset, s.Size(), func(b Batch) error {
		position = b.Position
		return ErrStop
	})
	if err != nil {
		return 0, err
	}
	// The log goes first: index entries beyond its end are found and dropped, missing ones would not be.
	if position >= 0 {
		if err := s.cutLog(position); err != nil {
			return 0, fmt.Errorf("cannot truncate %s: %w", s.LogName(), err)
		}
	}
	if err := s.DropAborted(offset); err != nil {
		return 0, err
	}
	if err := s.cutIndexes(offset); err != nil {
		return 0, err
	}
	if s.Size() == 0 {
		s.createdMs, s.firstKnown = nowMs, false
	}
	w, err := s.walkOn(Trusting, nil)
	s.damaged.Store(false) // readers may have met indexes that were longer than the log
	if err == nil && w.Damage != nil {
		err = s.explain(w.Damage)
	}
	return w.Next, err
}

func (s *Segment) cutIndexes(offset protocol.Offset) error {
	entry, i, err := s.offsets.last(func(e []byte) bool { return s.decodeOffset(e).Offset < offset })
	if err != nil {
		return err
	}
	s.lastEntry = OffsetEntry{Offset: s.base}
	if i >= 0 {
		s.lastEntry = s.decodeOffset(entry[:])
	}
	if err := s.offsets.cut(i + 1); err != nil {
		return err
	}
	if err := s.Unseal(); err != nil {
		return err
	}
	return s.times.dropUnknown() // what Seal added, and Resume has left there
}
