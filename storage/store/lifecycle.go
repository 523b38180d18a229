package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// errBusy answers calls for a partition that another call is creating or deleting.
var errBusy = errors.New("the partition is being created or deleted")

// Create makes the log of a new partition, in the directory that Prefer named, else in the given one or, if there is none
// of that id (zero, or that of a disk that was exchanged), in the one with the fewest partitions. A partition that is here
// already gives its log back if the topic id fits.
func (s *Store) Create(tp protocol.TopicPartition, topicID protocol.TopicID, dir protocol.DirectoryID) (*log.Log, error) {
	if !logdir.ValidTopic(tp.Topic) || tp.Partition < 0 {
		return nil, fmt.Errorf("%q is no name of a partition", tp)
	}
	existing, err := s.reserve(tp, topicID)
	if existing != nil || err != nil {
		return existing, err
	}
	defer s.release(tp)
	if wish, ok := s.takePreferred(tp); ok {
		dir = wish
	}
	for {
		d, err := s.choose(tp, dir)
		if err != nil {
			return nil, fmt.Errorf("cannot create %s: %w", tp, err)
		}
		l, err := s.createIn(d, tp.String(), tp, topicID)
		if err == nil {
			if !dir.IsZero() && d.ID != dir {
				s.o.Logger.Warn("the log directory of a partition is gone, and what it held; the partition is made anew", "partition", tp, "was", dir, "directory", d.Path)
			}
			s.register(tp, l, d, protocol.NoOffset, false)
			return l, s.offline(d)
		}
		err = fmt.Errorf("cannot create %s in %s: %w", tp, d.Path, err)
		if !vfs.Failing(err) {
			return nil, err
		}
		s.FailDirectory(d.ID, err)
		if d.ID == dir {
			return nil, err
		}
	}
}

// reserve marks a partition as busy, unless it is here already.
func (s *Store) reserve(tp protocol.TopicPartition, topicID protocol.TopicID) (*log.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the store is closed")
	}
	if _, busy := s.busy[tp]; busy {
		return nil, fmt.Errorf("%s: %w", tp, errBusy)
	}
	if f, ok := s.failed[tp]; ok {
		return nil, fmt.Errorf("%s is here and offline: %w", tp, f.err)
	}
	if e := s.logs[tp]; e != nil {
		if found := e.log.TopicID(); !topicID.IsZero() && !found.IsZero() && found != topicID {
			return nil, fmt.Errorf("%s is here with topic id %s, not %s", tp, found, topicID)
		}
		return e.log, nil
	}
	s.busy[tp] = nil
	return nil, nil
}

func (s *Store) release(tp protocol.TopicPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, tp)
}

// choose gives the directory of an id, or the working one with the fewest partitions, the first of equals, among those
// that have room if any has. What is being created counts already, so that side by side they spread as one after another.
func (s *Store) choose(tp protocol.TopicPartition, id protocol.DirectoryID) (chosen *directory, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.busy[tp] = chosen }()
	s.busy[tp] = nil
	for _, d := range s.dirs {
		if !id.IsZero() && d.ID == id {
			return d, d.Offline
		}
	}
	counts := s.countLogs()
	var best *directory
	for _, d := range s.dirs {
		if d.Offline == nil && (best == nil || s.preferable(d, best, counts)) {
			best = d
		}
	}
	if best == nil {
		return nil, errors.New("no log directory works")
	}
	return best, nil
}

// preferable tells whether a directory is better for a new partition than another one.
func (s *Store) preferable(d, than *directory, counts map[*directory]int) bool {
	full, other := s.o.space(d).State(), s.o.space(than).State()
	return full < other || full == other && counts[d] < counts[than]
}

// countLogs counts the partitions of each directory. The store's lock is held.
func (s *Store) countLogs() map[*directory]int {
	counts := map[*directory]int{}
	for _, d := range s.dirs {
		counts[d] = d.logs
	}
	for _, d := range s.busy {
		counts[d]++
	}
	for _, f := range s.failed {
		counts[f.dir]++
	}
	return counts
}

func (s *Store) createIn(d *directory, name string, tp protocol.TopicPartition, topicID protocol.TopicID) (*log.Log, error) {
	dir := path.Join(d.Path, name)
	if err := s.clearLeftover(dir); err != nil {
		return nil, err
	}
	if err := d.checkpoints.Forget(tp); err != nil {
		return nil, err
	}
	l, err := log.Create(*d.env, dir, tp, topicID, s.o.LogOptions(tp.Topic))
	if err != nil {
		return nil, errors.Join(err, s.o.FS.RemoveAll(dir))
	}
	return l, nil
}

// clearLeftover removes what a Create that failed has left of a directory that this store does not know. One that
// has records is nobody's to remove.
func (s *Store) clearLeftover(dir string) error {
	entries, err := s.o.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".log") && e.Size > 0 {
			return fmt.Errorf("%s holds records and belongs to no partition that was opened", dir)
		}
	}
	return s.o.FS.RemoveAll(dir)
}

// Delete takes a partition out of the store and renames its directory; the files go after file.delete.delay.ms.
// A partition that is not here is no error, and one that is here and offline is left to the operator. The caller
// has stopped using the log and holds no append lock.
func (s *Store) Delete(now time.Time, tp protocol.TopicPartition) error {
	if err := s.RemoveFuture(now, tp); err != nil {
		return err
	}
	return s.remove(tp, s.partition(tp), func(e *entry) error { return s.putAway(now, e) })
}

