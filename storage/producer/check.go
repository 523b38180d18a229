package producer

import (
	"encoding/binary"
	"fmt"
	"math"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
)

// Who is what Check needs to know of the one who appends.
type Who int8

// The kinds of appenders (AppendOrigin.java). Replicated batches are not checked at all.
const (
	Client      Who = iota // sequences and epochs are checked, duplicates found
	Coordinator            // only epochs are checked
)

// Check judges a data batch before it is appended. A duplicate of a remembered batch is no error: the original
// is returned. The error is a *protocol.Error: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
// INVALID_TXN_STATE. With verify the first batch of a transaction must show the guard that BeginVerification gave.
func (s *State) Check(b record.Batch, who Who, verify bool, guard Guard) (original Batch, duplicate bool, err error) {
	if !b.HasProducerID() {
		return Batch{}, false, nil
	}
	p := s.producers[b.ProducerID()]
	if who == Client && p != nil {
		if original, duplicate = p.find(b); duplicate {
			return original, true, nil
		}
	}
	if p != nil && b.ProducerEpoch() < p.Epoch {
		return Batch{}, false, protocol.Errorf(protocol.InvalidProducerEpoch,
			"producer %d has epoch %d, but this partition has seen its epoch %d", b.ProducerID(), b.ProducerEpoch(), p.Epoch)
	}
	if verify && b.IsTransactional() && !s.OpenTransaction(b.ProducerID(), b.ProducerEpoch()) && !s.verified(b.ProducerID(), guard) {
		return Batch{}, false, protocol.Errorf(protocol.InvalidTxnState, "Record was not part of an ongoing transaction")
	}
	if who == Client {
		if err := checkSequence(p, b, s.verifications[b.ProducerID()]); err != nil {
			return Batch{}, false, err
		}
	}
	if p != nil && p.TxnFirstOffset != protocol.NoOffset && !b.IsTransactional() {
		return Batch{}, false, protocol.Errorf(protocol.InvalidTxnState,
			"producer %d has a transaction open on this partition since offset %d, so its batches must be transactional",
			b.ProducerID(), p.TxnFirstOffset)
	}
	return Batch{}, false, nil
}

func (p *Producer) find(b record.Batch) (Batch, bool) {
	if b.ProducerEpoch() != p.Epoch {
		return Batch{}, false
	}
	first, last := b.BaseSequence(), b.LastSequence()
	for _, known := range p.Batches() {
		if known.LastSequence == last && known.FirstSequence() == first {
			return known, true
		}
	}
	return Batch{}, false
}

// checkSequence is ProducerAppendInfo.checkSequence. v is the verification of the producer that is under way, if any.
func checkSequence(p *Producer, b record.Batch, v *verification) error {
	first := b.BaseSequence()
	if v != nil && v.bumpsEpochs && first != 0 && (p == nil || p.count == 0) {
		return outOfOrder(b, "a producer of transactions that is not known here begins at 0")
	}
	if v != nil && first > v.lowestSequence {
		return outOfOrder(b, fmt.Sprintf("an earlier batch with sequence %d is still being verified", v.lowestSequence))
	}
	if p == nil || p.Epoch == -1 {
		return nil // nothing is known, so nothing can be missed
	}
	if b.ProducerEpoch() != p.Epoch {
		if first != 0 {
			return outOfOrder(b, fmt.Sprintf("a new epoch begins at 0, and %d is newer than %d", b.ProducerEpoch(), p.Epoch))
		}
		return nil
	}
	if last := p.LastSequence(); !follows(last, first) {
		return outOfOrder(b, fmt.Sprintf("the last one here is %d", last))
	}
	return nil
}

func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}

func outOfOrder(b record.Batch, reason string) *protocol.Error {
	return protocol.Errorf(protocol.OutOfOrderSequenceNumber, "producer %d sent sequence %d: %s",
		b.ProducerID(), b.BaseSequence(), reason)
}

// Marker is the end of a transaction, as its control record tells it.
type Marker struct {
	Commit           bool
	CoordinatorEpoch int32
}

// CheckMarker judges a marker before it is appended: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED. Under
// transaction version 2 every transaction has an epoch of its own, so a marker must come with a newer one, except
// where a coordinator repeats a marker that is there already, or epochs are used up (KIP-890).
func (s *State) CheckMarker(b record.Batch, marker Marker, transactionVersion int8) error {
	p := s.producers[b.ProducerID()]
	if p == nil {
		return nil
	}
	epoch := b.ProducerEpoch()
	stale := epoch < p.Epoch
	if transactionVersion >= 2 && epoch == p.Epoch {
		stale = p.TxnFirstOffset != protocol.NoOffset && epoch != math.MaxInt16
	}
	if stale {
		return protocol.Errorf(protocol.InvalidProducerEpoch,
			"a marker of producer %d has epoch %d, but this partition has seen its epoch %d", b.ProducerID(), epoch, p.Epoch)
	}
	if marker.CoordinatorEpoch < p.CoordinatorEpoch {
		return protocol.Errorf(protocol.TransactionCoordinatorFenced,
			"a marker of producer %d comes from coordinator epoch %d, but one of epoch %d was here before",
			b.ProducerID(), marker.CoordinatorEpoch, p.CoordinatorEpoch)
	}
	return nil
}

// ErrMarker says that a control batch is no transaction marker.
var ErrMarker = fmt.Errorf("%w: it is no end of a transaction", record.ErrCorrupt)

// ReadMarker reads the marker out of a control batch (EndTxnMarker.json, ControlRecordType). Markers are never
// compressed.
func ReadMarker(b record.Batch) (Marker, error) {
	if b.Codec() != compress.None {
		return Marker{}, ErrMarker
	}
	for r, err := range record.Records(b, nil, len(b)) {
		if err != nil {
			return Marker{}, err
		}
		return parseMarker(r.Key, r.Value)
	}
	return Marker{}, ErrMarker
}

func parseMarker(key, value []byte) (Marker, error) {
	const abort, commit = 0, 1
	if len(key) < 4 || len(value) < 6 {
		return Marker{}, ErrMarker
	}
	kind := binary.BigEndian.Uint16(key[2:])
	if kind != abort && kind != commit {
		return Marker{}, ErrMarker
	}
	return Marker{kind == commit, int32(binary.BigEndian.Uint32(value[2:]))}, nil
}
