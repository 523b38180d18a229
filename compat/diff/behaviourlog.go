package diff

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchOf is a fetch of one partition that does not wait long.
func fetchOf(t *Teller, version int16, topic string, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 10, 1, 1<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.LogStartOffset = partition, offset, 1<<20, -1
	in := kmsg.FetchRequestTopic{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}
	if version >= 13 {
		in.Topic, in.TopicID = "", t.idOf(topic)
	}
	req.Topics = []kmsg.FetchRequestTopic{in}
	req.SetVersion(version)
	return req
}

func listOf(t *Teller, topic string, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = timestamp
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return req
}

// write produces quietly.
func (t *Teller) write(topic string, batches ...batch) {
	for _, b := range batches {
		t.writeTo(topic, 0, b)
	}
}

func (t *Teller) writeTo(topic string, partition int32, b batch) {
	for range 200 {
		resp := secret[*kmsg.ProduceResponse](t, "setup", 12, t.producing(12, topic, partition, b.bytes()))
		if t.err != nil || resp != nil && len(resp.Topics) == 1 && resp.Topics[0].Partitions[0].ErrorCode == 0 {
			return
		}
		pause()
	}
	t.fail(fmt.Errorf("%s %d cannot be written", topic, partition))
}

func acks(t *Teller) {
	t.setUp(1, "b-topic")
	for _, version := range []int16{3, 8, 11, 12, 13} {
		for _, n := range []int16{2, -2, 1, 32767} {
			req := t.producing(version, "b-topic", 0, of("a").bytes())
			req.Acks = n
			tell[*kmsg.ProduceResponse](t, fmt.Sprintf("acks=%d", n), "a", version, req)
		}
	}
}

func badBatches(t *Teller) {
	t.setUp(1, "b-batches", "b-deltas")
	ab := of("a", "b")
	two := func(x, y batch) []byte { return append(x.bytes(), y.bytes()...) }
	for _, version := range []int16{3, 7, 8, 9, 12, 13} {
		for _, c := range []struct {
			what  string
			bytes []byte
		}{
			{"right", ab.bytes()},
			{"behaviour-043 magic 1", ab.with(func(b *batch) { b.magic = 1 }).bytes()},
			{"behaviour-043 magic 3", ab.with(func(b *batch) { b.magic = 3 }).bytes()},
			{"behaviour-043 magic -1", ab.with(func(b *batch) { b.magic = -1 }).bytes()},
			{"behaviour-044 two batches", two(ab, ab)},
			{"behaviour-044 no bytes", []byte{}},
			{"behaviour-044 cut", ab.with(func(b *batch) { b.drop = 1 }).bytes()},
			{"behaviour-044 half a header", ab.bytes()[:30]},
			{"behaviour-044 a byte more", ab.with(func(b *batch) { b.trailing = 1 }).bytes()},
			{"behaviour-044 a length of 5", cut(ab, 5)},
			{"behaviour-044 a length of 14", cut(ab, 14)},
			{"behaviour-044 a second batch of a strange format", two(ab, ab.with(func(b *batch) { b.magic = 9 }))},
			{"behaviour-044 a hundred zeros more", ab.with(func(b *batch) { b.trailing = 100 }).bytes()},
			{"behaviour-045 checksum", ab.with(func(b *batch) { b.wrongChecksum = true }).bytes()},
			{"behaviour-046 base 5", ab.with(func(b *batch) { b.base = 5 }).bytes()},
			{"behaviour-046 last delta one more", ab.with(func(b *batch) { b.lastDelta = 1 }).bytes()},
			{"behaviour-046 a record more in the header", ab.with(func(b *batch) { b.count = 1 }).bytes()},
			{"behaviour-046 a record less in the header", ab.with(func(b *batch) { b.count = -1 }).bytes()},
			{"behaviour-046 no records", of().bytes()},
			{"behaviour-049 garbage said to be gzip", ab.with(func(b *batch) { b.attributes, b.garbage = 1, true }).bytes()},
			{"behaviour-049 garbage said to be snappy", ab.with(func(b *batch) { b.attributes, b.garbage = 2, true }).bytes()},
			{"behaviour-049 garbage said to be lz4", ab.with(func(b *batch) { b.attributes, b.garbage = 3, true }).bytes()},
			{"behaviour-048 garbage said to be zstd", ab.with(func(b *batch) { b.attributes, b.garbage = 4, true }).bytes()},
			{"garbage", ab.with(func(b *batch) { b.garbage = true }).bytes()},
			{"codec 5", ab.with(func(b *batch) { b.attributes = 5 }).bytes()},
			{"behaviour-050 a control batch", ab.with(func(b *batch) { b.attributes = 32 }).bytes()},
			{"behaviour-058b transactional", ab.with(func(b *batch) { b.attributes = 16 }).from(5000, 0, 0).bytes()},
			{"unused attributes", ab.with(func(b *batch) { b.attributes = 128 }).bytes()},
			{"deltas 0, 5", ab.with(func(b *batch) { b.deltas = []int32{0, 5} }).bytes()},
			{"deltas 1, 0", ab.with(func(b *batch) { b.deltas = []int32{1, 0} }).bytes()},
			{"a sequence without a producer", ab.with(func(b *batch) { b.producer = -1 }).bytes()},
			{"a negative sequence of a producer", ab.from(5001, 0, -1).bytes()},
		} {
			topic := "b-batches"
			if strings.HasPrefix(c.what, "deltas") { // some of which Ottla takes and some not
				topic = "b-deltas"
			}
			tell[*kmsg.ProduceResponse](t, c.what, "a", version, t.producing(version, topic, 0, c.bytes))
		}
	}
	tell[*kmsg.FetchResponse](t, "what is there now", "a", 12, fetchOf(t, 12, "b-batches", 0, 0))
}

