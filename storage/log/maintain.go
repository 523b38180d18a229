package log

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
)

// Maintenance is what Maintain did and what it wants.
type Maintenance struct {
	Rolled           bool
	SegmentsDeleted  int
	BytesDeleted     int64
	IndexesRebuilt   int
	ProducersExpired int
	LogStartOffset   protocol.Offset
	FlushWanted      bool      // call Flush (on a worker): a segment was rolled, or flush.messages or flush.ms ask for it
	NextDeadline     time.Time // when something is due by itself; zero: never
	Err              error     // of the environment
}

// Maintain does what is due: retention, removal of files whose delay is over, expiry of producers, new indexes for
// sealed segments where readers found them wrong. As in Kafka, the active segment is rolled by age only by an append,
// or when all of it has expired. It never flushes; it says so in FlushWanted.
func (l *Log) Maintain(now time.Time) (m Maintenance) {
	defer func() { m.LogStartOffset = l.View().LogStartOffset }()
	if m.Err = l.usable(); m.Err != nil {
		return m
	}
	l.sawMs.Store(now.UnixMilli())
	l.mu.Lock()
	m.ProducersExpired = l.producers.Expire(now.UnixMilli())
	l.mu.Unlock()
	m.Err = errors.Join(l.finishSwap(), l.repair(&m), l.retain(now, &m), l.interim.renew(l), l.bury(now))
	v := l.View()
	m.FlushWanted = v.DurableEnd < v.LogEndOffset && (v.DurableEnd < v.ActiveSegmentBase || l.FlushDue(now))
	m.NextDeadline = l.nextDeadline(now)
	return m
}

func (l *Log) nextDeadline(now time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if at := l.doomed.Next(); !at.IsZero() {
		sooner(at)
	}
	if l.swap != nil {
		sooner(now.Add(retrySwap))
	}
	o, v := l.opts.Load(), l.View()
	if o.FlushAge > 0 && v.DurableEnd < v.LogEndOffset {
		sooner(time.UnixMilli(l.lastFlushMs.Load()).Add(o.FlushAge))
	}
	first := l.segments[0]
	if o.Delete && o.RetentionAge >= 0 && first.Size() > 0 {
		if oldest := l.ageOf(first); oldest >= 0 {
			expires := time.UnixMilli(oldest).Add(o.RetentionAge + time.Millisecond)
			if expires.Before(now) {
				expires = now.Add(retryRetention) // the high watermark, or an error, is in the way
			}
			sooner(expires)
		}
	}
	l.mu.Lock()
	expiry := l.producers.NextExpiry()
	l.mu.Unlock()
	if expiry >= 0 {
		sooner(time.UnixMilli(max(expiry, now.Add(retryRetention).UnixMilli())))
	}
	return next
}

const retryRetention = time.Minute

// repair rebuilds the indexes of sealed segments that readers found damaged.
func (l *Log) repair(m *Maintenance) error {
	for _, s := range l.segments[:len(l.segments)-1] {
		if !s.Damaged() {
			continue
		}
		l.logger.Warn("an index is damaged and is rebuilt", "partition", l.tp.String(), "file", s.LogName())
		w, err := s.Rebuild(segment.Trusting, nil)
		if err != nil {
			return err
		}
		if w.Damage != nil {
			return asDamage(w.Damage)
		}
		if err := sealDurably(s); err != nil {
			return err
		}
		m.IndexesRebuilt++
	}
	return nil
}

// retain deletes the oldest segments that log start, size or age allow (UnifiedLog.deleteOldSegments).
func (l *Log) retain(now time.Time, m *Maintenance) error {
	err := l.deleteWhile(now, m, func(i int) (bool, error) {
		return i+1 < len(l.segments) && l.segments[i+1].Base() <= l.logStart, nil
	})
	o := l.opts.Load()
	if err != nil || !o.Delete {
		return err
	}
	if excess := l.Size() - o.RetentionBytes; o.RetentionBytes >= 0 && excess >= 0 {
		err = l.deleteWhile(now, m, func(i int) (bool, error) {
			excess -= l.segments[i].Size()
			return excess >= 0, nil
		})
	}
	if err != nil || o.RetentionAge < 0 {
		return err
	}
	return l.deleteWhile(now, m, func(i int) (bool, error) {
		_, err := l.loadLargest(i)
		return err == nil && now.UnixMilli()-l.ageOf(l.segments[i]) > o.RetentionAge.Milliseconds(), err
	})
}

