package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// createTopics asks the controller for the topics that the requester may create,
// and hides what he may not see of them. On a broker's listener it is forwarded, so
// that any broker takes it (KIP-590).
func createTopics(c *call, req *kmsg.CreateTopicsRequest) {
	if req.TimeoutMillis <= 0 { // as Kafka: over before it began
		c.reply(errorResponse(req, protocol.RequestTimedOut.Err()))
		return
	}
	ask := kmsg.NewPtrCreateTopicsRequest()
	ask.Version = protocol.APIOf(protocol.CreateTopics).MaxVersion
	ask.TimeoutMillis, ask.ValidateOnly = req.TimeoutMillis, req.ValidateOnly
	var refused []kmsg.CreateTopicsResponseTopic
	ask.Topics, refused = c.topicsToCreate(req.Topics)
	c.askController(ask, func(resp kmsg.Response, err error) {
		if err != nil {
			c.reply(errorResponse(req, c.unreached(err)))
			return
		}
		answer := resp.(*kmsg.CreateTopicsResponse)
		for i := range answer.Topics {
			c.hideConfigs(&answer.Topics[i])
		}
		answer.Topics = append(answer.Topics, refused...)
		c.reply(answer)
	})
}

// topicsToCreate parts the topics that go to the controller from those that are
// answered here, each of these once.
func (c *call) topicsToCreate(topics []kmsg.CreateTopicsRequestTopic) (ask []kmsg.CreateTopicsRequestTopic, refused []kmsg.CreateTopicsResponseTopic) {
	times := map[string]int{}
	for i := range topics {
		times[topics[i].Topic]++
	}
	all := c.mayCluster(kmsg.ACLOperationCreate)
	var repeated, denied []kmsg.CreateTopicsResponseTopic
	for _, topic := range topics {
		name := topic.Topic
		switch {
		case times[name] > 1:
			times[name] = -1
			message := "Duplicate topic name."
			repeated = append(repeated, refusedTopic(name, int16(protocol.InvalidRequest), &message))
		case times[name] < 0: // told above
		case name != protocol.ClusterMetadataTopic && !all && !c.mayTopic(kmsg.ACLOperationCreate, name):
			message := "Authorization failed."
			denied = append(denied, refusedTopic(name, int16(protocol.TopicAuthorizationFailed), &message))
		default:
			ask = append(ask, topic)
		}
	}
	return ask, append(repeated, denied...)
}

func refusedTopic(name string, code int16, message *string) kmsg.CreateTopicsResponseTopic {
	topic := kmsg.NewCreateTopicsResponseTopic()
	topic.Topic, topic.ErrorCode, topic.ErrorMessage = name, code, message
	topic.NumPartitions, topic.ReplicationFactor = -1, -1
	topic.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	return topic
}

// hideConfigs leaves out what a topic was created with where the requester may not
// describe its configuration (KIP-525).
func (c *call) hideConfigs(topic *kmsg.CreateTopicsResponseTopic) {
	if topic.ErrorCode == 0 && c.mayTopic(kmsg.ACLOperationDescribeConfigs, topic.Topic) {
		return
	}
	if topic.ErrorCode == 0 {
		topic.ConfigErrorCode = int16(protocol.TopicAuthorizationFailed)
	}
	topic.NumPartitions, topic.ReplicationFactor = -1, -1
	topic.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
}
