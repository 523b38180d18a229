package clean

import (
	"math"
	"time"
)

// Settings are the log.cleaner.* of a node; the property is named beside each.
type Settings struct {
	Enabled        bool          // log.cleaner.enable
	Threads        int           // log.cleaner.threads
	DedupeBytes    int64         // log.cleaner.dedupe.buffer.size, of all threads
	LoadFactor     float64       // log.cleaner.io.buffer.load.factor
	BufferBytes    int           // log.cleaner.io.buffer.size, of all threads
	BytesPerSecond float64       // log.cleaner.io.max.bytes.per.second, read and written, of all threads
	Backoff        time.Duration // log.cleaner.backoff.ms
}

// DefaultSettings are those of Apache Kafka 4.4.0.
func DefaultSettings() Settings {
	return Settings{
		Enabled: true, Threads: 1, DedupeBytes: 128 << 20, LoadFactor: 0.9, BufferBytes: 512 << 10, BytesPerSecond: math.MaxFloat64,
		Backoff: 15 * time.Second,
	}
}

// leastBuffer is what a thread reads at once at least.
const leastBuffer = 4 << 10

func (s *Settings) mapBytes() int64 {
	return min(s.DedupeBytes/int64(max(s.Threads, 1)), math.MaxInt32)
}

func (s *Settings) bufferBytes() int { return max(s.BufferBytes/max(s.Threads, 1)/2, leastBuffer) }

// throttle says when the next bytes may be moved, so that in the long run they are not more than so many a second.
type throttle struct{ free time.Time }

// take is told of bytes that were moved at now.
func (t *throttle) take(now time.Time, bytes int64, perSecond float64) time.Time {
	if perSecond >= math.MaxInt64 || perSecond <= 0 {
		return now
	}
	if t.free.Before(now) {
		t.free = now
	}
	wait := min(float64(bytes)/perSecond*float64(time.Second), float64(24*time.Hour))
	t.free = t.free.Add(time.Duration(wait))
	return t.free
}

// stepBytes is how much one step moves: short enough for other work, and, throttled, for an even stream.
func (s *Settings) stepBytes() int64 {
	const most = 8 << 20
	if s.BytesPerSecond < 10*most {
		return max(int64(s.BytesPerSecond/10), 1)
	}
	return most
}
