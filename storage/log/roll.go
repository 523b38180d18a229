package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// roll seals the active segment and makes a new one that begins at base. If the disk is full everything stays as it
// was.
func (l *Log) roll(base protocol.Offset, nowMs int64) error {
	old := l.active()
	l.touched.Store(true)
	if base <= old.Base() {
		panic(fmt.Sprintf("log: %s would roll at %d, but its active segment begins at %d", l.tp, base, old.Base()))
	}
	// The order matters to a kill in between: without the new .log the old segment is still the last one, and is
	// resumed as such; once the new one is there, the old one's files are complete.
	if err := old.Seal(); err != nil {
		return l.failedRoll(base, err)
	}
	if err := l.takeSnapshot(base, false); err != nil {
		return l.failedRoll(base, err)
	}
	fresh, err := segment.Create(l.env.Files, l.dir, base, l.segmentOptions(), nowMs)
	if err != nil {
		return l.failedRoll(base, err)
	}
	l.dirStale.Store(true)
	l.jitter = l.newJitter()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(slices.Clone(l.segments), fresh)
	l.publish()
	return nil
}

// failedRoll removes half-made files of the new segment, since the old one goes on beyond its base.
func (l *Log) failedRoll(base protocol.Offset, err error) error {
	if !vfs.NoSpace(err) {
		return l.poison(err)
	}
	if err := errors.Join(segment.RemoveFiles(l.env.Files, l.dir, base), l.active().Unseal()); err != nil {
		return l.poison(err)
	}
	return err
}

// snapshotSuffix ends the names of producer snapshots.
const snapshotSuffix = ".snapshot"

func (l *Log) snapshotName(offset protocol.Offset) string {
	return path.Join(l.dir, segment.FileName(offset, snapshotSuffix))
}

// takeSnapshot writes the producer state, which must be that of offset, unless a newer file is there already
// (ProducerStateManager.takeSnapshot).
func (l *Log) takeSnapshot(offset protocol.Offset, sync bool) error {
	l.mu.Lock()
	data, none := l.producers.AppendSnapshot(nil), l.producers.Len() == 0
	l.mu.Unlock()
	if none && offset == l.segments[0].Base() {
		return nil
	}
	if n := len(l.snapshots); n > 0 && l.snapshots[n-1] >= offset {
		if sync {
			return l.syncSnapshot(l.snapshots[n-1])
		}
		return nil
	}
	if err := l.writeSnapshot(offset, data, sync); err != nil {
		return err
	}
	l.snapshots = append(l.snapshots, offset)
	return nil
}

func (l *Log) writeSnapshot(at protocol.Offset, data []byte, sync bool) error {
	l.dirStale.Store(true)
	if err := vfs.WriteFile(l.env.FS, l.snapshotName(at), data, sync); err != nil {
		if vfs.NoSpace(err) { // the next one may have another name; of half of this one a start would only say that it is damaged
			_ = l.env.FS.Remove(l.snapshotName(at))
		}
		return fmt.Errorf("cannot write a producer snapshot of %s: %w", l.tp, err)
	}
	return nil
}

// syncSnapshot makes a producer snapshot durable, if there is one.
func (l *Log) syncSnapshot(at protocol.Offset) error {
	err := vfs.SyncFile(l.env.FS, path.Join(l.Dir(), segment.FileName(at, snapshotSuffix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
