package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// describeProducers lists the producers that the leaders of partitions remember
// (KIP-664).
func describeProducers(c *call, req *kmsg.DescribeProducersRequest) {
	image := c.Image()
	resp := kmsg.NewPtrDescribeProducersResponse()
	for _, asked := range req.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = asked.Topic
		refused := c.refuseProducers(image, asked.Topic)
		for _, n := range asked.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			if part.Partition = n; refused != nil {
				part.ErrorCode, part.ErrorMessage = int16(protocol.CodeOf(refused)), sentenceOf(refused)
			} else {
				c.activeProducers(&part, protocol.TopicPartition{Topic: asked.Topic, Partition: n})
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	c.reply(resp)
}

func (c *call) refuseProducers(image *metadata.Image, topic string) error {
	switch {
	case !c.mayTopic(kmsg.ACLOperationRead, topic):
		return protocol.TopicAuthorizationFailed.Err()
	case protocol.CheckTopicName(topic) != nil:
		return protocol.CheckTopicName(topic)
	case image.Topic(topic) == nil:
		return protocol.UnknownTopicOrPartition.Err()
	}
	return nil
}

func (c *call) activeProducers(part *kmsg.DescribeProducersResponseTopicPartition, tp protocol.TopicPartition) {
	active, err := c.Replicas.ActiveProducers(tp)
	if part.ErrorCode = int16(protocol.CodeOf(err)); err != nil {
		return // without a sentence, as from Kafka
	}
	for _, p := range active {
		one := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		one.ProducerID, one.ProducerEpoch, one.LastSequence = int64(p.ProducerID), int32(p.Epoch), p.LastSequence
		one.LastTimestamp, one.CoordinatorEpoch, one.CurrentTxnStartOffset = p.LastTimestampMs, p.CoordinatorEpoch, int64(p.CurrentTxnFirstOffset)
		part.ActiveProducers = append(part.ActiveProducers, one)
	}
}
