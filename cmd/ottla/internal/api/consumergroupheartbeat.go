package api

import (
	"slices"
	"strings"

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

// Member epochs of a ConsumerGroupHeartbeat with a meaning of their own.
const (
	joinEpoch        = 0
	leaveEpoch       = -1
	leaveStaticEpoch = -2 // and comes back soon
)

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
	if err := c.checkConsumerGroupHeartbeat(req); err != nil {
		c.reply(errorResponse(req, err))
		return
	}
	c.askGroup(req.Group, req, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(req, err)
		}
		c.reply(resp)
	})
}

// checkConsumerGroupHeartbeat tells what no group would need to be looked at for
// (GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid).
func (c *call) checkConsumerGroupHeartbeat(req *kmsg.ConsumerGroupHeartbeatRequest) error {
	invalid := func(text string) error { return protocol.Errorf(protocol.InvalidRequest, "%s", text) }
	joins := req.MemberEpoch == joinEpoch
	switch {
	case (c.version >= 1 || req.MemberEpoch > joinEpoch || req.MemberEpoch == leaveEpoch) && blank(&req.MemberID):
		return invalid("MemberId can't be empty.")
	case blank(&req.Group):
		return invalid("GroupId can't be empty.")
	case blank(req.InstanceID):
		return invalid("InstanceId can't be empty.")
	case blank(req.RackID):
		return invalid("RackId can't be empty.")
	case joins && req.RebalanceTimeoutMillis == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case joins && (req.Topics == nil || len(req.Topics) > 0):
		return invalid("TopicPartitions must be empty when (re-)joining.")
	case joins && req.SubscribedTopicNames == nil && req.SubscribedTopicRegex == nil:
		return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case req.MemberEpoch == leaveStaticEpoch && req.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case req.MemberEpoch < leaveStaticEpoch:
		return invalid("MemberEpoch is invalid.")
	}
	assignors := c.Config.List("group.consumer.assignors")
	if req.ServerAssignor != nil && !slices.Contains(assignors, *req.ServerAssignor) {
		return protocol.Errorf(protocol.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.",
			*req.ServerAssignor, strings.Join(assignors, ", "))
	}
	return nil
}

// blank tells that a text is given and says nothing.
func blank(text *string) bool { return text != nil && strings.TrimSpace(*text) == "" }
