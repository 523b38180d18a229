package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// autoCreateTimeoutMs is request.timeout.ms of the request to the controller.
const autoCreateTimeoutMs = 30_000

// creations knows the topics whose creation is on its way, so that clients who ask
// again in the meantime do not have it begun again.
type creations struct {
	mu     sync.Mutex
	topics map[string]bool
}

// begin takes note of a topic, unless it is on its way.
func (r *creations) begin(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.topics[name] {
		return false
	}
	if r.topics == nil {
		r.topics = map[string]bool{}
	}
	r.topics[name] = true
	return true
}

func (r *creations) end(topics []kmsg.CreateTopicsRequestTopic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range topics {
		delete(r.topics, topics[i].Topic)
	}
}

// autoCreate asks the controller to create topics with this broker's defaults, and
// does not wait. Kafka's own topics are made by the coordinators that need them and
// never here: made with a wrong number of partitions they would be of no use for
// ever, and with the right one there is no coordinator yet that would use them.
// Apache Kafka 4.4.0 does make them here, in the coordinators' form.
func (c *call) autoCreate(names []string) {
	ask := kmsg.NewPtrCreateTopicsRequest()
	ask.Version = protocol.APIOf(protocol.CreateTopics).MaxVersion
	ask.TimeoutMillis = autoCreateTimeoutMs
	for _, name := range names {
		if protocol.IsInternalTopic(name) || name == protocol.ClusterMetadataTopic || !c.handler.creations.begin(name) {
			continue
		}
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic = name
		topic.NumPartitions = c.Config.Int("num.partitions")
		topic.ReplicationFactor = int16(c.Config.Int("default.replication.factor"))
		ask.Topics = append(ask.Topics, topic)
	}
	if len(ask.Topics) == 0 {
		return
	}
	topics := ask.Topics // ask is the forwarder's until it calls back
	c.askController(ask, func(resp kmsg.Response, err error) {
		c.handler.creations.end(topics)
		if err != nil {
			c.Logger.Warn("topics were not created for a client", "topics", len(topics), "error", err)
			return
		}
		c.logUncreated(resp.(*kmsg.CreateTopicsResponse).Topics)
	})
}

// logUncreated says in one line, however many there are, what did not work.
func (c *call) logUncreated(topics []kmsg.CreateTopicsResponseTopic) {
	failed, first := 0, kmsg.CreateTopicsResponseTopic{}
	for _, topic := range topics {
		if code := protocol.ErrorCode(topic.ErrorCode); code == protocol.None || code == protocol.TopicAlreadyExists {
			continue
		}
		if failed++; failed == 1 {
			first = topic
		}
	}
	if failed > 0 {
		c.Logger.Warn("topics were not created for a client", "topics", failed, "first", first.Topic,
			"error", &protocol.Error{Code: protocol.ErrorCode(first.ErrorCode), Message: deref(first.ErrorMessage)})
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
