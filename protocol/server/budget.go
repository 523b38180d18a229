package server

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// budget is the memory that one listener's requests may hold. Grants are given
// in the order of asking, so a large request is not starved by small ones. Who
// has to wait cuts off those that hold memory for bytes that do not come: else a
// few peers that send half a request would keep all others from being heard.
type budget struct {
	limit         int64
	stallPatience time.Duration // how long a frame may stand still while somebody waits

	mu       sync.Mutex
	used     int64
	waiters  list.List // of *waiter
	arriving map[*arrival]struct{}
}

// arrival is a frame whose memory is granted and whose bytes are still to come.
type arrival struct {
	began    time.Time
	received atomic.Int64 // bytes
	last     atomic.Int64 // when some came, in Unix nanoseconds
	cut      func()       // ends its connection
}

// arrive notes a frame whose bytes are still to come.
func (b *budget) arrive(now time.Time, cut func()) *arrival {
	a := &arrival{began: now, cut: cut}
	a.last.Store(now.UnixNano())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arriving == nil {
		b.arriving = map[*arrival]struct{}{}
	}
	b.arriving[a] = struct{}{}
	return a
}

func (a *arrival) progress(now time.Time, bytes int) {
	a.received.Add(int64(bytes))
	a.last.Store(now.UnixNano())
}

// arrived ends what arrive began.
func (b *budget) arrived(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.arriving, a)
}

// cutStalled ends the connections whose frames stand still, or trickle.
func (b *budget) cutStalled(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.arriving {
		due := int64((now.Sub(a.began) - b.stallPatience).Seconds() * bytesPerSecondAtLeast)
		if now.UnixNano()-a.last.Load() >= int64(b.stallPatience) || a.received.Load() < due {
			a.cut()
		}
	}
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
	if b.await(w, done) {
		return true
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

// await waits for the grant, and sees to it that nobody holds memory for nothing
// meanwhile; false if done was closed before.
func (b *budget) await(w *waiter, done <-chan struct{}) bool {
	pause := time.NewTicker(b.stallPatience)
	defer pause.Stop()
	for {
		select {
		case <-w.granted:
			return true
		case <-done:
			return false
		case now := <-pause.C:
			b.cutStalled(now)
		}
	}
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
