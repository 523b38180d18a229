package api

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/server"
	"ottla/protocol/wire"
)

// produceTo makes a request of one batch to each of the partitions named.
func produceTo(f *fixture, version, acks int16, topic string, batches ...[]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 1000
	addProduce(f, req, version, topic, batches...)
	return req
}

func addProduce(f *fixture, req *kmsg.ProduceRequest, version int16, topic string, batches ...[]byte) {
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	if version >= 13 {
		t.Topic, t.TopicID = "", topicID(topic)
	}
	for n, b := range batches {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(n), b
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
}

// produceOne produces one batch to partition 0 and gives its part of the answer.
func produceOne(f *fixture, p *peer, version, acks int16, topic string, batch []byte) kmsg.ProduceResponseTopicPartition {
	f.t.Helper()
	resp := request[*kmsg.ProduceResponse](p, produceTo(f, version, acks, topic, batch), version)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		f.t.Fatalf("the answer has not one partition: %+v", resp.Topics)
	}
	return resp.Topics[0].Partitions[0]
}

func expectCode(t *testing.T, what string, got int16, want protocol.ErrorCode) {
	t.Helper()
	if protocol.ErrorCode(got) != want {
		t.Errorf("%s: %s, not %s", what, protocol.ErrorCode(got), want)
	}
}

// BEHAVIOUR 53, 55, 58: at every version, by name and by id.
func TestProduce(t *testing.T) {
	versions(t, protocol.Produce, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("orders", topicSpec{partitions: 2, epoch: 5})
		p := f.connect()
		for i, acks := range []int16{1, -1} {
			got := produceOne(f, p, version, acks, "orders", batchOf("a", "b"))
			want := kmsg.NewProduceResponseTopicPartition()
			want.BaseOffset = int64(2 * i)
			if version >= 5 {
				want.LogStartOffset = 0
			}
			if got.ErrorCode != 0 || got.BaseOffset != want.BaseOffset || got.LogAppendTime != -1 || got.LogStartOffset != want.LogStartOffset {
				t.Errorf("acks %d: %+v", acks, got)
			}
			if got.CurrentLeader.LeaderID != -1 || got.ErrorMessage != nil || len(got.ErrorRecords) > 0 {
				t.Errorf("acks %d: success with a leader, message or record errors: %+v", acks, got)
			}
		}
		stored := fetchOne(f, p, 12, "orders", 0).RecordBatches
		if epoch := record.Batch(stored).PartitionLeaderEpoch(); epoch != 5 {
			t.Errorf("leader epoch %d is stamped, not 5", epoch)
		}
	})
}

// BEHAVIOUR 53: LogAppendTime comes with the answer.
func TestProduceLogAppendTime(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{configs: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	got := produceOne(f, f.connect(), 9, 1, "orders", batchOf("a"))
	if got.ErrorCode != 0 || got.LogAppendTime != f.now().UnixMilli() {
		t.Errorf("LogAppendTime %d, not %d: %+v", got.LogAppendTime, f.now().UnixMilli(), got)
	}
}

// BEHAVIOUR 42, 59: partitions fail and succeed each for itself, in Kafka's order
// of checks.
func TestProduceFailsByPartition(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 4})
	p := f.connect()
	req := produceTo(f, 9, 1, "orders", batchOf("a"), nil, []byte{}, batchOf("b"), batchOf("no partition"))
	addProduce(f, req, 9, "nothing", batchOf("c"))
	resp := request[*kmsg.ProduceResponse](p, req, 9)
	for n, want := range []protocol.ErrorCode{protocol.None, protocol.InvalidRecord, protocol.InvalidRecord, protocol.None, protocol.UnknownTopicOrPartition} {
		part := resp.Topics[0].Partitions[n]
		expectCode(t, "partition", part.ErrorCode, want)
		if part.Partition != int32(n) || (part.BaseOffset == -1) != (want != protocol.None) || (part.LogStartOffset == -1) != (want != protocol.None) {
			t.Errorf("partition %d: %+v", n, part)
		}
	}
	expectCode(t, "unknown topic", resp.Topics[1].Partitions[0].ErrorCode, protocol.UnknownTopicOrPartition)

	nameless := produceTo(f, 9, 1, "", batchOf("a"))
	expectCode(t, "no name", request[*kmsg.ProduceResponse](p, nameless, 9).Topics[0].Partitions[0].ErrorCode, protocol.UnknownTopicOrPartition)

	req.Acks = 2
	resp = request[*kmsg.ProduceResponse](p, req, 9)
	for n, want := range []protocol.ErrorCode{protocol.InvalidRequiredAcks, protocol.InvalidRecord, protocol.InvalidRecord, protocol.InvalidRequiredAcks, protocol.UnknownTopicOrPartition} {
		expectCode(t, "acks=2", resp.Topics[0].Partitions[n].ErrorCode, want)
	}
	req.Acks = -2
	resp = request[*kmsg.ProduceResponse](p, req, 9)
	expectCode(t, "acks=-2", resp.Topics[0].Partitions[0].ErrorCode, protocol.InvalidRequiredAcks)
}

