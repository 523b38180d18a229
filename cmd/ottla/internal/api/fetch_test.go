package api

import (
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/server"
)

// fetchFrom makes a sessionless fetch of partition 0 of a topic.
func fetchFrom(version int16, topic string, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 500, 1, 50<<20
	req.SessionEpoch = -1
	addFetch(req, version, topic, offset)
	return req
}

func addFetch(req *kmsg.FetchRequest, version int16, topic string, offset int64) {
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	if version >= 13 {
		t.Topic, t.TopicID = "", topicID(topic)
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
}

func fetchOne(f *fixture, p *peer, version int16, topic string, offset int64) kmsg.FetchResponseTopicPartition {
	f.t.Helper()
	return onlyPartition(f, request[*kmsg.FetchResponse](p, fetchFrom(version, topic, offset), version))
}

func onlyPartition(f *fixture, resp *kmsg.FetchResponse) kmsg.FetchResponseTopicPartition {
	f.t.Helper()
	if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		f.t.Fatalf("the answer has not one partition: %+v", resp)
	}
	return resp.Topics[0].Partitions[0]
}

// fill produces batches, each of as many records as values.
func (f *fixture) fill(p *peer, topic string, batches ...[]byte) {
	f.t.Helper()
	for _, b := range batches {
		if got := produceOne(f, p, 9, -1, topic, b); got.ErrorCode != 0 {
			f.t.Fatalf("produce to %s: %s", topic, protocol.ErrorCode(got.ErrorCode))
		}
	}
}

func countBatches(t *testing.T, records []byte) int {
	t.Helper()
	count := 0
	for len(records) > 0 {
		var err error
		if _, records, err = record.Next(records); err != nil {
			t.Fatal(err)
		}
		count++
	}
	return count
}

// waiting tells whether any fetch waits.
func (f *fixture) waiting() bool {
	f.handler.polls.mu.Lock()
	defer f.handler.polls.mu.Unlock()
	return len(f.handler.polls.byConn) > 0
}

// BEHAVIOUR 80, 83, 76 at every version: whole batches from the one that holds the
// offset; null aborted transactions for who reads uncommitted.
func TestFetch(t *testing.T) {
	versions(t, protocol.Fetch, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("orders", topicSpec{})
		p := f.connect()
		f.fill(p, "orders", batchOf("a"), batchOf("b", "c", "d"), batchOf("e"))
		req := fetchFrom(version, "orders", 3)
		for _, isolation := range []int8{0, 1} {
			req.IsolationLevel = isolation
			part := onlyPartition(f, request[*kmsg.FetchResponse](p, req, version))
			if part.ErrorCode != 0 || part.HighWatermark != 5 || part.LastStableOffset != 5 || part.PreferredReadReplica != -1 {
				t.Errorf("%+v", part)
			}
			if version >= 5 && part.LogStartOffset != 0 {
				t.Errorf("log start offset %d", part.LogStartOffset)
			}
			if first := record.Batch(part.RecordBatches).BaseOffset(); first != 1 || countBatches(t, part.RecordBatches) != 2 {
				t.Errorf("%d batches from offset %d", countBatches(t, part.RecordBatches), first)
			}
			if len(part.AbortedTransactions) != 0 {
				t.Errorf("aborted transactions %v", part.AbortedTransactions)
			}
		}
	})
}

// BEHAVIOUR 76: null for read_uncommitted, empty for read_committed; by bytes, for
// kmsg reads both as nothing.
func TestFetchAbortedTransactionsNullOrEmpty(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	f.fill(p, "orders", batchOf("a"))
	for isolation, want := range []byte{0xff, 0} {
		req := fetchFrom(4, "orders", 0)
		req.IsolationLevel = int8(isolation)
		p.send(req, 4)
		frame, err := p.receiveFrame()
		f.must(err)
		// correlation id, throttle, topics, name, partitions, partition, error, two offsets
		at := 4 + 4 + 4 + 2 + len("orders") + 4 + 4 + 2 + 16
		for _, b := range frame[at : at+4] {
			if b != want {
				t.Errorf("isolation %d: aborted transactions % x", isolation, frame[at:at+4])
			}
		}
	}
}

