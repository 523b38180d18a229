package store

import (
	"fmt"
	"path"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// liftCaps lets recovery points rise again that a truncation held down: the append lock is free, so it is over.
func (s *Store) liftCaps(d *directory) {
	for _, tp := range d.checkpoints.Capped() {
		s.mu.Lock()
		e := s.logs[tp]
		if future := s.futures[tp]; future != nil && future.dir == d {
			e = future
		}
		s.mu.Unlock()
		switch {
		case e == nil || e.dir != d:
			d.checkpoints.Lift(tp)
		case e.future:
			e.mu.Lock()
			d.checkpoints.Lift(tp)
			e.mu.Unlock()
		default:
			s.runExclusive(e, func() { d.checkpoints.Lift(tp) })
		}
	}
}

// checkpoint flushes in the background what was written in a directory and stores how far it is durable.
func (s *Store) checkpoint(now time.Time, d *directory) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.schedule.checkpointing, d)
	}()
	if !s.o.DisableBackgroundFlush {
		for _, e := range s.entriesThat(d, (*entry).unflushed) {
			s.flush(now, e)
		}
	}
	if s.offline(d) == nil {
		if err := s.writeCheckpoints(d); err != nil {
			s.checkpointFault(d, err)
		}
	}
}

// checkpointFault answers a checkpoint that cannot be written: a full disk passes, and the next one tells the same.
func (s *Store) checkpointFault(d *directory, err error) {
	if vfs.NoSpace(err) {
		s.o.Logger.Warn("a checkpoint cannot be written, the disk is full", "directory", d.Path, "error", err)
		return
	}
	s.FailDirectory(d.ID, fmt.Errorf("cannot write a checkpoint: %w", err))
}

// writeCheckpoints stores the recovery points and the log start offsets of a directory, where they changed.
func (s *Store) writeCheckpoints(d *directory) error {
	err := d.checkpoints.Write(logdir.RecoveryPointFile, func(onDisk offsets) logdir.Lines {
		return s.wanted(d, onDisk, func(e *entry) (protocol.Offset, bool) { return e.log.View().DurableEnd, true })
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(d.Path, logdir.RecoveryPointFile), err)
	}
	err = d.checkpoints.Write(logdir.LogStartFile, func(onDisk offsets) logdir.Lines { return s.wanted(d, onDisk, logStartToStore) })
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(d.Path, logdir.LogStartFile), err)
	}
	return nil
}

// logStartToStore gives the log start offset if the names of the segments do not tell it already, as Apache Kafka.
func logStartToStore(e *entry) (protocol.Offset, bool) {
	start := e.log.View().LogStartOffset
	if start == 0 {
		return 0, false
	}
	segments := e.log.Segments()
	return start, len(segments) > 0 && segments[0].Base < start
}

// wanted is what a checkpoint is to hold: a value of every log that works, and the old one of those that do not.
func (s *Store) wanted(d *directory, onDisk offsets, value func(e *entry) (protocol.Offset, bool)) logdir.Lines {
	return func(yield func(protocol.TopicPartition, protocol.Offset) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, logs := range []map[protocol.TopicPartition]*entry{s.logs, s.futures} {
			for tp, e := range logs {
				if e.dir != d {
					continue
				}
				if offset, ok := value(e); ok && !yield(tp, offset) {
					return
				}
			}
		}
		for tp, f := range s.failed {
			if old, ok := onDisk[tp]; ok && (f.dir == d || f.everywhere) && !yield(tp, old) {
				return
			}
		}
	}
}

// CheckpointHighWatermarks writes the high watermarks of partitions that changed; those of others stay.
func (s *Store) CheckpointHighWatermarks(changed map[protocol.TopicPartition]protocol.Offset) error {
	return s.checkpointSome(logdir.HighWatermarkFile, changed)
}

// SetCleanerOffsets writes how far partitions are compacted; what is said of others stays.
func (s *Store) SetCleanerOffsets(changed map[protocol.TopicPartition]protocol.Offset) error {
	return s.checkpointSome(logdir.CleanerFile, changed)
}

func (s *Store) checkpointSome(file string, changed offsets) error {
	var dirs []*directory // that hold some of them
	s.mu.Lock()
	for tp := range changed {
		if e := s.logs[tp]; e != nil && !slices.Contains(dirs, e.dir) {
			dirs = append(dirs, e.dir)
		}
	}
	s.mu.Unlock()
	for _, d := range s.dirs {
		if !slices.Contains(dirs, d) {
			continue
		}
		err := d.checkpoints.Write(file, func(onDisk offsets) logdir.Lines {
			return s.wanted(d, onDisk, func(e *entry) (protocol.Offset, bool) {
				offset, ok := changed[e.tp]
				if !ok || e.future {
					offset, ok = onDisk[e.tp]
				}
				return offset, ok
			})
		})
		if err != nil {
			s.checkpointFault(d, err)
			return fmt.Errorf("cannot write %s: %w", path.Join(d.Path, file), err)
		}
	}
	return nil
}
