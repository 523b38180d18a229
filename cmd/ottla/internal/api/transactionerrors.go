package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// failTransactions is for the responses of transactions that have no code at the
// top, or not in every version.
func failTransactions(resp kmsg.Response, req kmsg.Request, code int16) {
	switch resp := resp.(type) {
	case *kmsg.AddPartitionsToTxnResponse:
		resp.ErrorCode = code
		for _, asked := range req.(*kmsg.AddPartitionsToTxnRequest).Topics {
			topic := kmsg.AddPartitionsToTxnResponseTopic{Topic: asked.Topic}
			for _, n := range asked.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: n, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.TxnOffsetCommitResponse:
		for _, asked := range req.(*kmsg.TxnOffsetCommitRequest).Topics {
			topic := kmsg.TxnOffsetCommitResponseTopic{Topic: asked.Topic, TopicID: asked.TopicID}
			for _, p := range asked.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, topic)
		}
	case *kmsg.DescribeTransactionsResponse:
		for _, id := range req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs {
			state := kmsg.NewDescribeTransactionsResponseTransactionState()
			state.TransactionalID, state.ErrorCode = id, code
			resp.TransactionStates = append(resp.TransactionStates, state)
		}
	case *kmsg.WriteTxnMarkersResponse:
		for i := range req.(*kmsg.WriteTxnMarkersRequest).Markers {
			marker := &req.(*kmsg.WriteTxnMarkersRequest).Markers[i]
			resp.Markers = append(resp.Markers, markerAnswer(marker, func(protocol.TopicPartition) protocol.ErrorCode { return protocol.ErrorCode(code) }))
		}
	}
}

// markerAnswer is the part of a WriteTxnMarkers response for one marker.
func markerAnswer(marker *kmsg.WriteTxnMarkersRequestMarker, code func(protocol.TopicPartition) protocol.ErrorCode) kmsg.WriteTxnMarkersResponseMarker {
	answer := kmsg.WriteTxnMarkersResponseMarker{ProducerID: marker.ProducerID}
	for _, asked := range marker.Topics {
		topic := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: asked.Topic}
		for _, n := range asked.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{
				Partition: n, ErrorCode: int16(code(protocol.TopicPartition{Topic: asked.Topic, Partition: n})),
			})
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}
