package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// deleteOffsets has a group's coordinator forget what was committed for partitions
// that exist and that the requester may read (KIP-496).
func deleteOffsets(c *call, req *kmsg.OffsetDeleteRequest) {
	switch {
	case !c.mayGroup(kmsg.ACLOperationDelete, req.Group):
		c.reply(errorResponse(req, protocol.GroupAuthorizationFailed.Err()))
		return
	case req.Group == "":
		c.reply(errorResponse(req, protocol.InvalidGroupID.Err()))
		return
	}
	answer := deleteAnswer{places: map[string]int{}}
	ask := kmsg.NewPtrOffsetDeleteRequest()
	ask.Group = req.Group
	image := c.Image()
	for _, topic := range req.Topics {
		switch {
		case !c.mayTopic(kmsg.ACLOperationRead, topic.Topic):
			answer.refuse(topic.Topic, protocol.TopicAuthorizationFailed, topic.Partitions...)
		case image.Topic(topic.Topic) == nil:
			answer.refuse(topic.Topic, protocol.UnknownTopicOrPartition, topic.Partitions...)
		default:
			if topic.Partitions = answer.existing(image, &topic); len(topic.Partitions) > 0 {
				ask.Topics = append(ask.Topics, topic)
			}
		}
	}
	c.askGroup(req.Group, ask, func(resp kmsg.Response, err error) {
		if err != nil {
			c.reply(errorResponse(req, err))
			return
		}
		c.reply(answer.merge(resp.(*kmsg.OffsetDeleteResponse)))
	})
}

// deleteAnswer puts the response together: what was refused here first, then what
// the coordinator says, each topic once.
type deleteAnswer struct {
	places map[string]int
	resp   kmsg.OffsetDeleteResponse
}

func (a *deleteAnswer) topic(name string) *kmsg.OffsetDeleteResponseTopic {
	at, known := a.places[name]
	if !known {
		at = len(a.resp.Topics)
		a.places[name] = at
		a.resp.Topics = append(a.resp.Topics, kmsg.OffsetDeleteResponseTopic{Topic: name})
	}
	return &a.resp.Topics[at]
}

func (a *deleteAnswer) refuse(name string, code protocol.ErrorCode, partitions ...kmsg.OffsetDeleteRequestTopicPartition) {
	to := a.topic(name)
	for _, p := range partitions {
		to.Partitions = append(to.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
	}
}

func (a *deleteAnswer) existing(image *metadata.Image, topic *kmsg.OffsetDeleteRequestTopic) []kmsg.OffsetDeleteRequestTopicPartition {
	var existing []kmsg.OffsetDeleteRequestTopicPartition
	for _, p := range topic.Partitions {
		if image.Partition(protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}) == nil {
			a.refuse(topic.Topic, protocol.UnknownTopicOrPartition, p)
			continue
		}
		existing = append(existing, p)
	}
	return existing
}

// merge gives the whole. What the coordinator refuses altogether is all there is.
func (a *deleteAnswer) merge(resp *kmsg.OffsetDeleteResponse) *kmsg.OffsetDeleteResponse {
	if resp.ErrorCode != 0 {
		return resp
	}
	if len(a.resp.Topics) == 0 { // nothing was refused here: as the coordinator says, also of a topic that was named twice
		return resp
	}
	for i := range resp.Topics {
		to := a.topic(resp.Topics[i].Topic)
		to.Partitions = append(to.Partitions, resp.Topics[i].Partitions...)
	}
	return &a.resp
}
