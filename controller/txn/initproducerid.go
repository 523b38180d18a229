package txn

import (
	"math"
	"time"

	"ottla/protocol"
)

// initProducerID gives a transactional id its producer, at an epoch that nobody
// has had: who has an older one is fenced.
func (c *Coordinator) initProducerID(d *decision, request InitProducerID) (any, error) {
	timeout := time.Duration(request.TimeoutMs) * time.Millisecond
	t := c.transactions[request.TransactionalID]
	switch {
	case timeout <= 0 || timeout > c.options.Settings.MaxTimeout:
		return nil, protocol.Errorf(protocol.InvalidTransactionTimeout, "the timeout must be between 1 ms and %v", c.options.Settings.MaxTimeout)
	case t == nil:
		return c.newProducer(d, request)
	case t.durable.state.preparing():
		return nil, concurrent(t)
	case !t.durable.accepts(request.Expected):
		return c.refuse(d, t.id, fenced(t))
	case t.durable.state == Ongoing:
		return c.fence(d, t, request)
	}
	if exhausted(t.durable.producer.Epoch) && (request.Expected == NoProducer || request.Expected.Epoch == t.durable.producer.Epoch) {
		return c.rotateProducer(d, t, request)
	}
	return c.bumpEpoch(d, t, request)
}

// accepts tells whether a producer that wants to go on after an error may: it has
// the id of now, or had the one before when its epochs were used up and did not
// hear of the new one. The epoch is looked at later.
func (m *metadata) accepts(expected Producer) bool {
	return expected == NoProducer || expected.ID == m.producer.ID || expected.ID == m.previousID && exhausted(expected.Epoch)
}

// newProducer makes a transactional id known. What its producer may have had
// before does not matter: the id was forgotten.
func (c *Coordinator) newProducer(d *decision, request InitProducerID) (any, error) {
	if request.Drawn == protocol.NoProducerID {
		return NeedsProducerID{}, nil
	}
	m := metadata{
		producer: Producer{request.Drawn, 0}, previousID: request.Drawn, nextID: protocol.NoProducerID,
		timeoutMs: request.TimeoutMs, state: Empty, startMs: -1, updateMs: d.nowMs(), clientVersion: Version0,
	}
	r := recordOf(request.TransactionalID, &m, d.version)
	if c.tooLarge(r) {
		return nil, protocol.Errorf(protocol.UnknownServerError, "the transactional id has %d bytes", len(request.TransactionalID))
	}
	d.records = append(d.records, r)
	return m.producer, nil
}

// empty is the state after InitProducerID.
func (m *metadata) empty(d *decision, timeoutMs int32) metadata {
	after := m.next(Empty, d.nowMs())
	after.timeoutMs, after.partitions, after.startMs = timeoutMs, nil, -1
	return after
}

// rotateProducer begins with another producer id when the epochs are used up.
func (c *Coordinator) rotateProducer(d *decision, t *transaction, request InitProducerID) (any, error) {
	if request.Drawn == protocol.NoProducerID {
		return NeedsProducerID{}, nil
	}
	after := t.durable.empty(d, request.TimeoutMs)
	after.producer = Producer{request.Drawn, 0}
	t.previousEpoch = noEpoch
	if request.Expected != NoProducer {
		t.previousEpoch = t.durable.producer.Epoch
	}
	d.write(t.id, &after)
	return after.producer, nil
}

// bumpEpoch gives the next epoch; to who has the last one, and to who asks again
// the one that it was given and did not hear of.
func (c *Coordinator) bumpEpoch(d *decision, t *transaction, request InitProducerID) (any, error) {
	is := t.durable.producer
	after := t.durable.empty(d, request.TimeoutMs)
	switch {
	case exhausted(is.Epoch):
		// An older epoch than that of now, of an id that has no epochs left. Apache
		// Kafka has no answer to it (IllegalStateException).
		return nil, protocol.Errorf(protocol.UnknownServerError, "producer %d has no epochs left", is.ID)
	case request.Expected == NoProducer:
		after.producer.Epoch++
		t.previousEpoch = noEpoch
	case request.Expected.Epoch == is.Epoch:
		after.producer.Epoch++
		t.previousEpoch = is.Epoch
	case request.Expected.Epoch == t.before():
		t.previousEpoch = request.Expected.Epoch // of the next state no record tells it
	case request.Expected.ID == is.ID && request.Expected.Epoch > is.Epoch:
		return c.refuse(d, t.id, fenced(t))
	default:
		return nil, fenced(t)
	}
	d.write(t.id, &after)
	return after.producer, nil
}

// fence aborts the transaction that another producer of the same id has left
// Ongoing. The epoch that fences it is given to nobody: who asks again gets the
// next.
func (c *Coordinator) fence(d *decision, t *transaction, request InitProducerID) (any, error) {
	if needed := c.abort(d, t, request.Drawn); needed {
		return NeedsProducerID{}, nil
	}
	return Aborting{}, nil
}

// abort is the coordinator's own: it fences the producer. It tells whether a
// producer id is needed for it that was not drawn.
func (c *Coordinator) abort(d *decision, t *transaction, drawn protocol.ProducerID) (needsID bool) {
	if d.version >= Version2 {
		after, needsID := t.durable.ended(d, false, Version2, drawn)
		if needsID {
			return true
		}
		t.previousEpoch = t.durable.producer.Epoch
		c.prepare(d, t, after)
		return false
	}
	after := t.durable.next(PrepareAbort, d.nowMs())
	if after.producer.Epoch < math.MaxInt16 {
		after.producer.Epoch++
	}
	after.clientVersion = Version0
	t.previousEpoch = noEpoch
	c.prepare(d, t, after)
	return false
}

func concurrent(t *transaction) error {
	return protocol.Errorf(protocol.ConcurrentTransactions, "the transaction of %q is being ended", t.id)
}

func fenced(t *transaction) error {
	return protocol.Errorf(protocol.ProducerFenced, "%q has another producer by now", t.id)
}
