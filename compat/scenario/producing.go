package scenario

import (
	"fmt"
	"slices"

	"ottla/compat/suite"
)

func producing() []Scenario {
	return []Scenario{
		{"acks-0", "acks=0: no answer, but stored", func(t *T) { acks(t, "0") }},
		{"acks-1", "acks=1", func(t *T) { acks(t, "1") }},
		{"acks-all", "acks=all", func(t *T) { acks(t, "all") }},
		{"min-insync", "acks=all with min.insync.replicas=2 and one replica is taken", minInsync},
		{"idempotent", "an idempotent producer: ids and sequences without gap in the stored batches", idempotent},
		{"resend", "a batch sent twice is stored once and answered with its first offset", resend},
		{"auto-create", "producing creates the topic", autoCreate},
		{"partitions-8", "eight partitions, each in order", eightPartitions},
		{"segments", "a log of several segments", segments},
	}
}

func acks(t *T, level string) {
	topic := t.Topic("", 1)
	sent := suite.Values("acks", 100, 40)
	got := t.Produce(suite.ProduceOptions{Topic: topic, Acks: level, LingerMs: 5}, sent)
	// With acks=0 nobody knows when the records are there: reading so many of them waits for it.
	read := t.ConsumeWith(suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: suite.Earliest}, Count: len(sent), Reset: "earliest"})
	t.SameRecords(t.Client.Name(), read, sent, 0)
	for i, a := range got {
		if level != "0" && a.Offset >= 0 && a.Offset != int64(i) {
			t.Fatalf("record %d was acknowledged at offset %d", i, a.Offset)
		}
	}
	for _, b := range t.Stored(topic) {
		if b.ProducerID != -1 {
			t.Fatalf("the batch at offset %d has producer id %d without idempotence", b.BaseOffset, b.ProducerID)
		}
	}
}

func minInsync(t *T) {
	topic := t.Topic("", 1, "min.insync.replicas=2")
	sent := suite.Values("insync", 5, 40)
	t.Produce(suite.ProduceOptions{Topic: topic, Acks: "all"}, sent)
	t.ReadBack(topic, sent)
}

func idempotent(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("idempotent", 300, 200)
	o := suite.ProduceOptions{Topic: topic, Idempotent: true, BatchBytes: 4096, LingerMs: 5}
	t.Produce(o, sent)
	t.Produce(o, sent)
	next := map[int64]int32{}
	for _, b := range t.Stored(topic) {
		if b.ProducerID < 0 || b.ProducerEpoch != 0 || b.BaseSequence != next[b.ProducerID] {
			t.Fatalf("the batch at offset %d has producer id %d, epoch %d, sequence %d; want sequence %d",
				b.BaseOffset, b.ProducerID, b.ProducerEpoch, b.BaseSequence, next[b.ProducerID])
		}
		next[b.ProducerID] += b.Records
	}
	if len(next) != 2 {
		t.Fatalf("two producers had %d producer ids", len(next))
	}
	t.ReadBack(topic, slices.Concat(sent, sent))
}

func resend(t *T) {
	topic := t.Topic("", 1)
	for i := range 6 {
		first, second, err := t.Ref.ProduceTwice(t.Ctx, topic)
		t.Must(err, "produce the same batch twice")
		if first != int64(i) || second != first {
			t.Fatalf("batch %d was answered with offset %d, and again with %d", i, first, second)
		}
	}
	if read := t.Consume(topic, 0); len(read) != 6 {
		t.Fatalf("%d records are there, want 6", len(read))
	}
}

func autoCreate(t *T) {
	topic := t.TopicName("")
	sent := suite.Values("auto", 10, 40)
	t.Produce(suite.ProduceOptions{Topic: topic}, sent)
	n, err := t.Ref.Partitions(t.Ctx, topic)
	t.Must(err, "describe")
	if n != 1 {
		t.Fatalf("the topic has %d partitions, want num.partitions = 1", n)
	}
	t.ReadBack(topic, sent)
}

func eightPartitions(t *T) {
	topic := t.Topic("", 8)
	var sent []suite.Record
	for i := range 400 {
		sent = append(sent, suite.Record{Partition: int32(i * 8 / 400), Value: fmt.Appendf(nil, "value-%d", i)})
	}
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 5}, sent)
	from := map[int32]int64{}
	for p := range int32(8) {
		from[p] = suite.Earliest
	}
	checkByPartition(t, t.ConsumeWith(suite.ConsumeOptions{Topic: topic, From: from}), sent)
}

// checkByPartition compares records of many partitions, whatever their order between partitions.
func checkByPartition(t *T, got, want []suite.Record) {
	t.Helper()
	split := func(records []suite.Record) map[int32][]suite.Record {
		m := map[int32][]suite.Record{}
		for _, r := range records {
			m[r.Partition] = append(m[r.Partition], r)
		}
		return m
	}
	gotBy, wantBy := split(got), split(want)
	for p, records := range wantBy {
		t.SameRecords(fmt.Sprintf("%s, partition %d", t.Client.Name(), p), gotBy[p], records, 0)
	}
	if len(gotBy) != len(wantBy) {
		t.Fatalf("records of %d partitions were read, want %d", len(gotBy), len(wantBy))
	}
}

func segments(t *T) {
	topic := t.Topic("", 1, "segment.bytes=1048576")
	var sent []suite.Record
	for i := range 400 {
		sent = append(sent, suite.Record{Value: fmt.Appendf(nil, "%d-%x", i, noise(fmt.Sprint(i), 6_000))})
	}
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 5}, sent)
	files := map[string]bool{}
	for _, b := range t.Stored(topic) {
		files[b.File] = true
	}
	if len(files) < 4 {
		t.Fatalf("%d segment files, want at least 4", len(files))
	}
	t.ReadBack(topic, sent)
	for _, from := range []int64{1, 99, 250, 399} {
		t.SameRecords(t.Client.Name(), t.Consume(topic, from), sent[from:], from)
	}
}
