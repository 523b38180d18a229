package log

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"ottla/storage/segment"
)

// Flush makes everything up to the present end durable and moves DurableEnd there. It may run beside appends;
// callers that ask while one runs share the next. An error poisons the log: the kernel may have dropped what it
// could not write, and a second fsync would say that all is well.
func (l *Log) Flush(now time.Time) error {
	if err := l.usable(); err != nil {
		return err
	}
	wanted := l.View().LogEndOffset
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	p := l.shown.Load()
	if p.DurableEnd >= wanted || p.DurableEnd == p.LogEndOffset {
		return nil
	}
	if err := l.env.Together.Sync(func() error { return l.sync(p) }); err != nil {
		return l.poison(fmt.Errorf("cannot make the log of %s durable: %w", l.tp, err))
	}
	l.lastFlushMs.Store(now.UnixMilli())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.truncations == p.truncations && p.LogEndOffset > l.durableEnd {
		l.durableEnd = p.LogEndOffset
		l.publish()
	}
	return nil
}

// sync makes the segments from DurableEnd on durable, with the indexes of those that are sealed.
func (l *Log) sync(p *published) error {
	if l.dirStale.Swap(false) {
		if err := l.env.FS.SyncDir(l.Dir()); err != nil {
			return err
		}
	}
	// A segment that was durable to its end when it was active has had its indexes completed since.
	for i := max(p.holding(p.DurableEnd-1), 0); i < len(p.segments); i++ {
		s := p.segments[i]
		err := s.SyncLog()
		if err == nil && i < len(p.segments)-1 {
			err = s.SyncIndexes()
		}
		if err == nil && s.FirstSync() {
			err = l.syncSnapshot(s.Base()) // written before the segment began; it does not change
		}
		if err != nil && !l.removed(s, err) {
			return err
		}
	}
	return nil
}

// removed tells that the error comes from a segment that retention or truncation has taken away meanwhile.
func (l *Log) removed(s *segment.Segment, err error) bool {
	if !errors.Is(err, segment.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, kept := range l.shown.Load().segments {
		if kept == s {
			return false
		}
	}
	return true
}

// FlushDue tells that flush.messages or flush.ms asks for a Flush.
func (l *Log) FlushDue(now time.Time) bool {
	v, o := l.View(), l.opts.Load()
	if v.DurableEnd >= v.LogEndOffset {
		return false
	}
	if o.FlushMessages > 0 && int64(v.LogEndOffset-v.DurableEnd) >= o.FlushMessages {
		return true
	}
	return o.FlushAge > 0 && now.UnixMilli()-l.lastFlushMs.Load() >= o.FlushAge.Milliseconds()
}
