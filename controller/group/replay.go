package group

import (
	"errors"
	"fmt"

	"ottla/controller/consumer"
	"ottla/controller/machine"
	"ottla/controller/offsets"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// replay takes over records, the first of which has offset base. step is 1 where
// each has an offset of its own, 0 in a snapshot.
func (c *Coordinator) replay(base, step protocol.Offset, timestampMs int64, producer protocol.ProducerID, records []machine.Record) error {
	for i, r := range records {
		offset := base + step*protocol.Offset(i)
		if err := c.replayRecord(offset, timestampMs, producer, r); err != nil {
			return fmt.Errorf("group record at offset %d: %w", offset, err)
		}
	}
	return nil
}

// replayRecord takes over one record. A key of an unknown type is passed over,
// as Kafka does: it is left over from a newer version that was rolled back. An
// unknown version of a known value is an error: something would be missing.
func (c *Coordinator) replayRecord(offset protocol.Offset, timestampMs int64, producer protocol.ProducerID, r machine.Record) error {
	key, err := schema.DecodeKey(schema.GroupLog, r.Key)
	var unknown *schema.UnknownRecordError
	if errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return err
	}
	var value schema.Value
	if r.Value != nil {
		if value, _, err = schema.DecodeValue(schema.GroupLog, key.APIKey(), r.Value); err != nil {
			return err
		}
	}
	switch key := key.(type) {
	case *schema.LegacyOffsetCommitKey:
		c.replayOffset(offset, timestampMs, producer, &schema.OffsetCommitKey{Group: key.Group, Topic: key.Topic, Partition: key.Partition}, modern(value))
	case *schema.OffsetCommitKey:
		commit, _ := value.(*schema.OffsetCommitValue)
		c.replayOffset(offset, timestampMs, producer, key, commit)
	case *schema.GroupMetadataKey:
		metadata, _ := value.(*schema.GroupMetadataValue)
		c.replayGroup(timestampMs, key.Group, metadata)
	default:
		if id, known := consumer.KeyGroup(key); known {
			return c.replayConsumer(id, key, value)
		}
		// Share groups and streams groups: their records stay in the log until
		// they are built. Their cases belong here.
	}
	return nil
}

// modern gives the value of Kafka before 0.9 the form of today's.
func modern(value schema.Value) *schema.OffsetCommitValue {
	legacy, _ := value.(*schema.LegacyOffsetCommitValue)
	if legacy == nil {
		return nil
	}
	commit := schema.NewOffsetCommitValue()
	commit.Offset, commit.Metadata, commit.CommitTimestamp = legacy.Offset, legacy.Metadata, legacy.CommitTimestamp
	return commit
}

// replayOffset takes over a commit, or its deletion. A commit of a group that
// nothing else is known of makes it: it has no members and no protocol.
func (c *Coordinator) replayOffset(offset protocol.Offset, timestampMs int64, producer protocol.ProducerID, key *schema.OffsetCommitKey, commit *schema.OffsetCommitValue) {
	switch {
	case commit == nil:
		c.offsets.Remove(key.Group, key.Topic, key.Partition)
		return
	case c.lookup(key.Group) == nil:
		c.createClassic(key.Group, timestampMs)
	}
	if producer != protocol.NoProducerID {
		c.offsets.Pend(producer, key.Group, key.Topic, key.Partition, offsets.Of(commit, offset))
		return
	}
	c.offsets.Put(key.Group, key.Topic, key.Partition, offsets.Of(commit, offset))
}

// replayGroup takes over what is durable of a classic group, or its deletion.
// The volatile part is not touched: where there is one, this record comes of it.
func (c *Coordinator) replayGroup(timestampMs int64, id string, value *schema.GroupMetadataValue) {
	if value == nil {
		c.dissolve(id)
		return
	}
	g := c.classicGroup(id)
	if g == nil {
		g = c.createClassic(id, timestampMs)
	}
	g.written = value
}
