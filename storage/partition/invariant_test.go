package partition

import (
	"strings"
	"testing"
	"time"
)

// TestInvariants: what cannot be true stops the node, with the name of what
// would be broken.
func TestInvariants(t *testing.T) {
	cases := []struct {
		name  string
		wrong func(p *Partition)
	}{
		{"log end does not move back", func(p *Partition) { p.Appended(time.Time{}, 1, Ends{End: 4}, nil) }},
		{"log is not truncated", func(p *Partition) { p.Truncated(Ends{End: 4}) }},
		{"does not follow itself", func(p *Partition) { p.Follow(time.Time{}, State{Leader: 1, LeaderEpoch: 2}, Ends{}) }},
		{"leads only what names it", func(p *Partition) { p.Lead(time.Time{}, State{Leader: 2, LeaderEpoch: 2}, Ends{}, nil) }},
		{"is not beyond the log end", func(p *Partition) { p.setHighWatermark(6) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ends := Ends{End: 5, Durable: 5}
			p := New(Options{NodeID: 1}, 0, ends)
			p.Lead(time.Time{}, State{Leader: 1, LeaderEpoch: 1, ISR: nil, Replicas: nil}, ends, nil)
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "invariant: ") || !strings.Contains(text, c.name) {
					t.Errorf("panicked with %q", text)
				}
			}()
			c.wrong(p)
		})
	}
}
