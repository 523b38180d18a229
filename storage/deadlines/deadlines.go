package deadlines

import (
	"container/heap"
	"sync"
	"time"
)

// Timer is a deadline of one waiter. Expire runs without a lock, once, unless the timer was removed before.
type Timer struct {
	At     time.Time
	Expire func(now time.Time)

	place int // in the heap, from 1 on; 0 when not in it
	order uint64
}

// Timers are the deadlines of all waiters of a node. The zero Timers is empty.
type Timers struct {
	// Wake says that the earliest deadline became earlier: who adds calls it, when no lock is held.
	Wake func()

	mu    sync.Mutex
	heap  timerHeap
	count uint64
}

// Add puts t in and tells whether it is the earliest: Wake is to be called then, without a lock. The mutex is a leaf, so
// Add and Remove may be called under any other lock.
func (ts *Timers) Add(t *Timer) (earlier bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.count++
	t.order = ts.count
	heap.Push(&ts.heap, t)
	return t.place == 1
}

// Remove takes t out if it is in.
func (ts *Timers) Remove(t *Timer) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.place > 0 {
		heap.Remove(&ts.heap, t.place-1)
	}
}

// Next gives the earliest deadline; zero if there is none.
func (ts *Timers) Next() time.Time {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.heap) == 0 {
		return time.Time{}
	}
	return ts.heap[0].At
}

// Expire runs what is due.
func (ts *Timers) Expire(now time.Time) {
	for {
		ts.mu.Lock()
		if len(ts.heap) == 0 || ts.heap[0].At.After(now) {
			ts.mu.Unlock()
			return
		}
		t := heap.Pop(&ts.heap).(*Timer)
		ts.mu.Unlock()
		t.Expire(now)
	}
}

// timerHeap orders by time, then by age, so that a simulation repeats.
type timerHeap []*Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].At.Equal(h[j].At) {
		return h[i].At.Before(h[j].At)
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	*h = append(*h, t)
	t.place = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*h = old[:last]
	t.place = 0
	return t
}
