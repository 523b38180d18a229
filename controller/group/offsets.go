package group

import (
	"maps"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// committedOffset is what a group has committed for one partition.
type committedOffset struct {
	offset   protocol.Offset
	epoch    protocol.LeaderEpoch
	metadata string
	topicID  protocol.TopicID // zero: the commit did not know it
	commitMs int64
	expireMs int64 // of commits that asked for a retention of their own; -1: none
	// record is where the commit stands in the log. A transaction that commits
	// later than another write of the same offset is not later than it.
	record protocol.Offset
}

// offsetStore has the committed offsets by group, topic and partition. A group
// or topic without any is not in it. It is durable state: only Apply changes it.
//
// Offsets of open transactions have their place in a second store, by producer
// id; until it is built, transactional commits are refused.
type offsetStore map[string]map[string]map[int32]committedOffset

func (s offsetStore) get(group, topic string, partition int32) (committedOffset, bool) {
	o, found := s[group][topic][partition]
	return o, found
}

func (s offsetStore) put(group, topic string, partition int32, o committedOffset) {
	if s[group] == nil {
		s[group] = map[string]map[int32]committedOffset{}
	}
	if s[group][topic] == nil {
		s[group][topic] = map[int32]committedOffset{}
	}
	s[group][topic][partition] = o
}

func (s offsetStore) remove(group, topic string, partition int32) {
	delete(s[group][topic], partition)
	if len(s[group][topic]) == 0 {
		delete(s[group], topic)
	}
	if len(s[group]) == 0 {
		delete(s, group)
	}
}

// each visits a group's offsets in the order of topic and partition.
func (s offsetStore) each(group string, visit func(topic string, partition int32, o committedOffset)) {
	for _, topic := range slices.Sorted(maps.Keys(s[group])) {
		s.eachOf(group, topic, func(partition int32, o committedOffset) { visit(topic, partition, o) })
	}
}

// eachOf visits a group's offsets of one topic in the order of partitions.
func (s offsetStore) eachOf(group, topic string, visit func(partition int32, o committedOffset)) {
	for _, partition := range slices.Sorted(maps.Keys(s[group][topic])) {
		visit(partition, s[group][topic][partition])
	}
}

// writeOffset writes a commit.
func (d *decision) writeOffset(group, topic string, partition int32, o committedOffset) {
	value := schema.NewOffsetCommitValue()
	value.Offset, value.LeaderEpoch, value.Metadata = o.offset, o.epoch, o.metadata
	value.CommitTimestamp, value.ExpireTimestamp, value.TopicID = o.commitMs, o.expireMs, o.topicID
	version := int16(offsetCommitVersion)
	if o.expireMs >= 0 {
		version = offsetCommitExpiresVersion
	}
	d.write(offsetKey(group, topic, partition), value, version)
}

// deleteOffset writes the tombstone of a commit.
func (d *decision) deleteOffset(group, topic string, partition int32) {
	d.write(offsetKey(group, topic, partition), nil, 0)
}

func offsetKey(group, topic string, partition int32) *schema.OffsetCommitKey {
	key := schema.NewOffsetCommitKey()
	key.Group, key.Topic, key.Partition = group, topic, partition
	return key
}

func offsetOf(value *schema.OffsetCommitValue, record protocol.Offset) committedOffset {
	return committedOffset{
		offset: value.Offset, epoch: value.LeaderEpoch, metadata: value.Metadata, topicID: value.TopicID,
		commitMs: value.CommitTimestamp, expireMs: value.ExpireTimestamp, record: record,
	}
}