// BEHAVIOUR 75, 76: a transaction that an opened directory holds, here written by
// the coordinator's side of the replica, hides what lies behind it.
func TestFetchReadCommitted(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	f.fill(p, "orders", batchOf("a", "b"))
	f.appendTransaction("orders", 70, false)
	f.appendTransaction("orders", 71, true)
	f.fill(p, "orders", batchOf("z"))
	req := fetchFrom(12, "orders", 0)
	req.IsolationLevel = 1
	part := onlyPartition(f, request[*kmsg.FetchResponse](p, req, 12))
	if part.HighWatermark != 6 || part.LastStableOffset != 4 {
		t.Errorf("high watermark %d, last stable offset %d", part.HighWatermark, part.LastStableOffset)
	}
	if n := countBatches(t, part.RecordBatches); n != 3 {
		t.Errorf("%d batches below the open transaction, not 3", n)
	}
	if len(part.AbortedTransactions) != 1 || part.AbortedTransactions[0].ProducerID != 70 || part.AbortedTransactions[0].FirstOffset != 2 {
		t.Errorf("aborted transactions %+v", part.AbortedTransactions)
	}
	query := listOne("orders", -1)
	query.IsolationLevel = 1
	if got := request[*kmsg.ListOffsetsResponse](p, query, 9).Topics[0].Partitions[0]; got.Offset != 4 {
		t.Errorf("latest committed offset %d, not 4", got.Offset)
	}
}

// BEHAVIOUR 81 (KIP-74): the first with records gives at least one batch, the
// others keep to the limits; the request's order decides.
func TestFetchBudgets(t *testing.T) {
	f := newFixture(t)
	p := f.connect()
	for _, topic := range []string{"a-empty", "b", "c"} {
		f.topic(topic, topicSpec{})
	}
	kilobyte := string(make([]byte, 1000))
	for _, topic := range []string{"b", "c"} {
		f.fill(p, topic, batchOf(kilobyte), batchOf(kilobyte), batchOf(kilobyte))
	}
	for _, test := range []struct {
		what         string
		request, one int32
		want         [3]int // batches
	}{
		{"one byte for the request", 1, 1 << 20, [3]int{0, 1, 0}},
		{"one byte for each partition", 1 << 20, 1, [3]int{0, 1, 0}},
		{"two and a half batches for the request", 2700, 1 << 20, [3]int{0, 2, 0}},
		{"four and a half batches for the request", 4900, 1 << 20, [3]int{0, 3, 1}},
		{"one and a half for each partition", 1 << 20, 1600, [3]int{0, 1, 1}},
		{"all", math.MaxInt32, math.MaxInt32, [3]int{0, 3, 3}},
		{"nonsense", -5, -5, [3]int{0, 1, 0}},
	} {
		req := fetchFrom(12, "a-empty", 0)
		addFetch(req, 12, "b", 0)
		addFetch(req, 12, "c", 0)
		req.MaxBytes = test.request
		for i := range req.Topics {
			req.Topics[i].Partitions[0].PartitionMaxBytes = test.one
		}
		resp := request[*kmsg.FetchResponse](p, req, 12)
		for i, want := range test.want {
			if n := countBatches(t, resp.Topics[i].Partitions[0].RecordBatches); n != want {
				t.Errorf("%s: %d batches of %s, not %d", test.what, n, resp.Topics[i].Topic, want)
			}
		}
	}
}

// BEHAVIOUR 81: fetch.max.bytes caps what a client may ask for.
func TestFetchMaxBytesIsCapped(t *testing.T) {
	f := newFixture(t, withProperty("fetch.max.bytes", "1024"))
	f.topic("orders", topicSpec{})
	p := f.connect()
	kilobyte := string(make([]byte, 900))
	f.fill(p, "orders", batchOf(kilobyte), batchOf(kilobyte))
	if n := countBatches(t, fetchOne(f, p, 12, "orders", 0).RecordBatches); n != 1 {
		t.Errorf("%d batches, not 1", n)
	}
}

// BEHAVIOUR 82: at the end of the log a fetch waits, for records or for its time.
func TestFetchWaits(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p, producer := f.connect(), f.connect()
	req := fetchFrom(12, "orders", 0)
	p.send(req, 12)
	if !f.waiting() {
		t.Fatal("a fetch at the end of the log did not wait")
	}
	f.fill(producer, "orders", batchOf("a"))
	if part := onlyPartition(f, p.receive(req).(*kmsg.FetchResponse)); countBatches(t, part.RecordBatches) != 1 {
		t.Errorf("%+v", part)
	}
	req.Topics[0].Partitions[0].FetchOffset = 1
	p.send(req, 12)
	f.pass(499 * time.Millisecond)
	if !f.waiting() {
		t.Error("a fetch did not wait for max.wait.ms")
	}
	f.pass(time.Millisecond)
	part := onlyPartition(f, p.receive(req).(*kmsg.FetchResponse))
	if part.ErrorCode != 0 || part.RecordBatches == nil || len(part.RecordBatches) != 0 {
		t.Errorf("after the wait: %+v", part)
	}
	if f.waiting() {
		t.Error("an answered fetch is still noted as waiting")
	}
	req.MaxWaitMillis = -5
	onlyPartition(f, request[*kmsg.FetchResponse](p, req, 12))
}

