package main

import (
	"math"
	"testing"
	"time"
)

func TestHistogramIsWrongByLittle(t *testing.T) {
	for d := time.Duration(1); d < time.Hour; d = d*9/8 + 1 {
		got := middle(slotOf(d))
		if math.Abs(float64(got-d)) > float64(d)/128+1 {
			t.Errorf("%d is counted as %d", d, got)
		}
	}
}

func TestQuantiles(t *testing.T) {
	h := &histogram{}
	for n := range 1000 {
		h.add(time.Duration(n+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990, 0.999: 999} {
		if got := h.quantile(q); math.Abs(got-want) > want/100 {
			t.Errorf("the %v quantile is %v, want %v", q, got, want)
		}
	}
}

func TestBatchHasTheSizeAskedFor(t *testing.T) {
	for _, c := range []struct{ records, size int }{{1, 1100}, {16, 16 << 10}, {64, 64 << 10}, {1024, 1 << 20}} {
		if got := len(newBatch(c.records, c.size)); got != c.size {
			t.Errorf("%d records: %d bytes, want %d", c.records, got, c.size)
		}
	}
}
