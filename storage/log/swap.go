package log

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/segment"
	"ottla/storage/swap"
	"ottla/storage/vfs"
)

// retrySwap is how soon Maintain tries again what found no room.
const retrySwap = 10 * time.Second

// Replace puts a segment that SyncCleaned completed in the place of those it was made from, which v shows. The caller
// serialises it as Append. Readers of the old segments go on; their files are removed after file.delete.delay.ms.
//
// ErrSuperseded and an error for want of space leave the log as it was. Where the room ends only after the swap counts, Replace
// succeeds, and Maintain finishes it; until then nothing else is compacted. DropCleaned is good after any error. Any other error
// poisons the log; the next start finishes or undoes what was begun, as Apache Kafka does.
func (l *Log) Replace(now time.Time, v CleanView, cleaned *segment.Segment, old []*segment.Segment) error {
	if err := l.usable(); err != nil {
		return fmt.Errorf("%w: %w", ErrSuperseded, err)
	}
	at := slices.Index(l.segments, old[0])
	if l.truncations != v.truncations || at < 0 || at+len(old) >= len(l.segments) || !slices.Equal(l.segments[at:at+len(old)], old) {
		return ErrSuperseded
	}
	if err := l.finishSwap(); err != nil {
		return err // of another segment, before
	}
	l.sawMs.Store(now.UnixMilli())
	l.touched.Store(true)
	err := cleaned.MoveToSwap()
	if vfs.NoSpace(err) {
		return err // DropCleaned undoes it; a start would too, as the .log is still .cleaned
	}
	if err == nil {
		err = l.env.FS.SyncDir(l.dir)
	}
	l.making.Done() // from here on its files may be all that is left
	if err != nil {
		cleaned.Close()
		return l.poison(fmt.Errorf("cannot put a compacted segment of %s in place: %w", l.tp, err))
	}
	l.mu.Lock()
	l.segments = slices.Replace(slices.Clone(l.segments), at, at+len(old), cleaned)
	l.publish()
	l.mu.Unlock()
	l.swap = swap.New(cleaned, old)
	if err := l.finishSwap(); err != nil {
		if l.failed.Load() != nil {
			return err
		}
		l.logger.Warn("a compacted segment is in use, and gets its final name when there is room", "partition", l.tp.String(), "error", err)
	}
	gone := old[1:] // the snapshot of the first is the new one's
	return l.dropSnapshots(func(at protocol.Offset) bool {
		return slices.ContainsFunc(gone, func(s *segment.Segment) bool { return s.Base() == at })
	})
}

// finishSwap is the rest of a swap, if one is under way. An error for want of room leaves the log working, with the files under
// the names that they have got; any other poisons it.
func (l *Log) finishSwap() error {
	if l.swap == nil {
		return nil
	}
	err := l.swap.Finish(l.doom, func() error { return l.env.FS.SyncDir(l.dir) }, slices.Contains(l.segments, l.swap.Cleaned()))
	l.swapWaits.Store(swap.Waits(err))
	switch {
	case err == nil:
		l.swap = nil
		l.dirStale.Store(true)
		return nil
	case swap.Waits(err):
		return fmt.Errorf("cannot put a compacted segment of %s in place yet: %w", l.tp, err)
	}
	return l.poison(fmt.Errorf("cannot put a compacted segment of %s in place: %w", l.tp, err))
}

// SwapWaits tells that a compacted segment counts and waits for room for its final name: Maintain is to be called.
func (l *Log) SwapWaits() bool { return l.swapWaits.Load() }

// settleSwap finishes a swap before the log is cut so that it ends in last. That its files have not their final names yet is no error
// then: only that what it replaces still has, or that last is not in place and would be written to.
func (l *Log) settleSwap(last *segment.Segment) error {
	err := l.finishSwap()
	if err != nil && (l.failed.Load() != nil || len(l.swap.Old()) > 0 || last == l.swap.Cleaned() && !l.swap.Placed()) {
		return err
	}
	return nil
}
