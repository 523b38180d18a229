package api

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
)

func listOne(topic string, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = timestamp
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// BEHAVIOUR 92, 93 at every version. The log: offsets 0 to 3 with the timestamps
// +0, +1, +50, +20 from the start, in two batches of leader epoch 3.
func TestListOffsets(t *testing.T) {
	start := fixtureStart.UnixMilli()
	versions(t, protocol.ListOffsets, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("orders", topicSpec{epoch: 3})
		p := f.connect()
		second := record.NewBuilder(record.PlainOptions())
		second.Append(start+50, nil, []byte("c"), nil)
		second.Append(start+20, nil, []byte("d"), nil)
		f.fill(p, "orders", batchOf("a", "b"), second.Build(nil))
		for _, test := range []struct {
			what              string
			timestamp         int64
			from              int16 // the first version that knows it
			foundAt, foundOff int64
			epoch             int32
		}{
			{"latest", -1, 1, -1, 4, 3},
			{"earliest", -2, 1, -1, 0, 3},
			{"maximum", -3, 7, start + 50, 2, 3},
			{"earliest local", -4, 8, -1, 0, 3},
			{"latest tiered", -5, 9, -1, -1, -1},
			{"earliest pending upload", -6, 11, -1, -1, -1},
			{"-7", -7, 99, 0, 0, 0},
			{"the beginning of time", 0, 1, start, 0, 3},
			{"the second record", start + 1, 1, start + 1, 1, 3},
			{"in the middle of a batch", start + 2, 1, start + 50, 2, 3},
			{"after the last", start + 51, 1, -1, -1, -1},
		} {
			got := request[*kmsg.ListOffsetsResponse](p, listOne("orders", test.timestamp), version).Topics[0].Partitions[0]
			if version < test.from {
				expectCode(t, test.what, got.ErrorCode, protocol.UnsupportedVersion)
				if got.Offset != -1 || got.Timestamp != -1 {
					t.Errorf("%s: %+v", test.what, got)
				}
				continue
			}
			if version < 4 {
				test.epoch = -1
			}
			if got.ErrorCode != 0 || got.Timestamp != test.foundAt || got.Offset != test.foundOff || got.LeaderEpoch != test.epoch {
				t.Errorf("%s: %+v", test.what, got)
			}
		}
	})
}

// BEHAVIOUR 85, 94, and what a request may do wrong.
func TestListOffsetsRefuses(t *testing.T) {
	authorizer := deny("secret", "hidden")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{epoch: 3})
	f.topic("secret", topicSpec{})
	f.topic("elsewhere", topicSpec{leader: 2})
	f.topic("follower", topicSpec{leader: 2, replicas: []protocol.NodeID{2, 1}})
	p := f.connect()
	for _, test := range []struct {
		topic     string
		partition int32
		epoch     int32
		want      protocol.ErrorCode
	}{
		{"orders", 0, -1, protocol.None},
		{"orders", 0, 3, protocol.None},
		{"orders", 0, 2, protocol.FencedLeaderEpoch},
		{"orders", 0, -7, protocol.FencedLeaderEpoch}, // as probed
		{"orders", 0, 4, protocol.UnknownLeaderEpoch},
		{"orders", 1, -1, protocol.UnknownTopicOrPartition},
		{"nothing", 0, -1, protocol.UnknownTopicOrPartition},
		{"elsewhere", 0, -1, protocol.NotLeaderOrFollower},
		{"follower", 0, -1, protocol.NotLeaderOrFollower},
		{"secret", 0, -1, protocol.TopicAuthorizationFailed},
		{"hidden", 0, -1, protocol.TopicAuthorizationFailed},
	} {
		req := listOne(test.topic, -1)
		req.Topics[0].Partitions[0].Partition, req.Topics[0].Partitions[0].CurrentLeaderEpoch = test.partition, test.epoch
		got := request[*kmsg.ListOffsetsResponse](p, req, 9).Topics[0].Partitions[0]
		expectCode(t, test.topic, got.ErrorCode, test.want)
		if test.want != protocol.None && (got.Offset != -1 || got.Timestamp != -1 || got.LeaderEpoch != -1) {
			t.Errorf("%s: %+v", test.topic, got)
		}
	}
	if !authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, "orders") {
		t.Error("the authorizer was not asked whether the topic may be described")
	}
	twice := listOne("orders", -1)
	twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
	resp := request[*kmsg.ListOffsetsResponse](p, twice, 9)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("a partition named twice: %+v", resp.Topics)
	}
	expectCode(t, "named twice", resp.Topics[0].Partitions[0].ErrorCode, protocol.InvalidRequest)

	twice = listOne("orders", -1)
	twice.Topics = append(twice.Topics, twice.Topics[0], kmsg.ListOffsetsRequestTopic{Topic: "nothing"})
	if resp = request[*kmsg.ListOffsetsResponse](p, twice, 9); len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Errorf("a topic twice and one without partitions: %+v", resp.Topics)
	}
	for _, level := range []int8{-1, 2} {
		req := listOne("orders", -1)
		req.IsolationLevel = level
		expectCode(t, "isolation", request[*kmsg.ListOffsetsResponse](p, req, 9).Topics[0].Partitions[0].ErrorCode, protocol.UnknownServerError)
	}
}

