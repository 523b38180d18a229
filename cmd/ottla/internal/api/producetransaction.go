package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/replica"
)

// The first versions of Produce whose clients know TRANSACTION_ABORTABLE, and whose
// clients work the second way: the broker adds what they write to to their
// transaction (KIP-890).
const (
	produceKnowsAbortableFrom = 11
	produceAddsFrom           = 12
)

// transactional tells whether a slot's batch is part of a transaction.
func (s *produceSlot) transactional() bool { return s.malformed == nil && s.batch.IsTransactional() }

// isTransactional tells whether any batch has the transactional bit.
func (p *producing) isTransactional() bool {
	for i := range p.slots {
		if p.slots[i].transactional() {
			return true
		}
	}
	return false
}

// transactionProducer gives the one producer of a request's transactional batches;
// false if there are several.
func (p *producing) transactionProducer() (producer txn.Producer, one bool) {
	for i := range p.slots {
		found := &p.slots[i]
		if !found.transactional() {
			continue
		}
		is := txn.Producer{ID: found.batch.ProducerID(), Epoch: found.batch.ProducerEpoch()}
		if one && is != producer {
			return producer, false
		}
		producer, one = is, true
	}
	return producer, one
}

// transact has the coordinator of the transaction add the partitions to it, or
// verify that they are in it, and then appends. What has an open transaction of
// this producer already needs neither. The connection is not read meanwhile: what
// the producer sends next comes after this.
func (p *producing) transact(req *kmsg.ProduceRequest) {
	producer, one := p.transactionProducer()
	if !one {
		p.refuse(protocol.Errorf(protocol.InvalidProducerIDMapping, "Transactional records contained more than one producer ID"))
		return
	}
	ask := broker.Addition{
		TransactionalID: *req.TransactionID, ProducerID: producer.ID, Epoch: producer.Epoch,
		Add: p.version >= produceAddsFrom, Abortable: p.version >= produceKnowsAbortableFrom,
	}
	var asked []*produceSlot
	for i := range p.slots {
		slot := &p.slots[i]
		if slot.result.Err != nil || !slot.transactional() {
			continue
		}
		var err error
		slot.guard, err = p.Replicas.BeginVerification(p.now, slot.partition, replica.VerificationRequest{
			TopicID: slot.topicID, ProducerID: producer.ID, Epoch: producer.Epoch, FirstSequence: slot.batch.BaseSequence(), BumpsEpochs: ask.Add,
		})
		switch {
		case err != nil:
			slot.result = notAppended(err)
		case slot.guard != log.NoGuard:
			asked, ask.Partitions = append(asked, slot), append(ask.Partitions, slot.partition)
		}
	}
	if len(asked) == 0 {
		p.appendAll(req)
		return
	}
	frame := p.request.Frame
	frame.Retain()
	p.request.HoldReading()
	p.Additions.Ask(p.now, ask, func(codes []protocol.ErrorCode) {
		p.call.guard(func() {
			defer frame.Release()
			for i, slot := range asked {
				if codes[i] != protocol.None {
					slot.result, slot.unverified = notAppended(p.verificationError(codes[i])), true
				}
			}
			p.held = true
			p.appendAll(req)
		})
	})
}

// verificationError is what the producer is told, in Apache Kafka's words. Where
// nobody could say whether the partition is part of the transaction it shall try
// again, by a code that every version knows.
func (p *producing) verificationError(code protocol.ErrorCode) error {
	later := false
	switch code {
	case protocol.InvalidTxnState:
		return protocol.Errorf(code, "Partition was not added to the transaction")
	case protocol.NetworkException, protocol.CoordinatorLoadInProgress, protocol.CoordinatorNotAvailable, protocol.NotCoordinator:
		later = true
	case protocol.ConcurrentTransactions:
		later = p.version < produceAddsFrom
	}
	if later {
		return protocol.Errorf(protocol.NotEnoughReplicas, "Unable to verify the partition has been added to the transaction. Underlying error: %s", code)
	}
	return code.Err()
}
