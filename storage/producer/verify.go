package producer

import (
	"ottla/protocol"
	"ottla/protocol/record"
)

// Guard stands for one verification of a transaction with its coordinator (KIP-890, VerificationGuard). A partition
// that is about to get the first batch of a transaction gives one out, the coordinator is asked, and the batch must show
// it. The batches and markers of that producer take it back. So an answer that comes late, after the
// transaction was aborted here, opens none.
type Guard uint64

// NoGuard is that of a batch that was not verified.
const NoGuard Guard = 0

// verification is one that is under way, or was never used.
type verification struct {
	guard          Guard
	createdMs      int64
	epoch          protocol.ProducerEpoch
	lowestSequence int32 // of the batches that asked with this epoch
	bumpsEpochs    bool  // the producer speaks transaction version 2
}

// OpenTransaction tells whether a producer has a transaction open in an epoch.
func (s *State) OpenTransaction(id protocol.ProducerID, epoch protocol.ProducerEpoch) bool {
	p := s.producers[id]
	return p != nil && p.TxnFirstOffset != protocol.NoOffset && p.Epoch == epoch
}

// BeginVerification gives the guard with which the first batch of a transaction may be appended once the coordinator has
// verified it; NoGuard if the transaction is open here already and needs none. Those who ask before it is used get the
// same one (UnifiedLog.maybeStartTransactionVerification). An epoch older than the one seen last is
// INVALID_PRODUCER_EPOCH.
func (s *State) BeginVerification(nowMs int64, id protocol.ProducerID, epoch protocol.ProducerEpoch, firstSequence int32, bumpsEpochs bool) (Guard, error) {
	if p := s.producers[id]; p != nil && epoch < p.Epoch {
		return NoGuard, protocol.Errorf(protocol.InvalidProducerEpoch,
			"Epoch of producer %d is %d, which is smaller than the last seen epoch %d", id, epoch, p.Epoch)
	}
	if s.OpenTransaction(id, epoch) {
		if v := s.used[id]; v != nil {
			return v.guard, nil // what has opened it may be taken back
		}
		return NoGuard, nil
	}
	v := s.verifications[id]
	if v == nil {
		s.nextGuard++
		v = &verification{s.nextGuard, nowMs, epoch, firstSequence, bumpsEpochs}
		if s.verifications == nil {
			s.verifications = map[protocol.ProducerID]*verification{}
		}
		s.verifications[id] = v
	}
	switch {
	case epoch == v.epoch:
		v.lowestSequence = min(v.lowestSequence, firstSequence)
	case epoch > v.epoch:
		v.epoch, v.lowestSequence = epoch, firstSequence
	}
	return v.guard, nil
}

// verified tells whether a guard is the one that was given out last.
func (s *State) verified(id protocol.ProducerID, guard Guard) bool {
	v := s.verifications[id]
	return guard != NoGuard && v != nil && v.guard == guard
}

// useVerification takes a guard back: the transaction is open now, or over. Under transaction version 2 the marker of one
// transaction has the epoch of the next, whose verification may have begun (UnifiedLog.updateProducers).
func (s *State) useVerification(b record.Batch) {
	if !b.IsTransactional() {
		return
	}
	v := s.verifications[b.ProducerID()]
	if v != nil && !(v.bumpsEpochs && b.IsControl() && b.ProducerEpoch() == v.epoch) {
		delete(s.verifications, b.ProducerID())
		if s.marked {
			if s.used == nil {
				s.used = map[protocol.ProducerID]*verification{}
			}
			if s.used[b.ProducerID()] == nil {
				s.used[b.ProducerID()] = v
			}
		}
	}
}

// expireVerifications forgets those that nobody has used for as long as an idle producer is remembered.
func (s *State) expireVerifications(nowMs int64) {
	for id, v := range s.verifications {
		if nowMs-v.createdMs >= s.expiration.Milliseconds() {
			delete(s.verifications, id)
		}
	}
}
