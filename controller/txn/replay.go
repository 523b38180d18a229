package txn

import (
	"errors"
	"fmt"
	"slices"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

func (c *Coordinator) replay(base protocol.Offset, records []machine.Record) error {
	for i, r := range records {
		if err := c.replayRecord(r); err != nil {
			return fmt.Errorf("transaction record at offset %d: %w", base+protocol.Offset(i), err)
		}
	}
	return nil
}

// replayRecord takes over one record. A key of an unknown type is passed over, as
// Kafka does: it is left over from a newer version that was rolled back. An
// unknown version of a known value is an error: a transaction would be missing.
func (c *Coordinator) replayRecord(r machine.Record) error {
	key, err := schema.DecodeKey(schema.TransactionLog, r.Key)
	var unknown *schema.UnknownRecordError
	if errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return err
	}
	id := key.(*schema.TransactionLogKey).TransactionalID
	if r.Value == nil {
		delete(c.transactions, id)
		delete(c.ongoing, id)
		return nil
	}
	value, _, err := schema.DecodeValue(schema.TransactionLog, key.APIKey(), r.Value)
	if err != nil {
		return err
	}
	m, err := metadataOf(value.(*schema.TransactionLogValue))
	if err != nil {
		return fmt.Errorf("transactional id %q: %w", id, err)
	}
	t := c.transactions[id]
	if t == nil {
		t = &transaction{id: id, previousEpoch: noEpoch}
		c.transactions[id] = t
	}
	t.durable = m
	delete(c.ongoing, id)
	if m.state == Ongoing {
		c.ongoing[id] = t
	}
	return nil
}

func metadataOf(value *schema.TransactionLogValue) (metadata, error) {
	m := metadata{
		producer:   Producer{value.ProducerID, value.ProducerEpoch},
		previousID: value.PreviousProducerID, nextID: value.NextProducerID,
		timeoutMs: value.TransactionTimeoutMs, state: State(value.TransactionStatus),
		startMs: value.TransactionStartTimestampMs, updateMs: value.TransactionLastUpdateTimestampMs,
		clientVersion: value.ClientTransactionVersion,
	}
	if m.state < Empty || m.state > CompleteAbort {
		return m, fmt.Errorf("a record has state %d, which is never written", value.TransactionStatus)
	}
	if m.state == Empty {
		return m, nil
	}
	for _, topic := range value.TransactionPartitions {
		for _, partition := range topic.PartitionIDs {
			m.partitions = append(m.partitions, protocol.TopicPartition{Topic: topic.Topic, Partition: partition})
		}
	}
	slices.SortFunc(m.partitions, protocol.TopicPartition.Compare)
	m.partitions = slices.Compact(m.partitions)
	return m, nil
}
