package move

import (
	"sync"
	"time"
)

// Limit is how many bytes a second those may copy together who share it: the moves of a node, its throttled followers, or what its
// leaders give to throttled ones. The zero Limit is none. It is safe for
// concurrent use.
type Limit struct {
	mu             sync.Mutex
	bytesPerSecond int64 // 0: no limit
	stopped        bool  // nothing may be copied
	free           time.Time
}

// stepsPerSecond is into how many steps a second of a limit is cut, so that a changed one is soon felt.
const stepsPerSecond = 10

// idle is how long to wait at most before one asks again: the limit may be another one by then.
const idle = time.Second

// Set changes the limit: 0 copies nothing, a negative one is none.
func (l *Limit) Set(bytesPerSecond int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytesPerSecond, l.stopped = max(bytesPerSecond, 0), bytesPerSecond == 0
	l.free = time.Time{}
}

// Ask tells how many bytes may be copied now, at most most; 0 says to ask again at the time given, which is soon.
func (l *Limit) Ask(now time.Time, most int) (bytes int, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return 0, now.Add(idle)
	case l.bytesPerSecond == 0:
		return most, now
	case now.Add(idle).Before(l.free):
		return 0, now.Add(idle)
	case now.Before(l.free):
		return 0, l.free
	}
	return int(min(int64(most), max(1, l.bytesPerSecond/stepsPerSecond))), now
}

// Copied counts. A batch may be larger than what was allowed; the next has to wait for it.
func (l *Limit) Copied(now time.Time, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytesPerSecond == 0 {
		return
	}
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(bytes) / float64(l.bytesPerSecond) * float64(time.Second)))
}
