package cluster

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// deleteTopics takes names (up to v5) or names and ids (v6, KIP-516). A name or
// id that comes twice is refused, and answered once.
func (c *Controller) deleteTopics(req *kmsg.DeleteTopicsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	for _, name := range req.TopicNames {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		asked = append(asked, topic)
	}
	var (
		records []schema.MetadataRecord
		count   = map[topicKey]int{}
	)
	for i := range asked {
		count[keyOf(&asked[i])]++
	}
	c.dropNamedTwice(count)
	for i := range asked {
		key := keyOf(&asked[i])
		repeated := count[key] > 1
		if count[key] == 0 {
			continue // answered already
		}
		answer := kmsg.NewDeleteTopicsResponseTopic()
		answer.Topic, answer.TopicID = asked[i].Topic, asked[i].TopicID
		topic, err := c.topicToDelete(key, repeated)
		if count[key] < 0 {
			answer.TopicID = topic.ID
			err = protocol.Errorf(protocol.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")
		}
		if err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		} else {
			answer.Topic, answer.TopicID = kmsg.StringPtr(topic.Name), topic.ID
			removal := schema.NewRemoveTopicRecord() // takes partitions and settings with it
			removal.TopicID = topic.ID
			records = append(records, removal)
		}
		response.Topics = append(response.Topics, answer)
		if key.single() {
			count[key] = 0
		}
	}
	if len(records) > maxRecordsPerRequest {
		err := tooManyRecords()
		for i := range response.Topics {
			response.Topics[i].ErrorCode, response.Topics[i].ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		}
		records = nil
	}
	return c.result(response, records...)
}

// dropNamedTwice finds topics that a request names by name and by id: the name
// is refused (count -1), the id is not answered (count 0).
func (c *Controller) dropNamedTwice(count map[topicKey]int) {
	for key, n := range count {
		if !key.single() || !key.named || n != 1 {
			continue
		}
		topic := c.image.Topic(key.name)
		if topic == nil || count[topicKey{id: topic.ID}] != 1 {
			continue
		}
		count[key], count[topicKey{id: topic.ID}] = -1, 0
	}
}

// topicKey is how a request names a topic.
type topicKey struct {
	named bool
	name  string
	id    protocol.TopicID
}

func keyOf(asked *kmsg.DeleteTopicsRequestTopic) topicKey {
	key := topicKey{named: asked.Topic != nil, id: asked.TopicID}
	if key.named {
		key.name = *asked.Topic
	}
	return key
}

// single tells a key that is a name or an id, as it should be.
func (k topicKey) single() bool { return k.named == k.id.IsZero() }

func (c *Controller) topicToDelete(key topicKey, repeated bool) (*metadata.Topic, *protocol.Error) {
	switch {
	case !key.named && key.id.IsZero():
		return nil, protocol.Errorf(protocol.InvalidRequest, "Neither topic name nor id were specified.")
	case key.named && !key.id.IsZero():
		return nil, protocol.Errorf(protocol.InvalidRequest, "You may not specify both topic name and topic id.")
	case key.named && repeated:
		return nil, protocol.Errorf(protocol.InvalidRequest, "Duplicate topic name.")
	case repeated:
		return nil, protocol.Errorf(protocol.InvalidRequest, "Duplicate topic id.")
	case key.named:
		if topic := c.image.Topic(key.name); topic != nil {
			return topic, nil
		}
		return nil, protocol.Errorf(protocol.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	default:
		if topic := c.image.TopicByID(key.id); topic != nil {
			return topic, nil
		}
		return nil, protocol.Errorf(protocol.UnknownTopicID, "This server does not host this topic ID.")
	}
}
