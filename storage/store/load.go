package store

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Open is Prepare, Begin and Load in one.
func Open(now time.Time, o Options) (*Store, Report, error) {
	p, err := Prepare(o)
	if err != nil {
		return nil, Report{}, err
	}
	s, report, err := p.Load(now, nil)
	return s, report, errors.Join(err, p.Close())
}

// found is what one directory holds, by the names in it.
type found struct {
	partitions []protocol.TopicPartition
	futures    []foundFuture
	deleted    []string
	collector  collector
}

// load opens everything that the directories hold. What fails is offline afterwards; load itself does not fail.
func (s *Store) load(now time.Time) (*Store, Report) {
	lists := make([]*found, len(s.dirs))
	for i, d := range s.dirs {
		lists[i] = &found{}
		lists[i].collector.report.Trust = d.trust
		if d.Offline == nil {
			if err := s.list(d, lists[i]); err != nil {
				s.FailDirectory(d.ID, err)
			}
		}
	}
	s.setDuplicatesAside(lists)
	s.settleFutures(lists)
	var running sync.WaitGroup
	for i, d := range s.dirs {
		if d.Offline == nil {
			s.openDirectory(now, d, lists[i], &running)
		}
	}
	running.Wait()
	s.openFutures(now, lists)
	var report Report
	for i, d := range s.dirs {
		if s.offline(d) == nil {
			if err := s.settle(d); err != nil {
				s.FailDirectory(d.ID, err)
			} else {
				s.remember(d.ID, false)
			}
		}
		report.Directories = append(report.Directories, lists[i].collector.finish(s.describe(d)))
	}
	s.settleMetadata()
	return s, report
}

// openFutures opens the future logs, after all partitions.
func (s *Store) openFutures(now time.Time, lists []*found) {
	for i, d := range s.dirs {
		for _, future := range lists[i].futures {
			if future.keep && s.offline(d) == nil {
				s.openFuture(now, d, future)
			}
		}
	}
}

// list sorts the names in a directory and reads its checkpoints.
func (s *Store) list(d *directory, f *found) error {
	entries, err := vfs.Survey(s.o.FS, d.Path, func(string) vfs.Wish { return vfs.Named }, nil)
	if err != nil {
		return fmt.Errorf("cannot list it: %w", err)
	}
	report := &f.collector.report
	for _, e := range entries {
		if !e.Dir {
			continue
		}
		switch kind, tp := logdir.Classify(e.Name); kind {
		case logdir.KindPartition:
			f.partitions = append(f.partitions, tp)
		case logdir.KindFuture:
			f.futures = append(f.futures, foundFuture{name: e.Name, tp: tp})
		case logdir.KindDeleted:
			f.deleted = append(f.deleted, e.Name)
		case logdir.KindAside:
			report.Aside = append(report.Aside, e.Name)
			s.o.Logger.Warn("a directory is set aside and left alone", "directory", path.Join(d.Path, e.Name))
		case logdir.KindUnknown:
			report.Unknown = append(report.Unknown, e.Name)
			s.o.Logger.Warn("a directory is no partition and is left alone", "directory", path.Join(d.Path, e.Name))
		}
	}
	checkpoints, damaged, err := logdir.ReadCheckpoints(s.o.FS, d.Path)
	if err != nil {
		return fmt.Errorf("cannot read its checkpoints: %w", err)
	}
	d.checkpoints = checkpoints
	d.env = s.o.env(d)
	report.Checkpoints = damaged
	for _, file := range damaged {
		s.o.Logger.Warn("a checkpoint file is damaged and taken as empty", "file", path.Join(d.Path, file))
	}
	return nil
}

// openedSideBySide is how many logs of a directory are opened at a time, at least, where little of them is read: what then
// takes the time is waiting for the disk.
const openedSideBySide = 8

// openDirectory starts the workers of one directory: each takes the next partition until none is left. Deletions
// that were interrupted are finished last.
func (s *Store) openDirectory(now time.Time, d *directory, f *found, running *sync.WaitGroup) {
	var mu sync.Mutex
	next := 0
	take := func() (protocol.TopicPartition, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(f.partitions) || s.offline(d) != nil {
			return protocol.TopicPartition{}, false
		}
		next++
		return f.partitions[next-1], true
	}
	parallel := s.o.RecoveryParallelism
	if d.trust != log.OtherBoot {
		parallel = max(parallel, openedSideBySide)
	}
	for range min(parallel, len(f.partitions)) {
		running.Add(1)
		s.o.Workers(func() {
			defer running.Done()
			for {
				tp, ok := take()
				if !ok {
					return
				}
				s.openLog(now, d, tp, &f.collector)
			}
		})
	}
	if len(f.deleted) == 0 {
		return
	}
	running.Add(1)
	s.o.Workers(func() {
		defer running.Done()
		for _, name := range f.deleted {
			if s.removeTree(path.Join(d.Path, name)) {
				f.collector.removed(name)
			}
		}
	})
}

