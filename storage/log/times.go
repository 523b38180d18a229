package log

import (
	"errors"
	"fmt"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/segment"
)

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	TimestampMs int64
	Offset      protocol.Offset
	LeaderEpoch protocol.LeaderEpoch // NoLeaderEpoch if the batch has none
}

// OffsetForTime finds the first record at or after the log's start whose timestamp is not before timestampMs.
func (l *Log) OffsetForTime(timestampMs int64) (found TimestampOffset, ok bool, err error) {
	return l.retryTime(func(p *published) (TimestampOffset, bool, error) {
		for i, s := range p.segments {
			largest, err := largestOf(p, i)
			if err != nil {
				return TimestampOffset{}, false, err
			}
			if largest < timestampMs {
				continue
			}
			match := func(timestamp int64) bool { return timestamp >= timestampMs }
			found, ok, err := l.firstMatch(s, timestampMs, p.LogStartOffset, p.limit(i), match)
			if ok || err != nil {
				return found, ok, err
			}
		}
		return TimestampOffset{}, false, nil
	})
}

// MaxTimestamp finds the first record with the largest timestamp in the log.
func (l *Log) MaxTimestamp() (found TimestampOffset, ok bool, err error) {
	return l.retryTime(func(p *published) (TimestampOffset, bool, error) {
		at, most := -1, int64(-1)
		for i := range p.segments {
			largest, err := largestOf(p, i)
			if err != nil {
				return TimestampOffset{}, false, err
			}
			if largest > most {
				at, most = i, largest
			}
		}
		if at < 0 {
			return TimestampOffset{}, false, nil
		}
		match := func(timestamp int64) bool { return timestamp == most }
		return l.firstMatch(p.segments[at], most, p.segments[at].Base(), p.limit(at), match)
	})
}

func (l *Log) retryTime(find func(*published) (TimestampOffset, bool, error)) (TimestampOffset, bool, error) {
	for attempt := 0; ; attempt++ {
		p := l.shown.Load()
		found, ok, err := find(p)
		if err == nil || attempt == readAttempts || !l.changed(p) {
			return found, ok, err
		}
	}
}

func largestOf(p *published, i int) (int64, error) {
	if i == len(p.segments)-1 {
		return p.segments[i].Largest().TimestampMs, nil
	}
	largest, err := p.segments[i].LoadLargest()
	return largest.TimestampMs, err
}

// firstMatch finds the first record of a segment, not before from, in batches that reach timestampMs.
func (l *Log) firstMatch(s *segment.Segment, timestampMs int64, from protocol.Offset, limit int64, match func(int64) bool) (TimestampOffset, bool, error) {
	for from = max(from, s.Base()); ; {
		b, err := s.FindTime(timestampMs, from, limit)
		if errors.Is(err, segment.ErrBeyond) {
			return TimestampOffset{}, false, nil
		}
		if err != nil {
			return TimestampOffset{}, false, err
		}
		batch, err := s.Load(b)
		if err != nil {
			return TimestampOffset{}, false, err
		}
		for r, err := range record.Records(batch, l.env.Pool, l.decompressed()) {
			if err != nil {
				return TimestampOffset{}, false, fmt.Errorf("cannot read the records at offset %d of %s: %w", batch.BaseOffset(), l.tp, err)
			}
			if r.Offset >= from && match(r.Timestamp) {
				return TimestampOffset{r.Timestamp, r.Offset, batch.PartitionLeaderEpoch()}, true, nil
			}
		}
		from = batch.NextOffset()
	}
}

func (l *Log) decompressed() int {
	if l.env.MaxDecompressed > 0 {
		return l.env.MaxDecompressed
	}
	return 1 << 30
}
