package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/quorum"
	"ottla/protocol"
)

// describeQuorum tells how the metadata's quorum stands (KIP-595, KIP-836). Its
// leader knows, so a broker asks the controller.
func describeQuorum(c *call, req *kmsg.DescribeQuorumRequest) {
	if !c.mayCluster(kmsg.ACLOperationDescribe) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	if c.request.Conn.Scope() == protocol.OnController {
		c.reply(c.quorumAnswer(req))
		return
	}
	ask := kmsg.NewPtrDescribeQuorumRequest()
	ask.Version, ask.Topics = protocol.APIOf(protocol.DescribeQuorum).MaxVersion, req.Topics
	c.askController(ask, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(req, c.unreached(err))
		}
		c.reply(resp)
	})
}

// quorumAnswer is the leader's. A request may name the one partition there is, and
// nothing else.
func (c *call) quorumAnswer(req *kmsg.DescribeQuorumRequest) *kmsg.DescribeQuorumResponse {
	resp := kmsg.NewPtrDescribeQuorumResponse()
	resp.ErrorMessage = kmsg.StringPtr("")
	only := len(req.Topics) == 1 && req.Topics[0].Topic == protocol.ClusterMetadataTopic &&
		len(req.Topics[0].Partitions) == 1 && req.Topics[0].Partitions[0].Partition == 0
	var status quorum.Status
	if c.Quorum != nil {
		status = c.Quorum()
	}
	for _, asked := range req.Topics {
		topic := kmsg.NewDescribeQuorumResponseTopic()
		topic.Topic = asked.Topic
		for _, p := range asked.Partitions {
			part := kmsg.NewDescribeQuorumResponseTopicPartition()
			part.Partition = p.Partition
			switch {
			case !only:
				refuseQuorum(&part, protocol.UnknownTopicOrPartition)
			case c.Quorum == nil || status.Leader != c.ID:
				refuseQuorum(&part, protocol.NotLeaderOrFollower)
			default:
				c.fillQuorum(&part, status)
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	if only && status.Leader == c.ID {
		resp.Nodes = quorumNodes(status)
	}
	return resp
}

func refuseQuorum(part *kmsg.DescribeQuorumResponseTopicPartition, code protocol.ErrorCode) {
	part.ErrorCode, part.ErrorMessage = int16(code), kmsg.StringPtr(deref(sentenceOf(code.Err())))
}

// fillQuorum tells the leader's own position. Only one voter is served, so there
// are no others to tell of.
func (c *call) fillQuorum(part *kmsg.DescribeQuorumResponseTopicPartition, status quorum.Status) {
	part.ErrorMessage = kmsg.StringPtr("")
	part.LeaderID, part.LeaderEpoch, part.HighWatermark = int32(status.Leader), int32(status.Epoch), int64(status.HighWatermark)
	for _, voter := range status.Voters {
		state := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
		state.ReplicaID, state.ReplicaDirectoryID, state.LogEndOffset = int32(voter.ID), voter.Directory, -1
		if voter.ID == c.ID {
			now := c.now.UnixMilli()
			state.LogEndOffset, state.LastFetchTimestamp, state.LastCaughtUpTimestamp = int64(status.LogEnd), now, now
		}
		part.CurrentVoters = append(part.CurrentVoters, state)
	}
}

func quorumNodes(status quorum.Status) (nodes []kmsg.DescribeQuorumResponseNode) {
	for _, voter := range status.Voters {
		node := kmsg.NewDescribeQuorumResponseNode()
		node.NodeID = int32(voter.ID)
		for _, e := range voter.Endpoints {
			listener := kmsg.NewDescribeQuorumResponseNodeListener()
			listener.Name, listener.Host, listener.Port = e.Name, e.Host, e.Port
			node.Listeners = append(node.Listeners, listener)
		}
		nodes = append(nodes, node)
	}
	return nodes
}
