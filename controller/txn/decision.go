package txn

import (
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// decision gathers what one call of Handle or Tick decides.
type decision struct {
	now     time.Time
	version int16 // transaction.version
	records []machine.Record
	effects []any
}

func (c *Coordinator) decide(turn machine.Turn) *decision {
	return &decision{now: turn.Now, version: c.options.Version()}
}

// nowMs is the time as records have it.
func (d *decision) nowMs() int64 { return d.now.UnixMilli() }

// write appends the record of a transactional id.
func (d *decision) write(id string, m *metadata) {
	d.records = append(d.records, recordOf(id, m, d.version))
}

// remove appends the tombstone of a transactional id.
func (d *decision) remove(id string) {
	d.records = append(d.records, machine.Record{Key: keyOf(id)})
}

func (d *decision) effect(effect any) { d.effects = append(d.effects, effect) }

func (d *decision) result(reply any) machine.Result {
	return machine.Result{Records: d.records, Reply: reply, Effects: d.effects}
}

// refuse tells a client something that only the present coordinator may say.
func (c *Coordinator) refuse(d *decision, id string, err error) (any, error) {
	c.confirm(d, id)
	return Refused{err}, nil
}

// confirm has the reply wait until the in-sync replicas have taken the record of
// the transactional id, as it is, once more. Who coordinates no more, and has not
// heard of it, cannot have that.
func (c *Coordinator) confirm(d *decision, id string) {
	if t := c.transactions[id]; t != nil {
		d.write(id, &t.durable)
		return
	}
	d.remove(id)
}

// recordOverhead is more than what a record's header, lengths and deltas take and
// what a later state of the same transaction adds: an end must not be refused for
// want of room.
const recordOverhead = 128

// tooLarge tells that a record would not fit into a batch of the log.
func (c *Coordinator) tooLarge(r machine.Record) bool {
	return c.options.MaxBatchBytes != nil && len(r.Key)+len(r.Value)+recordOverhead > c.options.MaxBatchBytes()
}

func keyOf(id string) []byte {
	key := schema.NewTransactionLogKey()
	key.TransactionalID = id
	return schema.AppendKey(nil, key)
}

// recordOf is the record of a transactional id under a transaction.version. The
// first version of the value has no room for some fields; what they say is lost
// at a failover, as with Apache Kafka.
func recordOf(id string, m *metadata, version int16) machine.Record {
	value := schema.NewTransactionLogValue()
	value.ProducerID, value.ProducerEpoch = m.producer.ID, m.producer.Epoch
	value.TransactionTimeoutMs, value.TransactionStatus = m.timeoutMs, int8(m.state)
	value.TransactionLastUpdateTimestampMs, value.TransactionStartTimestampMs = m.updateMs, m.startMs
	if m.state != Empty {
		value.TransactionPartitions = byTopic(m.partitions)
	}
	valueVersion := int16(0)
	if version >= Version1 {
		valueVersion = 1
		value.PreviousProducerID, value.NextProducerID, value.ClientTransactionVersion = m.previousID, m.nextID, m.clientVersion
	}
	return machine.Record{Key: keyOf(id), Value: schema.AppendValue(nil, value, valueVersion)}
}

// byTopic groups partitions, which are in order.
func byTopic(partitions []protocol.TopicPartition) []schema.TransactionLogPartitionsSchema {
	topics := []schema.TransactionLogPartitionsSchema{} // not null
	for _, tp := range partitions {
		if len(topics) == 0 || topics[len(topics)-1].Topic != tp.Topic {
			topics = append(topics, schema.TransactionLogPartitionsSchema{Topic: tp.Topic})
		}
		last := &topics[len(topics)-1]
		last.PartitionIDs = append(last.PartitionIDs, tp.Partition)
	}
	return topics
}