// BEHAVIOUR 14: what follows a waiting fetch is answered after it.
func TestFetchKeepsItsPlace(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	req, next := fetchFrom(12, "orders", 0), apiVersionsRequest()
	p.send(req, 12)
	p.send(next, 3)
	f.pass(time.Second)
	onlyPartition(f, p.receive(req).(*kmsg.FetchResponse))
	if resp := p.receive(next).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Errorf("error %d", resp.ErrorCode)
	}
}

// The server tells when a connection has ended: its fetches do not wait on.
func TestFetchEndsWithItsConnection(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p, other := f.connect(), f.connect()
	req := fetchFrom(12, "orders", 0)
	req.MaxWaitMillis = math.MaxInt32
	conn := p.send(req, 12).Conn
	otherConn := other.send(req, 12).Conn
	f.handler.ConnectionClosed(conn)
	onlyPartition(f, p.receive(req).(*kmsg.FetchResponse))
	if !f.waiting() {
		t.Error("the fetch of another connection does not wait any more")
	}
	f.handler.ConnectionClosed(otherConn)
	onlyPartition(f, other.receive(req).(*kmsg.FetchResponse))
	f.handler.ConnectionClosed(otherConn)
	if f.waiting() {
		t.Error("something is left of closed connections")
	}
}

// BEHAVIOUR 84: what the replica refuses is answered at once. What the metadata
// does not know is not: Apache Kafka 4.4.0 waits for the other partitions.
func TestFetchErrorsDoNotWait(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.topic("elsewhere", topicSpec{leader: 2})
	p := f.connect()
	req := fetchFrom(11, "orders", 0)
	addFetch(req, 11, "elsewhere", 0)
	resp := request[*kmsg.FetchResponse](p, req, 11)
	expectCode(t, "elsewhere", resp.Topics[1].Partitions[0].ErrorCode, protocol.NotLeaderOrFollower)

	req = fetchFrom(11, "nothing", 0)
	addFetch(req, 11, "orders", 0)
	p.send(req, 11)
	if !f.waiting() {
		t.Error("an unknown topic kept the fetch from waiting")
	}
	f.pass(time.Second)
	resp = p.receive(req).(*kmsg.FetchResponse)
	expectCode(t, "unknown", resp.Topics[0].Partitions[0].ErrorCode, protocol.UnknownTopicOrPartition)
	expectCode(t, "known", resp.Topics[1].Partitions[0].ErrorCode, protocol.None)

	resp = request[*kmsg.FetchResponse](p, fetchFrom(11, "nothing", 0), 11) // nothing to wait for
	expectCode(t, "only unknown", resp.Topics[0].Partitions[0].ErrorCode, protocol.UnknownTopicOrPartition)
}

// BEHAVIOUR 82, 85, 87, 88: what goes wrong with one partition.
func TestFetchRefuses(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{epoch: 3})
	p := f.connect()
	f.fill(p, "orders", batchOf("a", "b"))
	for _, test := range []struct {
		what    string
		version int16
		change  func(*kmsg.FetchRequest, *kmsg.FetchRequestTopicPartition)
		want    protocol.ErrorCode
	}{
		{"beyond the end", 12, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = 3 }, protocol.OffsetOutOfRange},
		{"offset -1", 12, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = -1 }, protocol.OffsetOutOfRange},
		{"a leader epoch to come", 9, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 4 }, protocol.UnknownLeaderEpoch},
		{"an old leader epoch", 9, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 2 }, protocol.FencedLeaderEpoch},
		{"the leader epoch", 9, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 3 }, protocol.None},
		{"an absurd last epoch", 12, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.LastFetchedEpoch = 99 }, protocol.OffsetOutOfRange},
		{"partition", 12, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.Partition = 7 }, protocol.UnknownTopicOrPartition},
		{"partition by id", 13, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.Partition = 7 }, protocol.UnknownTopicOrPartition},
		{"topic", 12, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.Topics[0].Topic = "nothing" }, protocol.UnknownTopicOrPartition},
		{"topic id", 13, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.Topics[0].TopicID = [16]byte{99} }, protocol.UnknownTopicID},
		{"no topic id", 17, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.Topics[0].TopicID = [16]byte{} }, protocol.UnknownTopicID},
		{"no topic name", 12, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.Topics[0].Topic = "" }, protocol.UnknownTopicOrPartition},
		{"an unknown follower", 12, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.ReplicaID = 5 }, protocol.NotLeaderOrFollower},
		{"an unknown follower", 16, func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.ReplicaState.ID = 5 }, protocol.NotLeaderOrFollower},
	} {
		req := fetchFrom(test.version, "orders", 0)
		test.change(req, &req.Topics[0].Partitions[0])
		part := onlyPartition(f, request[*kmsg.FetchResponse](p, req, test.version))
		expectCode(t, test.what, part.ErrorCode, test.want)
		if test.want != protocol.None && (part.HighWatermark != -1 || part.LastStableOffset != -1 || part.LogStartOffset != -1 || len(part.RecordBatches) > 0) {
			t.Errorf("%s: %+v", test.what, part)
		}
	}
}

