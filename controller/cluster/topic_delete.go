package cluster

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// deleteTopics takes names (up to v5) or names and ids (v6, KIP-516).
func (c *Controller) deleteTopics(req *kmsg.DeleteTopicsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	for _, name := range req.TopicNames {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		asked = append(asked, topic)
	}
	var records []schema.MetadataRecord
	seen := map[protocol.TopicID]bool{}
	for i := range asked {
		answer := kmsg.NewDeleteTopicsResponseTopic()
		answer.Topic, answer.TopicID = asked[i].Topic, asked[i].TopicID
		topic, err := c.topicToDelete(&asked[i])
		if err == nil && seen[topic.ID] {
			err = protocol.Errorf(protocol.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")
		}
		if err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		} else {
			seen[topic.ID] = true
			answer.Topic, answer.TopicID = kmsg.StringPtr(topic.Name), topic.ID
			removal := schema.NewRemoveTopicRecord() // takes partitions and settings with it
			removal.TopicID = topic.ID
			records = append(records, removal)
		}
		response.Topics = append(response.Topics, answer)
	}
	return c.result(response, records...)
}

func (c *Controller) topicToDelete(asked *kmsg.DeleteTopicsRequestTopic) (*metadata.Topic, *protocol.Error) {
	id := protocol.TopicID(asked.TopicID)
	switch {
	case asked.Topic == nil && id.IsZero():
		return nil, protocol.Errorf(protocol.InvalidRequest, "Neither topic name nor id were specified.")
	case asked.Topic != nil && !id.IsZero():
		return nil, protocol.Errorf(protocol.InvalidRequest, "You may not specify both topic name and topic id.")
	case asked.Topic != nil:
		if topic := c.image.Topic(*asked.Topic); topic != nil {
			return topic, nil
		}
		return nil, protocol.UnknownTopicOrPartition.Err()
	default:
		if topic := c.image.TopicByID(id); topic != nil {
			return topic, nil
		}
		return nil, protocol.UnknownTopicID.Err()
	}
}
