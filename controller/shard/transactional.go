package shard

import (
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
)

// Transactional is a Machine that keeps records of transactions apart until
// their marker comes, as the group coordinator does with offsets that are
// committed in a transaction. What of a log belongs to transactions is handed
// to it by these two, in the order of the log, among the calls of Apply. For
// any other machine such records are skipped, which the log says.
//
// What a transaction writes is applied when the log has taken it, unlike the rest:
// the log knows which producers may write, and its refusal is the reply and no
// fault of the shard. Nothing else is decided between the two, so what the machine
// has applied is what the log holds, as ever.
type Transactional interface {
	machine.Machine

	// ApplyTransactional takes consecutive records that a producer wrote in a
	// transaction: records[i] has offset base+i. They take effect at its end.
	ApplyTransactional(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64,
		id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, records []machine.Record) error

	// ApplyMarker takes the marker at offset, which ends the transaction of a
	// producer: committed or aborted.
	ApplyMarker(offset protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64,
		id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, committed bool, coordinatorEpoch int32) error
}

// Marker ends a producer's transaction on one partition (WriteTxnMarkers).
type Marker struct {
	ProducerID       protocol.ProducerID
	ProducerEpoch    protocol.ProducerEpoch
	Commit           bool
	CoordinatorEpoch int32
	Version          int8 // transaction.version of the request
}

// WriteMarker appends a marker to a partition and has its machine take it. done is
// called as by Submit; the error may be one of the log: INVALID_PRODUCER_EPOCH,
// TRANSACTION_COORDINATOR_FENCED.
func (m *Manager) WriteMarker(now time.Time, partition int32, marker Marker, done func(err error)) {
	m.Submit(now, partition, marker, func(_ any, err error) { done(err) })
}

// alone is what a batch has that belongs to a transaction, and goes into the log
// by itself.
type alone struct {
	batch   record.Batch
	origin  log.Origin
	guard   log.Guard
	version int8
	apply   func(base protocol.Offset) error
	held    held
}

// appendAlone sends a batch off behind those that were decided before it. Until the
// log has answered nothing more is decided.
func (s *shard) appendAlone(now time.Time, a *alone) {
	if s.open != nil {
		s.full.push(s.open)
		s.open = nil
	}
	end := s.next + protocol.Offset(a.batch.Count())
	s.barrier = &batch{offsets: offsets{s.next, end}, now: now, timestampMs: now.UnixMilli(), alone: a}
	s.full.push(s.barrier)
}

// transact carries out a result whose records are written in a transaction.
func (s *shard) transact(now time.Time, result machine.Result, done func(reply any, err error)) {
	t := result.Transaction
	to, ok := s.machine.(Transactional)
	if !ok || len(result.Records) == 0 || len(result.Effects) > 0 {
		s.violated("a transactional result has records, no effect, and a machine that knows transactions")
	}
	timestampMs := now.UnixMilli()
	options := record.PlainOptions()
	options.Codec = s.manager.options.Codec
	options.Transactional, options.ProducerID, options.ProducerEpoch, options.BaseSequence = true, t.ProducerID, t.ProducerEpoch, 0
	builder := record.NewBuilder(options)
	for _, r := range result.Records {
		builder.Append(timestampMs, r.Key, r.Value, nil)
	}
	if size, limit := builder.SizeBytes(), s.batchLimit(); size > limit {
		err := protocol.Errorf(protocol.RecordListTooLarge, "%d records of %s have %d bytes, but a batch can have %d", len(result.Records), s.tp, size, limit)
		s.answer(answer{done: done, err: CoordinatorError(err)})
		return
	}
	s.appendAlone(now, &alone{
		batch: builder.Build(s.manager.options.Pool), origin: log.OriginCoordinator, guard: log.Guard(t.Guard), version: t.Version,
		apply: func(base protocol.Offset) error {
			return to.ApplyTransactional(base, s.epoch, timestampMs, t.ProducerID, t.ProducerEpoch, result.Records)
		},
		held: held{deadline: s.replyDeadline(now), reply: answer{done: done, reply: result.Reply}},
	})
}

// mark appends a marker.
func (s *shard) mark(now time.Time, marker Marker, done func(reply any, err error)) {
	to, ok := s.machine.(Transactional)
	if !ok {
		s.answer(answer{done: done, err: protocol.Errorf(protocol.InvalidRequest, "%s has no transactions", s.tp)})
		return
	}
	kind := record.ControlAbort
	if marker.Commit {
		kind = record.ControlCommit
	}
	timestampMs := now.UnixMilli()
	s.appendAlone(now, &alone{
		batch:  record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind, CoordinatorEpoch: marker.CoordinatorEpoch}, timestampMs, marker.ProducerID, marker.ProducerEpoch),
		origin: log.OriginMarker, version: marker.Version,
		apply: func(base protocol.Offset) error {
			return to.ApplyMarker(base, s.epoch, timestampMs, marker.ProducerID, marker.ProducerEpoch, marker.Commit, marker.CoordinatorEpoch)
		},
		held: held{deadline: s.replyDeadline(now), reply: answer{done: done}},
	})
}

// request is how a batch of a transaction is appended.
func (a *alone) request(tp protocol.TopicPartition, epoch protocol.LeaderEpoch) replica.AppendRequest {
	return replica.AppendRequest{
		Partition: tp, Records: a.batch, Origin: a.origin, LeaderEpoch: &epoch, RequiredAcks: replica.AcksLeader, AllowZstd: true,
		Guard: a.guard, TransactionVersion: a.version,
	}
}

// taken applies a batch of a transaction that the log has taken.
func (s *shard) taken(b *batch) {
	s.barrier = nil
	s.next = b.end
	if err := b.alone.apply(b.base); err != nil {
		s.violated("the machine applies what the log has taken: %v", err)
	}
	h := b.alone.held
	h.required = b.end
	s.hold(h, nil)
}

// refused tells whether the log has refused a batch of a transaction for its
// producer's sake. Then that is the answer, and nothing has happened.
func (s *shard) refused(b *batch, err error) bool {
	switch protocol.CodeOf(err) {
	case protocol.InvalidProducerEpoch, protocol.InvalidTxnState, protocol.TransactionCoordinatorFenced, protocol.OutOfOrderSequenceNumber,
		protocol.DuplicateSequenceNumber, protocol.UnknownProducerID, protocol.InvalidProducerIDMapping, protocol.ConcurrentTransactions,
		protocol.TransactionAbortable:
		s.barrier = nil
		s.answer(answer{done: b.alone.held.reply.done, err: err})
		return true
	}
	return false
}

// failBarrier answers who waits for the log to take a batch of a transaction.
func (s *shard) failBarrier(err error) {
	if s.barrier != nil {
		s.answer(answer{done: s.barrier.alone.held.reply.done, err: err})
		s.barrier = nil
	}
}
