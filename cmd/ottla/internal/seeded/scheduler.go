package seeded

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

// Scheduler runs events by time, and those of one time in the order in which they were made. Delays are random, so the
// order of what is independent is random too. What happens is a line each: hashed always, written if somebody reads.
type Scheduler struct {
	Now   time.Time
	Count int // events that have run
	// Failure is the first thing that was not as it must be.
	Failure error

	start  time.Time
	events eventHeap
	made   uint64
	hash   uint64
	lines  io.Writer
}

// NewScheduler begins at start; lines, if not nil, gets what happens.
func NewScheduler(start time.Time, lines io.Writer) Scheduler {
	return Scheduler{Now: start, start: start, hash: fnvOffset, lines: lines}
}

// After schedules an event; a delay below zero is none.
func (s *Scheduler) After(delay time.Duration, name string, run func()) {
	s.At(s.Now.Add(delay), name, run)
}

// At schedules an event; what would be in the past is now.
func (s *Scheduler) At(at time.Time, name string, run func()) {
	if at.Before(s.Now) {
		at = s.Now
	}
	s.made++
	heap.Push(&s.events, &event{at: at, order: s.made, name: name, run: run})
}

// Step runs the next event; false if there is none.
func (s *Scheduler) Step() bool {
	if len(s.events) == 0 {
		return false
	}
	e := heap.Pop(&s.events).(*event)
	s.Now = e.at
	s.Count++
	s.line(e.name)
	e.run()
	return true
}

// Elapsed is the virtual time from the start to at.
func (s *Scheduler) Elapsed(at time.Time) time.Duration { return at.Sub(s.start) }

// Result is what has become of a run by now.
func (s *Scheduler) Result(seed uint64) Result {
	return Result{Seed: seed, Failure: s.Failure, Hash: s.Hash(), Events: s.Count, Virtual: s.Elapsed(s.Now)}
}

// Hash is of all that has happened.
func (s *Scheduler) Hash() uint64 { return s.hash }

// Linef tells of something that happens within an event.
func (s *Scheduler) Linef(format string, args ...any) { s.line(fmt.Sprintf(format, args...)) }

// Violate tells of something that is not as it must be. The first counts.
func (s *Scheduler) Violate(format string, args ...any) {
	if s.Failure == nil {
		s.Failure = fmt.Errorf(format, args...)
		s.Linef("violation: %v", s.Failure)
	}
}

// NowAndThen runs something after a while, and again after as long as it says, until it says that it is over.
func (s *Scheduler) NowAndThen(name string, first time.Duration, run func() (pause time.Duration, over bool)) {
	s.After(first, name, func() {
		if pause, over := run(); !over {
			s.NowAndThen(name, pause, run)
		}
	})
}

// AllWell looks again and again what is wrong. As soon as nothing is, well is run; if something still is after patience, that
// is a violation.
func (s *Scheduler) AllWell(name string, first, pause, patience time.Duration, wrong func() string, well func()) {
	deadline := s.Now.Add(patience)
	s.NowAndThen(name, first, func() (time.Duration, bool) {
		is := wrong()
		switch {
		case is == "":
			well()
		case s.Now.After(deadline):
			s.Violate("%v after the last fault %s", patience, is)
		default:
			return pause, false
		}
		return 0, true
	})
}

// Note is a line for the reader alone.
func (s *Scheduler) Note(text string) {
	if s.lines != nil {
		fmt.Fprintf(s.lines, "%13.6f %s\n", s.Elapsed(s.Now).Seconds(), text)
	}
}

func (s *Scheduler) line(text string) {
	s.hash = (s.hash ^ uint64(s.Elapsed(s.Now))) * fnvPrime
	s.hash = addTo(s.hash, text)
	s.Note(text)
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

// FNV-1a with 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// HashOf names bytes in a line.
func HashOf(data []byte) uint64 { return addTo(fnvOffset, data) }

func addTo[T string | []byte](hash uint64, text T) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * fnvPrime
	}
	return hash
}
