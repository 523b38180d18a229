package metrics

import (
	"time"

	"ottla/protocol/server"
)

// buckets is how many requests took how long; see server.RequestStats.
type buckets [len(server.RequestStats{}.Times)]uint32

// quantiles are those that Kafka shows, as Strimzi's rules write them.
var quantiles = [...]struct {
	label string
	part  float64
}{{"0.50", 0.5}, {"0.75", 0.75}, {"0.95", 0.95}, {"0.98", 0.98}, {"0.99", 0.99}, {"0.999", 0.999}}

// turnover is how long a window lasts. Kafka's percentiles weigh the last five
// minutes most; these are of the time since the last turnover but one.
const turnover = 5 * time.Minute

// percentiles remembers, by name, where the counts stood.
type percentiles struct{ windows map[string]*window }

type window struct {
	turned      time.Time
	old, recent buckets
}

// of gives a value for each of quantiles: of the window's requests, or of all there
// ever were where the window has none.
func (p *percentiles) of(name string, now time.Time, counts *buckets) [len(quantiles)]float64 {
	w := p.windows[name]
	if w == nil {
		w = &window{turned: now}
		p.windows[name] = w
	}
	if now.Sub(w.turned) >= turnover {
		w.turned, w.old, w.recent = now, w.recent, *counts
	}
	since := *counts
	var total uint64
	for i := range since {
		since[i] -= w.old[i] // may wrap, as the counts do
		total += uint64(since[i])
	}
	if total == 0 {
		since = *counts
		for _, n := range since {
			total += uint64(n)
		}
	}
	return since.quantiles(total)
}

func (b *buckets) quantiles(total uint64) (values [len(quantiles)]float64) {
	var below uint64
	next := 0
	for i, n := range b {
		below += uint64(n)
		for next < len(quantiles) && total > 0 && float64(below) >= quantiles[next].part*float64(total) {
			values[next] = server.TimeBucketMillis(i)
			next++
		}
	}
	return values
}