// An isolation level that there is not is refused, as by Apache Kafka: by partition up to version 12, for all from 7 on.
func TestFetchUnknownIsolation(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	f.fill(p, "orders", batchOf("a"))
	for _, version := range []int16{4, 7, 12, 13, 18} {
		req := fetchFrom(version, "orders", 0)
		if version >= 13 {
			req.Topics[0].TopicID = f.image.Topic("orders").ID
		}
		req.IsolationLevel = 2
		resp := request[*kmsg.FetchResponse](p, req, version)
		if wantTop := version >= 7; (protocol.ErrorCode(resp.ErrorCode) == protocol.UnknownServerError) != wantTop {
			t.Errorf("version %d: code %d", version, resp.ErrorCode)
		}
		if version >= 13 {
			if len(resp.Topics) != 0 {
				t.Errorf("version %d: %+v", version, resp.Topics)
			}
			continue
		}
		expectCode(t, "isolation 2", resp.Topics[0].Partitions[0].ErrorCode, protocol.UnknownServerError)
	}
}

// BEHAVIOUR 87 (KIP-595): a reader whose log parted from ours is told where.
func TestFetchDiverging(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{epoch: 3})
	p := f.connect()
	f.fill(p, "orders", batchOf("a", "b"))
	change := partitionRecord(topicID("orders"), 0, topicSpec{leader: 1, replicas: []protocol.NodeID{1}, epoch: 6})
	f.write(change)
	f.fill(p, "orders", batchOf("c"))
	req := fetchFrom(12, "orders", 3)
	req.Topics[0].Partitions[0].LastFetchedEpoch = 5
	part := onlyPartition(f, request[*kmsg.FetchResponse](p, req, 12))
	if part.ErrorCode != 0 || part.DivergingEpoch.Epoch != 3 || part.DivergingEpoch.EndOffset != 2 || len(part.RecordBatches) > 0 {
		t.Errorf("%+v", part)
	}
}

// BEHAVIOUR 91 (KIP-951) and 90: the leader is named from version 16 on.
func TestFetchFromTheWrongNode(t *testing.T) {
	versions(t, protocol.Fetch, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("elsewhere", topicSpec{leader: 2, epoch: 4})
		f.topic("follower", topicSpec{leader: 3, epoch: 7, replicas: []protocol.NodeID{3, 1}})
		p := f.connectTo(server.Listener{Name: internalListener, Scope: protocol.OnBroker})
		req := fetchFrom(version, "elsewhere", 0)
		addFetch(req, version, "follower", 0)
		resp := request[*kmsg.FetchResponse](p, req, version)
		part := resp.Topics[0].Partitions[0]
		expectCode(t, "elsewhere", part.ErrorCode, protocol.NotLeaderOrFollower)
		want := kmsg.NewFetchResponseTopicPartitionCurrentLeader()
		if version >= 16 {
			want.LeaderID, want.LeaderEpoch = 2, 4
			if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 2 || resp.Brokers[0].Host != "internal-2" || resp.Brokers[0].Port != 9094 {
				t.Errorf("endpoints %+v", resp.Brokers)
			}
		} else if len(resp.Brokers) > 0 {
			t.Errorf("endpoints in version %d", version)
		}
		if part.CurrentLeader.LeaderID != want.LeaderID || part.CurrentLeader.LeaderEpoch != want.LeaderEpoch {
			t.Errorf("leader %+v, not %+v", part.CurrentLeader, want)
		}
		follower := protocol.None // KIP-392
		if version < 11 {
			follower = protocol.NotLeaderOrFollower
		}
		expectCode(t, "follower", resp.Topics[1].Partitions[0].ErrorCode, follower)
	})
}