// cut gives a batch whose length field has a number, and no more bytes than that.
func cut(b batch, length int) []byte {
	bytes := b.bytes()[:12+length]
	binary.BigEndian.PutUint32(bytes[8:], uint32(length))
	return bytes
}

func sizes(t *Teller) {
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 4, createOf("b-small", 1, 1, "max.message.bytes", "200"))
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 3, createOf("b-segment", 1, 1, "segment.bytes", "1048576", "max.message.bytes", "3000000"))
	t.learn("b-small", "b-segment")
	for n := 125; n <= 140; n++ {
		tell[*kmsg.ProduceResponse](t, fmt.Sprintf("%d bytes where 200 are allowed", len(of(strings.Repeat("x", n)).bytes())), "a", 9, t.producing(9, "b-small", 0, of(strings.Repeat("x", n)).bytes()))
	}
	tell[*kmsg.ProduceResponse](t, "larger than a segment", "a", 9, t.producing(9, "b-segment", 0, of(strings.Repeat("x", 1_100_000)).bytes()))
}

func nullKeys(t *Teller) {
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 4, createOf("b-compact", 1, 1, "cleanup.policy", "compact"))
	t.learn("b-compact")
	for _, version := range []int16{3, 7, 8, 12, 13} {
		tell[*kmsg.ProduceResponse](t, "no keys", "a", version, t.producing(version, "b-compact", 0, of("a", "b").bytes()))
		tell[*kmsg.ProduceResponse](t, "keys", "a", version, t.producing(version, "b-compact", 0, of("a", "b").with(func(b *batch) { b.keys = true }).bytes()))
	}
}

func times(t *Teller) {
	t.setUp(1, "b-times")
	far := time.Now().Add(24 * time.Hour).UnixMilli()
	for _, version := range []int16{3, 8, 12} {
		for what, at := range map[string]int64{"tomorrow": far} {
			req := t.producing(version, "b-times", 0, of("a", "b").with(func(b *batch) { b.timestamp = at }).bytes())
			req.SetVersion(version)
			resp, otherwise := t.exchange("a", req)
			t.note(fmt.Sprintf("%s: Produce %d", what, version), withoutNumbers(t.told(resp, otherwise)))
		}
		tell[*kmsg.ProduceResponse](t, "long ago", "a", version, t.producing(version, "b-times", 0, of("a").with(func(b *batch) { b.timestamp = 5 }).bytes()))
	}
	tell[*kmsg.ProduceResponse](t, "no time", "a", 12, t.producing(12, "b-times", 0, of("a").with(func(b *batch) { b.timestamp = -1 }).bytes()))
}

