package simcluster

import (
	"time"

	"ottla/cmd/ottla/internal/seeded"
)

// kind is what a run may do, and so what it must guarantee.
type kind string

// The kinds; the package comment tells them.
const (
	minority kind = "minority"
	flush    kind = "flush"
	wild     kind = "wild"
)

// plan is what a seed chooses.
type plan struct {
	kind       kind
	machines   int // each partition has three replicas
	partitions int
	minISR     int
	latency    time.Duration // most of a message takes, usually
	drop       int           // messages in a thousand
	duplicate  int
	late       int
	lagMax     time.Duration // replica.lag.time.max.ms
	session    time.Duration // broker.session.timeout.ms
	heartbeat  time.Duration
	backoff    time.Duration
	maxWait    time.Duration
	maxBytes   int
	segment    int64
	producers  int // for each partition
	deletes    bool
	calm       time.Duration // between faults, at most
	length     time.Duration // of the part with faults
}

func newPlan(r *seeded.Random) plan {
	p := plan{
		kind:       seeded.Pick(r, minority, minority, flush, wild),
		partitions: 1 + r.Below(3),
		machines:   seeded.Pick(r, 3, 3, 4),
		minISR:     2,
		latency:    r.Between(500*time.Microsecond, 10*time.Millisecond),
		drop:       seeded.Pick(r, 0, 2, 20),
		duplicate:  seeded.Pick(r, 0, 2, 20),
		late:       seeded.Pick(r, 0, 5, 50),
		lagMax:     r.Between(300*time.Millisecond, 2*time.Second),
		session:    r.Between(400*time.Millisecond, 2*time.Second),
		heartbeat:  r.Between(10*time.Millisecond, 80*time.Millisecond),
		backoff:    r.Between(20*time.Millisecond, 200*time.Millisecond),
		maxWait:    r.Between(10*time.Millisecond, 200*time.Millisecond),
		maxBytes:   seeded.Pick(r, 100, 500, 1<<20),
		segment:    seeded.Pick(r, int64(1000), 4000, 1<<20),
		producers:  1 + r.Below(3),
		deletes:    r.Chance(400),
		calm:       r.Between(50*time.Millisecond, 1500*time.Millisecond),
		length:     r.Between(6*time.Second, 16*time.Second),
	}
	if p.kind != minority {
		p.minISR = 1 + r.Below(2)
	}
	return p
}
