package node

import "time"

// The parts of a node that want to be ticked.
const (
	partQuorum = iota
	partStore
	partReplicas
	partBroker
	partGroups
	partTransactions
	partMarkers
	partCleaner
	partSpace
	partChannel
	partFetchers
	partCount
)

// Part is one step-driven part: Tick when its deadline is due, or when Woken
// says that the deadline came nearer. The parts may be ticked from different
// goroutines; each from one at a time.
type Part struct {
	Name     string
	Tick     func(now time.Time)
	Deadline func(now time.Time) time.Time // zero: never
	Woken    <-chan struct{}
}

// Parts lists them. After Start only.
func (n *Node) Parts() []Part {
	return []Part{
		n.Quorum(),
		{"store", n.store.Tick, func(time.Time) time.Time { return n.store.NextDeadline() }, n.wakes[partStore]},
		{"replicas", n.replicas.Tick, func(time.Time) time.Time { return n.replicas.NextDeadline() }, n.wakes[partReplicas]},
		{"broker", n.tickBroker, n.brokerDeadline, n.wakes[partBroker]},
		{"groups", n.groups.Tick, func(time.Time) time.Time { return n.groups.NextDeadline() }, n.wakes[partGroups]},
		{"transactions", n.transactions.shards.Tick, func(time.Time) time.Time { return n.transactions.shards.NextDeadline() }, n.wakes[partTransactions]},
		{"markers", n.tickMarkers, n.markersDeadline, n.wakes[partMarkers]},
		{"cleaner", n.cleaner.Tick, func(time.Time) time.Time { return n.cleaner.NextDeadline() }, n.wakes[partCleaner]},
		{"space", n.spaces.tick, n.spaces.deadline, n.wakes[partSpace]},
		{"fetchers", n.tickFetchers, n.fetchersDeadline, n.wakes[partFetchers]},
		{"channel", n.tickChannel, n.channelDeadline, n.wakes[partChannel]},
	}
}

func (n *Node) tickBroker(now time.Time) {
	if n.controllers != nil {
		n.controllers.Tick(now)
	}
	n.lifecycle.Tick(now)
	n.directories.Tick(now)
	if n.isr != nil {
		n.isr.Tick(now)
	}
	n.applier.Tick(now)
}

func (n *Node) brokerDeadline(now time.Time) time.Time {
	var controllers time.Time
	if n.controllers != nil {
		controllers = n.controllers.NextDeadline(now)
	}
	var isr time.Time
	if n.isr != nil {
		isr = n.isr.NextDeadline(now)
	}
	return earliest(isr, controllers, n.lifecycle.NextDeadline(now), n.directories.NextDeadline(now), n.applier.NextDeadline())
}

// earliest gives the first of the times that are not zero.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// wakes holds one signal a part: several wishes to wake it are as good as one.
type wakes [partCount]chan struct{}

func newWakes() wakes {
	var w wakes
	for i := range w {
		w[i] = make(chan struct{}, 1)
	}
	return w
}

func (w wakes) of(part int) func() {
	return func() {
		select {
		case w[part] <- struct{}{}:
		default:
		}
	}
}
