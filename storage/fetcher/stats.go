package fetcher

import (
	"math"
	"slices"
	"time"

	"ottla/protocol"
)

// Stats is what the fetchers of a node do at the moment.
type Stats struct {
	MaxLag  int64   // of all partitions, in records
	Failed  int     // partitions whose disk here failed, until they are assigned again
	MinRate float64 // fetches a second of the slowest fetcher, as a one-minute rate; 0: there is none
}

// Lag is how far a replica here was behind its leader's high watermark when that answered last.
type Lag struct {
	Partition protocol.TopicPartition
	Leader    protocol.NodeID
	Fetcher   int // of those of the leader
	Records   int64
}

// Stats sums up over all fetchers.
func (f *Fetchers) Stats(now time.Time) Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s Stats
	for _, p := range f.assigned {
		s.MaxLag = max(s.MaxLag, p.lag)
		if p.state == failed {
			s.Failed++
		}
	}
	first := true
	for _, one := range f.fetchers {
		rate := one.requests.rate(now)
		if first || rate < s.MinRate {
			first, s.MinRate = false, rate
		}
	}
	return s
}

// Lags lists the partitions that leaders have answered for, by topic and partition.
func (f *Fetchers) Lags() []Lag {
	f.mu.Lock()
	list := make([]Lag, 0, len(f.assigned))
	for tp, p := range f.assigned {
		if p.answered {
			list = append(list, Lag{tp, p.fetcher.leader, p.fetcher.index, p.lag})
		}
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b Lag) int { return a.Partition.Compare(b.Partition) })
	return list
}

// meter is a one-minute rate as Apache Kafka's meters have it: what came is taken in every five seconds, and what came before
// counts less and less.
type meter struct {
	begun, looked time.Time // looked: the end of the last five seconds that were taken in
	count         float64   // since looked
	perSecond     float64
}

const meterInterval = 5 * time.Second

// meterShare is that of the last five seconds.
var meterShare = 1 - math.Exp(-meterInterval.Seconds()/60)

func (m *meter) mark(now time.Time) {
	m.advance(now)
	m.count++
}

func (m *meter) rate(now time.Time) float64 {
	m.advance(now)
	return m.perSecond
}

// advance takes in what is over.
func (m *meter) advance(now time.Time) {
	if m.begun.IsZero() {
		m.begun, m.looked = now, now
	}
	for ; now.Sub(m.looked) >= meterInterval; m.looked = m.looked.Add(meterInterval) {
		current := m.count / meterInterval.Seconds()
		if m.looked.Equal(m.begun) {
			m.perSecond = current
		} else {
			m.perSecond += meterShare * (current - m.perSecond)
		}
		m.count = 0
	}
}
