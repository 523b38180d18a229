package scenario

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"ottla/compat/suite"
)

func records() []Scenario {
	return []Scenario{
		{"keys-headers", "keys and headers, repeated ones too", keysAndHeaders},
		{"binary", "binary keys, values and headers; null and empty header values", binaryRecords},
		{"nulls", "null keys and null values", nulls},
		{"empty", "empty keys and values stay apart from null", empties},
		{"create-time", "timestamps that the producer gives are kept", createTime},
		{"log-append-time", "message.timestamp.type=LogAppendTime", logAppendTime},
		{"future-time", "a timestamp beyond message.timestamp.after.max.ms is refused", futureTime},
		{"at-the-limit", "a batch of exactly max.message.bytes", atTheLimit},
		{"above-the-limit", "a batch one byte larger is refused: MESSAGE_TOO_LARGE", aboveTheLimit},
		{"large-batches", "batches of several MB, larger than the fetch size", largeBatches},
		{"many-small", "two thousand batches of one record", manySmall},
		{"compact-topic", "a compacted topic takes keys and refuses null keys", compactTopic},
	}
}

func keysAndHeaders(t *T) {
	topic := t.Topic("", 1)
	var sent []suite.Record
	for i := range 50 {
		sent = append(sent, suite.Record{
			Key: fmt.Appendf(nil, "key-%d", i%7), Value: fmt.Appendf(nil, "value-%d", i),
			Headers: []suite.Header{{Key: "trace", Value: []byte("a1")}, {Key: "trace", Value: []byte("b2")}, {Key: "kind", Value: []byte("test")}},
		})
	}
	t.Produce(suite.ProduceOptions{Topic: topic}, sent)
	t.ReadBack(topic, sent)
}

// noise is n bytes that do not compress and are the same in every run.
func noise(seed string, n int) []byte {
	out := make([]byte, 0, n+sha256.Size)
	for i := 0; len(out) < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, i))
		out = append(out, sum[:]...)
	}
	return out[:n]
}

func binaryRecords(t *T) {
	topic := t.Topic("", 1)
	var sent []suite.Record
	for i := range 40 {
		sent = append(sent, suite.Record{
			Key: noise(fmt.Sprint("key", i), i), Value: noise(fmt.Sprint("value", i), i*100),
			Headers: []suite.Header{{Key: "null", Value: nil}, {Key: "empty", Value: []byte{}}, {Key: "zażółć", Value: noise("header", 300)}},
		})
	}
	for _, codec := range []string{"none", "gzip"} {
		t.Produce(suite.ProduceOptions{Topic: topic, Codec: codec, LingerMs: 20}, sent)
	}
	t.ReadBack(topic, slices.Concat(sent, sent))
}

func nulls(t *T) {
	topic := t.Topic("", 1)
	sent := []suite.Record{
		{Key: nil, Value: []byte("no key")},
		{Key: []byte("tombstone"), Value: nil},
		{Key: nil, Value: nil},
		{Key: []byte("both"), Value: []byte("there")},
	}
	t.Produce(suite.ProduceOptions{Topic: topic, OneByOne: true}, sent)
	t.ReadBack(topic, sent)
}

func empties(t *T) {
	topic := t.Topic("", 1)
	sent := []suite.Record{
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte{}, Value: []byte("empty key")},
		{Key: []byte("empty value"), Value: []byte{}},
		{Key: nil, Value: []byte{}},
		{Key: []byte{}, Value: nil},
	}
	t.Produce(suite.ProduceOptions{Topic: topic, OneByOne: true}, sent)
	t.ReadBack(topic, sent)
}

func createTime(t *T) {
	topic := t.Topic("", 1, "retention.ms=-1")
	sent := suite.Values("time", 20, 30)
	for i := range sent {
		sent[i].Timestamp = 1_600_000_000_000 + int64((i*7919)%20)*1000 // out of order
	}
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 20}, sent)
	t.ReadBack(topic, sent)
	for _, b := range t.Stored(topic) {
		if b.LogAppendTime {
			t.Fatalf("the batch at offset %d is marked LogAppendTime", b.BaseOffset)
		}
	}
}

func logAppendTime(t *T) {
	topic := t.Topic("", 1, "message.timestamp.type=LogAppendTime")
	sent := suite.Values("append", 30, 50)
	begin := time.Now().UnixMilli()
	acks := t.Produce(suite.ProduceOptions{Topic: topic, Codec: "gzip", LingerMs: 20}, sent)
	end := time.Now().UnixMilli()
	got := t.Consume(topic, suite.Earliest)
	t.SameRecords(t.Client.Name(), got, sent, 0)
	read := t.consumeBy(t.Ref, suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: 0}})
	for i, r := range read {
		if !r.LogAppend || r.Timestamp < begin || r.Timestamp > end {
			t.Fatalf("offset %d: log append %v, timestamp %d is not between %d and %d", i, r.LogAppend, r.Timestamp, begin, end)
		}
		if t.Can("timestamps") && got[i].Timestamp != r.Timestamp {
			t.Fatalf("offset %d: the client read timestamp %d, the reference %d", i, got[i].Timestamp, r.Timestamp)
		}
		if t.Client.Name() == Java && acks[i].Timestamp != r.Timestamp {
			t.Fatalf("offset %d: acknowledged with timestamp %d, stored with %d", i, acks[i].Timestamp, r.Timestamp)
		}
	}
	for _, b := range t.Stored(topic) {
		if !b.LogAppendTime {
			t.Fatalf("the batch at offset %d is not marked LogAppendTime", b.BaseOffset)
		}
	}
}

