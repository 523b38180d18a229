package offsets

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// Fetch tells what a group has committed; no topics at all means all. A partition
// of which nothing is committed has offset -1. If stable is asked for, one of which
// something is pending has UNSTABLE_OFFSET_COMMIT.
func (s *Store) Fetch(group string, asked []kmsg.OffsetFetchRequestGroupTopic, stable bool) []kmsg.OffsetFetchResponseGroupTopic {
	var topics []kmsg.OffsetFetchResponseGroupTopic
	if asked == nil {
		s.Each(group, func(topic string, partition int32, o Offset) {
			if last := len(topics) - 1; last < 0 || topics[last].Topic != topic {
				topics = append(topics, kmsg.OffsetFetchResponseGroupTopic{Topic: topic})
			}
			last := &topics[len(topics)-1]
			last.Partitions = append(last.Partitions, s.fetched(group, topic, partition, o, stable))
		})
		return topics
	}
	for _, t := range asked {
		topic := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID}
		for _, partition := range t.Partitions {
			o, found := s.Get(group, t.Topic, partition)
			if !found || o.OfAnother(t.TopicID) {
				o = none
			}
			topic.Partitions = append(topic.Partitions, s.fetched(group, t.Topic, partition, o, stable))
		}
		topics = append(topics, topic)
	}
	return topics
}

var none = Offset{Offset: protocol.NoOffset, Epoch: protocol.NoLeaderEpoch}

func (s *Store) fetched(group, topic string, partition int32, o Offset, stable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	bad := protocol.None
	if stable && s.Open(group, topic, partition) {
		o, bad = none, protocol.UnstableOffsetCommit
	}
	return kmsg.OffsetFetchResponseGroupTopicPartition{
		Partition: partition, Offset: int64(o.Offset), LeaderEpoch: int32(o.Epoch), Metadata: &o.Metadata, ErrorCode: int16(bad),
	}
}
