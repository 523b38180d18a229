package move

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"ottla/protocol"
)

// poll is how long a move that finds all places taken waits.
const poll = 200 * time.Millisecond

// Move is one replica on its way to another directory. R is what its list's owner needs of the replica.
type Move[R any] struct {
	Partition protocol.TopicPartition
	Replica   R
	Target    protocol.DirectoryID
	Dirty     int // bytes copied since the last flush; of the step under way, so guarded by nobody

	// Guarded by the list.
	asked    bool // the controller was told of the target
	accepted bool // it has noted it: the directories may be swapped
	running  bool // a step is under way
	ended    bool
	due      time.Time
}

// Asked tells whether the controller was told of the target. Of a move that has ended.
func (m *Move[R]) Asked() bool { return m.asked }

// List has the replicas of a node that move, one move a partition. It is safe for concurrent use.
type List[R any] struct {
	Limit Limit // of all of them together

	mu   sync.Mutex
	of   map[protocol.TopicPartition]*Move[R]
	last time.Time // the newest time that Due was told
}

// Get gives a partition's move, or nil.
func (l *List[R]) Get(tp protocol.TopicPartition) *Move[R] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[tp]
}

// Start adds a move. accepted: the controller knows the target already.
func (l *List[R]) Start(now time.Time, tp protocol.TopicPartition, replica R, target protocol.DirectoryID, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[protocol.TopicPartition]*Move[R]{}
	}
	l.of[tp] = &Move[R]{Partition: tp, Replica: replica, Target: target, asked: accepted, accepted: accepted, due: now}
}

// End forgets a move; the step under way, if any, has no effect any more.
func (l *List[R]) End(tp protocol.TopicPartition) (was *Move[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = l.of[tp]
	if was != nil {
		was.ended = true
		delete(l.of, tp)
	}
	return was
}

// Stop ends all moves; the next start goes on with them.
func (l *List[R]) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.of {
		m.ended = true
	}
	clear(l.of)
}

// HasEnded tells whether a move has.
func (l *List[R]) HasEnded(m *Move[R]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return m.ended
}

// Accept takes note of the directory in which the cluster has a replica: that of the target says that the directories may be
// swapped. moving is false if the partition does not move.
func (l *List[R]) Accept(now time.Time, tp protocol.TopicPartition, dir protocol.DirectoryID) (moving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[tp]
	if m != nil && dir == m.Target && !m.accepted {
		m.accepted, m.due = true, now
	}
	return m != nil
}

// Accepted are the moves of which only the swap is left to do.
func (l *List[R]) Accepted() (list []*Move[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.of {
		if m.accepted && !m.running {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, compare)
	return list
}

func compare[R any](a, b *Move[R]) int {
	return a.Partition.Compare(b.Partition)
}

// Ask tells whether the target is accepted, and whether the controller is to be told of it now, which is once.
func (l *List[R]) Ask(m *Move[R]) (accepted, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	accepted, tell = m.accepted, !m.asked && !m.ended
	m.asked = true
	return accepted, tell
}

// Due gives the moves whose steps are due, so many at a time, and has them run.
func (l *List[R]) Due(now time.Time, most int) (start []*Move[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = now
	var due []*Move[R]
	for _, m := range l.of {
		switch {
		case m.running:
			most--
		case !m.due.After(now):
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *Move[R]) int { return cmp.Or(a.due.Compare(b.due), compare(a, b)) })
	for _, m := range due {
		if most <= 0 {
			m.due = now.Add(poll)
			continue
		}
		most--
		m.running = true
		start = append(start, m)
	}
	return start
}

// Stepped says that a step is over, and when the next is due.
func (l *List[R]) Stepped(m *Move[R], next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.running, m.due = false, next
}

// Next is when a step is due; zero: never.
func (l *List[R]) Next() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Time
	for _, m := range l.of {
		if !m.running && (next.IsZero() || m.due.Before(next)) {
			next = m.due
		}
	}
	return next
}

// Hurry makes all steps due, after a change of the limit.
func (l *List[R]) Hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.of {
		m.due = l.last
	}
}
