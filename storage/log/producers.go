package log

import (
	"time"

	"ottla/protocol"
	"ottla/storage/producer"
)

// ActiveProducer is one producer, as DescribeProducers shows it.
type ActiveProducer struct {
	ProducerID            protocol.ProducerID
	Epoch                 protocol.ProducerEpoch
	LastSequence          int32
	LastTimestampMs       int64
	CoordinatorEpoch      int32
	CurrentTxnFirstOffset protocol.Offset // NoOffset if none
}

// ActiveProducers lists the producers by id.
func (l *Log) ActiveProducers() []ActiveProducer {
	l.mu.Lock()
	producers := l.producers.Producers()
	l.mu.Unlock()
	list := make([]ActiveProducer, len(producers))
	for i := range producers {
		p := &producers[i]
		list[i] = ActiveProducer{p.ID, p.Epoch, p.LastSequence(), p.LastTimestampMs, p.CoordinatorEpoch, p.TxnFirstOffset}
	}
	return list
}

// Guard stands for one verification of a transaction with its coordinator; see producer.Guard.
type Guard = producer.Guard

// NoGuard is that of a batch that was not verified, or needs not to be.
const NoGuard = producer.NoGuard

// BeginVerification gives the guard that the first batch of a transaction must show when it is appended; NoGuard if the
// producer has a transaction of this epoch open here (UnifiedLog.maybeStartTransactionVerification). bumpsEpochs tells
// that the producer speaks transaction version 2. An epoch older than the one seen last is INVALID_PRODUCER_EPOCH.
func (l *Log) BeginVerification(now time.Time, id protocol.ProducerID, epoch protocol.ProducerEpoch, firstSequence int32, bumpsEpochs bool) (Guard, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.BeginVerification(now.UnixMilli(), id, epoch, firstSequence, bumpsEpochs)
}

// OpenTransaction tells whether a producer has a transaction of an epoch open here.
func (l *Log) OpenTransaction(id protocol.ProducerID, epoch protocol.ProducerEpoch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.OpenTransaction(id, epoch)
}

// OldestTransaction gives the producer of the open transaction that began first, which holds the last stable offset, and
// the time of its last batch in milliseconds. One whose time is long over hangs.
func (l *Log) OldestTransaction() (id protocol.ProducerID, lastTimestampMs int64, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.OldestOpen()
}
