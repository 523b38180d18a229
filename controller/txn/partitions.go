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
		return nil, unknown(request.TransactionalID)
	case request.Version >= Version2 && d.version < Version1:
		return nil, tooNew()
	case t.durable.state.preparing():
		return nil, concurrent(t)
	}
	if err := t.durable.belongsTo(t, request.Producer); err != nil {
		return nil, err
	}
	m := &t.durable
	if m.state == Ongoing && !slices.ContainsFunc(request.Partitions, func(tp protocol.TopicPartition) bool { return !m.has(tp) }) {
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
func (c *Coordinator) verify(request Verify) (any, error) {
	t := c.transactions[request.TransactionalID]
	if t == nil {
		return nil, unknown(request.TransactionalID)
	}
	if err := t.durable.belongsTo(t, request.Producer); err != nil {
		return nil, err
	}
	if t.durable.state.preparing() {
		return nil, concurrent(t)
	}
	verified := make(Verified, len(request.Partitions))
	for i, tp := range request.Partitions {
		verified[i] = t.durable.has(tp)
	}
	return verified, nil
}

// belongsTo tells a producer that is not the one of now that it is not.
func (m *metadata) belongsTo(t *transaction, producer Producer) error {
	switch {
	case m.producer.ID != producer.ID:
		return protocol.Errorf(protocol.InvalidProducerIDMapping, "%q does not have producer id %d", t.id, producer.ID)
	case m.producer.Epoch != producer.Epoch:
		return fenced(t)
	}
	return nil
}

func unknown(id string) error {
	return protocol.Errorf(protocol.InvalidProducerIDMapping, "%q is not known", id)
}
