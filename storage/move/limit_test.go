package move

import (
	"testing"
	"time"
)

// TestLimit copies for ten seconds under a limit and counts.
func TestLimit(t *testing.T) {
	var l Limit
	now := time.UnixMilli(0)
	if bytes, _ := l.Ask(now, 1000); bytes != 1000 {
		t.Errorf("without a limit %d bytes were allowed", bytes)
	}
	l.Set(0)
	if bytes, again := l.Ask(now, 1000); bytes != 0 || !again.After(now) {
		t.Errorf("a limit of 0 allows %d, again at %v", bytes, again)
	}
	for _, limit := range []int64{1, 500, 1 << 20} {
		l.Set(limit)
		copied := int64(0)
		end := now.Add(10 * time.Second)
		for steps := 0; now.Before(end) && steps < 1000; steps++ {
			bytes, again := l.Ask(now, 1<<20)
			if bytes == 0 {
				now = again
				continue
			}
			bytes += bytes / 3 // a batch is as large as it is
			l.Copied(now, bytes)
			copied += int64(bytes)
		}
		if most := limit*10 + limit/2 + 2; copied > most || copied < limit*9 {
			t.Errorf("with a limit of %d, %d bytes went in ten seconds", limit, copied)
		}
		now = end
	}
	l.Set(-1)
	if bytes, _ := l.Ask(now, 7); bytes != 7 {
		t.Errorf("after the limit was taken off %d bytes were allowed", bytes)
	}
}
