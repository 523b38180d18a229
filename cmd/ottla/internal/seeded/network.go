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

	// Arrive runs something at an end, if anybody is there.
	Arrive func(to int, run func())
	// Incarnation counts the processes at an end: an answer to an earlier one is not heard.
	Incarnation func(end int) int
	Violate     func(format string, args ...any)
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
		n.Scheduler.After(delay, fmt.Sprintf("%d>%d %s", from, to, what), func() { n.Arrive(to, deliver) })
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
	incarnation := n.Incarnation(from)
	here := func(run func()) func() {
		return func() {
			if n.Incarnation(from) == incarnation {
				run()
			}
		}
	}
	n.carry(from, to, what, func() {
		answered := false
		handle(func(answer any) {
			if answered {
				n.Violate("%s was answered twice", what)
			}
			answered = true
			n.carry(to, from, what+" answered", here(func() { finish(answer, nil) }))
		})
	})
	n.Scheduler.After(timeout, fmt.Sprintf("%d>%d %s times out", from, to, what), func() {
		if !over {
			n.Arrive(from, here(func() { finish(nil, ErrLost) }))
		}
	})
}
