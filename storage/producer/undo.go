package producer

import (
	"slices"

	"ottla/protocol"
)

// The state is applied before the bytes are written, because the next batch of the same write may be of the same
// producer. If the disk is full, the write is cut back and so is the state. Nothing else is ever taken back.

type undoStep struct {
	id    protocol.ProducerID
	known bool
	old   Producer
}

type txnLists struct{ ongoing, unreplicated []transaction }

// Mark begins a stretch of Apply calls that can be taken back.
func (s *State) Mark() {
	if s.marked {
		panic("producer: Mark within Mark")
	}
	s.marked, s.endUndo = true, s.end
}

// Commit ends the stretch: what was applied stands.
func (s *State) Commit() {
	s.marked, s.txnUndo = false, nil
	s.undo = s.undo[:0]
}

// Rollback ends the stretch and restores the state that Mark saw.
func (s *State) Rollback() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		step := &s.undo[i]
		if step.known {
			*s.producers[step.id] = step.old
		} else {
			delete(s.producers, step.id)
		}
	}
	if s.txnUndo != nil {
		s.ongoing, s.unreplicated = s.txnUndo.ongoing, s.txnUndo.unreplicated
	}
	s.end = s.endUndo
	s.Commit()
}

// keepTxns copies the transaction lists before their first change in a marked stretch.
func (s *State) keepTxns() {
	if s.marked && s.txnUndo == nil {
		s.txnUndo = &txnLists{slices.Clone(s.ongoing), slices.Clone(s.unreplicated)}
	}
}