// withoutNumbers leaves times of today out.
func withoutNumbers(text string) string { return longNumbers.ReplaceAllString(text, "<time>") }

func appendTime(t *Teller) {
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 4, createOf("b-append", 1, 1, "message.timestamp.type", "LogAppendTime"))
	t.setUp(1, "b-topic")
	t.learn("b-append")
	for _, version := range []int16{3, 12, 13} {
		tell[*kmsg.ProduceResponse](t, "append time", "a", version, t.producing(version, "b-append", 0, of("a").bytes()))
		tell[*kmsg.ProduceResponse](t, "the producer's time", "a", version, t.producing(version, "b-topic", 0, of("a").bytes()))
	}
	resp := secret[*kmsg.FetchResponse](t, "a", 12, fetchOf(t, 12, "b-append", 0, 0))
	if resp == nil || len(resp.Topics) == 0 {
		return
	}
	var stored kmsg.RecordBatch
	if err := stored.ReadFrom(resp.Topics[0].Partitions[0].RecordBatches); err != nil {
		t.note("the stored batch", err.Error())
		return
	}
	t.note("the stored batch", fmt.Sprintf("attributes %d, first time %d, largest time is now: %v", stored.Attributes, stored.FirstTimestamp, time.Since(time.UnixMilli(stored.MaxTimestamp)).Abs() < time.Minute))
}

func compression(t *Teller) {
	for _, codec := range []string{"uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"} {
		topic := "b-codec-" + codec
		secret[*kmsg.CreateTopicsResponse](t, "a", 4, createOf(topic, 1, 1, "compression.type", codec))
		t.learn(topic)
		tell[*kmsg.ProduceResponse](t, codec, "a", 9, t.producing(9, topic, 0, of("a", "b").bytes()))
		for _, version := range []int16{4, 9, 10, 12, 13} {
			resp := secret[*kmsg.FetchResponse](t, "a", version, fetchOf(t, version, topic, 0, 0))
			if resp == nil || len(resp.Topics) == 0 {
				t.note(fmt.Sprintf("%s: Fetch %d", codec, version), "nothing")
				continue
			}
			p := resp.Topics[0].Partitions[0]
			text := fmt.Sprintf("error %d, high watermark %d", p.ErrorCode, p.HighWatermark)
			var stored kmsg.RecordBatch
			if err := stored.ReadFrom(p.RecordBatches); err == nil {
				text += fmt.Sprintf(", attributes %d, %d records, leader epoch %d", stored.Attributes, stored.NumRecords, stored.PartitionLeaderEpoch)
			}
			t.note(fmt.Sprintf("%s: Fetch %d", codec, version), text)
		}
	}
}

func unknownTopics(t *Teller) {
	t.setUp(1, "b-topic")
	for version := int16(3); version <= 13; version++ {
		tell[*kmsg.ProduceResponse](t, "no such topic", "a", version, t.producing(version, "b-none", 0, of("a").bytes()))
		tell[*kmsg.ProduceResponse](t, "no such partition", "a", version, t.producing(version, "b-topic", 1, of("a").bytes()))
		tell[*kmsg.ProduceResponse](t, "negative partition", "a", version, t.producing(version, "b-topic", -1, of("a").bytes()))
	}
	tell[*kmsg.ProduceResponse](t, "no topics", "a", 12, &kmsg.ProduceRequest{Acks: -1, TimeoutMillis: 1000})
}

