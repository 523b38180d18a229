package txn

import (
	"math"

	"ottla/protocol"
)

// endTxn decides the outcome of a transaction. From the record on that it writes
// there is no other.
func (c *Coordinator) endTxn(d *decision, request EndTxn) (any, error) {
	t := c.transactions[request.TransactionalID]
	switch {
	case t == nil:
		return c.refuse(d, request.TransactionalID, unknown(request.TransactionalID))
	case request.Version >= Version2 && d.version < Version1:
		return nil, tooNew()
	case request.Version >= Version2:
		return c.endV2(d, t, request)
	}
	return c.endV1(d, t, request)
}

// endV1 is for clients whose epoch stays over the end of a transaction. They may
// ask again for the outcome that they have had.
func (c *Coordinator) endV1(d *decision, t *transaction, request EndTxn) (any, error) {
	if request.Producer != t.durable.producer {
		return c.notOf(d, t, request.Producer)
	}
	switch state := t.durable.state; {
	case state.preparing():
		return nil, concurrent(t)
	case state == Ongoing:
		after := t.durable.next(preparation(request.Commit), d.nowMs())
		after.clientVersion = Version0
		c.prepare(d, t, after)
		return NoProducer, nil
	case state == outcome(request.Commit):
		c.confirm(d, t.id) // the next transaction has the same epoch, and may be Ongoing elsewhere
		return NoProducer, nil
	}
	return c.refuse(d, t.id, notNow(t, request))
}

// endV2 is for clients whose epoch every end bumps (KIP-890), so that nothing of
// one transaction is taken for the next. With the epoch of before it is a retry;
// with the epoch of now an abort of nothing, which bumps the epoch all the same: a
// client that does not know whether it has begun a transaction asks for one.
//
//	                Abort, retry   Abort, now   Commit, retry   Commit, now
//	Empty           fenced         bump         fenced          invalid
//	CompleteAbort   as before      bump         invalid         invalid
//	CompleteCommit  invalid        bump         as before       invalid
func (c *Coordinator) endV2(d *decision, t *transaction, request EndTxn) (any, error) {
	is := &t.durable
	complete := is.state == CompleteCommit || is.state == CompleteAbort
	bumped := is.producer.ID == request.Producer.ID && int32(is.producer.Epoch) == int32(request.Producer.Epoch)+1
	rotated := is.previousID == request.Producer.ID && request.Producer.Epoch == lastEpoch && is.producer.Epoch == 0
	retry := complete && (bumped || rotated)
	switch {
	case is.state.preparing():
		return nil, concurrent(t)
	case rotated && !retry:
		return nil, fenced(t)
	case retry && is.state == outcome(request.Commit):
		return is.producer, nil
	case retry:
		return nil, notNow(t, request)
	case request.Producer != is.producer:
		return c.notOf(d, t, request.Producer)
	case request.Commit && is.state != Ongoing:
		return c.refuse(d, t.id, notNow(t, request))
	}
	after, needsID := is.ended(d, request.Commit, Version2, request.Drawn)
	if needsID {
		return NeedsProducerID{}, nil
	}
	t.previousEpoch = is.producer.Epoch
	return c.prepare(d, t, after), nil
}

// ended is the state in which the outcome is decided, for clients whose epoch
// every end bumps. When their epochs are used up a producer id is needed, to
// follow when the markers are written.
func (m *metadata) ended(d *decision, commit bool, clientVersion int16, drawn protocol.ProducerID) (after metadata, needsID bool) {
	after = m.next(preparation(commit), d.nowMs())
	after.clientVersion = clientVersion
	if exhausted(m.producer.Epoch) {
		if drawn == protocol.NoProducerID {
			return after, true
		}
		after.nextID = drawn
	}
	if m.producer.Epoch < math.MaxInt16 {
		after.producer.Epoch++
	}
	if m.state != Ongoing {
		after.startMs, after.partitions = after.updateMs, nil
	}
	return after, false
}

// prepare writes the outcome, and has the markers written. It gives the producer
// that the client will go on with.
func (c *Coordinator) prepare(d *decision, t *transaction, after metadata) Producer {
	d.write(t.id, &after)
	c.complete(d, t, &after)
	return after.completed(d).producer
}

// complete goes on from a decided outcome: markers to all partitions, or to the
// end at once if there are none.
func (c *Coordinator) complete(d *decision, t *transaction, prepared *metadata) {
	if len(prepared.partitions) == 0 {
		after := prepared.completed(d)
		d.write(t.id, &after)
		return
	}
	t.unmarked = make(map[protocol.TopicPartition]bool, len(prepared.partitions))
	for _, tp := range prepared.partitions {
		t.unmarked[tp] = true
	}
	d.effect(WriteMarkers{
		TransactionalID: t.id, Producer: prepared.producer, CoordinatorEpoch: int32(c.epoch),
		Commit: prepared.state == PrepareCommit, Version: prepared.clientVersion, Partitions: prepared.partitions,
	})
}

// completed is the state in which all markers are written.
func (m *metadata) completed(d *decision) metadata {
	after := m.next(m.state.completed(), d.nowMs())
	after.partitions = nil
	if m.clientVersion >= Version2 && m.nextID != protocol.NoProducerID {
		after.producer = Producer{m.nextID, 0}
	}
	after.nextID = protocol.NoProducerID
	return after
}

// markersWritten takes note of partitions that have their marker; with the last
// one the transaction is complete. What is reported of another time is over.
func (c *Coordinator) markersWritten(d *decision, report MarkersWritten) (any, error) {
	t := c.transactions[report.TransactionalID]
	if t == nil || !t.durable.state.preparing() || t.durable.producer != report.Producer || report.CoordinatorEpoch != int32(c.epoch) {
		return Done{}, nil
	}
	for _, tp := range report.Partitions {
		delete(t.unmarked, tp)
	}
	if len(t.unmarked) == 0 {
		t.unmarked = nil
		after := t.durable.completed(d)
		d.write(t.id, &after)
	}
	return Done{}, nil
}

func preparation(commit bool) State {
	if commit {
		return PrepareCommit
	}
	return PrepareAbort
}

func outcome(commit bool) State { return preparation(commit).completed() }

// tooNew is for those who work the second way where the records have no room for
// it (Apache Kafka fails when it writes, and the transaction hangs).
func tooNew() error {
	return protocol.Errorf(protocol.UnsupportedVersion, "transaction.version is 0")
}

func notNow(t *transaction, request EndTxn) error {
	return protocol.Errorf(protocol.InvalidTxnState, "%q is %s: it cannot be ended with commit=%t", t.id, t.durable.state, request.Commit)
}
