package txn

import (
	"maps"
	"slices"

	"ottla/protocol"
)

func (c *Coordinator) describe(request Describe) (any, error) {
	t := c.transactions[request.TransactionalID]
	if t == nil {
		return nil, protocol.Errorf(protocol.TransactionalIDNotFound, "%q is not known", request.TransactionalID)
	}
	return t.described(), nil
}

func (c *Coordinator) list(request List) []Described {
	var listed []Described
	for _, id := range slices.Sorted(maps.Keys(c.transactions)) {
		if d := c.transactions[id].described(); request.Keep == nil || request.Keep(&d) {
			listed = append(listed, d)
		}
	}
	return listed
}

func (t *transaction) described() Described {
	m := &t.durable
	d := Described{
		TransactionalID: t.id, State: m.state, Producer: m.producer, TimeoutMs: m.timeoutMs, StartMs: m.startMs, Partitions: m.partitions,
	}
	if m.state.preparing() && t.unmarked != nil {
		d.Partitions = slices.SortedFunc(maps.Keys(t.unmarked), protocol.TopicPartition.Compare)
	}
	return d
}
