package deadlines

import (
	"fmt"
	"testing"
	"time"
)

func TestTimers(t *testing.T) {
	var ts Timers
	got := ""
	at := func(ms int64, name string) *Timer {
		return &Timer{At: time.UnixMilli(ms), Expire: func(time.Time) { got += name }}
	}
	a, b, c, d := at(10, "a"), at(5, "b"), at(5, "c"), at(20, "d")
	if !ts.Next().IsZero() {
		t.Error("nothing was added, and something is due")
	}
	earlier := fmt.Sprint(ts.Add(a), ts.Add(b), ts.Add(c), ts.Add(d))
	if earlier != "true true false false" {
		t.Errorf("who was the earliest: %s", earlier)
	}
	if next := ts.Next(); !next.Equal(time.UnixMilli(5)) {
		t.Errorf("the next is at %v", next)
	}
	ts.Remove(d)
	ts.Remove(d)
	ts.Expire(time.UnixMilli(4))
	ts.Expire(time.UnixMilli(5))
	ts.Expire(time.UnixMilli(30))
	ts.Remove(a)
	if got != "bca" || !ts.Next().IsZero() {
		t.Errorf("expired: %q", got)
	}
}
