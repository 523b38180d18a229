package simcluster

import (
	"errors"
	"fmt"
	"time"

	"ottla/cmd/ottla/internal/seeded"
)

// errLost is what a caller gets to know of a call that was not answered in time.
var errLost = errors.New("no answer came")

// network carries messages between the machines, the controller (0) and the clients.
type network struct {
	s       *Simulation
	random  *seeded.Random
	cut     map[[2]int]time.Time // from, to: nothing passes until then
	healthy bool                 // no more drops and duplicates
}

const (
	controllerEnd = 0
	clientEnd     = 99
)

// carry brings a message to another end, perhaps late, twice or never. deliver runs there.
func (n *network) carry(from, to int, what string, deliver func()) {
	times := 1
	if !n.healthy {
		switch {
		case n.random.Chance(n.s.plan.drop):
			times = 0
		case n.random.Chance(n.s.plan.duplicate):
			times = 2
		}
	}
	for range times {
		delay := n.random.Between(50*time.Microsecond, n.s.plan.latency)
		if !n.healthy && n.random.Chance(n.s.plan.late) {
			delay = n.random.Between(0, 50*n.s.plan.latency)
		}
		if until, cut := n.cut[[2]int{from, to}]; cut && n.s.Now.Before(until) {
			continue
		}
		n.s.After(delay, fmt.Sprintf("%d>%d %s", from, to, what), func() { n.arrive(to, deliver) })
	}
}

// arrive runs something at an end, when that is up and does not pause.
func (n *network) arrive(to int, deliver func()) {
	if m := n.s.machine(to); m != nil {
		if m.up {
			m.enter("arrives", deliver)
		}
		return
	}
	deliver()
}

// call asks another end. handle runs there and answers when it likes; done runs here, once.
func (n *network) call(from, to int, what string, timeout time.Duration, handle func(reply func(answer any)), done func(answer any, err error)) {
	over := false
	finish := func(answer any, err error) {
		if !over {
			over = true
			done(answer, err)
		}
	}
	incarnation := n.s.incarnation(from)
	here := func(run func()) func() {
		return func() {
			if n.s.incarnation(from) == incarnation {
				run()
			}
		}
	}
	n.carry(from, to, what, func() {
		answered := false
		handle(func(answer any) {
			if answered {
				n.s.violate("%s was answered twice", what)
			}
			answered = true
			n.carry(to, from, what+" answered", here(func() { finish(answer, nil) }))
		})
	})
	n.s.After(timeout, fmt.Sprintf("%d>%d %s times out", from, to, what), func() {
		if !over {
			n.arrive(from, here(func() { finish(nil, errLost) }))
		}
	})
}
