package group

import (
	"container/heap"
	"time"
)

// deadline is something that time will demand. It belongs to a struct of the
// volatile state (a member's session, a group's rebalance) and is set, moved and
// cancelled in O(log n).
type deadline struct {
	at     time.Time
	expire func(*decision)
	order  uint64 // when it was set last: ties are decided by it
	alone  bool   // what it does reads what only Apply changes: it is a decision of its own
	index  int    // in the heap, plus one; 0: not set
}

// deadlines is a heap of all that are set, the earliest first.
type deadlines struct {
	heap deadlineHeap
	sets uint64
}

// set arms t, or moves it.
func (d *deadlines) set(t *deadline, at time.Time) {
	d.sets++
	t.at, t.order = at, d.sets
	if t.index > 0 {
		heap.Fix(&d.heap, t.index-1)
		return
	}
	heap.Push(&d.heap, t)
}

func (d *deadlines) cancel(t *deadline) {
	if t.index > 0 {
		heap.Remove(&d.heap, t.index-1)
	}
}

// next is when the earliest is due, zero for never.
func (d *deadlines) next() time.Time {
	if len(d.heap) == 0 {
		return time.Time{}
	}
	return d.heap[0].at
}

// nextAlone tells whether the earliest is a decision of its own.
func (d *deadlines) nextAlone() bool { return len(d.heap) > 0 && d.heap[0].alone }

// due takes the earliest off if its time has come.
func (d *deadlines) due(now time.Time) *deadline {
	if len(d.heap) == 0 || d.heap[0].at.After(now) {
		return nil
	}
	return heap.Pop(&d.heap).(*deadline)
}

type deadlineHeap []*deadline

func (h deadlineHeap) Len() int { return len(h) }

func (h deadlineHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}

func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (h *deadlineHeap) Push(x any) {
	t := x.(*deadline)
	*h = append(*h, t)
	t.index = len(*h)
}

// Pop implements heap.Interface.
func (h *deadlineHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = 0
	return t
}
