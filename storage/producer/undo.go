package producer

import (
	"slices"

	"ottla/protocol"
)

// The state is applied before the bytes are written, because the next batch of the same write may be of the same
// producer. If the disk is full, the write is cut back and so is the state. Nothing else is ever taken back.

// undoStep takes one change back: of a producer, or of the lists of transactions.
type undoStep struct {
	ofProducer bool
	id         protocol.ProducerID
	known      bool
	old        Producer

	began   protocol.Offset // a transaction began there; NoOffset: none
	ended   protocol.Offset // the transaction that had begun there ended; NoOffset: none
	covered []transaction   // what that took out of the unreplicated ones
}

// Mark begins a stretch of Apply calls that can be taken back.
func (s *State) Mark() {
	if s.marked {
		panic("producer: Mark within Mark")
	}
	s.marked, s.endUndo = true, s.end
}

// Commit ends the stretch: what was applied stands.
func (s *State) Commit() {
	s.marked = false
	clear(s.undo)
	s.undo = s.undo[:0]
	clear(s.used)
	s.ongoing.settle()
}

// Rollback ends the stretch and restores the state that Mark saw.
func (s *State) Rollback() {
	for _, step := range slices.Backward(s.undo) {
		switch {
		case step.ofProducer && step.known:
			*s.producers[step.id] = step.old
		case step.ofProducer:
			delete(s.producers, step.id)
		case step.began != protocol.NoOffset:
			s.ongoing.takeBack(step.began)
		default:
			s.ongoing.reopen(step.ended)
			s.unreplicated.takeBack(step.covered)
		}
	}
	for id, v := range s.used { // each by itself
		if s.verifications[id] == nil {
			s.verifications[id] = v
		}
	}
	s.end = s.endUndo
	s.Commit()
}

// noteUndo remembers a change of the lists while marked.
func (s *State) noteUndo(step undoStep) {
	if s.marked {
		s.undo = append(s.undo, step)
	}
}
