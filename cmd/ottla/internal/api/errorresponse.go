package api

import (
	"errors"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// errorResponse is the response that says of a whole request that it failed. As in
// Apache Kafka (AbstractRequest.getErrorResponse) the code stands at the top where
// the response has a place for it there, and with every item where it has not. Not
// for Produce, whose handler knows every partition, nor Fetch, which kmsg does not
// encode.
func errorResponse(req kmsg.Request, err error) kmsg.Response {
	code, message := int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.MetadataResponse:
		failMetadata(resp, req.(*kmsg.MetadataRequest), code)
	case *kmsg.DescribeTopicPartitionsResponse:
		for _, asked := range req.(*kmsg.DescribeTopicPartitionsRequest).Topics {
			topic := kmsg.NewDescribeTopicPartitionsResponseTopic()
			topic.Topic, topic.ErrorCode = kmsg.StringPtr(asked.Topic), code
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.CreateTopicsResponse:
		for _, asked := range req.(*kmsg.CreateTopicsRequest).Topics {
			resp.Topics = append(resp.Topics, refusedTopic(asked.Topic, code, message))
		}
	case *kmsg.DeleteTopicsResponse:
		for _, asked := range deleteTopicsAsked(req.(*kmsg.DeleteTopicsRequest)) {
			topic := kmsg.NewDeleteTopicsResponseTopic()
			topic.Topic, topic.TopicID, topic.ErrorCode, topic.ErrorMessage = asked.Topic, asked.TopicID, code, message
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.CreatePartitionsResponse:
		for _, asked := range req.(*kmsg.CreatePartitionsRequest).Topics {
			topic := kmsg.NewCreatePartitionsResponseTopic()
			topic.Topic, topic.ErrorCode, topic.ErrorMessage = asked.Topic, code, message
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.DescribeConfigsResponse:
		for _, asked := range req.(*kmsg.DescribeConfigsRequest).Resources {
			resp.Resources = append(resp.Resources, refusedResource(asked, err))
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, asked := range req.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			resp.Resources = append(resp.Resources, refusedAlteration(asked.ResourceType, asked.ResourceName, err))
		}
	case *kmsg.AlterConfigsResponse:
		for _, asked := range req.(*kmsg.AlterConfigsRequest).Resources {
			resp.Resources = append(resp.Resources, kmsg.AlterConfigsResponseResource(refusedAlteration(asked.ResourceType, asked.ResourceName, err)))
		}
	case *kmsg.AlterReplicaLogDirsResponse:
		return answerMoves(req.(*kmsg.AlterReplicaLogDirsRequest), func(protocol.TopicPartition, string) error { return err })
	case *kmsg.ElectLeadersResponse:
		failElections(resp, req.(*kmsg.ElectLeadersRequest), err)
	case *kmsg.ListOffsetsResponse, *kmsg.OffsetForLeaderEpochResponse, *kmsg.DeleteRecordsResponse, *kmsg.OffsetCommitResponse,
		*kmsg.DescribeProducersResponse:
		failPartitions(resp, req, code)
	case *kmsg.OffsetFetchResponse, *kmsg.FindCoordinatorResponse, *kmsg.DescribeGroupsResponse, *kmsg.DeleteGroupsResponse,
		*kmsg.ConsumerGroupDescribeResponse:
		failGroups(resp, req, code)
	case *kmsg.AddPartitionsToTxnResponse, *kmsg.TxnOffsetCommitResponse, *kmsg.DescribeTransactionsResponse, *kmsg.WriteTxnMarkersResponse:
		failTransactions(resp, req, code)
	default:
		failAtTop(resp, code, message)
	}
	return resp
}

// failGroups is for responses that speak of several groups.
func failGroups(resp kmsg.Response, req kmsg.Request, code int16) {
	switch resp := resp.(type) {
	case *kmsg.OffsetFetchResponse:
		failOffsetFetch(resp, req.(*kmsg.OffsetFetchRequest), code)
	case *kmsg.FindCoordinatorResponse:
		text := sentenceOf(protocol.ErrorCode(code).Err())
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Port = code, text, int32(protocol.NoNode), -1
		for _, key := range req.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
			resp.Coordinators = append(resp.Coordinators, kmsg.FindCoordinatorResponseCoordinator{
				Key: key, NodeID: int32(protocol.NoNode), Port: -1, ErrorCode: code, ErrorMessage: text,
			})
		}
	case *kmsg.DescribeGroupsResponse:
		for _, id := range req.(*kmsg.DescribeGroupsRequest).Groups {
			resp.Groups = append(resp.Groups, undescribedGroup(id, protocol.ErrorCode(code)))
		}
	case *kmsg.ConsumerGroupDescribeResponse:
		for _, id := range req.(*kmsg.ConsumerGroupDescribeRequest).Groups {
			resp.Groups = append(resp.Groups, undescribedConsumerGroup(id, protocol.ErrorCode(code).Err()))
		}
	case *kmsg.DeleteGroupsResponse:
		for _, id := range req.(*kmsg.DeleteGroupsRequest).Groups {
			resp.Groups = append(resp.Groups, kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: code})
		}
	}
}

// failOffsetFetch: by partition, by request or by group, as the versions went on.
func failOffsetFetch(resp *kmsg.OffsetFetchResponse, req *kmsg.OffsetFetchRequest, code int16) {
	if req.Version >= fetchHasErrorFrom {
		resp.ErrorCode = code
	} else {
		for _, asked := range req.Topics {
			topic := kmsg.OffsetFetchResponseTopic{Topic: asked.Topic}
			for _, partition := range asked.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
					Partition: partition, Offset: -1, LeaderEpoch: -1, Metadata: kmsg.StringPtr(""), ErrorCode: code,
				})
			}
			resp.Topics = append(resp.Topics, topic)
		}
	}
	for _, asked := range req.Groups {
		resp.Groups = append(resp.Groups, kmsg.OffsetFetchResponseGroup{Group: asked.Group, ErrorCode: code})
	}
}

