package server

import (
	"container/list"
	"sync"
)

// budget is the memory that one listener's requests may hold. Grants are given
// in the order of asking, so a large request is not starved by small ones.
type budget struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	waiters list.List // of *waiter
}

type waiter struct {
	bytes   int64
	granted chan struct{}
}

// acquire waits until bytes are granted; false if done was closed before. More
// than the whole budget is granted when nothing else is held.
func (b *budget) acquire(bytes int64, done <-chan struct{}) bool {
	b.mu.Lock()
	if b.waiters.Len() == 0 && b.fits(bytes) {
		b.used += bytes
		b.mu.Unlock()
		return true
	}
	w := &waiter{bytes: bytes, granted: make(chan struct{})}
	place := b.waiters.PushBack(w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-done:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // both happened: give it back
		b.used -= bytes
	default:
		b.waiters.Remove(place)
	}
	b.grant()
	return false
}

func (b *budget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	if b.used < 0 {
		panic("server: more memory was given back to a listener's budget than taken")
	}
	b.grant()
}

// grant serves waiters in order; the lock is held.
func (b *budget) grant() {
	for first := b.waiters.Front(); first != nil; first = b.waiters.Front() {
		w := first.Value.(*waiter) //nolint:forcetypeassert // only waiters are pushed
		if !b.fits(w.bytes) {
			return
		}
		b.used += w.bytes
		b.waiters.Remove(first)
		close(w.granted)
	}
}

func (b *budget) fits(bytes int64) bool { return b.used == 0 || b.used+bytes <= b.limit }

// held tells how many bytes are granted at the moment.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