// BEHAVIOUR 41 and 88: nothing is told of what may not be read.
func TestFetchUnauthorized(t *testing.T) {
	authorizer := deny("secret", "nothing")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("secret", topicSpec{})
	f.topic("orders", topicSpec{})
	p := f.connect()
	f.fill(p, "orders", batchOf("a"))
	for _, topic := range []string{"secret", "nothing"} {
		expectCode(t, topic, fetchOne(f, p, 12, topic, 0).ErrorCode, protocol.TopicAuthorizationFailed)
	}
	expectCode(t, "orders", fetchOne(f, p, 12, "orders", 0).ErrorCode, protocol.None)
	if !authorizer.wasAsked(kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, "orders") {
		t.Error("the authorizer was not asked whether the topic may be read")
	}
	authorizer = deny("kafka-cluster")
	f = newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{replicas: []protocol.NodeID{1, 2}})
	req := fetchFrom(12, "orders", 0)
	req.ReplicaID = 2
	part := onlyPartition(f, request[*kmsg.FetchResponse](f.connect(), req, 12))
	expectCode(t, "a follower without the right", part.ErrorCode, protocol.TopicAuthorizationFailed)
	if !authorizer.wasAsked(kmsg.ACLOperationClusterAction, kmsg.ACLResourceTypeCluster, "kafka-cluster") {
		t.Error("the authorizer was not asked whether the follower may act for the cluster")
	}
}

// A replica of the assignment reads up to the log's end, and its position counts.
func TestFetchByAFollower(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{replicas: []protocol.NodeID{1, 2}})
	p, producer := f.connect(), f.connect()
	produced := produceTo(f, 9, -1, "orders", batchOf("a"))
	producer.send(produced, 9)
	req := fetchFrom(12, "orders", 0)
	req.ReplicaID = 2
	part := onlyPartition(f, request[*kmsg.FetchResponse](p, req, 12))
	if part.HighWatermark != 0 || countBatches(t, part.RecordBatches) != 1 {
		t.Errorf("a follower got %+v", part)
	}
	req.Topics[0].Partitions[0].FetchOffset, req.MaxWaitMillis = 1, 0
	request[*kmsg.FetchResponse](p, req, 12)
	acked := producer.receive(produced).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if acked.ErrorCode != 0 || acked.BaseOffset != 0 {
		t.Errorf("acks=all: %+v", acked)
	}
}

// BEHAVIOUR 57: without the follower the time runs out, and the records stay.
func TestProduceTimesOut(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{replicas: []protocol.NodeID{1, 2}})
	p := f.connect()
	req := produceTo(f, 9, -1, "orders", batchOf("a"))
	p.send(req, 9)
	f.pass(time.Second)
	part := p.receive(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	expectCode(t, "time", part.ErrorCode, protocol.RequestTimedOut)
	if part.BaseOffset != 0 {
		t.Errorf("base offset %d", part.BaseOffset)
	}
}