// failPartitions is for responses that speak of partitions only.
func failPartitions(resp kmsg.Response, req kmsg.Request, code int16) {
	switch resp := resp.(type) {
	case *kmsg.ListOffsetsResponse:
		for _, asked := range req.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.ListOffsetsResponseTopic{Topic: asked.Topic}
			for _, p := range asked.Partitions {
				partition := kmsg.NewListOffsetsResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, code
				topic.Partitions = append(topic.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.OffsetForLeaderEpochResponse:
		for _, asked := range req.(*kmsg.OffsetForLeaderEpochRequest).Topics {
			topic := kmsg.OffsetForLeaderEpochResponseTopic{Topic: asked.Topic}
			for _, p := range asked.Partitions {
				partition := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, code
				topic.Partitions = append(topic.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.DescribeProducersResponse:
		for _, asked := range req.(*kmsg.DescribeProducersRequest).Topics {
			topic := kmsg.DescribeProducersResponseTopic{Topic: asked.Topic}
			for _, n := range asked.Partitions {
				partition := kmsg.NewDescribeProducersResponseTopicPartition()
				partition.Partition, partition.ErrorCode = n, code
				topic.Partitions = append(topic.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.DeleteRecordsResponse:
		for _, asked := range req.(*kmsg.DeleteRecordsRequest).Topics {
			topic := kmsg.DeleteRecordsResponseTopic{Topic: asked.Topic}
			for _, p := range asked.Partitions {
				partition := kmsg.NewDeleteRecordsResponseTopicPartition()
				partition.Partition, partition.LowWatermark, partition.ErrorCode = p.Partition, -1, code
				topic.Partitions = append(topic.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.OffsetCommitResponse:
		for _, asked := range req.(*kmsg.OffsetCommitRequest).Topics {
			topic := kmsg.OffsetCommitResponseTopic{Topic: asked.Topic, TopicID: asked.TopicID}
			for _, p := range asked.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, topic)
		}
	}
}

// failElections sets the code at the top and with every partition, as Kafka does:
// version 0 has no other place.
func failElections(resp *kmsg.ElectLeadersResponse, req *kmsg.ElectLeadersRequest, err error) {
	resp.ErrorCode = int16(protocol.CodeOf(err))
	for _, asked := range req.Topics {
		topic := kmsg.ElectLeadersResponseTopic{Topic: asked.Topic}
		for _, n := range asked.Partitions {
			part := kmsg.NewElectLeadersResponseTopicPartition()
			part.Partition, part.ErrorCode, part.ErrorMessage = n, resp.ErrorCode, protocol.MessageOf(err)
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
}

func failMetadata(resp *kmsg.MetadataResponse, req *kmsg.MetadataRequest, code int16) {
	resp.ErrorCode = code
	for _, asked := range req.Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID, topic.ErrorCode = asked.Topic, asked.TopicID, code
		if topic.Topic == nil {
			topic.Topic = kmsg.StringPtr("") // versions before 12 have no null here
		}
		resp.Topics = append(resp.Topics, topic)
	}
}

// failAtTop sets the code, and the message where there is a place for it, of a
// response that has a code of its own. The messages have no common interface.
func failAtTop(resp kmsg.Response, code int16, message *string) {
	fields := reflect.ValueOf(resp).Elem()
	fields.FieldByName("ErrorCode").SetInt(int64(code))
	if text := fields.FieldByName("ErrorMessage"); message != nil && text.IsValid() {
		text.Set(reflect.ValueOf(message))
	}
}

// unreached gives the error to answer with when the controller gave no response.
// What has no code of its own means that it could not be reached in time: for
// clients of a broker the request timed out, as with Apache Kafka; a controller is
// asked again elsewhere.
func (c *call) unreached(err error) error {
	var known *protocol.Error
	switch {
	case errors.As(err, &known):
		return known
	case c.request.Conn.Scope() == protocol.OnController:
		return protocol.NotController.Err()
	default:
		c.Logger.Warn("the controller was not reached", "api", c.request.Header.Key, "error", err)
		return protocol.RequestTimedOut.Err()
	}
}

// sentences are those that Apache Kafka sends with a code of an item when it has
// nothing more to say, and that tools show.
var sentences = map[protocol.ErrorCode]string{
	protocol.UnknownTopicOrPartition:            "This server does not host this topic-partition.",
	protocol.TopicAuthorizationFailed:           "Topic authorization failed.",
	protocol.GroupAuthorizationFailed:           "Group authorization failed.",
	protocol.CoordinatorNotAvailable:            "The coordinator is not available.",
	protocol.TransactionalIDAuthorizationFailed: "Transactional Id authorization failed.",
	protocol.ClusterAuthorizationFailed:         "Cluster authorization failed.",
	protocol.UnsupportedVersion:                 "The version of API is not supported.",
	protocol.InvalidRequest: "This most likely occurs because of a request being malformed by the client library or " +
		"the message was sent to an incompatible broker. See the broker logs for more details.",
	protocol.UnknownTopicID: "This server does not host this topic ID.",
}

// sentenceOf gives the message of err, or Kafka's own for its code, or nil.
func sentenceOf(err error) *string {
	if message := protocol.MessageOf(err); message != nil {
		return message
	}
	if text, known := sentences[protocol.CodeOf(err)]; known {
		return &text
	}
	return nil
}
