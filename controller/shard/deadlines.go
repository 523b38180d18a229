package shard

import (
	"container/heap"
	"sync"
	"time"
)

// deadlines orders the shards by when they want to be ticked, so that a tick
// costs what is due and an idle shard nothing. The mutex is a leaf.
type deadlines struct {
	mu   sync.Mutex
	heap deadlineHeap
}

// set gives a shard another deadline, zero for none, and tells whether the
// earliest of all became earlier.
func (d *deadlines) set(s *shard, at time.Time) (earlier bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var before time.Time
	if len(d.heap) > 0 {
		before = d.heap[0].deadline
	}
	switch {
	case at.IsZero() && s.index >= 0:
		heap.Remove(&d.heap, s.index)
	case at.IsZero():
	case s.index >= 0:
		s.deadline = at
		heap.Fix(&d.heap, s.index)
	default:
		s.deadline = at
		heap.Push(&d.heap, s)
	}
	return !at.IsZero() && (before.IsZero() || at.Before(before))
}

func (d *deadlines) next() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.heap) == 0 {
		return time.Time{}
	}
	return d.heap[0].deadline
}

// take removes and gives the shards that are due, the earliest first. Each has
// its deadline set anew when it was ticked.
func (d *deadlines) take(now time.Time) (due []*shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.heap) > 0 && !d.heap[0].deadline.After(now) {
		due = append(due, heap.Pop(&d.heap).(*shard))
	}
	return due
}

// deadlineHeap orders by time, then by partition, so that a simulation repeats.
type deadlineHeap []*shard

func (h deadlineHeap) Len() int { return len(h) }
func (h deadlineHeap) Less(i, j int) bool {
	if !h[i].deadline.Equal(h[j].deadline) {
		return h[i].deadline.Before(h[j].deadline)
	}
	return h[i].partition < h[j].partition
}

func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *deadlineHeap) Push(x any) {
	s := x.(*shard)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *deadlineHeap) Pop() any {
	old := *h
	last := len(old) - 1
	s := old[last]
	old[last] = nil
	*h = old[:last]
	s.index = -1
	return s
}