func internalTopics(t *Teller) {
	secret[*kmsg.FindCoordinatorResponse](t, "setup", 3, coordinatorOf(3, 0, "x"))
	t.learn("__consumer_offsets")
	for _, version := range []int16{3, 12, 13} {
		tell[*kmsg.ProduceResponse](t, "to __consumer_offsets", "a", version, t.producing(version, "__consumer_offsets", 0, of("a").with(func(b *batch) { b.keys = true }).bytes()))
	}
	tell[*kmsg.DeleteTopicsResponse](t, "deleted records", "a", 3, &kmsg.DeleteTopicsRequest{TimeoutMillis: 10_000, TopicNames: []string{"b-none"}})
	trim := &kmsg.DeleteRecordsRequest{TimeoutMillis: 10_000, Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: "__consumer_offsets", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}}}}}
	tell[*kmsg.DeleteRecordsResponse](t, "records of __consumer_offsets", "a", 2, trim)
}

func severalPartitions(t *Teller) {
	t.setUp(2, "b-several")
	for _, version := range []int16{3, 8, 12, 13} {
		good, bad := of("a").bytes(), of("a").with(func(b *batch) { b.wrongChecksum = true }).bytes()
		req := t.producing(version, "b-several", 0, good)
		in := &req.Topics[0].Partitions
		*in = append(*in, kmsg.ProduceRequestTopicPartition{Partition: 1, Records: bad}, kmsg.ProduceRequestTopicPartition{Partition: 5, Records: good})
		req.Topics = append(req.Topics, t.producing(version, "b-none", 0, good).Topics...)
		tell[*kmsg.ProduceResponse](t, "some right, some wrong", "a", version, req)
		twice := t.producing(version, "b-several", 1, good)
		in = &twice.Topics[0].Partitions
		*in = append(*in, kmsg.ProduceRequestTopicPartition{Partition: 1, Records: of("b", "c").bytes()})
		tell[*kmsg.ProduceResponse](t, "one twice", "a", version, twice)
		twice = t.producing(version, "b-several", 1, good)
		twice.Topics = append(twice.Topics, twice.Topics[0])
		tell[*kmsg.ProduceResponse](t, "the topic twice", "a", version, twice)
	}
	tell[*kmsg.ListOffsetsResponse](t, "the end", "a", 7, listOf(t, "b-several", -1))
}

func producerIDs(t *Teller) {
	t.producersReady()
	for version := int16(0); version <= 5; version++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		tell[*kmsg.InitProducerIDResponse](t, "a new one", "a", version, req)
		req.TransactionalID = kmsg.StringPtr("")
		tell[*kmsg.InitProducerIDResponse](t, "an empty transactional id", "a", version, req)
		if version >= 3 {
			req = kmsg.NewPtrInitProducerIDRequest()
			req.ProducerID, req.ProducerEpoch = 77, 5
			tell[*kmsg.InitProducerIDResponse](t, "with one of before", "a", version, req)
		}
	}
}