// BEHAVIOUR 59: of a partition named twice the last batch is taken, as probed on
// Apache Kafka 4.4.0.
func TestProduceNamedTwice(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	req := produceTo(f, 9, 1, "orders", batchOf("first"))
	addProduce(f, req, 9, "orders", batchOf("second", "third"))
	resp := request[*kmsg.ProduceResponse](p, req, 9)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", resp.Topics)
	}
	if part := fetchOne(f, p, 12, "orders", 0); part.HighWatermark != 2 {
		t.Errorf("high watermark %d, not 2", part.HighWatermark)
	}
}

// BEHAVIOUR 43 to 52, as far as the handler has a share in them.
func TestProduceRefusesBatches(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.topic("compacted", topicSpec{configs: map[string]string{"cleanup.policy": "compact"}})
	f.topic("small", topicSpec{configs: map[string]string{"max.message.bytes": "100"}})
	p := f.connect()
	plain := record.PlainOptions
	edit := func(change func(b record.Batch)) []byte {
		b := record.Batch(batchOf("a", "b"))
		change(b)
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
		return b
	}
	nullKey := record.NewBuilder(plain())
	nullKey.Append(fixtureStart.UnixMilli(), []byte("key"), nil, nil)
	nullKey.Append(fixtureStart.UnixMilli(), nil, []byte("value"), nil)
	withNullKey := nullKey.Build(nil)
	future := record.NewBuilder(plain())
	future.Append(fixtureStart.UnixMilli()+2*3600_000, []byte("key"), nil, nil)
	control, zstd := plain(), plain()
	control.Control, zstd.Codec = true, compress.Zstd
	for _, test := range []struct {
		what    string
		topic   string
		version int16
		batch   []byte
		want    protocol.ErrorCode
		records []int32 // named in RecordErrors
	}{
		{"magic 1", "orders", 9, edit(func(b record.Batch) { b[16] = 1 }), protocol.InvalidRecord, nil},
		{"magic 3", "orders", 9, edit(func(b record.Batch) { b[16] = 3 }), protocol.CorruptMessage, nil},
		{"magic 3 of a second batch", "orders", 9, append(batchOf("a"), edit(func(b record.Batch) { b[16] = 3 })...), protocol.CorruptMessage, nil},
		{"two batches", "orders", 9, append(batchOf("a"), batchOf("b")...), protocol.InvalidRecord, nil},
		{"truncated", "orders", 9, batchOf("abc")[:60], protocol.InvalidRecord, nil},
		{"checksum", "orders", 9, func() []byte { b := batchOf("abc"); b[len(b)-2] ^= 1; return b }(), protocol.CorruptMessage, nil},
		{"base offset", "orders", 9, edit(func(b record.Batch) { b[7] = 9 }), protocol.InvalidRecord, nil},
		{"count", "orders", 9, edit(func(b record.Batch) { b[60] = 3 }), protocol.InvalidRecord, nil},
		{"too large", "small", 9, batchOf(string(make([]byte, 100))), protocol.MessageTooLarge, nil},
		{"zstd in version 6", "orders", 6, buildBatch(zstd, "a"), protocol.UnsupportedCompressionType, nil},
		{"zstd in version 7", "orders", 7, buildBatch(zstd, "a"), protocol.None, nil},
		{"control", "orders", 9, buildBatch(control, "a"), protocol.InvalidRecord, nil},
		{"null key", "compacted", 8, withNullKey, protocol.InvalidRecord, []int32{1}},
		{"null key", "compacted", 7, withNullKey, protocol.InvalidRecord, nil},
		{"far future", "orders", 9, future.Build(nil), protocol.InvalidTimestamp, []int32{0}},
	} {
		got := produceOne(f, p, test.version, 1, test.topic, test.batch)
		expectCode(t, test.what, got.ErrorCode, test.want)
		if test.want == protocol.UnsupportedCompressionType && got.LogStartOffset != -1 {
			t.Errorf("%s: log start offset %d", test.what, got.LogStartOffset)
		}
		var named []int32
		for _, e := range got.ErrorRecords {
			named = append(named, e.RelativeOffset)
			if e.ErrorMessage == nil {
				t.Errorf("%s: a record error without message", test.what)
			}
		}
		if !slices.Equal(named, test.records) || (got.ErrorMessage != nil) != (test.records != nil || test.what == "magic 3") {
			t.Errorf("%s: record errors %v, message %v", test.what, named, got.ErrorMessage)
		}
	}
}

