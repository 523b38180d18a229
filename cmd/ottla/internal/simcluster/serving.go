package simcluster

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/session"
	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/replica"
)

// serveFetch answers a Fetch as package api does, without rights and configurations.
func (m *machine) serveFetch(req *kmsg.FetchRequest, reply func(*kmsg.FetchResponse)) {
	name := func(id protocol.TopicID) string {
		if id == topicID {
			return topicName
		}
		return ""
	}
	if m.image == nil {
		return // it does not listen yet
	}
	context, err := m.sessions.Decide(m.s.Now, req, name)
	if err != nil {
		reply(&kmsg.FetchResponse{Version: req.Version, ErrorCode: int16(protocol.CodeOf(err))})
		return
	}
	fetch := replica.FetchRequest{
		Replica: session.ReplicaID(req), ReplicaEpoch: protocol.BrokerEpoch(req.ReplicaState.Epoch),
		MaxWait: time.Duration(req.MaxWaitMillis) * time.Millisecond, MaxBytes: int(req.MaxBytes), MinBytes: int(req.MinBytes), Version: req.Version,
	}
	for _, p := range context.Partitions() {
		fetch.Partitions = append(fetch.Partitions, replica.FetchPartition{
			Partition: protocol.TopicPartition{Topic: p.Topic, Partition: p.Partition}, TopicID: p.TopicID, Offset: p.FetchOffset,
			MaxBytes: int(p.MaxBytes), CurrentLeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch, FollowerLogStart: p.LogStartOffset,
		})
	}
	incarnation := m.incarnation
	m.manager.Fetch(m.s.Now, fetch, func(results []replica.FetchResult) {
		if m.incarnation != incarnation {
			release(results)
			return
		}
		if resp := m.fetched(req, context, results); resp != nil {
			reply(resp)
		}
	})
}

func release(results []replica.FetchResult) {
	for i := range results {
		results[i].Records.Release()
	}
}

// fetched makes the response; nil where the connection would be closed.
func (m *machine) fetched(req *kmsg.FetchRequest, context *session.Context, read []replica.FetchResult) *kmsg.FetchResponse {
	partitions := context.Partitions()
	results := make([]session.Result, len(read))
	for i := range read {
		results[i] = session.Result{TopicID: partitions[i].TopicID, Topic: partitions[i].Topic, Data: wire.FetchPartition{
			Partition: partitions[i].Partition, ErrorCode: protocol.CodeOf(read[i].Err), HighWatermark: read[i].HighWatermark,
			LastStableOffset: read[i].LastStableOffset, LogStartOffset: read[i].LogStartOffset, DivergingEpoch: read[i].Diverging,
			PreferredReadReplica: read[i].PreferredReadReplica, Records: read[i].Records,
		}}
	}
	reply := context.Update(m.s.Now, results)
	for i := range reply.Dropped {
		reply.Dropped[i].Data.Records.Release()
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version, resp.ErrorCode, resp.SessionID = req.Version, int16(protocol.CodeOf(reply.Err)), reply.SessionID
	for _, topic := range session.Topics(reply.Results) {
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = topic.Topic, topic.TopicID
		for i := range topic.Partitions {
			data, ok := responsePartition(&topic.Partitions[i])
			if !ok {
				resp = nil // what is left is released all the same
			}
			t.Partitions = append(t.Partitions, data)
		}
		if resp != nil {
			resp.Topics = append(resp.Topics, t)
		}
	}
	return resp
}

func responsePartition(from *wire.FetchPartition) (kmsg.FetchResponseTopicPartition, bool) {
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.ErrorCode = from.Partition, int16(from.ErrorCode)
	p.HighWatermark, p.LastStableOffset, p.LogStartOffset = int64(from.HighWatermark), int64(from.LastStableOffset), int64(from.LogStartOffset)
	p.PreferredReadReplica = int32(from.PreferredReadReplica)
	if d := from.DivergingEpoch; d != nil {
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = int32(d.Epoch), int64(d.EndOffset)
	}
	records, err := from.Records.ReadAll()
	from.Records.Release()
	p.RecordBatches = append([]byte(nil), records...)
	return p, err == nil
}

// serveOffsets answers a ListOffsets.
func (m *machine) serveOffsets(req *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, topic := range req.Topics {
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = topic.Topic
		for _, asked := range topic.Partitions {
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition = asked.Partition
			found, err := m.manager.ListOffset(m.s.Now, replica.OffsetQuery{
				Partition:          protocol.TopicPartition{Topic: topic.Topic, Partition: asked.Partition},
				CurrentLeaderEpoch: protocol.LeaderEpoch(asked.CurrentLeaderEpoch), TimestampMs: asked.Timestamp, Replica: protocol.NodeID(req.ReplicaID),
			})
			p.ErrorCode, p.Offset = int16(protocol.CodeOf(err)), int64(found.Offset)
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}
