package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// Refuse answers a message of the coordinator as a whole with an error, as Kafka
// shapes it: for one that is parked and will not be decided, and for one that
// does not reach a coordinator at all (loading, moved, not available). It gives
// nil for a message that no coordinator of groups serves.
func Refuse(message kmsg.Request, reason protocol.ErrorCode) kmsg.Response {
	bad := code(reason)
	switch m := message.(type) {
	case *kmsg.JoinGroupRequest:
		return (&join{request: m}).refuse(m.MemberID, reason)
	case *kmsg.OffsetCommitRequest:
		return commitResponse(m, func(kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode { return reason })
	case *kmsg.TxnOffsetCommitRequest:
		return txnCommitResponse(m, func(kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode { return reason })
	case *kmsg.OffsetFetchRequest:
		return refuseFetch(m, bad)
	}
	response := message.ResponseKind()
	switch r := response.(type) {
	case *kmsg.SyncGroupResponse:
		r.ErrorCode = bad
	case *kmsg.HeartbeatResponse:
		// While the group is loaded its members just go on.
		if reason != protocol.CoordinatorLoadInProgress {
			r.ErrorCode = bad
		}
	case *kmsg.LeaveGroupResponse:
		r.ErrorCode = bad
	case *kmsg.OffsetDeleteResponse:
		r.ErrorCode = bad
	case *kmsg.ConsumerGroupHeartbeatResponse:
		r.ErrorCode = bad
	case *kmsg.ConsumerGroupDescribeResponse:
		for _, id := range message.(*kmsg.ConsumerGroupDescribeRequest).Groups {
			described := kmsg.NewConsumerGroupDescribeResponseGroup()
			described.Group, described.ErrorCode = id, bad
			r.Groups = append(r.Groups, described)
		}
	case *kmsg.ListGroupsResponse:
		r.ErrorCode = bad
	case *kmsg.DescribeGroupsResponse:
		for _, id := range message.(*kmsg.DescribeGroupsRequest).Groups {
			described := kmsg.NewDescribeGroupsResponseGroup()
			described.Group, described.ErrorCode = id, bad
			r.Groups = append(r.Groups, described)
		}
	case *kmsg.DeleteGroupsResponse:
		for _, id := range message.(*kmsg.DeleteGroupsRequest).Groups {
			r.Groups = append(r.Groups, kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: bad})
		}
	default:
		return nil
	}
	return response
}

// fetchHasError is the version from which on OffsetFetch has an error of its own.
const fetchHasError = 2

func refuseFetch(m *kmsg.OffsetFetchRequest, bad int16) kmsg.Response {
	response := m.ResponseKind().(*kmsg.OffsetFetchResponse)
	for _, asked := range m.Groups {
		response.Groups = append(response.Groups, kmsg.OffsetFetchResponseGroup{Group: asked.Group, ErrorCode: bad})
	}
	switch {
	case m.Version >= fetchHasGroups:
	case m.Version >= fetchHasError:
		response.ErrorCode = bad
	default:
		empty := ""
		for _, t := range m.Topics {
			topic := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
			for _, partition := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
					Partition: partition, Offset: int64(protocol.NoOffset), LeaderEpoch: int32(protocol.NoLeaderEpoch), Metadata: &empty, ErrorCode: bad,
				})
			}
			response.Topics = append(response.Topics, topic)
		}
	}
	return response
}
