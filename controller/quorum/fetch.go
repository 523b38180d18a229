package quorum

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
)

// fetchWaitMs is how long the leader may hold a Fetch back that finds nothing
// (KafkaRaftClient.MAX_FETCH_WAIT_MS).
const fetchWaitMs = 500

func isShort(err error) bool { return errors.Is(err, record.ErrShort) }

// request makes the message of a fetch.
func (q *Quorum) request(fetch *raft.Fetch) kmsg.Request {
	if fetch.Snapshot != nil {
		return q.snapshotRequest(fetch)
	}
	req := kmsg.NewPtrFetchRequest()
	req.ClusterID = &q.options.Observe.ClusterID
	req.ReplicaID = int32(q.options.Local.ID)
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(q.options.Local.ID), -1
	req.MaxWaitMillis, req.MaxBytes = fetchWaitMs, q.options.Observe.FetchBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = protocol.ClusterMetadataTopic, protocol.MetadataTopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch = int32(fetch.Epoch), int32(fetch.LastEpoch)
	p.FetchOffset, p.ReplicaDirectoryID = int64(fetch.Offset), q.options.Local.Directory
	p.HighWatermark, p.LogStartOffset = int64(fetch.HighWatermark), -1
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

func (q *Quorum) snapshotRequest(fetch *raft.Fetch) kmsg.Request {
	req := kmsg.NewPtrFetchSnapshotRequest()
	req.ClusterID, req.ReplicaID = &q.options.Observe.ClusterID, int32(q.options.Local.ID)
	req.MaxBytes = q.options.Observe.SnapshotBytes
	topic := kmsg.NewFetchSnapshotRequestTopic()
	topic.Topic = protocol.ClusterMetadataTopic
	p := kmsg.NewFetchSnapshotRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Position, p.ReplicaDirectoryID = int32(fetch.Epoch), fetch.Position, q.options.Local.Directory
	p.SnapshotID.EndOffset, p.SnapshotID.Epoch = int64(fetch.Snapshot.End), int32(fetch.Snapshot.Epoch)
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

// received is an answer, and the bytes that came with it.
type received struct {
	answer  raft.Answer
	records []byte
	chunk   []byte
}

// read takes a response apart. The error says why it is none to that request.
func (q *Quorum) read(fetch *raft.Fetch, resp kmsg.Response) (received, error) {
	switch resp := resp.(type) {
	case *kmsg.FetchResponse:
		if fetch.Snapshot == nil {
			return q.readFetch(resp)
		}
	case *kmsg.FetchSnapshotResponse:
		if fetch.Snapshot != nil {
			return readChunk(resp)
		}
	}
	return received{}, fmt.Errorf("a response of kind %T", resp)
}

func (q *Quorum) readFetch(resp *kmsg.FetchResponse) (received, error) {
	if resp.ErrorCode != 0 {
		return received{}, protocol.ErrorCode(resp.ErrorCode).Err()
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return received{}, errors.New("a Fetch response without the one partition")
	}
	p := &resp.Topics[0].Partitions[0]
	answer := raft.Answer{
		Error: protocol.ErrorCode(p.ErrorCode), Leader: protocol.NodeID(p.CurrentLeader.LeaderID), Epoch: protocol.LeaderEpoch(p.CurrentLeader.LeaderEpoch),
		HighWatermark: max(protocol.Offset(p.HighWatermark), protocol.NoOffset), Records: len(p.RecordBatches) > 0,
	}
	for _, node := range resp.Brokers {
		if node.NodeID == p.CurrentLeader.LeaderID {
			answer.LeaderAt = &raft.Endpoint{Host: node.Host, Port: uint16(node.Port)}
		}
	}
	if p.DivergingEpoch.Epoch >= 0 {
		answer.Diverging = &raft.EpochEnd{Epoch: protocol.LeaderEpoch(p.DivergingEpoch.Epoch), End: protocol.Offset(p.DivergingEpoch.EndOffset)}
		answer.LocalEnd = q.epochEnd(answer.Diverging.Epoch)
	}
	if p.SnapshotID.EndOffset >= 0 && p.SnapshotID.Epoch >= 0 {
		answer.Snapshot = &raft.SnapshotID{End: protocol.Offset(p.SnapshotID.EndOffset), Epoch: protocol.LeaderEpoch(p.SnapshotID.Epoch)}
	}
	return received{answer: answer, records: p.RecordBatches}, nil
}

func readChunk(resp *kmsg.FetchSnapshotResponse) (received, error) {
	if resp.ErrorCode != 0 {
		return received{}, protocol.ErrorCode(resp.ErrorCode).Err()
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return received{}, errors.New("a FetchSnapshot response without the one partition")
	}
	p := &resp.Topics[0].Partitions[0]
	answer := raft.Answer{
		Error: protocol.ErrorCode(p.ErrorCode), Leader: protocol.NodeID(p.CurrentLeader.LeaderID), Epoch: protocol.LeaderEpoch(p.CurrentLeader.LeaderEpoch),
		HighWatermark: protocol.NoOffset,
		Snapshot:      &raft.SnapshotID{End: protocol.Offset(p.SnapshotID.EndOffset), Epoch: protocol.LeaderEpoch(p.SnapshotID.Epoch)},
		Size:          p.Size, Position: p.Position, Bytes: int64(len(p.Bytes)),
	}
	for _, node := range resp.NodeEndpoints {
		if node.NodeID == p.CurrentLeader.LeaderID {
			answer.LeaderAt = &raft.Endpoint{Host: node.Host, Port: node.Port}
		}
	}
	return received{answer: answer, chunk: p.Bytes}, nil
}
