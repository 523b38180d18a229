package shard

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// phase is where a shard stands; see the package comment.
type phase int32

const (
	idle    phase = iota // not led here
	loading              // the log is being replayed
	loaded               // it was; whoever brings the time activates the machine
	active
	failed // the log cannot be replayed at the moment
	closed
)

// turnRounds is how often one caller looks into the queue before the rest is
// left to a worker.
const turnRounds = 64

// event is what a shard's queue holds: a request, or something to run.
type event struct {
	now     time.Time // zero where nobody knows
	request any
	done    func(reply any, err error)

	run   func() // not nil: no request
	after func() // called when all that run led to was told; may be nil
}

// shard is one partition's machine with its log, its queue and those who wait.
type shard struct {
	manager   *Manager
	partition int32
	tp        protocol.TopicPartition
	shown     atomic.Int32 // the phase, for whoever looks from outside

	queueMu  sync.Mutex
	queue    []event
	draining bool
	queued   atomic.Int64 // requests in queue and backlog

	// Guarded by deadlines.mu.
	deadline time.Time
	index    int // in the heap; -1 when not in it

	// What follows belongs to whoever drains the queue.
	spare     []event // the slice that the queue does not use
	after     []func()
	phase     phase
	epoch     protocol.LeaderEpoch
	life      uint64    // fences callbacks
	clock     time.Time // the latest that any event brought
	machine   machine.Machine
	backlog   fifo[event] // requests that wait to be decided
	events    []any       // for the machine, once it is active
	published time.Time   // the deadline in the index

	replay    replay
	scheduled bool // for a load step

	next        protocol.Offset // what the next record gets
	written     protocol.Offset // the log has taken everything below
	committed   protocol.Offset // the machine was told that everything below is committed
	loadedEnd   protocol.Offset // where the log ended when it was loaded
	open        *batch          // takes more records
	full        fifo[*batch]    // wait for their turn
	inFlight    *batch          // on its way into the log; of this life, or of an earlier one
	barrier     *batch          // of a transaction, on its way or next to go: nothing is decided before the log has answered
	failures    int             // loads and writes that failed, since the last write that did not
	watching    bool            // a fetch waits for the high watermark
	cancelWatch func()
	watchPause  time.Time // not before

	held    fifo[held]
	expired int // how many of held, from the front, were answered for want of time
	parked  map[machine.Token]func(reply any, err error)
	answers []answer // to be given when this step is over
}

func newShard(m *Manager, partition int32) *shard {
	return &shard{
		manager: m, partition: partition, tp: protocol.TopicPartition{Topic: m.options.Topic, Partition: partition},
		epoch: protocol.NoLeaderEpoch, index: -1,
	}
}

// submit takes a request, unless too many wait.
func (s *shard) submit(now time.Time, request any, done func(reply any, err error)) {
	if s.queued.Add(1) > int64(s.manager.options.MaxQueued) {
		s.queued.Add(-1)
		done(nil, protocol.Errorf(protocol.CoordinatorNotAvailable, "the queue of %s is full (%d requests)", s.tp, s.manager.options.MaxQueued))
		return
	}
	s.post(event{now: now, request: request, done: done})
}

// post puts an event into the queue and drains it, unless somebody does so.
func (s *shard) post(e event) {
	s.queueMu.Lock()
	s.queue = append(s.queue, e)
	if s.draining {
		s.queueMu.Unlock()
		return
	}
	s.draining = true
	s.queueMu.Unlock()
	s.drain()
}

func (s *shard) drain() {
	for round := 1; ; round++ {
		events := s.takeEvents()
		if events == nil {
			return
		}
		s.step(events)
		clear(events)
		if cap(events) <= 1024 { // what a burst needed is not kept
			s.spare = events[:0]
		}
		if round == turnRounds && s.manager.options.Workers != nil {
			s.manager.options.Workers(s.drain) // this caller has done enough for others
			return
		}
	}
}

func (s *shard) takeEvents() []event {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	events := s.queue
	if len(events) == 0 {
		s.draining = false
		return nil
	}
	s.queue = s.spare
	s.spare = nil
	return events
}