func futureTime(t *T) {
	topic := t.Topic("", 1, "retention.ms=-1")
	far := suite.Record{Value: []byte("from tomorrow"), Timestamp: time.Now().Add(24 * time.Hour).UnixMilli()}
	t.ProduceFails(suite.ProduceOptions{Topic: topic}, far, "INVALID_TIMESTAMP")
	old := []suite.Record{{Value: []byte("from long ago"), Timestamp: 1}}
	t.Produce(suite.ProduceOptions{Topic: topic}, old)
	t.ReadBack(topic, old)
}

// singleBatchOverhead is what a batch of one record without key and headers, of 8 KiB to 1 MiB, adds to its value: 61 bytes
// of batch header, 3 + 3 bytes of lengths, and 5 of attributes, timestamp, offset, null key and header count.
const singleBatchOverhead = 72

func valueForBatch(bytes int) suite.Record {
	return suite.Record{Value: []byte(strings.Repeat("z", bytes-singleBatchOverhead))}
}

func atTheLimit(t *T) {
	for suffix, limit := range map[string]int{"default": 1048588, "set": 100_000} {
		topic := t.TopicName(suffix)
		if suffix == "set" {
			t.Topic(suffix, 1, fmt.Sprint("max.message.bytes=", limit))
		} else {
			t.Topic(suffix, 1)
		}
		sent := []suite.Record{valueForBatch(limit)}
		t.Produce(suite.ProduceOptions{Topic: topic, MaxRequestBytes: 5_000_000}, sent)
		if b := t.Stored(topic)[0]; b.SizeBytes != limit {
			t.Fatalf("the stored batch has %d bytes, want exactly %d", b.SizeBytes, limit)
		}
		t.ReadBack(topic, sent)
	}
}

func aboveTheLimit(t *T) {
	for suffix, limit := range map[string]int{"default": 1048588, "set": 100_000} {
		topic := t.TopicName(suffix)
		if suffix == "set" {
			t.Topic(suffix, 1, fmt.Sprint("max.message.bytes=", limit))
		} else {
			t.Topic(suffix, 1)
		}
		o := suite.ProduceOptions{Topic: topic, MaxRequestBytes: 5_000_000}
		t.ProduceFails(o, valueForBatch(limit+1), "MESSAGE_TOO_LARGE")
		good := suite.Values("after", 1, 10)
		t.Produce(o, good)
		t.ReadBack(topic, good)
	}
}

func largeBatches(t *T) {
	topic := t.Topic("", 1, "max.message.bytes=10000000")
	var sent []suite.Record
	for i := range 12 {
		// Hexadecimal, since the console tools carry text, and not compressible to nothing.
		sent = append(sent, suite.Record{Value: fmt.Appendf(nil, "%x", noise(fmt.Sprint("large", i), 400_000))})
	}
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 200, BatchBytes: 5_000_000, MaxRequestBytes: 9_000_000}, sent)
	largest := 0
	for _, b := range t.Stored(topic) {
		largest = max(largest, b.SizeBytes)
	}
	if largest < 1_500_000 {
		t.Fatalf("the largest stored batch has %d bytes: no large batch was sent", largest)
	}
	t.ReadBack(topic, sent)
}

func manySmall(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("small", 2000, 20)
	t.Produce(suite.ProduceOptions{Topic: topic, OneByOne: true}, sent)
	if n := len(t.Stored(topic)); n != len(sent) {
		t.Fatalf("%d records lie in %d batches, want one each", len(sent), n)
	}
	t.ReadBack(topic, sent)
}

func compactTopic(t *T) {
	topic := t.Topic("", 1, "cleanup.policy=compact")
	refused := "INVALID_RECORD"
	if !t.Can("name") {
		refused = "UNKNOWN_SERVER_ERROR"
	}
	t.ProduceFails(suite.ProduceOptions{Topic: topic}, suite.Record{Value: []byte("no key")}, refused)
	sent := suite.Values("keyed", 20, 20)
	for i := range sent {
		sent[i].Key = fmt.Appendf(nil, "k%d", i)
	}
	t.Produce(suite.ProduceOptions{Topic: topic}, sent)
	t.ReadBack(topic, sent)
}
