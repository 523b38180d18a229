package simcluster

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

// scheduler runs events by time, and those of one time in the order in which they were made.
type scheduler struct {
	now    time.Time
	start  time.Time
	events eventHeap
	made   uint64
	count  int
	hash   uint64    // of all lines
	writer io.Writer // of the lines; nil: nobody reads them
}

func (s *scheduler) after(delay time.Duration, name string, run func()) {
	s.made++
	heap.Push(&s.events, &event{at: s.now.Add(max(delay, 0)), order: s.made, name: name, run: run})
}

// step runs the next event; false if there is none.
func (s *scheduler) step() bool {
	if len(s.events) == 0 {
		return false
	}
	e := heap.Pop(&s.events).(*event)
	s.now = e.at
	s.count++
	s.line(e.name)
	e.run()
	return true
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (s *scheduler) line(text string) {
	at := s.now.Sub(s.start)
	s.hash = (s.hash ^ uint64(at)) * fnvPrime
	for i := range len(text) {
		s.hash = (s.hash ^ uint64(text[i])) * fnvPrime
	}
	if s.writer != nil {
		fmt.Fprintf(s.writer, "%11.6f %s\n", at.Seconds(), text)
	}
}

func (s *scheduler) linef(format string, args ...any) { s.line(fmt.Sprintf(format, args...)) }

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

// random is splitmix64: small, and the same on every machine and Go version.
type random struct{ state uint64 }

func newRandom(seed uint64) *random { return &random{state: seed*0x9e3779b97f4a7c15 + 0x7654321} }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fork gives a stream of its own.
func (r *random) fork() *random { return &random{state: r.next()} }

// below gives 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// chance is true so many times in a thousand.
func (r *random) chance(perMille int) bool { return r.below(1000) < perMille }

func (r *random) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.next()%uint64(high-low))
}

// pick gives one of the values.
func pick[T any](r *random, values ...T) T { return values[r.below(len(values))] }