func (l *Log) deleteWhile(now time.Time, m *Maintenance, condition func(i int) (bool, error)) error {
	count, err := l.deletable(condition)
	if err != nil {
		return err
	}
	return l.deleteOldest(count, now, m)
}

func (l *Log) loadLargest(i int) (segment.TimeEntry, error) {
	if i == len(l.segments)-1 {
		return l.segments[i].Largest(), nil
	}
	return l.segments[i].LoadLargest()
}

// ageOf is the time in milliseconds that retention by age counts from: the largest timestamp, or, without one, the
// time of the last write.
func (l *Log) ageOf(s *segment.Segment) int64 {
	if largest := s.Largest().TimestampMs; largest >= 0 {
		return largest
	}
	return s.ModifiedMs()
}

// deletable counts the oldest segments that are replicated and meet the condition. An empty active segment is never
// among them.
func (l *Log) deletable(condition func(i int) (bool, error)) (int, error) {
	for i, s := range l.segments {
		end := l.end
		if i+1 < len(l.segments) {
			end = l.segments[i+1].Base()
		} else if s.Size() == 0 {
			return i, nil
		}
		if l.highWatermark < end {
			return i, nil
		}
		if yes, err := condition(i); !yes || err != nil {
			return i, err
		}
	}
	return len(l.segments), nil
}

func (l *Log) deleteOldest(count int, now time.Time, m *Maintenance) error {
	if count == 0 {
		return nil
	}
	if count == len(l.segments) {
		if err := l.roll(l.end, now.UnixMilli()); err != nil {
			return err
		}
		m.Rolled = true
	}
	// A new segment's name must be durable before the old ones' go, or a power cut leaves none; and what was deleted
	// before must be, or it brings back one of those without its successor.
	if l.dirStale.Swap(false) {
		if err := l.env.FS.SyncDir(l.dir); err != nil {
			return l.poison(err)
		}
	}
	gone := l.segments[:count]
	l.mu.Lock()
	l.segments = slices.Clone(l.segments[count:])
	l.mu.Unlock()
	l.advance(max(l.logStart, l.segments[0].Base()))
	for i, s := range gone {
		m.SegmentsDeleted++
		m.BytesDeleted += s.Size()
		err := l.doom(s)
		if err == nil && i < len(gone)-1 {
			err = l.env.FS.SyncDir(l.dir) // a power cut must not bring back an older one alone
		}
		if err != nil {
			return l.poison(err)
		}
	}
	return l.dropSnapshots(func(at protocol.Offset) bool { return at < l.segments[0].Base() })
}

// doom puts a segment's files aside; they are removed after file.delete.delay.ms.
func (l *Log) doom(s *segment.Segment) error {
	err := l.doomed.Segment(s)
	if err == nil {
		l.dirStale.Store(true)
		l.touched.Store(true)
	}
	return err
}

// bury removes files whose delay is over.
func (l *Log) bury(now time.Time) error {
	if err := l.doomed.Bury(l.env.FS, now, l.opts.Load().FileDeleteDelay); err != nil {
		return fmt.Errorf("%s: %w", l.tp, err)
	}
	return nil
}

// dropSnapshots gives the producer snapshots that are meant their .deleted suffix.
func (l *Log) dropSnapshots(meant func(protocol.Offset) bool) error {
	var err error
	l.snapshots = slices.DeleteFunc(l.snapshots, func(at protocol.Offset) bool {
		if err != nil || !meant(at) {
			return false
		}
		if err = l.doomed.File(l.env.FS, l.snapshotName(at)); err != nil {
			return false
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("cannot delete a producer snapshot of %s: %w", l.tp, err)
	}
	return nil
}

// AdvanceLogStart moves the log's start up (DeleteRecords, or a follower after its leader). A lower offset
// changes nothing; one beyond the end is protocol.OffsetOutOfRange. Segments go at the next Maintain.
func (l *Log) AdvanceLogStart(_ time.Time, offset protocol.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if offset > l.end {
		return protocol.Errorf(protocol.OffsetOutOfRange, "the log of %s cannot begin at %d, it ends at %d", l.tp, offset, l.end)
	}
	if offset > l.logStart {
		l.advance(offset)
	}
	return nil
}

// advance moves the log's start and what depends on it. The epochs' file is written when it must be next; until then
// it only says more than needed.
func (l *Log) advance(start protocol.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logStart = start
	l.highWatermark = max(l.highWatermark, start)
	var changed bool
	l.epochs, changed = checkpoint.EpochsFrom(l.epochs, start)
	l.epochsStale = l.epochsStale || changed
	l.producers.Replicated(start)
	l.publish()
}
