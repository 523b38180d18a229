package shard

import (
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// answer is a reply, or an effect, to be told when the step is over.
type answer struct {
	done   func(reply any, err error) // nil: effect
	reply  any
	err    error
	effect any
}

// held is what a decision led to, until everything below required is committed.
type held struct {
	required protocol.Offset
	deadline time.Time // of the replies
	reply    answer    // done nil: none
	parked   []answer  // to those who were parked
	effects  []any
	event    any // to be decided again if the records do not get into the log
}

// offsets is a range; end is the first behind it.
type offsets struct{ base, end protocol.Offset }

var noBatch = offsets{protocol.NoOffset, protocol.NoOffset}

// answer notes a reply or effect for the end of the step.
func (s *shard) answer(a answer) { s.answers = append(s.answers, a) }

// tellAll gives what was noted. The callbacks find the shard in order, and what
// they submit is decided in the next round.
func (s *shard) tellAll() {
	for _, a := range s.answers {
		switch {
		case a.done != nil:
			a.done(a.reply, a.err)
		case s.manager.options.OnEffect != nil:
			s.manager.options.OnEffect(s.partition, a.effect)
		}
	}
	clear(s.answers)
	s.answers = s.answers[:0]
	for _, after := range s.after {
		after()
	}
	s.after = nil
}

// hold keeps the outcome of a decision, or lets it out at once if nothing that
// it may rest on is pending. Those who are to be answered leave the list of the
// parked now: from here on they are treated like anyone who waits for a reply.
func (s *shard) hold(h held, effects []any) {
	for _, effect := range effects {
		respond, ok := effect.(machine.Respond)
		if !ok {
			h.effects = append(h.effects, effect)
			continue
		}
		done, ok := s.parked[respond.Token]
		if !ok {
			s.violated("token %d is answered once, after it was parked", respond.Token)
		}
		delete(s.parked, respond.Token)
		h.parked = append(h.parked, answer{done: done, reply: respond.Reply})
	}
	if h.required <= s.committed {
		s.release(&h)
		return
	}
	if h.reply.done != nil || len(h.parked) > 0 || len(h.effects) > 0 || h.event != nil {
		s.held.push(h)
	}
}

func (s *shard) park(token machine.Token, done func(reply any, err error)) {
	if _, known := s.parked[token]; known || done == nil {
		s.violated("token %d is parked once, for a request", token)
	}
	if s.parked == nil {
		s.parked = map[machine.Token]func(any, error){}
	}
	s.parked[token] = done
}

func (s *shard) release(h *held) {
	for _, effect := range h.effects {
		s.answer(answer{effect: effect})
	}
	if h.reply.done != nil {
		s.answer(h.reply)
	}
	s.answers = append(s.answers, h.parked...)
}

// releaseCommitted lets out what the high watermark has passed.
func (s *shard) releaseCommitted() {
	for s.held.size() > 0 && s.held.front().required <= s.committed {
		h := s.held.pop()
		s.expired = max(0, s.expired-1)
		s.release(&h)
	}
}

// fail answers what h holds with an error.
func (s *shard) fail(h *held, err error) {
	if h.reply.done != nil {
		s.answer(answer{done: h.reply.done, err: err})
	}
	for _, p := range h.parked {
		s.answer(answer{done: p.done, err: err})
	}
	h.reply, h.parked = answer{}, nil
}

// failHeld answers everything that is held: with err, or, if its own records
// are those that failed, with theirs. Events are to be decided again.
func (s *shard) failHeld(err error, failed offsets, theirs error) {
	for s.held.size() > 0 {
		h := s.held.pop()
		why := err
		if h.required > failed.base && h.required <= failed.end {
			why = theirs
		}
		s.fail(&h, why)
		if h.event != nil {
			s.events = append(s.events, h.event)
		}
	}
	s.expired = 0
}

// failParked answers everyone whom the machine has not answered, in the order of
// the tokens so that a simulation repeats.
func (s *shard) failParked(err error) {
	for _, token := range sortedTokens(s.parked) {
		s.answer(answer{done: s.parked[token], err: err})
	}
	s.parked = nil
}

// expireHeld answers those who waited for the high watermark as long as a reply
// may. What they asked for may be committed later all the same.
func (s *shard) expireHeld() {
	for ; s.expired < s.held.size(); s.expired++ {
		h := s.held.at(s.expired)
		if h.deadline.After(s.clock) {
			return
		}
		s.fail(h, s.tooLate())
	}
}

// expireBacklog does the same for those who were not decided.
func (s *shard) expireBacklog() {
	for s.backlog.size() > 0 && !s.backlog.front().now.Add(s.manager.options.ReplyTimeout).After(s.clock) {
		e := s.backlog.pop()
		s.queued.Add(-1)
		s.answer(answer{done: e.done, err: s.tooLate()})
	}
}

func (s *shard) tooLate() error {
	return protocol.Errorf(protocol.CoordinatorNotAvailable, "the replicas of %s did not confirm the records in time", s.tp)
}

// heldDeadline is when the next of those who wait has waited too long.
func (s *shard) heldDeadline() time.Time {
	if s.expired < s.held.size() {
		return s.held.at(s.expired).deadline
	}
	return time.Time{}
}
