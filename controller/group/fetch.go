package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// fetchHasGroups is the version from which on several groups are asked at once.
const fetchHasGroups = 8

// fetchOffsets tells what groups have committed: nothing for a group or partition
// that is not known. Without topics, it tells of all; their ids are then zero,
// and the api package, which knows which topics exist, fills them in.
func (c *Coordinator) fetchOffsets(m *kmsg.OffsetFetchRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.OffsetFetchResponse)
	for _, asked := range m.Groups {
		if g := c.lookup(asked.Group); g != nil && g.consumer != nil {
			if err := g.consumer.MayFetch(asked.MemberID, asked.MemberEpoch); err != nil {
				response.Groups = append(response.Groups, kmsg.OffsetFetchResponseGroup{Group: asked.Group, ErrorCode: code(protocol.CodeOf(err))})
				continue
			}
		}
		response.Groups = append(response.Groups, kmsg.OffsetFetchResponseGroup{Group: asked.Group, Topics: c.fetchGroup(asked.Group, asked.Topics)})
	}
	if m.Version >= fetchHasGroups {
		return response
	}
	var topics []kmsg.OffsetFetchRequestGroupTopic
	for _, t := range m.Topics {
		topics = append(topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	if m.Topics != nil && topics == nil {
		topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range c.fetchGroup(m.Group, topics) {
		topic := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata,
			})
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// fetchGroup tells of one group; no topics at all means all.
func (c *Coordinator) fetchGroup(group string, asked []kmsg.OffsetFetchRequestGroupTopic) []kmsg.OffsetFetchResponseGroupTopic {
	var topics []kmsg.OffsetFetchResponseGroupTopic
	if asked == nil {
		c.offsets.each(group, func(topic string, partition int32, o committedOffset) {
			if last := len(topics) - 1; last < 0 || topics[last].Topic != topic {
				topics = append(topics, kmsg.OffsetFetchResponseGroupTopic{Topic: topic})
			}
			last := &topics[len(topics)-1]
			last.Partitions = append(last.Partitions, fetched(partition, o))
		})
		return topics
	}
	for _, t := range asked {
		topic := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID}
		for _, partition := range t.Partitions {
			o, found := c.offsets.get(group, t.Topic, partition)
			if !found || o.ofAnother(t.TopicID) {
				o = committedOffset{offset: protocol.NoOffset, epoch: protocol.NoLeaderEpoch}
			}
			topic.Partitions = append(topic.Partitions, fetched(partition, o))
		}
		topics = append(topics, topic)
	}
	return topics
}

// ofAnother tells that an offset was committed for an earlier topic of the name.
func (o *committedOffset) ofAnother(id protocol.TopicID) bool {
	return !o.topicID.IsZero() && !id.IsZero() && o.topicID != id
}

func fetched(partition int32, o committedOffset) kmsg.OffsetFetchResponseGroupTopicPartition {
	return kmsg.OffsetFetchResponseGroupTopicPartition{
		Partition: partition, Offset: int64(o.offset), LeaderEpoch: int32(o.epoch), Metadata: &o.metadata,
	}
}
