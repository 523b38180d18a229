package replica

import (
	"container/heap"
	"sync"
	"time"
)

// timer is a deadline of one waiter. expire runs without a lock, once, unless
// the timer was removed before.
type timer struct {
	at     time.Time
	index  int // in the heap; -1 when not in it
	order  uint64
	expire func(now time.Time)
}

// timers holds the deadlines of all waiters of the node.
type timers struct {
	wake func() // the earliest deadline became earlier

	mu    sync.Mutex
	heap  timerHeap
	count uint64
}

// add puts t in and tells whether it is the earliest: wake is to be called then,
// without a lock. The mutex is a leaf, so add and remove may be called under any
// other lock.
func (ts *timers) add(t *timer) (earlier bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.count++
	t.order = ts.count
	heap.Push(&ts.heap, t)
	return t.index == 0
}

// remove takes t out if it is in.
func (ts *timers) remove(t *timer) {
	ts.mu.Lock()
	if t.index >= 0 {
		heap.Remove(&ts.heap, t.index)
	}
	ts.mu.Unlock()
}

// next gives the earliest deadline; zero if there is none.
func (ts *timers) next() time.Time {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.heap) == 0 {
		return time.Time{}
	}
	return ts.heap[0].at
}

// expire runs what is due.
func (ts *timers) expire(now time.Time) {
	for {
		ts.mu.Lock()
		if len(ts.heap) == 0 || ts.heap[0].at.After(now) {
			ts.mu.Unlock()
			return
		}
		t := heap.Pop(&ts.heap).(*timer)
		ts.mu.Unlock()
		t.expire(now)
	}
}

// timerHeap orders by time, then by age, so that a simulation repeats.
type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*h = old[:last]
	t.index = -1
	return t
}
