package log

import "ottla/storage/bytime"

// TimestampOffset is a record found by time.
type TimestampOffset = bytime.Found

// OffsetForTime finds the first record at or after the log's start whose timestamp is not before timestampMs.
func (l *Log) OffsetForTime(timestampMs int64) (found TimestampOffset, ok bool, err error) {
	return l.retryTime(func(v bytime.View) (TimestampOffset, bool, error) { return v.First(timestampMs) })
}

// MaxTimestamp finds the first record with the largest timestamp in the log.
func (l *Log) MaxTimestamp() (found TimestampOffset, ok bool, err error) {
	return l.retryTime(bytime.View.Largest)
}

func (l *Log) retryTime(find func(bytime.View) (TimestampOffset, bool, error)) (TimestampOffset, bool, error) {
	for attempt := 0; ; attempt++ {
		p := l.shown.Load()
		found, ok, err := find(bytime.View{
			Segments: p.segments, ActiveSize: p.activeSize, Start: p.LogStartOffset, Pool: l.env.Pool, MaxBytes: l.decompressed(),
		})
		if err == nil || attempt == readAttempts || !l.changed(p) {
			return found, ok, err
		}
	}
}

func (l *Log) decompressed() int {
	if l.env.MaxDecompressed > 0 {
		return l.env.MaxDecompressed
	}
	return 1 << 30
}
