package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// createPartitions asks the controller to widen the topics that the requester may
// alter (KIP-195).
func createPartitions(c *call, req *kmsg.CreatePartitionsRequest) {
	if req.TimeoutMillis <= 0 {
		c.reply(errorResponse(req, protocol.RequestTimedOut.Err()))
		return
	}
	ask := kmsg.NewPtrCreatePartitionsRequest()
	ask.Version = protocol.APIOf(protocol.CreatePartitions).MaxVersion
	ask.TimeoutMillis, ask.ValidateOnly = req.TimeoutMillis, req.ValidateOnly
	var refused []kmsg.CreatePartitionsResponseTopic
	ask.Topics, refused = c.topicsToWiden(req.Topics)
	c.askController(ask, func(resp kmsg.Response, err error) {
		if err != nil {
			c.reply(errorResponse(req, c.unreached(err)))
			return
		}
		answer := resp.(*kmsg.CreatePartitionsResponse)
		answer.Topics = append(refused, answer.Topics...)
		c.reply(answer)
	})
}

func (c *call) topicsToWiden(topics []kmsg.CreatePartitionsRequestTopic) (ask []kmsg.CreatePartitionsRequestTopic, refused []kmsg.CreatePartitionsResponseTopic) {
	times := map[string]int{}
	for i := range topics {
		times[topics[i].Topic]++
	}
	var denied []kmsg.CreatePartitionsResponseTopic
	for _, topic := range topics {
		answer := kmsg.NewCreatePartitionsResponseTopic()
		answer.Topic = topic.Topic
		switch {
		case times[topic.Topic] > 1:
			times[topic.Topic] = -1
			answer.ErrorCode, answer.ErrorMessage = int16(protocol.InvalidRequest), kmsg.StringPtr("Duplicate topic name.")
			refused = append(refused, answer)
		case times[topic.Topic] < 0: // told above
		case !c.mayTopic(kmsg.ACLOperationAlter, topic.Topic):
			answer.ErrorCode = int16(protocol.TopicAuthorizationFailed)
			denied = append(denied, answer)
		default:
			ask = append(ask, topic)
		}
	}
	return ask, append(refused, denied...)
}