// BEHAVIOUR 94 (KIP-207): a new leader whose high watermark is behind does not say
// where the end is; before version 5 there was no word for it.
func TestListOffsetsOfANewLeader(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{replicas: []protocol.NodeID{1, 2}})
	p := f.connect()
	expectCode(t, "acks=1", produceOne(f, p, 9, 1, "orders", batchOf("a")).ErrorCode, protocol.None)
	f.write(partitionRecord(topicID("orders"), 0, topicSpec{leader: 1, replicas: []protocol.NodeID{1, 2}, epoch: 1}))
	for version, want := range map[int16]protocol.ErrorCode{4: protocol.LeaderNotAvailable, 5: protocol.OffsetNotAvailable} {
		got := request[*kmsg.ListOffsetsResponse](p, listOne("orders", -1), version).Topics[0].Partitions[0]
		expectCode(t, "latest", got.ErrorCode, want)
	}
	got := request[*kmsg.ListOffsetsResponse](p, listOne("orders", -2), 9).Topics[0].Partitions[0]
	expectCode(t, "earliest", got.ErrorCode, protocol.None)
}

func epochEndOf(topic string, current, epoch int32) *kmsg.OffsetForLeaderEpochRequest {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LeaderEpoch = current, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// BEHAVIOUR 85, 86 at every version. Epoch 3 has the offsets 0 and 1, epoch 6 the
// offset 2.
func TestOffsetForLeaderEpoch(t *testing.T) {
	versions(t, protocol.OffsetForLeaderEpoch, func(t *testing.T, version int16) {
		authorizer := deny("secret", "hidden", "kafka-cluster")
		f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
		f.topic("orders", topicSpec{epoch: 3})
		f.topic("elsewhere", topicSpec{leader: 2})
		f.topic("secret", topicSpec{})
		p := f.connect()
		f.fill(p, "orders", batchOf("a", "b"))
		f.write(partitionRecord(topicID("orders"), 0, topicSpec{leader: 1, replicas: []protocol.NodeID{1}, epoch: 6}))
		f.fill(p, "orders", batchOf("c"))
		for _, test := range []struct {
			topic          string
			current, asked int32
			want           protocol.ErrorCode
			epoch          int32
			end            int64
		}{
			{"orders", -1, 6, protocol.None, 6, 3},
			{"orders", 6, 6, protocol.None, 6, 3},
			{"orders", -1, 5, protocol.None, 3, 2},
			{"orders", -1, 3, protocol.None, 3, 2},
			{"orders", -1, 7, protocol.None, -1, -1},
			{"orders", -1, -1, protocol.None, -1, -1},
			{"orders", 5, 6, protocol.FencedLeaderEpoch, -1, -1},
			{"orders", 7, 6, protocol.UnknownLeaderEpoch, -1, -1},
			{"elsewhere", -1, 0, protocol.NotLeaderOrFollower, -1, -1},
			{"nothing", -1, 0, protocol.UnknownTopicOrPartition, -1, -1},
			{"secret", -1, 0, protocol.TopicAuthorizationFailed, -1, -1},
			{"hidden", -1, 0, protocol.TopicAuthorizationFailed, -1, -1},
		} {
			resp := request[*kmsg.OffsetForLeaderEpochResponse](p, epochEndOf(test.topic, test.current, test.asked), version)
			got := resp.Topics[0].Partitions[0]
			expectCode(t, test.topic, got.ErrorCode, test.want)
			if got.LeaderEpoch != test.epoch || got.EndOffset != test.end {
				t.Errorf("%s, epoch %d: %+v", test.topic, test.asked, got)
			}
		}
	})
}

func deleteTo(topic string, offsets ...int64) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 1000
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	for n, offset := range offsets {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = int32(n), offset
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// BEHAVIOUR 95 at every version.
func TestDeleteRecords(t *testing.T) {
	versions(t, protocol.DeleteRecords, func(t *testing.T, version int16) {
		authorizer := deny("secret", "hidden")
		f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
		f.topic("orders", topicSpec{})
		f.topic("compacted", topicSpec{configs: map[string]string{"cleanup.policy": "compact"}})
		f.topic("both", topicSpec{configs: map[string]string{"cleanup.policy": "compact,delete"}})
		f.topic("elsewhere", topicSpec{leader: 2})
		f.topic("secret", topicSpec{})
		f.topic(protocol.ConsumerOffsetsTopic, topicSpec{})
		p := f.connect()
		f.fill(p, "orders", batchOf("a", "b", "c"), batchOf("d"))
		for _, test := range []struct {
			topic  string
			offset int64
			want   protocol.ErrorCode
			low    int64
		}{
			{"orders", 5, protocol.OffsetOutOfRange, -1},
			{"orders", -2, protocol.OffsetOutOfRange, -1},
			{"orders", 2, protocol.None, 2},
			{"orders", 1, protocol.None, 2},
			{"compacted", 0, protocol.PolicyViolation, -1},
			{"both", 0, protocol.None, 0},
			{"elsewhere", 0, protocol.NotLeaderOrFollower, -1},
			{"nothing", 0, protocol.UnknownTopicOrPartition, -1},
			{"secret", 0, protocol.TopicAuthorizationFailed, -1},
			{"hidden", 0, protocol.TopicAuthorizationFailed, -1},
			{protocol.ConsumerOffsetsTopic, 0, protocol.InvalidTopicException, -1},
		} {
			got := request[*kmsg.DeleteRecordsResponse](p, deleteTo(test.topic, test.offset), version).Topics[0].Partitions[0]
			expectCode(t, test.topic, got.ErrorCode, test.want)
			if got.LowWatermark != test.low {
				t.Errorf("%s up to %d: low watermark %d, not %d", test.topic, test.offset, got.LowWatermark, test.low)
			}
		}
		if !authorizer.wasAsked(kmsg.ACLOperationDelete, kmsg.ACLResourceTypeTopic, "orders") {
			t.Error("the authorizer was not asked whether the topic's records may be deleted")
		}
		part := fetchOne(f, p, 12, "orders", 2)
		if part.LogStartOffset != 2 || record.Batch(part.RecordBatches).BaseOffset() != 0 {
			t.Errorf("at the new start: %+v", part)
		}
		expectCode(t, "below the new start", fetchOne(f, p, 12, "orders", 1).ErrorCode, protocol.OffsetOutOfRange)
		got := request[*kmsg.DeleteRecordsResponse](p, deleteTo("orders", -1), version).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || got.LowWatermark != 4 {
			t.Errorf("up to the high watermark: %+v", got)
		}
	})
}

// Several partitions; one named twice counts once, with the last offset.
func TestDeleteRecordsOfSeveral(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 2})
	f.topic("replicated", topicSpec{replicas: []protocol.NodeID{1, 2}})
	p := f.connect()
	f.fill(p, "orders", batchOf("a", "b", "c"))
	req := deleteTo("orders", 3, 0, 0)
	req.Topics[0].Partitions[2].Partition, req.Topics[0].Partitions[2].Offset = 0, 1
	resp := request[*kmsg.DeleteRecordsResponse](p, req, 2)
	if parts := resp.Topics[0].Partitions; len(parts) != 2 || parts[0].LowWatermark != 1 || parts[1].LowWatermark != 0 {
		t.Errorf("%+v", parts)
	}
	expectCode(t, "acks=1", produceOne(f, p, 9, 1, "replicated", batchOf("a")).ErrorCode, protocol.None)
	fetch := fetchFrom(12, "replicated", 1)
	fetch.ReplicaID, fetch.MaxWaitMillis = 2, 0
	request[*kmsg.FetchResponse](p, fetch, 12) // moves the high watermark
	req = deleteTo("replicated", 1)
	p.send(req, 2)
	f.pass(time.Second)
	got := p.receive(req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
	expectCode(t, "a follower that does not follow", got.ErrorCode, protocol.RequestTimedOut)
}
