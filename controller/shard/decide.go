package shard

import (
	"maps"
	"slices"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// decide has the machine decide what waits, as far as batches have room, and
// sends the next batch off. The machine is active.
func (s *shard) decide() {
	s.issue()
	for s.phase == active && s.mayDecide() && s.decideNext() {
	}
	s.issue()
}

// mayDecide tells whether the records of another decision would have a place: at
// most one batch is on its way, and one is being filled. While one of a transaction
// is on its way there is no other.
func (s *shard) mayDecide() bool {
	return s.barrier == nil && s.full.size() == 0 && (s.inFlight == nil || s.open == nil || s.open.builder.SizeBytes() < s.batchLimit())
}

// crowded tells that too much waits for the high watermark.
func (s *shard) crowded() bool {
	return s.held.size() >= s.manager.options.MaxHeld ||
		int(s.next-max(s.committed, s.loadedEnd)) >= s.manager.options.MaxPending
}

// decideNext decides one event or request; false if there is none.
func (s *shard) decideNext() bool {
	if len(s.events) > 0 && !s.crowded() {
		request := s.events[0]
		s.events[0] = nil
		s.events = s.events[1:]
		s.handle(s.clock, request, nil, request)
		return true
	}
	if s.backlog.size() == 0 {
		return false
	}
	e := s.backlog.pop()
	s.queued.Add(-1)
	if s.crowded() {
		s.answer(answer{done: e.done, err: protocol.Errorf(protocol.CoordinatorNotAvailable,
			"too many records of %s wait for its replicas", s.tp)})
		return true
	}
	s.handle(e.now, e.request, e.done, nil)
	return true
}

// handle has the machine decide one request. event is the request again if it
// is an event, which has no reply.
func (s *shard) handle(now time.Time, request any, done func(reply any, err error), event any) {
	if marker, ok := request.(Marker); ok {
		s.mark(now, marker, done)
		return
	}
	result, err := s.machine.Handle(machine.Turn{Now: now, Next: s.next}, request)
	if err == nil {
		s.carry(now, result, done, event)
		return
	}
	if done == nil {
		s.manager.options.Logger.Error("a coordinator refused an event", "partition", s.tp.String(), "error", err)
		return
	}
	s.hold(held{required: s.next, deadline: s.replyDeadline(now), reply: answer{done: done, err: err}}, nil)
}

// carry carries a result out: the records into the state and a batch, the reply
// and the effects into waiting.
func (s *shard) carry(now time.Time, result machine.Result, done func(reply any, err error), event any) {
	if result.Transaction != nil {
		s.transact(now, result, done)
		return
	}
	if err := s.write(now, result); err != nil {
		// The machine may believe already what it decided, so it is loaded anew.
		if done != nil {
			s.answer(answer{done: done, err: CoordinatorError(err)})
		}
		s.drop(err, noBatch)
		return
	}
	h := held{required: s.next, deadline: s.replyDeadline(now), event: event}
	if len(result.Records) == 0 {
		h.event = nil // nothing that could fail
	}
	if parked, ok := result.Reply.(machine.Parked); ok {
		s.park(parked.Token, done)
	} else if done != nil {
		h.reply = answer{done: done, reply: result.Reply}
	}
	s.hold(h, result.Effects)
}

func (s *shard) replyDeadline(now time.Time) time.Time {
	return now.Add(s.manager.options.ReplyTimeout)
}

// tickMachine lets the machine do what time demands.
func (s *shard) tickMachine() {
	due := s.machine.NextDeadline()
	if due.IsZero() || due.After(s.clock) || !s.mayDecide() || s.crowded() {
		return
	}
	result, err := s.machine.Tick(machine.Turn{Now: s.clock, Next: s.next})
	if err != nil {
		s.manager.options.Logger.Error("a coordinator's duty failed", "partition", s.tp.String(), "error", err)
		return
	}
	s.carry(s.clock, result, nil, nil)
}

func sortedTokens(parked map[machine.Token]func(any, error)) []machine.Token {
	return slices.Sorted(maps.Keys(parked))
}