func idempotence(t *Teller) {
	t.setUp(1, "b-idempotent", "b-idempotent-2")
	for _, topic := range []string{"b-idempotent", "b-idempotent-2"} {
		say := func(what string, b batch) {
			version := int16(12)
			if topic == "b-idempotent-2" {
				version = 7
			}
			tell[*kmsg.ProduceResponse](t, what, "a", version, t.producing(version, topic, 0, b.bytes()))
		}
		say("behaviour-062 an unknown producer begins at 17", of("a").from(6000, 0, 17))
		say("and goes back to 0", of("a").from(6000, 0, 0))
		say("goes on at 18", of("a").from(6000, 0, 18))
		for i := range int32(7) {
			say(fmt.Sprintf("batch %d", i), of("a", "b").from(6001, 0, 2*i))
		}
		for i := range int32(7) {
			say(fmt.Sprintf("batch %d again", i), of("a", "b").from(6001, 0, 2*i))
		}
		say("half of the last again", of("b").from(6001, 0, 13))
		say("overlapping", of("a", "b", "c").from(6001, 0, 13))
		say("behaviour-062 a gap", of("a").from(6001, 0, 20))
		say("behaviour-063 a new epoch not at 0", of("a").from(6001, 1, 14))
		say("behaviour-063 a new epoch at 0", of("a").from(6001, 1, 0))
		say("behaviour-063 the old epoch", of("a").from(6001, 0, 14))
		say("the old epoch's last again", of("a", "b").from(6001, 0, 12))
		say("an epoch skipped", of("a").from(6001, 7, 0))
		say("behaviour-063 near the end of the sequence", of("a").from(6002, 0, 2147483646))
		say("over the end", of("a", "b", "c").from(6002, 0, 2147483647))
		say("and on", of("a").from(6002, 0, 2))
		say("a negative epoch", of("a").from(6003, -1, 0))
		say("behaviour-069 a transaction without a transactional id", of("a").with(func(b *batch) { b.attributes = 16 }).from(6004, 0, 0))
		say("compressed in no way and compacted in none", of("x").from(6005, 32767, 0))
	}
	two := t.producing(12, "b-idempotent", 0, of("a").from(6006, 0, 0).bytes())
	two.Topics = append(two.Topics, t.producing(12, "b-idempotent-2", 0, of("a").from(6006, 0, 0).bytes()).Topics...)
	tell[*kmsg.ProduceResponse](t, "one producer, two topics", "a", 12, two)
	tell[*kmsg.ProduceResponse](t, "the same again", "a", 12, two)
	for _, topic := range []string{"b-idempotent", "b-idempotent-2"} {
		tell[*kmsg.ListOffsetsResponse](t, "the end of "+topic, "a", 7, listOf(t, topic, -1))
		tell[*kmsg.FetchResponse](t, "all of "+topic, "a", 12, fetchOf(t, 12, topic, 0, 0))
	}
}

func describedProducers(t *Teller) {
	t.setUp(2, "b-producers")
	t.write("b-producers", of("a", "b").from(7000, 3, 0), of("c").from(7000, 3, 2))
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "b-producers", Partitions: []int32{0, 1, 2, -1}}, {Topic: "b-none", Partitions: []int32{0}}}
	tell[*kmsg.DescribeProducersResponse](t, "one, none and unknown", "a", 0, req)
}

func middles(t *Teller) {
	t.setUp(1, "b-middle")
	t.write("b-middle", of("a", "b", "c"), of("d"), of("e", "f"))
	for _, version := range []int16{4, 11, 12, 13, 18} {
		for offset := int64(0); offset <= 5; offset++ {
			req := fetchOf(t, version, "b-middle", 0, offset)
			req.Topics[0].Partitions[0].PartitionMaxBytes = 1 // behaviour-081: the first batch comes all the same
			tell[*kmsg.FetchResponse](t, fmt.Sprintf("from %d", offset), "a", version, req)
		}
	}
	t.setUp(3, "b-budget")
	for p := range int32(3) {
		t.writeTo("b-budget", p, of(strings.Repeat("x", 300)))
	}
	for _, limit := range []int32{0, 1, 371, 372, 373, 800, 1200} {
		req := fetchOf(t, 12, "b-budget", 1, 0)
		for _, p := range []int32{0, 2} {
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchOf(t, 12, "b-budget", p, 0).Topics[0].Partitions...)
		}
		req.MaxBytes = limit
		tell[*kmsg.FetchResponse](t, fmt.Sprintf("behaviour-081 three partitions, %d bytes", limit), "a", 12, req)
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = limit
		}
		req.MaxBytes = 1 << 20
		tell[*kmsg.FetchResponse](t, fmt.Sprintf("behaviour-081 three partitions, %d bytes each", limit), "a", 12, req)
	}
}