// BEHAVIOUR 15: acks=0 has no answer, and a failure ends the connection.
func TestProduceWithoutAcks(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	p.send(produceTo(f, 9, 0, "orders", batchOf("a")), 9)
	if got := produceOne(f, p, 9, 1, "orders", batchOf("b")); got.BaseOffset != 1 {
		t.Errorf("the batch behind the one without acknowledgement is at %d", got.BaseOffset)
	}
	p.send(produceTo(f, 9, 0, "nothing", batchOf("a")), 9)
	p.expectClosed()

	p = f.connect()
	p.send(produceTo(f, 9, 0, "orders", []byte("garbage")), 9)
	p.expectClosed()
}

// BEHAVIOUR 56 (KIP-951): who leads, and where that is for this listener.
func TestProduceToTheWrongNode(t *testing.T) {
	versions(t, protocol.Produce, func(t *testing.T, version int16) {
		f := newFixture(t)
		f.topic("elsewhere", topicSpec{leader: 2, epoch: 4})
		f.topic("follower", topicSpec{leader: 3, epoch: 7, replicas: []protocol.NodeID{3, 1}})
		p := f.connectTo(server.Listener{Name: internalListener, Scope: protocol.OnBroker})
		req := produceTo(f, version, 1, "elsewhere", batchOf("a"))
		addProduce(f, req, version, "follower", batchOf("a"))
		addProduce(f, req, version, "follower", batchOf("a"))
		resp := request[*kmsg.ProduceResponse](p, req, version)
		for i, want := range []kmsg.ProduceResponseTopicPartitionCurrentLeader{{LeaderID: 2, LeaderEpoch: 4}, {LeaderID: 3, LeaderEpoch: 7}} {
			if version < 10 {
				want = kmsg.NewProduceResponseTopicPartitionCurrentLeader()
			}
			part := resp.Topics[i].Partitions[0]
			expectCode(t, "not here", part.ErrorCode, protocol.NotLeaderOrFollower)
			if part.CurrentLeader.LeaderID != want.LeaderID || part.CurrentLeader.LeaderEpoch != want.LeaderEpoch || part.BaseOffset != -1 || part.LogStartOffset != -1 {
				t.Errorf("%+v", part)
			}
		}
		if version < 10 {
			if len(resp.Brokers) > 0 {
				t.Errorf("endpoints in version %d", version)
			}
			return
		}
		if len(resp.Brokers) != 2 || resp.Brokers[0].Host != "internal-2" || resp.Brokers[1].Host != "internal-3" ||
			resp.Brokers[0].NodeID != 2 || resp.Brokers[0].Port != 9094 || *resp.Brokers[0].Rack != "rack-2" {
			t.Errorf("endpoints %+v", resp.Brokers)
		}
	})
}

