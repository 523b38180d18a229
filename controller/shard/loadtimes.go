package shard

import (
	"sync"
	"time"
)

// loadTimesWindow is for how long a load counts: two samples of 30 s, as in Apache Kafka's sensors.
const loadTimesWindow = time.Minute

// loadTimes remembers how long the loads of the last minute took. The mutex is a leaf.
type loadTimes struct {
	mu   sync.Mutex
	list []loadTime // by when they ended
}

type loadTime struct {
	ended time.Time
	took  time.Duration
}

func (l *loadTimes) add(ended time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(ended)
	l.list = append(l.list, loadTime{ended, took})
}

func (l *loadTimes) forget(now time.Time) {
	old := 0
	for old < len(l.list) && now.Sub(l.list[old].ended) > loadTimesWindow {
		old++
	}
	l.list = l.list[old:]
}

// LoadTimes tells how long the loads of the last minute took: on average and at most; ok is false if there was none
// (partition-load-time-avg, partition-load-time-max of Apache Kafka's coordinators).
func (m *Manager) LoadTimes(now time.Time) (average, most time.Duration, ok bool) {
	l := &m.loadTimes
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	if len(l.list) == 0 {
		return 0, 0, false
	}
	for _, one := range l.list {
		average += one.took
		most = max(most, one.took)
	}
	return average / time.Duration(len(l.list)), most, true
}
