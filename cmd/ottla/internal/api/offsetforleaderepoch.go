package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// offsetForLeaderEpoch tells where leader epochs end, so that a replica or a
// consumer sees where its log and this one part (KIP-101, KIP-320).
func offsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest) {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	replica := c.mayCluster(kmsg.ACLOperationClusterAction)
	for i := range req.Topics {
		asked := &req.Topics[i]
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = asked.Topic
		allowed := replica || c.mayTopic(kmsg.ACLOperationDescribe, asked.Topic)
		for j := range asked.Partitions {
			q := &asked.Partitions[j]
			part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			part.Partition = q.Partition
			if !allowed {
				part.ErrorCode = int16(protocol.TopicAuthorizationFailed)
				topic.Partitions = append(topic.Partitions, part)
				continue
			}
			epoch, end, err := c.Replicas.EpochEnd(
				protocol.TopicPartition{Topic: asked.Topic, Partition: q.Partition},
				protocol.LeaderEpoch(q.CurrentLeaderEpoch), protocol.LeaderEpoch(q.LeaderEpoch))
			part.ErrorCode = int16(protocol.CodeOf(err))
			part.LeaderEpoch, part.EndOffset = int32(epoch), int64(end)
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	c.reply(resp)
}