// BEHAVIOUR 89 (KIP-227), through the handler.
func TestFetchSession(t *testing.T) {
	for _, version := range []int16{7, 12, 13, 18} {
		f := newFixture(t)
		for _, topic := range []string{"a", "b"} {
			f.topic(topic, topicSpec{})
		}
		p := f.connect()
		f.fill(p, "a", batchOf("1"))
		req := fetchFrom(version, "a", 0)
		addFetch(req, version, "b", 0)
		req.SessionEpoch = 0
		resp := request[*kmsg.FetchResponse](p, req, version)
		if resp.SessionID == 0 || len(resp.Topics) != 2 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		next := kmsg.NewPtrFetchRequest()
		next.SessionID, next.SessionEpoch, next.MinBytes, next.MaxBytes = resp.SessionID, 1, 1, 1<<20
		resp = request[*kmsg.FetchResponse](p, next, version)
		if resp.ErrorCode != 0 || len(resp.Topics) != 1 || countBatches(t, resp.Topics[0].Partitions[0].RecordBatches) != 1 {
			t.Fatalf("version %d: records that were not passed over are not repeated: %+v", version, resp)
		}
		next.SessionEpoch = 2
		addFetch(next, version, "a", 1)
		if resp = request[*kmsg.FetchResponse](p, next, version); len(resp.Topics) != 0 {
			t.Errorf("version %d: unchanged partitions are told: %+v", version, resp.Topics)
		}
		f.fill(p, "b", batchOf("1"))
		next.SessionEpoch, next.Topics = 3, nil
		resp = request[*kmsg.FetchResponse](p, next, version)
		if len(resp.Topics) != 1 || (version < 13 && resp.Topics[0].Topic != "b") || (version >= 13 && resp.Topics[0].TopicID != topicID("b")) {
			t.Errorf("version %d: %+v", version, resp.Topics)
		}
		next.SessionEpoch = 4
		forgotten := kmsg.NewFetchRequestForgottenTopic()
		forgotten.Topic, forgotten.TopicID, forgotten.Partitions = "b", topicID("b"), []int32{0}
		next.ForgottenTopics = append(next.ForgottenTopics, forgotten)
		if resp = request[*kmsg.FetchResponse](p, next, version); len(resp.Topics) != 0 {
			t.Errorf("version %d: a forgotten partition is told: %+v", version, resp.Topics)
		}
		next.ForgottenTopics, next.SessionEpoch = nil, 9
		resp = request[*kmsg.FetchResponse](p, next, version)
		expectCode(t, "a wrong epoch", resp.ErrorCode, protocol.InvalidFetchSessionEpoch)
		next.SessionEpoch = 5
		expectCode(t, "it lives on", request[*kmsg.FetchResponse](p, next, version).ErrorCode, protocol.None)
		closing := fetchFrom(version, "a", 0)
		closing.SessionID = next.SessionID
		if resp = request[*kmsg.FetchResponse](p, closing, version); resp.SessionID != 0 || len(resp.Topics) != 1 {
			t.Errorf("version %d: closing: %+v", version, resp)
		}
		next.SessionEpoch = 6
		resp = request[*kmsg.FetchResponse](p, next, version)
		expectCode(t, "a closed session", resp.ErrorCode, protocol.FetchSessionIDNotFound)
		if sessions, partitions, _ := f.handler.FetchSessions(); sessions != 0 || partitions != 0 {
			t.Errorf("%d sessions with %d partitions are left", sessions, partitions)
		}
	}
}

// BEHAVIOUR 89: names and ids do not mix in a session.
func TestFetchSessionOfNamesAskedByID(t *testing.T) {
	f := newFixture(t)
	f.topic("a", topicSpec{})
	p := f.connect()
	req := fetchFrom(12, "a", 0)
	req.SessionEpoch, req.MaxWaitMillis = 0, 0
	resp := request[*kmsg.FetchResponse](p, req, 12)
	next := kmsg.NewPtrFetchRequest()
	next.SessionID, next.SessionEpoch = resp.SessionID, 1
	expectCode(t, "by id", request[*kmsg.FetchResponse](p, next, 13).ErrorCode, protocol.FetchSessionTopicIDError)
}

func TestFetchWithoutSessionSlots(t *testing.T) {
	f := newFixture(t, withProperty("max.incremental.fetch.session.cache.slots", "0"))
	f.topic("a", topicSpec{})
	req := fetchFrom(12, "a", 0)
	req.SessionEpoch, req.MaxWaitMillis = 0, 0
	if resp := request[*kmsg.FetchResponse](f.connect(), req, 12); resp.SessionID != 0 || len(resp.Topics) != 1 {
		t.Errorf("%+v", resp)
	}
}

// BEHAVIOUR 30 and 88: a session finds that its topic was made anew.
func TestFetchStaleID(t *testing.T) {
	f := newFixture(t)
	f.topic("a", topicSpec{})
	p := f.connect()
	f.fill(p, "a", batchOf("1"))
	f.deleteTopic("a")
	expectCode(t, "by id", fetchOne(f, p, 17, "a", 0).ErrorCode, protocol.UnknownTopicID)
	expectCode(t, "by name", fetchOne(f, p, 12, "a", 0).ErrorCode, protocol.UnknownTopicOrPartition)
}

// BEHAVIOUR 48: Apache Kafka 4.4.0 gives zstd to any version of Fetch (probed; its
// fetch path has no UNSUPPORTED_COMPRESSION_TYPE any more).
func TestFetchZstdByOldVersions(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{configs: map[string]string{"compression.type": "zstd"}})
	p := f.connect()
	f.fill(p, "orders", batchOf("a"))
	part := fetchOne(f, p, 4, "orders", 0)
	if part.ErrorCode != 0 || record.Batch(part.RecordBatches).Codec() != compress.Zstd {
		t.Errorf("%+v", part)
	}
}