// BEHAVIOUR 30: a topic made anew has another id; the old one is unknown.
func TestProduceByID(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	req := produceTo(f, 13, 1, "orders", batchOf("a"))
	req.Topics[0].TopicID = [16]byte{1: 77}
	addProduce(f, req, 13, "orders", batchOf("b"))
	resp := request[*kmsg.ProduceResponse](p, req, 13)
	expectCode(t, "another id", resp.Topics[0].Partitions[0].ErrorCode, protocol.UnknownTopicID)
	expectCode(t, "its id", resp.Topics[1].Partitions[0].ErrorCode, protocol.None)
	if resp.Topics[0].TopicID != [16]byte{1: 77} || resp.Topics[1].TopicID != topicID("orders") {
		t.Error("the ids are not those asked for")
	}
	req.Topics[0].TopicID = [16]byte{}
	resp = request[*kmsg.ProduceResponse](p, req, 13)
	expectCode(t, "no id", resp.Topics[0].Partitions[0].ErrorCode, protocol.UnknownTopicID)
}

// BEHAVIOUR 58b.
func TestProduceToInternalTopics(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{protocol.ConsumerOffsetsTopic, protocol.TransactionStateTopic, protocol.ShareGroupStateTopic} {
		f.topic(name, topicSpec{})
		p := f.connect()
		expectCode(t, name, produceOne(f, p, 9, 1, name, batchOf("a")).ErrorCode, protocol.InvalidTopicException)
		p.clientID = nil
		expectCode(t, name+" without client id", produceOne(f, p, 9, 1, name, batchOf("a")).ErrorCode, protocol.InvalidTopicException)
		p.clientID = ptr("__admin_client")
		expectCode(t, name+" by the admin client", produceOne(f, p, 9, 1, name, batchOf("a")).ErrorCode, protocol.None)
	}
	expectCode(t, "__cluster_metadata", produceOne(f, f.connect(), 9, 1, protocol.ClusterMetadataTopic, batchOf("a")).ErrorCode, protocol.UnknownTopicOrPartition)
}

// BEHAVIOUR 58b, and a transactional id that never got a producer id.
func TestProduceTransactional(t *testing.T) {
	transactional := record.PlainOptions()
	transactional.ProducerID, transactional.ProducerEpoch, transactional.BaseSequence, transactional.Transactional = 7, 0, 0, true
	versions(t, protocol.Produce, func(t *testing.T, version int16) {
		authorizer := deny("forbidden")
		f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
		f.topic("orders", topicSpec{partitions: 2})
		f.coordinateTransactions()
		p := f.connect()
		req := produceTo(f, version, 1, "orders", buildBatch(transactional, "a"), batchOf("b"))
		for _, test := range []struct {
			id   *string
			want [2]protocol.ErrorCode
		}{
			{nil, [2]protocol.ErrorCode{protocol.TransactionalIDAuthorizationFailed, protocol.TransactionalIDAuthorizationFailed}},
			{ptr("forbidden"), [2]protocol.ErrorCode{protocol.TransactionalIDAuthorizationFailed, protocol.TransactionalIDAuthorizationFailed}},
			{ptr("tx"), [2]protocol.ErrorCode{protocol.InvalidProducerIDMapping, protocol.None}},
		} {
			req.TransactionID = test.id
			resp := request[*kmsg.ProduceResponse](p, req, version)
			for n, want := range test.want {
				expectCode(t, "partition", resp.Topics[0].Partitions[n].ErrorCode, want)
			}
		}
		if !authorizer.wasAsked(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, "tx") {
			t.Error("the authorizer was not asked about the transactional id")
		}
		req.Acks, req.TransactionID = 0, nil
		p.send(req, version)
		p.expectClosed()
	})
}