func ends(t *Teller) {
	t.setUp(1, "b-ends")
	t.write("b-ends", of("a", "b", "c"))
	for _, version := range []int16{4, 5, 9, 11, 12, 13, 17, 18} {
		for _, offset := range []int64{3, 4, -1, -2, 1 << 62} {
			for isolation := range int8(2) { // behaviour-076
				req := fetchOf(t, version, "b-ends", 0, offset)
				req.IsolationLevel = isolation
				tell[*kmsg.FetchResponse](t, fmt.Sprintf("from %d, isolation %d", offset, isolation), "a", version, req)
			}
		}
	}
	wrong := fetchOf(t, 12, "b-ends", 0, 3)
	wrong.Topics[0].Partitions = append(wrong.Topics[0].Partitions, fetchOf(t, 12, "b-ends", 9, 0).Topics[0].Partitions...)
	wrong.MaxWaitMillis, wrong.MinBytes = 500, 1000
	tell[*kmsg.FetchResponse](t, "behaviour-084 an error does not wait", "a", 12, wrong)
	follower := fetchOf(t, 12, "b-ends", 0, 0)
	follower.ReplicaID = 5
	tell[*kmsg.FetchResponse](t, "a follower that is none", "a", 12, follower)
	for _, version := range []int16{11, 12, 13} {
		rack := fetchOf(t, version, "b-ends", 0, 0)
		rack.Rack = "r1"
		tell[*kmsg.FetchResponse](t, "behaviour-090 a rack", "a", version, rack)
	}
	nothing := fetchOf(t, 12, "b-ends", 0, 0)
	nothing.Topics = nil
	tell[*kmsg.FetchResponse](t, "no topics", "a", 12, nothing)
	twice := fetchOf(t, 12, "b-ends", 0, 0)
	twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
	tell[*kmsg.FetchResponse](t, "a partition twice", "a", 12, twice)
}

func leaderEpochs(t *Teller) {
	t.setUp(1, "b-epochs")
	t.write("b-epochs", of("a", "b", "c"))
	for _, version := range []int16{9, 11, 12, 13, 16, 18} {
		for _, epoch := range []int32{-1, 0, 1, 7, -2} {
			req := fetchOf(t, version, "b-epochs", 0, 1)
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			tell[*kmsg.FetchResponse](t, fmt.Sprintf("current epoch %d", epoch), "a", version, req)
		}
		if version < 12 {
			continue
		}
		for _, epoch := range []int32{-1, 0, 1, 7, -2} { // behaviour-087
			req := fetchOf(t, version, "b-epochs", 0, 1)
			req.Topics[0].Partitions[0].LastFetchedEpoch = epoch
			tell[*kmsg.FetchResponse](t, fmt.Sprintf("behaviour-087 last epoch %d", epoch), "a", version, req)
		}
	}
	for version := int16(2); version <= 4; version++ {
		for _, current := range []int32{-1, 0, 1} {
			for _, epoch := range []int32{-1, 0, 1, 7} {
				req := kmsg.NewPtrOffsetForLeaderEpochRequest()
				req.ReplicaID = -1
				req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "b-epochs", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: current, LeaderEpoch: epoch}, {Partition: 7, CurrentLeaderEpoch: current, LeaderEpoch: epoch}}}}
				tell[*kmsg.OffsetForLeaderEpochResponse](t, fmt.Sprintf("behaviour-086 current %d asked %d", current, epoch), "a", version, req)
			}
		}
	}
	for _, version := range []int16{1, 4, 7, 11} {
		for _, epoch := range []int32{0, 1} {
			req := listOf(t, "b-epochs", -1)
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			tell[*kmsg.ListOffsetsResponse](t, fmt.Sprintf("current epoch %d", epoch), "a", version, req)
		}
	}
}

func idsAndNames(t *Teller) {
	t.setUp(1, "b-topic")
	for _, version := range []int16{4, 12, 13, 18} {
		tell[*kmsg.FetchResponse](t, "no such topic", "a", version, fetchOf(t, version, "b-none", 0, 0))
		tell[*kmsg.FetchResponse](t, "no such partition", "a", version, fetchOf(t, version, "b-topic", 4, 0))
		tell[*kmsg.FetchResponse](t, "negative partition", "a", version, fetchOf(t, version, "b-topic", -1, 0))
	}
	none := fetchOf(t, 13, "b-none", 0, 0)
	none.Topics[0].TopicID = [16]byte{}
	tell[*kmsg.FetchResponse](t, "no id", "a", 13, none)
}

