package replica

import (
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// ActiveProducers lists the producers of a partition that this node leads, by
// id (DescribeProducers). NOT_LEADER_OR_FOLLOWER elsewhere.
func (m *Manager) ActiveProducers(tp protocol.TopicPartition) ([]log.ActiveProducer, error) {
	r, err := m.leading(tp, protocol.ZeroUUID)
	if err != nil {
		return nil, err
	}
	return r.log().ActiveProducers(), nil
}

// VerificationRequest is what a partition must know of a transactional batch before it is verified.
type VerificationRequest struct {
	TopicID       protocol.TopicID // zero: not checked
	ProducerID    protocol.ProducerID
	Epoch         protocol.ProducerEpoch
	FirstSequence int32 // of the batch; 0 for a coordinator's records
	BumpsEpochs   bool  // the producer speaks transaction version 2: Produce v12 and later
}

// BeginVerification tells whether a transactional batch must be verified with the
// transaction coordinator, or be added to the transaction by it, before it is
// appended: then it gives the guard that the append must show (KIP-890). NoGuard
// says that the transaction is open here, or that producers of transaction version 1 are
// not verified (transaction.partition.verification.enable). The errors, for the partition's answer:
// those of a partition that is not here or not led, and INVALID_PRODUCER_EPOCH.
func (m *Manager) BeginVerification(now time.Time, tp protocol.TopicPartition, v VerificationRequest) (log.Guard, error) {
	r, err := m.leading(tp, v.TopicID)
	if err != nil {
		return log.NoGuard, err
	}
	if !v.BumpsEpochs && !r.published.Load().VerifyTransactions {
		return log.NoGuard, nil
	}
	return onLog(r, func(l *log.Log) (log.Guard, error) {
		return l.BeginVerification(now, v.ProducerID, v.Epoch, v.FirstSequence, v.BumpsEpochs)
	})
}

// OpenTransaction tells whether a producer has a transaction of an epoch open in a
// partition that this node leads.
func (m *Manager) OpenTransaction(tp protocol.TopicPartition, id protocol.ProducerID, epoch protocol.ProducerEpoch) (bool, error) {
	r, err := m.leading(tp, protocol.ZeroUUID)
	if err != nil {
		return false, err
	}
	return r.log().OpenTransaction(id, epoch), nil
}

// leading finds a replica that leads.
func (m *Manager) leading(tp protocol.TopicPartition, topicID protocol.TopicID) (*Replica, error) {
	r, err := m.find(tp, topicID)
	if err == nil {
		err = r.failure()
	}
	if err == nil {
		err = r.view.Load().CheckRead(protocol.NoLeaderEpoch, true)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Marker ends a producer's transaction.
type Marker struct {
	ProducerID         protocol.ProducerID
	Epoch              protocol.ProducerEpoch
	Commit             bool
	CoordinatorEpoch   int32
	TransactionVersion int8 // that the coordinator writes the marker under: WriteTxnMarkers v2 tells it
}

// Batch makes the control batch.
func (m Marker) Batch(now time.Time) record.Batch {
	kind := record.ControlAbort
	if m.Commit {
		kind = record.ControlCommit
	}
	return record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind, CoordinatorEpoch: m.CoordinatorEpoch}, now.UnixMilli(), m.ProducerID, m.Epoch)
}

// WriteMarker appends the marker that ends a transaction; done is called when all
// in-sync replicas have it. It is written whether a transaction is open here or not.
// Errors: TRANSACTION_COORDINATOR_FENCED, INVALID_PRODUCER_EPOCH, and those of Append.
// accepted as in Append.
func (m *Manager) WriteMarker(now time.Time, tp protocol.TopicPartition, marker Marker, timeout time.Duration, done func(AppendResult)) (accepted bool) {
	return m.Append(now, AppendRequest{
		Partition: tp, Records: marker.Batch(now), Origin: log.OriginMarker, RequiredAcks: AcksAll, Timeout: timeout,
		TransactionVersion: marker.TransactionVersion,
	}, done)
}

// LateTransactions counts the partitions that this node leads whose last stable
// offset is held by a transaction that has written nothing since before: one that hangs
// (PartitionsWithLateTransactionsCount).
func (m *Manager) LateTransactions(before time.Time) int {
	late := 0
	for _, r := range m.sorted() {
		if r.view.Load().CheckRead(protocol.NoLeaderEpoch, true) != nil || r.failure() != nil {
			continue
		}
		if _, lastMs, open := r.log().OldestTransaction(); open && lastMs < before.UnixMilli() {
			late++
		}
	}
	return late
}
