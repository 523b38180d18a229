package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// consumerProtocolFrom is the level of group.version from which on there are
// consumer groups (KIP-848).
const consumerProtocolFrom = 1

// servesConsumerGroups tells whether consumer groups are served: the cluster has
// finalized them and this broker's configuration has them. Where they are not, their
// requests are advertised and refused, as by Apache Kafka; clients go by
// group.version.
func (c *call) servesConsumerGroups() bool {
	return c.finalizedFeatures(c.Image())[metadata.GroupVersionFeature] >= consumerProtocolFrom &&
		slices.Contains(c.Config.List("group.coordinator.rebalance.protocols"), "consumer")
}

// consumerGroupHeartbeat is all that a member of a consumer group says: that it
// joins, is there, has given up partitions, leaves; and how it learns what is its.
func consumerGroupHeartbeat(c *call, req *kmsg.ConsumerGroupHeartbeatRequest) {
	switch {
	case !c.servesConsumerGroups():
		c.reply(errorResponse(req, protocol.UnsupportedVersion.Err()))
		return
	case !c.mayGroup(kmsg.ACLOperationRead, req.Group):
		c.reply(errorResponse(req, protocol.GroupAuthorizationFailed.Err()))
		return
	case slices.ContainsFunc(req.SubscribedTopicNames, func(topic string) bool { return !c.mayTopic(kmsg.ACLOperationDescribe, topic) }):
		c.reply(errorResponse(req, protocol.TopicAuthorizationFailed.Err()))
		return
	}
	c.askGroup(req.Group, req, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(req, err)
		}
		c.reply(resp)
	})
}
