package txn

import (
	"slices"

	"ottla/protocol"
)

// addPartitions makes partitions part of a transaction, and begins one if there
// is none. It is durable before the first record of the transaction is written
// anywhere: what is not known here would never get its marker.
func (c *Coordinator) addPartitions(d *decision, request AddPartitions) (any, error) {
	t := c.transactions[request.TransactionalID]
	switch {
	case t == nil:
		return c.refuse(d, request.TransactionalID, unknown(request.TransactionalID))
	case request.Version >= Version2 && d.version < Version1:
		return nil, tooNew()
	case t.durable.state.preparing():
		return nil, concurrent(t)
	}
	m := &t.durable
	if request.Producer != m.producer {
		return c.notOf(d, t, request.Producer)
	}
	if m.state == Ongoing && !slices.ContainsFunc(request.Partitions, func(tp protocol.TopicPartition) bool { return !m.has(tp) }) {
		if request.Version < Version2 {
			c.confirm(d, t.id) // of one epoch there are several transactions
		}
		return Done{}, nil
	}
	after := m.next(Ongoing, d.nowMs())
	if m.state != Ongoing {
		after.startMs = after.updateMs
	}
	after.partitions, after.clientVersion = m.with(request.Partitions), request.Version
	r := recordOf(t.id, &after, d.version)
	if c.tooLarge(r) {
		return nil, protocol.Errorf(protocol.UnknownServerError, "a transaction of %d partitions does not fit into a record", len(after.partitions))
	}
	d.records = append(d.records, r)
	return Done{}, nil
}

// verify tells which partitions are part of the producer's transaction.
func (c *Coordinator) verify(d *decision, request Verify) (any, error) {
	t := c.transactions[request.TransactionalID]
	if t == nil {
		return c.refuse(d, request.TransactionalID, unknown(request.TransactionalID))
	}
	if request.Producer != t.durable.producer {
		return c.notOf(d, t, request.Producer)
	}
	if t.durable.state.preparing() {
		return nil, concurrent(t)
	}
	verified := make(Verified, len(request.Partitions))
	for i, tp := range request.Partitions {
		verified[i] = t.durable.has(tp)
	}
	if slices.Contains(verified, false) {
		c.confirm(d, t.id)
	}
	return verified, nil
}

// notOf tells a producer that is not the one of now that it is not. Epochs only
// rise, so an older one is fenced whoever coordinates it.
func (c *Coordinator) notOf(d *decision, t *transaction, producer Producer) (any, error) {
	switch is := t.durable.producer; {
	case producer.ID != is.ID:
		return c.refuse(d, t.id, protocol.Errorf(protocol.InvalidProducerIDMapping, "%q does not have producer id %d", t.id, producer.ID))
	case producer.Epoch > is.Epoch:
		return c.refuse(d, t.id, fenced(t))
	}
	return nil, fenced(t)
}

func unknown(id string) error {
	return protocol.Errorf(protocol.InvalidProducerIDMapping, "%q is not known", id)
}
