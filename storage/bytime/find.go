package bytime

import (
	"errors"
	"fmt"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/segment"
)

// Found is a record found by time.
type Found struct {
	TimestampMs int64
	Offset      protocol.Offset
	LeaderEpoch protocol.LeaderEpoch // NoLeaderEpoch if the batch has none
}

// View is what may be searched: segments by base offset, the last of which takes appends.
type View struct {
	Segments   []*segment.Segment
	ActiveSize int64           // bytes of the last segment that belong to the view
	Start      protocol.Offset // of the log
	Pool       *compress.Pool
	MaxBytes   int // what one batch may expand to
}

// First finds the first record at or after the log's start whose timestamp is not before timestampMs.
func (v View) First(timestampMs int64) (found Found, ok bool, err error) {
	for i, s := range v.Segments {
		largest, err := v.largestOf(i)
		if err != nil {
			return Found{}, false, err
		}
		if largest < timestampMs {
			continue
		}
		match := func(timestamp int64) bool { return timestamp >= timestampMs }
		found, ok, err := v.firstMatch(s, timestampMs, v.Start, v.limit(i), match)
		if ok || err != nil {
			return found, ok, err
		}
	}
	return Found{}, false, nil
}

// Largest finds the first record with the largest timestamp.
func (v View) Largest() (found Found, ok bool, err error) {
	at, most := -1, int64(-1)
	for i := range v.Segments {
		largest, err := v.largestOf(i)
		if err != nil {
			return Found{}, false, err
		}
		if largest > most {
			at, most = i, largest
		}
	}
	if at < 0 {
		return Found{}, false, nil
	}
	match := func(timestamp int64) bool { return timestamp == most }
	return v.firstMatch(v.Segments[at], most, v.Segments[at].Base(), v.limit(at), match)
}

func (v View) limit(i int) int64 {
	if i == len(v.Segments)-1 {
		return v.ActiveSize
	}
	return v.Segments[i].Size()
}

func (v View) largestOf(i int) (int64, error) {
	if i == len(v.Segments)-1 {
		return v.Segments[i].Largest().TimestampMs, nil
	}
	largest, err := v.Segments[i].LoadLargest()
	return largest.TimestampMs, err
}

// firstMatch finds the first record of a segment, not before from, in batches that reach timestampMs.
func (v View) firstMatch(s *segment.Segment, timestampMs int64, from protocol.Offset, limit int64, match func(int64) bool) (Found, bool, error) {
	for from = max(from, s.Base()); ; {
		b, err := s.FindTime(timestampMs, from, limit)
		if errors.Is(err, segment.ErrBeyond) {
			return Found{}, false, nil
		}
		if err != nil {
			return Found{}, false, err
		}
		batch, err := s.Load(b)
		if err != nil {
			return Found{}, false, err
		}
		for r, err := range record.Records(batch, v.Pool, v.MaxBytes) {
			if err != nil {
				return Found{}, false, fmt.Errorf("cannot read the records at offset %d of %s: %w", batch.BaseOffset(), s.LogName(), err)
			}
			if r.Offset >= from && match(r.Timestamp) {
				return Found{r.Timestamp, r.Offset, batch.PartitionLeaderEpoch()}, true, nil
			}
		}
		from = batch.NextOffset()
	}
}
