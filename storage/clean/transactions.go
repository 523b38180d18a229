package clean

import (
	"cmp"
	"fmt"
	"slices"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/segment"
)

// transactions follows the transactions of a log while its batches are walked in order
// (CleanedTransactionMetadata). A marker may go when no batch of its transaction was met before it: what compaction left of
// the transaction.
type transactions struct {
	committed map[protocol.ProducerID]bool // batches were met, and no abort is known of
	aborted   map[protocol.ProducerID]*abortedTxn
	coming    []segment.AbortedTxn // aborted transactions whose first batch was not reached, the last one first

	// kept is told of aborted transactions of which batches were met, when their marker is. nil: nobody wants to know.
	kept func(segment.AbortedTxn) error
}

type abortedTxn struct {
	segment.AbortedTxn
	met bool // one of its batches
}

func newTransactions() *transactions {
	return &transactions{committed: map[protocol.ProducerID]bool{}, aborted: map[protocol.ProducerID]*abortedTxn{}}
}

// expect adds the aborted transactions with batches in [from, to).
func (t *transactions) expect(segments []*segment.Segment, from, to protocol.Offset) error {
	for _, s := range between(segments, from, 1<<63-1) {
		more, err := s.Aborted(from, func(a segment.AbortedTxn) bool {
			if a.FirstOffset < to {
				t.coming = append(t.coming, a)
			}
			return a.LastStableOffset < to // what is decided later began later
		})
		if err != nil {
			return fmt.Errorf("cannot read aborted transactions: %w", err)
		}
		if !more {
			break
		}
	}
	slices.SortStableFunc(t.coming, func(a, b segment.AbortedTxn) int { return cmp.Compare(b.FirstOffset, a.FirstOffset) })
	return nil
}

func (t *transactions) reach(offset protocol.Offset) {
	for n := len(t.coming); n > 0 && t.coming[n-1].FirstOffset <= offset; n-- {
		a := t.coming[n-1]
		t.coming = t.coming[:n-1]
		if t.aborted[a.ProducerID] == nil {
			t.aborted[a.ProducerID] = &abortedTxn{AbortedTxn: a}
		}
	}
}

// data tells whether a batch is of an aborted transaction.
func (t *transactions) data(b record.Batch) (aborted bool) {
	t.reach(b.LastOffset())
	if !b.IsTransactional() {
		return false
	}
	if a := t.aborted[b.ProducerID()]; a != nil {
		a.met = true
		return true
	}
	t.committed[b.ProducerID()] = true
	return false
}

// control tells whether a control batch has nothing left to end.
func (t *transactions) control(b record.Batch) (spent bool, err error) {
	t.reach(b.LastOffset())
	if b.Count() == 0 {
		return true, nil
	}
	kind := record.ControlType(-1)
	for r, err := range record.Records(b, nil, len(b)) {
		if err != nil {
			return false, err
		}
		if kind, err = record.ParseControlKey(r.Key); err != nil {
			return false, err
		}
		break
	}
	id := b.ProducerID()
	switch kind {
	case record.ControlAbort:
		a := t.aborted[id]
		delete(t.aborted, id)
		if a == nil || !a.met {
			return true, nil
		}
		if t.kept != nil {
			return false, t.kept(a.AbortedTxn)
		}
		return false, nil
	case record.ControlCommit:
		met := t.committed[id]
		delete(t.committed, id)
		return !met, nil
	}
	return false, nil
}
