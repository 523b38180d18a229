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
		response.Groups = append(response.Groups, kmsg.OffsetFetchResponseGroup{Group: asked.Group, Topics: c.offsets.Fetch(asked.Group, asked.Topics, m.RequireStable)})
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
	for _, t := range c.offsets.Fetch(m.Group, topics, m.RequireStable) {
		topic := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}
