package segment

import (
	"fmt"
	"math"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

// storeBytes is how many bytes of batches may be written before index entries are stored: what a restarted
// process has to walk again.
const storeBytes = 8 << 20

// Full tells that batches of the given size in all, the last of which ends at lastOffset, do not go into this segment:
// they would pass segmentBytes, an index is full or could become so by the batches before the last, or the
// offset is too far from the base (LogSegment.shouldRoll without time).
func (s *Segment) Full(sizeBytes int64, before int, lastOffset protocol.Offset, segmentBytes int64) bool {
	return s.Size() > min(segmentBytes, math.MaxInt32)-sizeBytes || s.indexFull(before) || !s.Fits(lastOffset)
}

// WaitedMs is how long the segment has waited to be rolled by age: the timestamp of the batch to come, minus the
// first batch's; without timestamps the time since it was made (LogSegment.timeWaitedForRoll).
func (s *Segment) WaitedMs(nowMs, batchTimestampMs int64) (int64, error) {
	first, err := s.firstTimestamp()
	if err != nil {
		return 0, err
	}
	if first >= 0 {
		return batchTimestampMs - first, nil
	}
	if s.createdMs == 0 {
		s.createdMs = nowMs // nobody knew the time when it was made
	}
	return nowMs - s.createdMs, nil
}

// firstTimestamp is the largest timestamp of the first batch, or -1.
func (s *Segment) firstTimestamp() (int64, error) {
	if s.firstKnown || s.Size() == 0 {
		if !s.firstKnown {
			return -1, nil
		}
		return s.firstMs, nil
	}
	if err := s.log.pin(false); err != nil {
		return 0, err
	}
	defer s.log.Release()
	c := s.borrow(0, s.Size())
	defer s.giveBack(c)
	b, err := c.step()
	if err != nil {
		return 0, fmt.Errorf("cannot read the first batch of %s: %w", s.LogName(), err)
	}
	s.firstMs, s.firstKnown = b.Header.MaxTimestamp(), true
	return s.firstMs, nil
}

// Append writes batches at the tail with one vectored write and notes them in the indexes. If the write fails, what
// came of it is cut off again; intact tells that this worked, so that the segment is as before.
func (s *Segment) Append(nowMs int64, batches [][]byte) (intact bool, err error) {
	position := s.Size()
	var total int64
	for _, b := range batches {
		total += int64(len(b))
	}
	if err := s.log.pin(false); err != nil {
		return true, err
	}
	defer s.log.Release()
	if _, err := s.log.file.WriteVectorAt(batches, position); err != nil {
		cut := cutDurably(s.log.file, position)
		return cut == nil, fmt.Errorf("cannot append %d bytes to %s: %w", total, s.log.file.Name(), err)
	}
	at := position
	for _, b := range batches {
		s.note(Batch{record.Batch(b), at, int64(len(b))})
		at += int64(len(b))
	}
	s.size.Store(at)
	s.modifiedMs = nowMs
	s.unstored += total
	return true, nil
}

// StoreDue tells that so many bytes came since the index entries were stored that a restart would walk long.
func (s *Segment) StoreDue() bool { return s.unstored >= storeBytes }

// note adds a batch to the indexes as LogSegment.append does.
func (s *Segment) note(b Batch) {
	last, maxMs := b.Header.LastOffset(), b.Header.MaxTimestamp()
	if !s.firstKnown && b.Position == 0 {
		s.firstMs, s.firstKnown = maxMs, true
	}
	largest := s.largest.Load()
	if largest == nil || maxMs > largest.TimestampMs {
		largest = &TimeEntry{maxMs, last}
		if maxMs < 0 {
			largest = &TimeEntry{-1, s.base}
		}
		s.largest.Store(largest)
	}
	if s.sinceEntry > int64(s.opts.IntervalBytes) {
		s.addOffset(OffsetEntry{last, b.Position})
		s.addTime(*largest)
		s.sinceEntry = 0
	}
	s.sinceEntry += b.Size
}

// cutLog truncates the .log, which makes every region handed out before stale.
func (s *Segment) cutLog(size int64) error {
	s.log.generation.Add(1)
	s.size.Store(size)
	return s.log.with(false, func(file vfs.File) error { return cutDurably(file, size) })
}

// cutDurably truncates so that even after a power cut what was cut off does not stand behind what is written since:
// of a batch with the same offset, epoch and size nobody could tell.
func cutDurably(file vfs.File, size int64) error {
	if err := file.Truncate(size); err != nil {
		return err
	}
	return file.SyncData()
}
