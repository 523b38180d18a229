package seeded

import (
	"errors"
	"fmt"
	"time"
)

// ErrLost is what a caller gets to know of a call that was not answered in time.
var ErrLost = errors.New("no answer came")

// Network carries messages between ends, which are numbers: it drops, delays, duplicates, reorders and cuts.
type Network struct {
	Scheduler *Scheduler
	Random    *Random
	Latency   time.Duration // most of a message takes, usually
	// Of a thousand messages so many are dropped, come twice, or come late.
	Drop, Duplicate, Late int
	Cut                   map[[2]int]time.Time // from, to: nothing passes until then
	Healthy               bool                 // no more drops, duplicates and delays

	// At gives who is at an end; nil: somebody who is always there.
	At func(end int) Resident
}

// Resident is a machine at an end.
type Resident interface {
	// Arrive runs something in its process, if there is one.
	Arrive(run func())
	// Incarnation counts its processes: an answer to an earlier one is not heard.
	Incarnation() int
}

func (n *Network) arrive(to int, run func()) {
	if at := n.At(to); at != nil {
		at.Arrive(run)
		return
	}
	run()
}

func (n *Network) incarnation(end int) int {
	if at := n.At(end); at != nil {
		return at.Incarnation()
	}
	return 0
}

// CutSome lets nothing pass until then: one way between two of the ends, or both ways between one and all others.
func (n *Network) CutSome(r *Random, ends []int, until time.Time) {
	if r.Chance(500) {
		from, to := ends[r.Below(len(ends))], ends[r.Below(len(ends))]
		n.Cut[[2]int{from, to}] = until
		n.Scheduler.Linef("nothing passes from %d to %d", from, to)
		return
	}
	one := ends[r.Below(len(ends))]
	for _, other := range ends {
		n.Cut[[2]int{one, other}] = until
		n.Cut[[2]int{other, one}] = until
	}
	n.Scheduler.Linef("%d is cut off", one)
}

// carry brings a message to another end, perhaps late, twice or never. deliver runs there.
func (n *Network) carry(from, to int, what string, deliver func()) {
	times := 1
	if !n.Healthy {
		switch {
		case n.Random.Chance(n.Drop):
			times = 0
		case n.Random.Chance(n.Duplicate):
			times = 2
		}
	}
	for range times {
		delay := n.Random.Between(50*time.Microsecond, n.Latency)
		if !n.Healthy && n.Random.Chance(n.Late) {
			delay = n.Random.Between(0, 50*n.Latency)
		}
		if until, cut := n.Cut[[2]int{from, to}]; cut && n.Scheduler.Now.Before(until) {
			continue
		}
		n.Scheduler.After(delay, fmt.Sprintf("%d>%d %s", from, to, what), func() { n.arrive(to, deliver) })
	}
}

// Call asks another end. handle runs there and answers when it likes; done runs here, once: with ErrLost after the timeout.
func (n *Network) Call(from, to int, what string, timeout time.Duration, handle func(reply func(answer any)), done func(answer any, err error)) {
	over := false
	finish := func(answer any, err error) {
		if !over {
			over = true
			done(answer, err)
		}
	}
	incarnation := n.incarnation(from)
	here := func(run func()) func() {
		return func() {
			if n.incarnation(from) == incarnation {
				run()
			}
		}
	}
	n.carry(from, to, what, func() {
		answered := false
		handle(func(answer any) {
			if answered {
				n.Scheduler.Violate("%s was answered twice", what)
			}
			answered = true
			n.carry(to, from, what+" answered", here(func() { finish(answer, nil) }))
		})
	})
	n.Scheduler.After(timeout, fmt.Sprintf("%d>%d %s times out", from, to, what), func() {
		if !over {
			n.arrive(from, here(func() { finish(nil, ErrLost) }))
		}
	})
}
