package log

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/logdir"
)

// Close ends the log. A clean close flushes, writes the producer snapshot and the index files as Apache Kafka
// leaves them, and returns the recovery point for the checkpoint, the end of the log. If it fails, or with clean
// false, the files are left as after the death of the process.
func (l *Log) Close(now time.Time, clean bool) (recoveryPoint protocol.Offset, err error) {
	if l.closed.Load() {
		return l.View().DurableEnd, nil
	}
	if clean {
		err = l.settle(now)
	}
	l.Abandon()
	return l.View().DurableEnd, err
}

// settle leaves on the disk what Trust Clean believes.
func (l *Log) settle(now time.Time) error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.epochsStale {
		if err := l.setEpochs(l.epochs); err != nil {
			return err
		}
	}
	if !l.touched.Load() {
		return nil
	}
	if err := l.finishSwap(); err != nil && l.failed.Load() != nil {
		return err // what only wants room the next start finishes
	}
	if err := l.Flush(now); err != nil {
		return err
	}
	// Again, even if nothing was appended since: indexes may have been completed.
	if err := l.sync(l.shown.Load()); err != nil {
		return l.poison(fmt.Errorf("cannot close the log of %s: %w", l.tp, err))
	}
	active := l.active()
	if err := errors.Join(l.takeSnapshot(l.end, true), active.Seal(), active.SyncIndexes()); err != nil {
		return l.poison(fmt.Errorf("cannot close the log of %s: %w", l.tp, err))
	}
	if err := errors.Join(l.interim.remove(l), l.bury(now)); err != nil {
		return err
	}
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return l.poison(fmt.Errorf("cannot close the log of %s: %w", l.tp, err))
	}
	return nil
}

// Settle writes what a clean Close writes, and syncs nothing. For a caller that makes all files durable at once, and then
// says so to Settled. Nobody else uses the log any more.
func (l *Log) Settle(now time.Time) error {
	if err := l.usable(); err != nil || !l.touched.Load() {
		return err
	}
	if l.epochsStale {
		if err := l.setEpochs(l.epochs); err != nil {
			return err
		}
	}
	if err := l.finishSwap(); err != nil && l.failed.Load() != nil {
		return err
	}
	if err := errors.Join(l.takeSnapshot(l.end, false), l.active().Seal(), l.interim.remove(l), l.bury(now)); err != nil {
		return l.poison(fmt.Errorf("cannot close the log of %s: %w", l.tp, err))
	}
	return nil
}

// Settled says that everything is durable since Settle: Close has nothing left to do.
func (l *Log) Settled() {
	if l.usable() != nil {
		return
	}
	l.dirStale.Store(false)
	l.touched.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durableEnd = l.end
	l.publish()
}

// Touched tells that a clean Close has something to write or to sync.
func (l *Log) Touched() bool { return l.touched.Load() }

// Touch has a clean Close sync everything, though this process may not have written it.
func (l *Log) Touch() { l.touched.Store(true) }

// Abandon closes the log as it is.
func (l *Log) Abandon() {
	l.closed.Store(true)
	for _, s := range l.segments {
		s.Close()
	}
}

// MarkDeleted closes the log and renames its directory to <topic>-<partition>.<32 hex digits>-delete, from where the
// store removes it later. A long topic name is cut so that the name stays within 255 bytes
// (LocalLog.logDeleteDirName).
func (l *Log) MarkDeleted(random func() uint64) (newDir string, err error) {
	l.Abandon()
	return l.moveAway(random, "-delete")
}

// MarkStray closes the log and renames its directory with the suffix -stray: it belongs to no partition of this
// node, but somebody should look at it before it goes.
func (l *Log) MarkStray(random func() uint64) (newDir string, err error) {
	l.Abandon()
	return l.moveAway(random, "-stray")
}

// MarkReplaced renames the directory as MarkDeleted does, for a log whose place another one takes; it can be used until Abandon.
func (l *Log) MarkReplaced(random func() uint64) (newDir string, err error) {
	return l.moveAway(random, "-delete")
}

func (l *Log) moveAway(random func() uint64, suffix string) (string, error) {
	newDir := path.Join(path.Dir(l.dir), logdir.AwayName(l.tp, random, suffix))
	if err := l.MoveTo(newDir); err != nil {
		return "", fmt.Errorf("cannot put the log of %s away: %w", l.tp, err)
	}
	return newDir, nil
}

// MoveTo renames the log's directory within its log directory, durably. The log may be read and flushed meanwhile, and
// be used on under its new name.
func (l *Log) MoveTo(newDir string) error {
	l.flushing.Lock() // an fsync would look for its files by name
	defer l.flushing.Unlock()
	old := l.Dir()
	moving := slices.Concat(l.segments, l.doomed.Segments())
	if s := l.making.Segment(); s != nil {
		moving = append(moving, s)
	}
	if l.swap != nil {
		moving = append(moving, l.swap.Old()...)
	}
	if err := l.env.Files.MoveDir(old, newDir, moving); err != nil {
		return fmt.Errorf("cannot rename the log of %s: %w", l.tp, err)
	}
	l.doomed.Moved(newDir)
	l.mu.Lock()
	l.dir = newDir
	l.mu.Unlock()
	if err := l.env.FS.SyncDir(path.Dir(newDir)); err != nil {
		return fmt.Errorf("cannot rename the log of %s durably: %w", l.tp, err)
	}
	return nil
}
