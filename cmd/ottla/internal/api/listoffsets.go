package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/storage/replica"
)

// specialTimestamps are those below 0 that ListOffsets knows, each with the first
// version that does.
var specialTimestamps = map[int64]int16{
	replica.LatestTimestamp:        1,
	replica.EarliestTimestamp:      1,
	replica.MaxTimestamp:           7,  // KIP-734
	replica.EarliestLocalTimestamp: 8,  // KIP-405
	replica.LatestTieredTimestamp:  9,  // KIP-1005
	replica.EarliestPendingUpload:  11, // KIP-1023
}

// listOffsets finds offsets by time.
func listOffsets(c *call, req *kmsg.ListOffsetsRequest) {
	if !knownIsolation(req.IsolationLevel) {
		c.reply(errorResponse(req, protocol.UnknownServerError.Err()))
		return
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	times := timesNamed(req)
	for i := range req.Topics {
		asked := &req.Topics[i]
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = asked.Topic
		allowed := c.mayTopic(kmsg.ACLOperationDescribe, asked.Topic)
		for j := range asked.Partitions {
			q := &asked.Partitions[j]
			tp := protocol.TopicPartition{Topic: asked.Topic, Partition: q.Partition}
			named := times[tp]
			if delete(times, tp); named == 0 {
				continue // answered already
			}
			part := kmsg.NewListOffsetsResponseTopicPartition()
			part.Partition = q.Partition
			found, err := replica.OffsetResult{}, error(protocol.TopicAuthorizationFailed.Err())
			if allowed {
				found, err = c.listOffset(req, tp, q, named)
			}
			if err != nil {
				part.ErrorCode = int16(c.listOffsetsError(err))
			} else {
				part.Timestamp, part.Offset, part.LeaderEpoch = found.TimestampMs, int64(found.Offset), int32(found.LeaderEpoch)
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		if len(topic.Partitions) > 0 {
			resp.Topics = append(resp.Topics, topic)
		}
	}
	c.reply(resp)
}

// listOffset finds the offset of one partition.
func (c *call) listOffset(req *kmsg.ListOffsetsRequest, tp protocol.TopicPartition, q *kmsg.ListOffsetsRequestTopicPartition, named int) (replica.OffsetResult, error) {
	if named > 1 {
		return replica.OffsetResult{}, protocol.InvalidRequest.Err()
	}
	if from, special := specialTimestamps[q.Timestamp]; q.Timestamp < 0 && (!special || c.version < from) {
		return replica.OffsetResult{}, protocol.UnsupportedVersion.Err()
	}
	return c.Replicas.ListOffset(c.now, replica.OffsetQuery{
		Partition:          tp,
		CurrentLeaderEpoch: protocol.LeaderEpoch(q.CurrentLeaderEpoch),
		TimestampMs:        q.Timestamp,
		ReadCommitted:      req.IsolationLevel == readCommitted,
		Replica:            protocol.NodeID(req.ReplicaID),
	})
}

// listOffsetsError is the code for an error: OFFSET_NOT_AVAILABLE came with
// version 5 (KIP-207).
func (c *call) listOffsetsError(err error) protocol.ErrorCode {
	code := protocol.CodeOf(err)
	if code == protocol.OffsetNotAvailable && c.version < 5 {
		return protocol.LeaderNotAvailable
	}
	return code
}

// timesNamed counts how often a request names each partition. One that is named
// twice is answered once, with INVALID_REQUEST.
func timesNamed(req *kmsg.ListOffsetsRequest) map[protocol.TopicPartition]int {
	times := map[protocol.TopicPartition]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			times[protocol.TopicPartition{Topic: req.Topics[i].Topic, Partition: req.Topics[i].Partitions[j].Partition}]++
		}
	}
	return times
}
