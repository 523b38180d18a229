package offsets

import (
	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// Versions of the value that Apache Kafka 4.4.0 writes, whatever the
// metadata.version is.
const (
	valueVersion        = 4
	valueExpiresVersion = 1 // the only one with a time of expiry
)

// Record is the record of a commit.
func Record(group, topic string, partition int32, o Offset) machine.Record {
	value := schema.NewOffsetCommitValue()
	value.Offset, value.LeaderEpoch, value.Metadata = o.Offset, o.Epoch, o.Metadata
	value.CommitTimestamp, value.ExpireTimestamp, value.TopicID = o.CommitMs, o.ExpireMs, o.TopicID
	version := int16(valueVersion)
	if o.ExpireMs >= 0 {
		version = valueExpiresVersion
	}
	return machine.Record{Key: key(group, topic, partition), Value: schema.AppendValue(nil, value, version)}
}

// Tombstone is the record that deletes a commit.
func Tombstone(group, topic string, partition int32) machine.Record {
	return machine.Record{Key: key(group, topic, partition)}
}

func key(group, topic string, partition int32) []byte {
	key := schema.NewOffsetCommitKey()
	key.Group, key.Topic, key.Partition = group, topic, partition
	return schema.AppendKey(nil, key)
}

// Of reads a commit out of its record, which stands at an offset of the log.
func Of(value *schema.OffsetCommitValue, record protocol.Offset) Offset {
	return Offset{
		Offset: value.Offset, Epoch: value.LeaderEpoch, Metadata: value.Metadata, TopicID: value.TopicID,
		CommitMs: value.CommitTimestamp, ExpireMs: value.ExpireTimestamp, Record: record,
	}
}