func (s *Store) openLog(now time.Time, d *directory, tp protocol.TopicPartition, c *collector) {
	recovery, err := s.tryOpen(now, d, tp)
	var damage *log.DamagedError
	switch {
	case err == nil:
		c.opened(tp, recovery)
	case !errors.As(err, &damage) && vfs.Failing(err):
		s.FailDirectory(d.ID, fmt.Errorf("cannot open %s: %w", tp, err))
	default:
		err = fmt.Errorf("%s in %s cannot be opened: %w", tp, d.Path, err)
		c.damaged(tp, err)
		s.damaged(tp, d, err)
		s.o.Logger.Error("a partition is offline", "partition", tp, "directory", d.Path, "reason", err)
	}
}

// tryOpen opens a log and takes it into the store.
func (s *Store) tryOpen(now time.Time, d *directory, tp protocol.TopicPartition) (log.Recovery, error) {
	state := log.OpenState{
		RecoveryPoint:  d.checkpoints.Get(logdir.RecoveryPointFile, tp),
		LogStartOffset: d.checkpoints.Get(logdir.LogStartFile, tp),
		Trust:          d.trust,
		Now:            now,
	}
	l, recovery, err := log.Open(*d.env, path.Join(d.Path, tp.String()), tp, s.o.LogOptions(tp.Topic), state)
	if err != nil {
		return recovery, err
	}
	cutFrom := protocol.NoOffset
	if d.trust != log.Clean {
		cutFrom = l.View().ActiveSegmentBase
	}
	s.register(tp, l, d, cutFrom, false)
	if recovery.NoteWorthy() {
		s.o.Logger.Info("a partition was repaired", "partition", tp, "directory", d.Path, "recovery", fmt.Sprintf("%+v", recovery))
	}
	return recovery, nil
}

// Reopen opens a log that could not be opened for want of room; its files are as they were. Another partition that does not
// work stays so, and one that is not here is no error.
func (s *Store) Reopen(now time.Time, tp protocol.TopicPartition) error {
	s.mu.Lock()
	f, failed := s.failed[tp]
	_, busy := s.busy[tp]
	if !failed || !f.roomless || f.dir.Offline != nil || busy || s.closed {
		s.mu.Unlock()
		return f.err
	}
	s.busy[tp] = f.dir
	delete(s.failed, tp)
	s.mu.Unlock()
	defer s.release(tp)
	err := s.nameFirst(&f, tp)
	if err == nil {
		_, err = s.tryOpen(now, f.dir, tp)
	}
	if err != nil {
		err = fmt.Errorf("%s in %s cannot be opened: %w", tp, f.dir.Path, err)
		s.waitsFor(tp, f.dir, err, f.name)
		if vfs.Failing(err) && !isDamage(err) {
			s.FailDirectory(f.dir.ID, err)
		}
		return err
	}
	s.o.Logger.Info("a partition works after all", "partition", tp, "directory", f.dir.Path)
	return nil
}

// settle says under which boot the directory is in use, now that all its logs were opened under the trust that
// the old boot id allowed. A directory in which a partition is offline gets none: its damage would not be seen
// again by a start that trusts the page cache.
func (s *Store) settle(d *directory) error {
	if s.distrusted(d) {
		return logdir.RemoveDurably(s.o.FS, path.Join(d.Path, logdir.BootIDFile))
	}
	if id := s.o.FS.BootID(); id != d.bootID {
		if err := logdir.WriteBootID(s.o.FS, d.Path, id); !vfs.NoSpace(err) {
			return err
		}
		// What is there is another boot's: the next start checks more than it must.
		s.o.Logger.Warn("the boot id cannot be stored, the disk is full", "directory", d.Path)
	}
	return nil
}

// settleMetadata does the same for a metadata directory that holds no logs of ours. The quorum looks after
// itself: if this fails, the next start checks more.
func (s *Store) settleMetadata() {
	for _, d := range s.all {
		if d.holdsLogs || d.Offline != nil {
			continue
		}
		if err := s.settle(d); err != nil {
			s.o.Logger.Warn("the boot id cannot be stored", "directory", d.Path, "error", err)
		}
	}
}
