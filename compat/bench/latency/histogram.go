package latency

import (
	"math/bits"
	"sync"
	"time"
)

// Histogram counts durations with an error of at most 1/128, whatever their size: 64 counters to each power of two of
// nanoseconds. It may be used from many goroutines.
type Histogram struct {
	mu     sync.Mutex
	counts [64 * 64]int64
	total  int64
}

const precisionBits = 6

func slotOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<precisionBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - precisionBits
	return (shift+1)<<precisionBits + int(v>>shift) - 1<<precisionBits
}

// middle is the middle of a slot.
func middle(slot int) time.Duration {
	if slot < 1<<precisionBits {
		return time.Duration(slot)
	}
	shift := slot>>precisionBits - 1
	low := uint64(slot-shift<<precisionBits) << shift
	return time.Duration(low + 1<<shift/2)
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	h.mu.Lock()
	h.counts[slotOf(d)]++
	h.total++
	h.mu.Unlock()
}

// Quantile gives the duration that a share q of those added does not exceed, in milliseconds.
func (h *Histogram) Quantile(q float64) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := int64(q*float64(h.total) + 0.5)
	for slot, n := range h.counts {
		if left -= n; left <= 0 && n > 0 {
			return float64(middle(slot)) / float64(time.Millisecond)
		}
	}
	return 0
}
