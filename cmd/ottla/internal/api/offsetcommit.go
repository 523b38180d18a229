package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// commitHasIDsFrom is the first version of OffsetCommit that has topic ids instead
// of names (KIP-848).
const commitHasIDsFrom = 10

// commitOffsets has a group's coordinator commit offsets of those topics that exist
// and that the requester may read.
func commitOffsets(c *call, req *kmsg.OffsetCommitRequest) {
	if !c.mayGroup(kmsg.ACLOperationRead, req.Group) {
		c.reply(errorResponse(req, protocol.GroupAuthorizationFailed.Err()))
		return
	}
	answer := commitAnswer{ids: c.version >= commitHasIDsFrom, places: map[commitTopic]int{}}
	ask := kmsg.NewPtrOffsetCommitRequest()
	ask.Version, ask.Group, ask.Generation, ask.MemberID = req.Version, req.Group, req.Generation, req.MemberID
	ask.InstanceID, ask.RetentionTimeMillis = req.InstanceID, req.RetentionTimeMillis
	image := c.Image()
	for i := range req.Topics {
		topic := req.Topics[i]
		if err := c.checkCommit(image, &topic); err != protocol.None {
			answer.refuse(&topic, err, topic.Partitions...)
			continue
		}
		if topic.Partitions = answer.existing(image, &topic); len(topic.Partitions) > 0 {
			ask.Topics = append(ask.Topics, topic)
		}
	}
	if len(ask.Topics) == 0 {
		c.reply(&answer.resp)
		return
	}
	c.askGroup(req.Group, ask, func(resp kmsg.Response, err error) {
		if err != nil {
			answer.fail(ask.Topics, protocol.CodeOf(err))
		} else {
			answer.merge(resp.(*kmsg.OffsetCommitResponse).Topics)
		}
		c.reply(&answer.resp)
	})
}

// checkCommit completes a topic's name and id, and tells why its offsets cannot be
// committed. A name that may not be read is not looked up.
func (c *call) checkCommit(image *metadata.Image, topic *kmsg.OffsetCommitRequestTopic) protocol.ErrorCode {
	if c.version >= commitHasIDsFrom {
		if topic.Topic = topicName(image, topic.TopicID); topic.Topic == "" {
			return protocol.UnknownTopicID
		}
	}
	if !c.mayTopic(kmsg.ACLOperationRead, topic.Topic) {
		return protocol.TopicAuthorizationFailed
	}
	known := image.Topic(topic.Topic)
	if known == nil {
		return protocol.UnknownTopicOrPartition
	}
	topic.TopicID = known.ID
	return protocol.None
}

// commitAnswer puts the response together: what was refused here first, each topic
// once, then what the coordinator says.
type commitAnswer struct {
	ids    bool // topics have ids, else names
	places map[commitTopic]int
	resp   kmsg.OffsetCommitResponse
}

type commitTopic struct {
	name string
	id   protocol.TopicID
}

func (a *commitAnswer) topic(name string, id protocol.TopicID) *kmsg.OffsetCommitResponseTopic {
	key := commitTopic{name: name}
	if a.ids {
		key = commitTopic{id: id}
	}
	at, known := a.places[key]
	if !known {
		at = len(a.resp.Topics)
		a.places[key] = at
		a.resp.Topics = append(a.resp.Topics, kmsg.OffsetCommitResponseTopic{Topic: name, TopicID: id})
	}
	return &a.resp.Topics[at]
}

func (a *commitAnswer) refuse(topic *kmsg.OffsetCommitRequestTopic, code protocol.ErrorCode, partitions ...kmsg.OffsetCommitRequestTopicPartition) {
	to := a.topic(topic.Topic, topic.TopicID)
	for i := range partitions {
		to.Partitions = append(to.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: partitions[i].Partition, ErrorCode: int16(code)})
	}
}

// existing gives the partitions that there are, and refuses the others.
func (a *commitAnswer) existing(image *metadata.Image, topic *kmsg.OffsetCommitRequestTopic) []kmsg.OffsetCommitRequestTopicPartition {
	var existing []kmsg.OffsetCommitRequestTopicPartition
	for _, p := range topic.Partitions {
		if image.Partition(protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}) == nil {
			a.refuse(topic, protocol.UnknownTopicOrPartition, p)
			continue
		}
		existing = append(existing, p)
	}
	return existing
}

// fail is a merge of what the coordinator would say if it refused everything.
func (a *commitAnswer) fail(topics []kmsg.OffsetCommitRequestTopic, code protocol.ErrorCode) {
	refused := make([]kmsg.OffsetCommitResponseTopic, len(topics))
	for i := range topics {
		refused[i].Topic, refused[i].TopicID = topics[i].Topic, topics[i].TopicID
		for _, p := range topics[i].Partitions {
			refused[i].Partitions = append(refused[i].Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
	}
	a.merge(refused)
}

// merge adds what the coordinator says. Where nothing was refused here it is the
// answer as it is, a topic that was asked for twice twice (OffsetCommitResponse.java).
func (a *commitAnswer) merge(topics []kmsg.OffsetCommitResponseTopic) {
	if len(a.resp.Topics) == 0 {
		a.resp.Topics = topics
		return
	}
	for i := range topics {
		to := a.topic(topics[i].Topic, topics[i].TopicID)
		to.Partitions = append(to.Partitions, topics[i].Partitions...)
	}
}