// step takes what the queue held, works, and tells what came of it.
func (s *shard) step(events []event) {
	for i := range events {
		e := &events[i]
		if e.now.After(s.clock) {
			s.clock = e.now
		}
		if e.run == nil {
			s.backlog.push(*e)
			continue
		}
		e.run()
		if e.after != nil {
			s.after = append(s.after, e.after)
		}
	}
	s.work(events)
	s.shown.Store(int32(s.phase))
	s.publishDeadline()
	s.tellAll()
}

// work activates a machine whose log was replayed, if one of the events brought
// the time since, and decides what waits.
func (s *shard) work(events []event) {
	if s.phase == loaded {
		for i := range events {
			if !events[i].now.IsZero() {
				s.activate()
				break
			}
		}
	}
	if s.phase == active {
		s.decide()
		return
	}
	for s.backlog.size() > 0 {
		e := s.backlog.pop()
		s.queued.Add(-1)
		s.answer(answer{done: e.done, err: s.unavailable()})
	}
}

// unavailable is what a request gets while the machine is not active.
func (s *shard) unavailable() error {
	if s.phase == loading || s.phase == loaded {
		return protocol.Errorf(protocol.CoordinatorLoadInProgress, "%s is being loaded", s.tp)
	}
	return notCoordinator(s.manager.options.Topic, s.partition)
}

// tell hands an event to the machine, or keeps it until there is one.
func (s *shard) tell(request any) {
	switch {
	case s.phase == idle || s.phase == closed:
	case len(s.events) >= s.manager.options.MaxEvents:
		s.manager.options.Logger.Error("a coordinator missed an event because too many wait", "partition", s.tp.String())
	default:
		s.events = append(s.events, request)
	}
}

// leave ends what the machine is at: those who wait are answered with err, what
// is on its way counts for nothing.
func (s *shard) leave(err error) {
	s.life++
	s.stopWatching()
	if s.phase == active {
		s.machine.Resign()
	}
	s.failHeld(err, noBatch, err)
	s.failParked(err)
	s.failBarrier(err)
	s.open, s.full = nil, fifo[*batch]{}
	s.replay = replay{}
}

func (s *shard) unload(epoch protocol.LeaderEpoch) {
	if s.phase == closed || epoch != protocol.NoLeaderEpoch && epoch < s.epoch {
		return
	}
	s.leave(notCoordinator(s.manager.options.Topic, s.partition))
	s.phase, s.epoch, s.machine, s.events = idle, max(s.epoch, epoch), nil, nil
}

func (s *shard) close() {
	if s.phase == closed {
		return
	}
	s.leave(notCoordinator(s.manager.options.Topic, s.partition))
	s.phase, s.machine, s.events = closed, nil, nil
}

// tick does what is due.
func (s *shard) tick() {
	s.published = time.Time{} // the index let it go
	switch s.phase {
	case loading, failed:
		if at := s.replay.retry; !at.IsZero() && !at.After(s.clock) {
			s.beginReplay()
		}
	case active:
		s.expireBacklog()
		s.expireHeld()
		if !s.watchPause.IsZero() && !s.watchPause.After(s.clock) {
			s.watchPause = time.Time{}
			s.watch()
		}
		s.tickMachine()
	}
}

// publishDeadline tells the index when the shard wants to be ticked.
func (s *shard) publishDeadline() {
	var at time.Time
	switch s.phase {
	case loading, failed:
		at = s.replay.retry
	case loaded:
		at = s.clock // at once
	case active:
		at = earlier(s.heldDeadline(), s.watchPause)
		if s.backlog.size() > 0 {
			at = earlier(at, s.backlog.front().now.Add(s.manager.options.ReplyTimeout))
		}
		if s.mayDecide() && !s.crowded() {
			at = earlier(at, s.machine.NextDeadline())
		}
	}
	if at.Equal(s.published) {
		return
	}
	s.published = at
	if s.manager.deadlines.set(s, at) {
		s.manager.options.Wake()
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// violated is a broken invariant.
func (s *shard) violated(format string, args ...any) {
	panic(fmt.Sprintf("invariant of %s: ", s.tp) + fmt.Sprintf(format, args...))
}
