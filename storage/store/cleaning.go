package store

import (
	"fmt"

	"ottla/storage/log"
	"ottla/storage/vfs"
)

// Exclusively runs a task on a log while nobody else changes it, and returns when it has run. It tells false, and does
// not run it, where the log is in use no more: deleted, moved away, or in a failed directory.
func (s *Store) Exclusively(l *log.Log, task func()) (ran bool) {
	e := s.partition(l.TopicPartition())
	if e == nil || e.log != l {
		return false
	}
	s.runExclusive(e, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.gone || e.log != l {
			return
		}
		ran = true
		task()
	})
	if l.SwapWaits() { // maintenance says when it goes on
		s.Touch(e.tp)
	}
	return ran
}

// CleaningFailed is told of a log that could not be compacted. A disk that fails takes the directory offline; damage in a
// log, or a full disk, leaves it as it is: it is only not compacted.
func (s *Store) CleaningFailed(l *log.Log, err error) {
	e := s.partition(l.TopicPartition())
	if e == nil || e.log != l || l.Failed() == nil && !vfs.Failing(err) {
		return
	}
	s.FailDirectory(e.dir.ID, fmt.Errorf("%s: cannot compact it: %w", e.tp, err))
}
