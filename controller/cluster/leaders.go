package cluster

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

const (
	topicResource  = int8(kmsg.ConfigResourceTypeTopic)
	brokerResource = int8(kmsg.ConfigResourceTypeBroker)
)

// active tells whether a broker may lead now.
func (c *Controller) active(id protocol.NodeID) bool {
	broker := c.image.Broker(id)
	return broker != nil && !broker.Fenced && !broker.InControlledShutdown
}

// leads tells whether any partition has this leader.
func (c *Controller) leads(id protocol.NodeID) bool {
	for topic := range c.image.Topics() {
		for _, partition := range topic.Partitions() {
			if partition.Leader == id {
				return true
			}
		}
	}
	return false
}

// fence makes the records by which a broker is fenced: what it led gets other
// leaders, or none.
func (c *Controller) fence(id protocol.NodeID) []schema.MetadataRecord {
	change := newRegistrationChange(c.image.Broker(id))
	change.Fenced = 1
	return append(c.reconsider(leaving(id), inISR(id)), change)
}

// cleanUp makes the records by which a new process of a broker leaves behind
// what the earlier one had. A process that did not stop in order may have lost
// what it had not flushed: with eligible leader replicas it is none of them any
// more (KIP-966).
func (c *Controller) cleanUp(id protocol.NodeID, clean bool) []schema.MetadataRecord {
	if clean || !c.withELR() {
		return c.reconsider(leaving(id), inISR(id))
	}
	return append(c.reconsider(lost(id), inISR(id)), c.reconsider(lost(id), inELR(id))...)
}

// withELR tells whether eligible leader replicas are kept (KIP-966).
func (c *Controller) withELR() bool { return c.image.Feature(metadata.ELRVersionFeature) > 0 }

// topicDefaults is what topics have that set nothing, as this controller sees it.
func (c *Controller) topicDefaults() *config.TopicDefaults {
	return c.options.Config.TopicDefaults(c.image.Config(brokerResource, ""), c.image.Config(brokerResource, fmt.Sprint(c.options.NodeID)))
}
