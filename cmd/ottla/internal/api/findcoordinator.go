package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// The kinds of coordinators (FindCoordinatorRequest.CoordinatorType).
const (
	groupCoordinator       = 0
	transactionCoordinator = 1
	shareCoordinator       = 2
)

const (
	findsManyFrom  = 4 // the first version of FindCoordinator that asks for several at once (KIP-699)
	findsShareFrom = 6 // and the first that knows share groups (KIP-932)
)

// findCoordinator tells which broker coordinates a group or a transactional id. The
// first who asks has the coordinators' topic created; until it is there the answer
// is COORDINATOR_NOT_AVAILABLE. Share groups are not coordinated yet; they are
// answered like a kind of coordinator that nobody knows.
func findCoordinator(c *call, req *kmsg.FindCoordinatorRequest) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if c.version < findsManyFrom {
		found := c.coordinatorOf(req.CoordinatorType, req.CoordinatorKey)
		resp.NodeID, resp.Host, resp.Port = found.NodeID, found.Host, found.Port
		resp.ErrorCode, resp.ErrorMessage = found.ErrorCode, found.ErrorMessage
		switch {
		case found.ErrorCode == 0:
			resp.ErrorMessage = kmsg.StringPtr("NONE")
		case *found.ErrorMessage == "":
			resp.ErrorMessage = sentenceOf(protocol.ErrorCode(found.ErrorCode).Err())
		}
		c.reply(resp)
		return
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, c.coordinatorOf(req.CoordinatorType, key))
	}
	c.reply(resp)
}

// coordinatorOf finds one coordinator, in the form of version 4.
func (c *call) coordinatorOf(kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	found := kmsg.NewFindCoordinatorResponseCoordinator()
	found.Key, found.NodeID, found.Port, found.ErrorMessage = key, int32(protocol.NoNode), -1, kmsg.StringPtr("")
	switch {
	case kind == transactionCoordinator && !c.may(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTransactionalId, key):
		found.ErrorCode = int16(protocol.TransactionalIDAuthorizationFailed)
	case kind == shareCoordinator && c.version < findsShareFrom:
		found.ErrorCode = int16(protocol.InvalidRequest)
	case kind == shareCoordinator && !c.mayCluster(kmsg.ACLOperationClusterAction):
		found.ErrorCode, found.ErrorMessage = int16(protocol.ClusterAuthorizationFailed), sentenceOf(protocol.ClusterAuthorizationFailed.Err())
	case kind == transactionCoordinator && c.Transactions != nil:
		c.placeCoordinator(&found, protocol.TransactionStateTopic, func() int32 { return c.TransactionPartition(key) })
	case kind == transactionCoordinator: // fatal for a producer, and soon so; COORDINATOR_NOT_AVAILABLE would keep it trying
		found.ErrorCode, found.ErrorMessage = int16(protocol.InvalidRequest), kmsg.StringPtr("This broker does not coordinate transactions.")
	case kind != groupCoordinator:
		found.ErrorCode, found.ErrorMessage = int16(protocol.InvalidRequest), sentenceOf(protocol.InvalidRequest.Err())
	case !c.mayGroup(kmsg.ACLOperationDescribe, key):
		found.ErrorCode = int16(protocol.GroupAuthorizationFailed)
	default:
		c.placeCoordinator(&found, protocol.ConsumerOffsetsTopic, func() int32 { return c.groupPartition(key) })
	}
	return found
}

// placeCoordinator fills in where the leader of the partition that holds a key
// listens for those who came in on this listener.
func (c *call) placeCoordinator(found *kmsg.FindCoordinatorResponseCoordinator, topic string, partition func() int32) {
	at := c.coordinatorAt(topic, partition)
	if at == nil {
		found.ErrorCode = int16(protocol.CoordinatorNotAvailable)
		return
	}
	found.NodeID, found.Host, found.Port = int32(at.ID), at.Host, at.Port
}

// coordinatorAt is nil if the partition has no leader, or there is no topic yet.
func (c *call) coordinatorAt(name string, partition func() int32) *wire.NodeEndpoint {
	image := c.Image()
	topic := image.Topic(name)
	if topic == nil {
		c.autoCreate([]string{name})
		return nil
	}
	is := topic.Partition(partition())
	if is == nil {
		return nil
	}
	return c.endpoint(image, is.Leader)
}
