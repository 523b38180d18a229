package shard

import (
	"sync"
	"time"
)

// loads is the queue of shards that want their next load step. They take turns,
// so a small partition is loaded while a large one is under way. The mutex is a
// leaf.
type loads struct {
	limit int // workers at a time

	mu      sync.Mutex
	waiting []*shard
	since   time.Time // when the first came, for those who have no workers
	running int
}

// add puts a shard at the end and tells whether another worker is to be started.
func (l *loads) add(s *shard, now time.Time) (start bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.since = now
	}
	l.waiting = append(l.waiting, s)
	if l.running >= l.limit {
		return false
	}
	l.running++
	return true
}

// take gives the shard whose turn it is, or nil.
func (l *loads) take() *shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pop()
}

// takeOrEnd is take for a worker, who ends when nothing is left.
func (l *loads) takeOrEnd() *shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.pop()
	if s == nil {
		l.running--
	}
	return s
}

func (l *loads) pop() *shard {
	if len(l.waiting) == 0 {
		l.waiting = nil
		return nil
	}
	s := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	return s
}

// due is a time that is over while somebody waits; zero while nobody does.
func (l *loads) due() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return time.Time{}
	}
	return l.since
}

// schedule asks for a shard's next load step.
func (m *Manager) schedule(s *shard) {
	start := m.loads.add(s, s.clock)
	switch {
	case m.options.Workers == nil:
		m.options.Wake()
	case start:
		m.options.Workers(m.loadAll)
	}
}

// loadAll is a worker: it does load steps until none is wanted. A step of a
// shard at which somebody is at work is left to that one.
func (m *Manager) loadAll() {
	for s := m.loads.takeOrEnd(); s != nil; s = m.loads.takeOrEnd() {
		s.post(event{run: s.loadStep})
	}
}
