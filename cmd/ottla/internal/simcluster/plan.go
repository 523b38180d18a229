package simcluster

import "time"

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

func newPlan(r *random) plan {
	p := plan{
		kind:       pick(r, minority, minority, flush, wild),
		partitions: 1 + r.below(3),
		machines:   pick(r, 3, 3, 4),
		minISR:     2,
		latency:    r.between(500*time.Microsecond, 10*time.Millisecond),
		drop:       pick(r, 0, 2, 20),
		duplicate:  pick(r, 0, 2, 20),
		late:       pick(r, 0, 5, 50),
		lagMax:     r.between(300*time.Millisecond, 2*time.Second),
		session:    r.between(400*time.Millisecond, 2*time.Second),
		heartbeat:  r.between(10*time.Millisecond, 80*time.Millisecond),
		backoff:    r.between(20*time.Millisecond, 200*time.Millisecond),
		maxWait:    r.between(10*time.Millisecond, 200*time.Millisecond),
		maxBytes:   pick(r, 100, 500, 1<<20),
		segment:    pick(r, int64(1000), 4000, 1<<20),
		producers:  1 + r.below(3),
		deletes:    r.chance(400),
		calm:       r.between(50*time.Millisecond, 1500*time.Millisecond),
		length:     r.between(6*time.Second, 16*time.Second),
	}
	if p.kind != minority {
		p.minISR = 1 + r.below(2)
	}
	return p
}