// putAway is discard, or, where the longer name finds no room, removes the log at once.
func (s *Store) putAway(now time.Time, e *entry) error {
	err := s.discard(now, e)
	if !vfs.NoSpace(err) {
		return err
	}
	s.o.Logger.Warn("a partition is removed at once, as the disk is full", "partition", e.tp, "error", err)
	if err := s.o.FS.RemoveAll(e.log.Dir()); err != nil {
		return err
	}
	return s.o.FS.SyncDir(e.dir.Path)
}

// discard renames a log for deletion and says when its files go.
func (s *Store) discard(now time.Time, e *entry) error {
	delay := e.log.Options().FileDeleteDelay
	dir, err := e.log.MarkDeleted(s.o.Random)
	if err != nil {
		return err
	}
	s.removeLater(now.Add(delay), dir)
	return nil
}

// removeLater says when a directory goes that was renamed for deletion.
func (s *Store) removeLater(at time.Time, dir string) {
	s.mu.Lock()
	s.schedule.removals = append(s.schedule.removals, removal{at, dir})
	s.mu.Unlock()
	s.wake()
}

func (s *Store) partition(tp protocol.TopicPartition) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[tp]
}

// SetStray takes a partition that the cluster does not know out of the store: its directory is renamed to
// <topic>-<partition>.<32 hex digits>-stray and kept for the operator. The caller has stopped using the log.
func (s *Store) SetStray(now time.Time, tp protocol.TopicPartition) error {
	if err := s.RemoveFuture(now, tp); err != nil {
		return err
	}
	return s.remove(tp, s.partition(tp), func(e *entry) error {
		if err := e.log.Flush(now); err != nil {
			return err
		}
		dir, err := e.log.MarkStray(s.o.Random)
		if err == nil {
			s.o.Logger.Warn("a partition that the cluster does not know is set aside", "partition", tp, "directory", dir)
		}
		return err
	})
}

// remove takes a log out of the maps, lets act rename its directory, and has the checkpoints forget it. e is nil if the
// partition has no log that works.
func (s *Store) remove(tp protocol.TopicPartition, e *entry, act func(e *entry) error) error {
	s.mu.Lock()
	if e == nil || !s.holds(e) {
		f, failed := s.failed[tp]
		s.mu.Unlock()
		if failed {
			return fmt.Errorf("%s is offline: %w", tp, f.err)
		}
		return nil
	}
	s.drop(e)
	s.busy[tp] = nil
	s.mu.Unlock()
	defer s.release(tp)
	err := e.finish(func() error { return act(e) })
	if err == nil {
		if err = e.dir.checkpoints.Forget(tp); vfs.NoSpace(err) {
			// The partition is gone all the same; who makes it anew forgets it first.
			s.o.Logger.Warn("the checkpoints still name a removed partition, the disk is full", "partition", tp, "error", err)
			return nil
		}
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("cannot remove %s: %w", tp, err)
	s.mu.Lock()
	if !e.future {
		s.failed[tp] = failure{dir: e.dir, err: err} // what is left of it nobody knows
	}
	e.dir.distrusted = true
	s.mu.Unlock()
	if !vfs.NoSpace(err) {
		s.FailDirectory(e.dir.ID, err)
	}
	return err
}

// drop takes a log out of the maps. The store's lock is held.
func (s *Store) drop(e *entry) {
	if s.logs[e.tp] == e {
		delete(s.logs, e.tp)
		e.dir.logs--
	} else if s.futures[e.tp] == e {
		delete(s.futures, e.tp)
		e.dir.logs--
	}
	s.schedule.forget(e)
}

// finish ends the use of a log: act is the last to touch it. A second call does nothing.
func (e *entry) finish(act func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return nil
	}
	e.gone = true
	return act()
}

// FailDirectory takes a directory and its partitions offline. Their logs are closed at the next Tick, so the
// caller may hold an append lock. A second call for the same directory does nothing.
func (s *Store) FailDirectory(id protocol.DirectoryID, reason error) {
	d := s.directory(id)
	if d == nil {
		return
	}
	s.mu.Lock()
	if d.Offline != nil {
		s.mu.Unlock()
		return
	}
	d.Offline = reason
	d.distrusted = true
	for tp, e := range s.logs {
		if e.dir == d {
			s.drop(e)
			s.failed[tp] = failure{dir: d, err: reason}
			s.schedule.closing = append(s.schedule.closing, e)
		}
	}
	for _, e := range s.futures {
		if e.dir == d {
			s.drop(e)
			s.schedule.closing = append(s.schedule.closing, e)
		}
	}
	description := d.Directory
	s.mu.Unlock()
	s.o.Logger.Error("a log directory is offline", "directory", d.Path, "reason", reason)
	// After a failed fsync the page cache is not what is on the disk, so the next start must not trust it. If even
	// this fails, the disk is gone.
	if err := logdir.RemoveDurably(s.o.FS, path.Join(d.Path, logdir.BootIDFile)); err != nil {
		s.o.Logger.Warn("the boot id of an offline directory cannot be removed", "directory", d.Path, "error", err)
		s.remember(d.ID, true)
	}
	if s.o.Offline != nil {
		s.o.Offline(description)
	}
	s.wake()
}

// removeTree removes a directory that is no partition any more. What fails is finished by the next start.
func (s *Store) removeTree(dir string) bool {
	err := s.o.FS.RemoveAll(dir)
	if err != nil {
		s.o.Logger.Warn("a deleted partition cannot be removed yet", "directory", dir, "error", err)
	}
	return err == nil
}
