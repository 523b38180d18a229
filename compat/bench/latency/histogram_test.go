package latency

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
	h := &Histogram{}
	for n := range 1000 {
		h.Add(time.Duration(n+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990, 0.999: 999} {
		if got := h.Quantile(q); math.Abs(got-want) > want/100 {
			t.Errorf("the %v quantile is %v, want %v", q, got, want)
		}
	}
}
