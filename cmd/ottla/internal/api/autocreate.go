package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
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
// does not wait. Kafka's own topics get the form that their coordinators need.
func (c *call) autoCreate(names []string) {
	ask := kmsg.NewPtrCreateTopicsRequest()
	ask.Version = protocol.APIOf(protocol.CreateTopics).MaxVersion
	ask.TimeoutMillis = autoCreateTimeoutMs
	for _, name := range names {
		if topic, creatable := c.newTopic(name); creatable && c.handler.creations.begin(name) {
			ask.Topics = append(ask.Topics, topic)
		}
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

// newTopic tells how a topic is to be created, if it may be. Of Kafka's own topics
// only that of a coordinator that this node has: made without one it would be of no
// use, and a burden later.
func (c *call) newTopic(name string) (topic kmsg.CreateTopicsRequestTopic, creatable bool) {
	switch {
	case name == protocol.ConsumerOffsetsTopic && c.Groups != nil, name == protocol.TransactionStateTopic && c.Transactions != nil:
		return broker.InternalTopic(c.Config, name), true
	case protocol.IsInternalTopic(name), name == protocol.ClusterMetadataTopic:
		return topic, false
	}
	topic = kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = name
	topic.NumPartitions = c.Config.Int("num.partitions")
	topic.ReplicationFactor = int16(c.Config.Int("default.replication.factor"))
	return topic, true
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
