package segment

import "ottla/protocol"

// Largest gives the largest timestamp of the segment and the last offset of the first batch that has it; {-1, base}
// without one. For a segment that was opened, and not resumed or rebuilt, LoadLargest must have been called.
func (s *Segment) Largest() TimeEntry {
	if known := s.largest.Load(); known != nil {
		return *known
	}
	return TimeEntry{-1, s.base}
}

// LoadLargest finds out the largest timestamp of a sealed segment, once. The time index is not believed: the batch it
// names must be there and have that timestamp, and no later one a larger; if it is not so, all batches are looked
// at. Retention deletes by what this says (KAFKA-10207).
func (s *Segment) LoadLargest() (TimeEntry, error) {
	if known := s.largest.Load(); known != nil {
		return *known, nil
	}
	found, err := s.largestByIndex()
	if isDamage(err) {
		s.damaged.Store(true)
		found, err = s.largestFrom(s.base, TimeEntry{-1, s.base})
	}
	if err != nil {
		return TimeEntry{-1, s.base}, err
	}
	s.largest.CompareAndSwap(nil, &found)
	return found, nil
}

func (s *Segment) largestByIndex() (TimeEntry, error) {
	count := s.times.len()
	if count == 0 {
		if s.Size() > 0 {
			return TimeEntry{}, &Damage{s.LogName(), 0, "the time index of a sealed segment is empty"}
		}
		return TimeEntry{-1, s.base}, nil
	}
	entry, err := s.times.at(count - 1)
	if err != nil {
		return TimeEntry{}, &Damage{s.LogName(), 0, err.Error()}
	}
	last := s.decodeTime(entry[:])
	if last.TimestampMs < 0 || last.Offset < s.base {
		return TimeEntry{}, &Damage{s.LogName(), 0, "the last time index entry is impossible"}
	}
	confirmed := false
	largest := TimeEntry{-1, s.base}
	err = s.Batches(last.Offset, s.Size(), func(b Batch) error {
		if !confirmed && b.Header.MaxTimestamp() != last.TimestampMs {
			return &Damage{s.LogName(), b.Position, "the time index does not fit the log"}
		}
		confirmed = true
		largest = larger(largest, b)
		return nil
	})
	if err == nil && !confirmed {
		err = &Damage{s.LogName(), 0, "the time index points beyond the log"}
	}
	return largest, err
}

func larger(largest TimeEntry, b Batch) TimeEntry {
	if maxMs := b.Header.MaxTimestamp(); maxMs > largest.TimestampMs {
		return TimeEntry{maxMs, b.Header.LastOffset()}
	}
	return largest
}

func (s *Segment) largestFrom(from protocol.Offset, largest TimeEntry) (TimeEntry, error) {
	err := s.Batches(from, s.Size(), func(b Batch) error {
		largest = larger(largest, b)
		return nil
	})
	return largest, err
}

// ModifiedMs is when the .log was last written, in milliseconds; the writer's to ask.
func (s *Segment) ModifiedMs() int64 { return s.modifiedMs }

// FindTime finds the first batch, ending at or after from, that has a timestamp at or after the given one.
// ErrBeyond: there is none within limit.
func (s *Segment) FindTime(timestampMs int64, from protocol.Offset, limit int64) (Batch, error) {
	start := from
	// Every batch up to the entry's has no timestamp above the entry's, which is not above the one wanted; but
	// one may have exactly it, so the search begins with an entry strictly below.
	entry, err := s.floorTime(timestampMs - 1)
	trusted := err != nil || entry.TimestampMs < 0 || entry.Offset <= from
	if !trusted {
		start = entry.Offset
	}
	found, err := s.findTime(timestampMs, from, start, limit, func(b Batch) bool {
		ok := trusted || b.Header.MaxTimestamp() == entry.TimestampMs
		trusted = true
		return ok
	})
	if (isDamage(err) || !trusted) && start > from {
		s.damaged.Store(true)
		found, err = s.findTime(timestampMs, from, from, limit, func(Batch) bool { return true })
	}
	return found, err
}

// findTime walks from the batch that holds start; fits judges each before it counts.
func (s *Segment) findTime(timestampMs int64, from, start protocol.Offset, limit int64, fits func(Batch) bool) (Batch, error) {
	found := Batch{Position: -1}
	err := s.Batches(start, limit, func(b Batch) error {
		if !fits(b) {
			return &Damage{s.LogName(), b.Position, "the time index does not fit the log"}
		}
		if b.Header.MaxTimestamp() < timestampMs || b.Header.LastOffset() < from {
			return nil
		}
		found = b
		found.Header = append([]byte(nil), b.Header...)
		return ErrStop
	})
	if err != nil {
		return Batch{}, err
	}
	if found.Position < 0 {
		return Batch{}, ErrBeyond
	}
	return found, nil
}
