package store

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Close closes all logs. A clean close flushes them, writes the checkpoints and, last, the clean-shutdown markers
// with the broker's epoch; a directory in which a partition is offline gets no marker, so that the next start
// checks it. The caller has made sure that nobody uses a log any more. A second call does nothing.
func (s *Store) Close(now time.Time, clean bool, brokerEpoch protocol.BrokerEpoch) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	closing := s.schedule.closing
	s.schedule.closing = nil
	s.mu.Unlock()
	s.tasks.Wait()
	for _, e := range closing {
		_ = e.finish(func() error { _, err := e.log.Close(now, false); return err }) // the directory has failed already
	}
	results := make([]error, len(s.dirs))
	var running sync.WaitGroup
	for i, d := range s.dirs {
		running.Add(1)
		s.o.Workers(func() {
			defer running.Done()
			results[i] = s.closeDirectory(now, d, clean, brokerEpoch)
		})
	}
	running.Wait()
	return errors.Join(append(results, closeLocks(s.all))...)
}

// closeLog closes a log without care for what is not durable.
func (s *Store) closeLog(now time.Time, e *entry) error {
	return e.finish(func() error {
		_, err := e.log.Close(now, false)
		return err
	})
}

func (s *Store) closeDirectory(now time.Time, d *directory, clean bool, brokerEpoch protocol.BrokerEpoch) error {
	entries := s.entries(d)
	if clean {
		if err := s.settleTogether(now, d, entries); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	points := offsets{}
	var errs []error
	s.sideBySide(entries, func(e *entry) {
		err := e.finish(func() error {
			if clean {
				if err := s.syncTail(e); err != nil {
					return err
				}
			}
			point, err := e.log.Close(now, clean)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				points[e.tp] = point
			}
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	})
	if s.offline(d) != nil {
		return nil // it was named when it failed
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the logs in %s cannot be closed: %w", d.Path, err)
	}
	if !clean {
		return nil
	}
	if err := s.closeCheckpoints(d, points); err != nil {
		return fmt.Errorf("the checkpoints in %s cannot be written: %w", d.Path, err)
	}
	if s.distrusted(d) {
		return nil
	}
	if err := logdir.WriteMarker(s.o.FS, d.Path, brokerEpoch); err != nil {
		return fmt.Errorf("the clean stop of %s cannot be noted: %w", d.Path, err)
	}
	return nil
}

const (
	// closedSideBySide is how many logs are closed at a time: most of the work is waiting for the disk.
	closedSideBySide = 16
	// fewLogs are synced one by one, many by syncing the file system: that writes what others have left in it too.
	fewLogs = 64
)

// sideBySide lets the workers act on logs, and returns when all are done.
func (s *Store) sideBySide(entries []*entry, act func(e *entry)) {
	var running sync.WaitGroup
	share := max((len(entries)+closedSideBySide-1)/closedSideBySide, 4)
	for some := range slices.Chunk(entries, share) {
		running.Add(1)
		s.o.Workers(func() {
			defer running.Done()
			for _, e := range some {
				act(e)
			}
		})
	}
	running.Wait()
}

// settleTogether makes the logs of a directory durable by one sync of its file system, if many were touched, or if a process
// that died may have left any of them unsynced.
func (s *Store) settleTogether(now time.Time, d *directory, entries []*entry) error {
	touched := 0
	for _, e := range entries {
		if e.log.Touched() {
			touched++
		}
	}
	inherited := d.trust != log.Clean
	if s.offline(d) != nil || touched <= fewLogs && !inherited {
		return nil
	}
	var mu sync.Mutex
	failed := map[*entry]bool{}
	s.sideBySide(entries, func(e *entry) {
		if e.log.Settle(now) != nil { // Close says what it is
			mu.Lock()
			failed[e] = true
			mu.Unlock()
		}
	})
	err := vfs.SyncFS(s.o.FS, d.Path)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		for _, e := range entries {
			if inherited {
				e.log.Touch()
			}
		}
		return nil
	case err != nil:
		return fmt.Errorf("the logs in %s cannot be made durable: %w", d.Path, err)
	}
	for _, e := range entries {
		if !failed[e] {
			e.log.Settled()
			e.cutFrom = protocol.NoOffset
		}
	}
	return nil
}

// syncTail makes the sizes of the newest segments durable. A process that died may have cut one of them, and not have
// come to the fsync: the log that was opened after it ends where it should, so it has nothing to flush, and yet a
// power cut would bring back what was cut off, behind a marker that says that nothing needs to be checked.
func (s *Store) syncTail(e *entry) error {
	if e.cutFrom == protocol.NoOffset {
		return nil
	}
	for _, segment := range e.log.Segments() {
		if segment.Base < e.cutFrom {
			continue
		}
		name := path.Join(e.log.Dir(), fmt.Sprintf("%020d.log", segment.Base))
		file, err := s.o.FS.OpenFile(name, os.O_RDWR)
		if err != nil {
			return err
		}
		if err := errors.Join(file.SyncData(), file.Close()); err != nil {
			return fmt.Errorf("cannot make %s durable: %w", name, err)
		}
	}
	return nil
}

// closeCheckpoints writes the checkpoints of closed logs, all of which are durable.
func (s *Store) closeCheckpoints(d *directory, points offsets) error {
	for tp := range points {
		d.checkpoints.Lift(tp)
	}
	err := d.checkpoints.Write(logdir.RecoveryPointFile, func(onDisk offsets) logdir.Lines {
		return s.wanted(d, onDisk, func(e *entry) (protocol.Offset, bool) { return points[e.tp], true })
	})
	if err != nil {
		return err
	}
	return d.checkpoints.Write(logdir.LogStartFile, func(onDisk offsets) logdir.Lines { return s.wanted(d, onDisk, logStartToStore) })
}