// BEHAVIOUR 41: what may not be seen and what does not exist are answered alike.
func TestProduceUnauthorized(t *testing.T) {
	authorizer := deny("secret", "nothing")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("secret", topicSpec{})
	f.topic("orders", topicSpec{})
	p := f.connect()
	for _, topic := range []string{"secret", "nothing"} {
		got := produceOne(f, p, 9, 1, topic, batchOf("a"))
		expectCode(t, topic, got.ErrorCode, protocol.TopicAuthorizationFailed)
	}
	expectCode(t, "by id", produceOne(f, p, 13, 1, "secret", batchOf("a")).ErrorCode, protocol.TopicAuthorizationFailed)
	expectCode(t, "unknown id", produceOne(f, p, 13, 1, "nothing", batchOf("a")).ErrorCode, protocol.UnknownTopicID)
	expectCode(t, "allowed", produceOne(f, p, 9, 1, "orders", batchOf("a")).ErrorCode, protocol.None)
	if !authorizer.wasAsked(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic, "orders") {
		t.Error("the authorizer was not asked whether the topic may be written")
	}
}

// BEHAVIOUR 61 to 63, through the handler: a repeat gets its old place.
func TestProduceIdempotent(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	produceAt := func(epoch protocol.ProducerEpoch, sequence int32) kmsg.ProduceResponseTopicPartition {
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = 5, epoch, sequence
		return produceOne(f, p, 9, -1, "orders", buildBatch(o, "a", "b"))
	}
	for _, test := range []struct {
		epoch    protocol.ProducerEpoch
		sequence int32
		want     protocol.ErrorCode
		offset   int64
	}{
		{1, 17, protocol.None, 0},
		{1, 17, protocol.None, 0},
		{1, 19, protocol.None, 2},
		{1, 23, protocol.OutOfOrderSequenceNumber, -1},
		{0, 21, protocol.InvalidProducerEpoch, -1},
		{2, 3, protocol.OutOfOrderSequenceNumber, -1},
		{2, 0, protocol.None, 4},
	} {
		got := produceAt(test.epoch, test.sequence)
		expectCode(t, "idempotent", got.ErrorCode, test.want)
		if got.BaseOffset != test.offset {
			t.Errorf("epoch %d, sequence %d is at %d, not %d", test.epoch, test.sequence, got.BaseOffset, test.offset)
		}
	}
}

// The bytes of a request are given back, and not before they are in the log.
func TestProduceReleasesItsFrame(t *testing.T) {
	wire.PoisonFrames(true)
	defer wire.PoisonFrames(false)
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 2})
	f.topic("gzip", topicSpec{configs: map[string]string{"compression.type": "gzip"}})
	p := f.connect()
	value := string(bytes.Repeat([]byte("value"), 100))
	for range 3 {
		req := produceTo(f, 9, -1, "orders", batchOf(value), batchOf(value), batchOf("no such partition"))
		addProduce(f, req, 9, "gzip", batchOf(value))
		request[*kmsg.ProduceResponse](p, req, 9)
	}
	var held int64
	f.server.EachListener(func(_ string, stats *server.Stats) { held += stats.MemoryHeld() })
	if held != 0 {
		t.Errorf("%d bytes of requests are still held", held)
	}
	for _, topic := range []string{"orders", "gzip"} {
		batches := fetchOne(f, p, 12, topic, 0).RecordBatches
		for range 3 {
			batch, rest, err := record.Next(batches)
			f.must(err)
			if batch.CRC() != batch.ComputeCRC() {
				t.Errorf("%s: a batch that was stored is damaged", topic)
			}
			batches = rest
		}
	}
}

// A connection whose batches pile up before a busy log is not read any further.
func TestProduceHoldsReading(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	var asked []*kmsg.ProduceRequest
	last := apiVersionsRequest()
	f.replicas.Exclusive(protocol.TopicPartition{Topic: "orders"}, func() {
		for range 4 { // the queue takes three
			asked = append(asked, produceTo(f, 9, 1, "orders", batchOf("a")))
			p.send(asked[len(asked)-1], 9)
		}
		p.last++
		last.SetVersion(3)
		p.sendFrame(wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: p.last}, last))
		for range 1000 {
			runtime.Gosched()
		}
		if len(f.handled) > 0 {
			t.Error("a further request was read")
		}
	})
	for i, req := range asked {
		if part := p.receive(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; part.ErrorCode != 0 || part.BaseOffset != int64(i) {
			t.Errorf("%+v is not at %d", part, i)
		}
	}
	if resp := p.receive(last).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Errorf("error %d", resp.ErrorCode)
	}
}
