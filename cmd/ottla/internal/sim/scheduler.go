package sim

import (
	"container/heap"
	"fmt"
	"io"
	"time"
)

// event is something that happens at a time.
type event struct {
	at    time.Time
	order uint64
	name  string
	run   func()
}

// scheduler runs events by time, and those of one time in the order in which they
// were made. Delays are random, so the order of what is independent is random too.
type scheduler struct {
	now    time.Time
	events eventHeap
	made   uint64
	count  int
	trace  trace
}

// after schedules an event.
func (s *scheduler) after(delay time.Duration, name string, run func()) {
	s.at(s.now.Add(delay), name, run)
}

func (s *scheduler) at(at time.Time, name string, run func()) {
	if at.Before(s.now) {
		at = s.now
	}
	s.made++
	heap.Push(&s.events, &event{at: at, order: s.made, name: name, run: run})
}

// step runs the next event; false if there is none.
func (s *scheduler) step() bool {
	if len(s.events) == 0 {
		return false
	}
	e := heap.Pop(&s.events).(*event)
	s.now = e.at
	s.count++
	s.trace.line(s.now, e.name)
	e.run()
	return true
}

// eventHeap orders by time, then by age.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// trace is the run as lines: hashed always, written if somebody reads.
type trace struct {
	start  time.Time
	hash   uint64
	writer io.Writer
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashOf[T string | []byte](hash uint64, text T) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * fnvPrime
	}
	return hash
}

func (t *trace) line(now time.Time, text string) {
	at := now.Sub(t.start)
	t.hash = (t.hash ^ uint64(at)) * fnvPrime
	t.hash = hashOf(t.hash, text)
	if t.writer != nil {
		fmt.Fprintf(t.writer, "%13.6f %s\n", at.Seconds(), text)
	}
}