func offsetsByTime(t *Teller) {
	t.setUp(1, "b-by-time", "b-empty")
	t.write("b-by-time", of("a", "b", "c"), of("d").with(func(b *batch) { b.timestamp = someTime + 100 }), of("e").with(func(b *batch) { b.timestamp = someTime + 50 }))
	for version := int16(1); version <= 11; version++ {
		for _, topic := range []string{"b-by-time", "b-empty"} {
			for _, at := range []int64{-1, -2, -3, -4, -5, -6, -7, 0, someTime, someTime + 1, someTime + 2, someTime + 3, someTime + 60, someTime + 101} {
				req := listOf(t, topic, at)
				req.IsolationLevel = int8(version % 2)
				tell[*kmsg.ListOffsetsResponse](t, fmt.Sprintf("%s at %d", topic, at), "a", version, req)
			}
		}
		several := listOf(t, "b-by-time", -1)
		several.Topics[0].Partitions = append(several.Topics[0].Partitions, several.Topics[0].Partitions[0], kmsg.ListOffsetsRequestTopicPartition{Partition: 4, CurrentLeaderEpoch: -1, Timestamp: -1})
		several.Topics = append(several.Topics, listOf(t, "b-none", -1).Topics...)
		tell[*kmsg.ListOffsetsResponse](t, "twice, unknown, unknown", "a", version, several)
	}
}

func deletedRecords(t *Teller) {
	t.setUp(1, "b-trim")
	t.write("b-trim", of("a", "b", "c"), of("d", "e"), of("f"))
	secret[*kmsg.CreateTopicsResponse](t, "a", 4, createOf("b-trim-compact", 1, 1, "cleanup.policy", "compact"))
	t.learn("b-trim-compact")
	trim := func(topic string, partition int32, offset int64) *kmsg.DeleteRecordsRequest {
		return &kmsg.DeleteRecordsRequest{TimeoutMillis: 10_000, Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}}}}
	}
	for version := int16(0); version <= 2; version++ {
		say := func(what string, req *kmsg.DeleteRecordsRequest) {
			tell[*kmsg.DeleteRecordsResponse](t, what, "a", version, req)
		}
		say("below 0", trim("b-trim", 0, -2))
		say("beyond the end", trim("b-trim", 0, 70))
		say("a compacted topic", trim("b-trim-compact", 0, 0))
		say("no such topic", trim("b-none", 0, 0))
		say("no such partition", trim("b-trim", 3, 0))
		say("the middle of a batch", trim("b-trim", 0, 1+int64(version)))
		say("back", trim("b-trim", 0, 1))
		for _, offset := range []int64{0, 1, 2, 3} {
			tell[*kmsg.FetchResponse](t, fmt.Sprintf("after %d, from %d", 1+version, offset), "a", 12, fetchOf(t, 12, "b-trim", 0, offset))
		}
		tell[*kmsg.ListOffsetsResponse](t, fmt.Sprintf("after %d, the start", 1+version), "a", 7, listOf(t, "b-trim", -2))
		tell[*kmsg.ProduceResponse](t, fmt.Sprintf("after %d, behaviour-058 the start", 1+version), "a", 9, t.producing(9, "b-trim", 0, of("z").bytes()))
	}
	tell[*kmsg.DeleteRecordsResponse](t, "all", "a", 2, trim("b-trim", 0, -1))
	tell[*kmsg.ListOffsetsResponse](t, "after all, the start", "a", 7, listOf(t, "b-trim", -2))
	tell[*kmsg.ListOffsetsResponse](t, "after all, the end", "a", 7, listOf(t, "b-trim", -1))
	tell[*kmsg.FetchResponse](t, "after all, from the end", "a", 12, fetchOf(t, 12, "b-trim", 0, 9))
	several := trim("b-trim", 0, -1)
	several.Topics[0].Partitions = append(several.Topics[0].Partitions, several.Topics[0].Partitions[0])
	several.Topics = append(several.Topics, trim("b-none", 0, 0).Topics[0])
	tell[*kmsg.DeleteRecordsResponse](t, "twice, and unknown", "a", 2, several)
}
