package fetcher

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestStats: how far replicas are behind is what the leaders' last answers say; those that were not answered yet say nothing.
func TestStats(t *testing.T) {
	f := newFixture(t, nil)
	if got := f.fetchers.Stats(f.now); got != (Stats{}) || len(f.fetchers.Lags()) != 0 {
		t.Errorf("of nothing it says %+v", got)
	}
	for n := range int32(3) {
		f.follow(n, 1)
	}
	f.tick(0)
	first := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1; 2 from 0 after epoch -1 in 1")
	f.answer(first, 5, answered{n: 0, records: batchAt(0, 1, 3, 1), highWatermark: 10}, answered{n: 1, highWatermark: 4})
	want := "[{orders-0 2 0 7} {orders-1 2 0 4}]"
	if got := fmt.Sprint(f.fetchers.Lags()); got != want || f.fetchers.Stats(f.now).MaxLag != 7 {
		t.Errorf("the lags are %s, %+v; not %s", got, f.fetchers.Stats(f.now), want)
	}
	second := f.asks("session 5.1 wait 500; 0 from 3 after epoch 1 in 1")
	f.answer(second, 5, answered{n: 0, records: batchAt(3, 1, 7, 1), highWatermark: 10})
	if got := f.fetchers.Stats(f.now).MaxLag; got != 4 {
		t.Errorf("the longest lag is %d", got)
	}
	f.now = f.now.Add(meterInterval)
	if got := f.fetchers.Stats(f.now); math.Abs(got.MinRate-3.0/5) > 1e-9 {
		t.Errorf("three fetches in five seconds are a rate of %v", got.MinRate)
	}
	f.fetchers.Close()
	if got := f.fetchers.Stats(f.now); got.MaxLag != 0 || len(f.fetchers.Lags()) != 0 {
		t.Errorf("after the end it says %+v", got)
	}
}

// TestMeter: what came longer ago counts less, as with Apache Kafka's meters.
func TestMeter(t *testing.T) {
	var m meter
	at := begin
	for range 100 { // ten a second
		m.mark(at)
		at = at.Add(100 * time.Millisecond)
	}
	if got := m.rate(at); math.Abs(got-10) > 1e-9 {
		t.Errorf("ten a second are %v", got)
	}
	if got, want := m.rate(at.Add(time.Minute)), 10/math.E; math.Abs(got-want) > 1e-9 {
		t.Errorf("after a minute of nothing it is %v, not %v", got, want)
	}
}
