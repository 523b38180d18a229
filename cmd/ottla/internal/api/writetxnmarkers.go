package api

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/storage/replica"
)

// writeTxnMarkers ends transactions on partitions that this node leads: for the
// coordinators of transactions, and for administrators who end one that hangs. In
// __consumer_offsets the coordinator of the groups writes the marker, for it has
// the offsets that were committed in the transaction.
func writeTxnMarkers(c *call, req *kmsg.WriteTxnMarkersRequest) {
	if !c.mayCluster(kmsg.ACLOperationAlter) && !c.mayCluster(kmsg.ACLOperationClusterAction) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	w := &markerWriting{call: c, codes: make([]map[protocol.TopicPartition]protocol.ErrorCode, len(req.Markers))}
	partitions := 0
	for i := range req.Markers {
		w.codes[i] = map[protocol.TopicPartition]protocol.ErrorCode{}
		for _, topic := range req.Markers[i].Topics {
			partitions += len(topic.Partitions)
		}
	}
	under := waitFor(partitions, func() {
		resp := kmsg.NewPtrWriteTxnMarkersResponse()
		told := map[int64]bool{}
		for i := range req.Markers {
			marker := &req.Markers[i]
			if len(w.codes[i]) == 0 || told[marker.ProducerID] { // each producer once, and only with partitions, as Apache Kafka
				continue
			}
			told[marker.ProducerID] = true
			resp.Markers = append(resp.Markers, markerAnswer(marker, func(tp protocol.TopicPartition) protocol.ErrorCode { return w.codes[i][tp] }))
		}
		c.reply(resp)
	})
	for i := range req.Markers {
		for _, topic := range req.Markers[i].Topics {
			for _, n := range topic.Partitions {
				tp := protocol.TopicPartition{Topic: topic.Topic, Partition: n}
				w.write(&req.Markers[i], tp, func(code protocol.ErrorCode) {
					w.mu.Lock()
					w.codes[i][tp] = code
					w.mu.Unlock()
					under.done()
				})
			}
		}
	}
	under.done()
}

// markerWriting is a WriteTxnMarkers whose partitions are under way.
type markerWriting struct {
	*call
	mu    sync.Mutex
	codes []map[protocol.TopicPartition]protocol.ErrorCode
}

// write writes one marker to one partition.
func (w *markerWriting) write(marker *kmsg.WriteTxnMarkersRequestMarker, tp protocol.TopicPartition, done func(protocol.ErrorCode)) {
	if marker.ProducerID == -1 || marker.ProducerEpoch == -1 { // no producer, for which Apache Kafka has no code
		done(protocol.UnknownServerError)
		return
	}
	id, epoch := protocol.ProducerID(marker.ProducerID), protocol.ProducerEpoch(marker.ProducerEpoch)
	if tp.Topic == protocol.ConsumerOffsetsTopic && w.Groups != nil {
		w.Groups.WriteMarker(w.now, tp.Partition, shard.Marker{
			ProducerID: id, ProducerEpoch: epoch, Commit: marker.Committed, CoordinatorEpoch: marker.CoordinatorEpoch, Version: marker.TransactionVersion,
		}, func(err error) { w.guard(func() { done(markerCode(err)) }) })
		return
	}
	w.Replicas.WriteMarker(w.now, tp, replica.Marker{
		ProducerID: id, Epoch: epoch, Commit: marker.Committed, CoordinatorEpoch: marker.CoordinatorEpoch, TransactionVersion: marker.TransactionVersion,
	}, time.Duration(w.Config.Int("request.timeout.ms"))*time.Millisecond, func(result replica.AppendResult) {
		w.guard(func() { done(protocol.CodeOf(result.Err)) })
	})
}

// markerCode is the error of a group's coordinator as those who write markers know
// it: they look for the leader anew.
func markerCode(err error) protocol.ErrorCode {
	switch code := protocol.CodeOf(err); code {
	case protocol.CoordinatorNotAvailable, protocol.CoordinatorLoadInProgress, protocol.NotCoordinator:
		return protocol.NotLeaderOrFollower
	default:
		return code
	}
}
