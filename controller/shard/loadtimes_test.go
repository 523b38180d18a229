package shard

import (
	"testing"
	"time"
)

func TestLoadTimes(t *testing.T) {
	m := New(Options{})
	now := time.UnixMilli(0)
	want := func(after, average, most time.Duration, ok bool) {
		t.Helper()
		if a, m, got := m.LoadTimes(now.Add(after)); a != average || m != most || got != ok {
			t.Errorf("after %v: %v, %v, %v", after, a, m, got)
		}
	}
	want(0, 0, 0, false)
	m.loadTimes.add(now.Add(time.Second), 100*time.Millisecond)
	m.loadTimes.add(now.Add(30*time.Second), 300*time.Millisecond)
	want(31*time.Second, 200*time.Millisecond, 300*time.Millisecond, true)
	want(62*time.Second, 300*time.Millisecond, 300*time.Millisecond, true)
	want(91*time.Second, 0, 0, false)
}
