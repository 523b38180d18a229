package scenario

import (
	"fmt"

	"ottla/compat/suite"
)

func reading() []Scenario {
	return []Scenario{
		{"offsets", "reading from explicit offsets, in the middle of batches too, from the end, from the beginning", explicitOffsets},
		{"out-of-range", "an offset beyond the end: OFFSET_OUT_OF_RANGE, or the reset policy", outOfRange},
		{"offsets-by-time", "ListOffsets by timestamp and by every special value that the client knows", offsetsByTime},
		{"delete-records", "DeleteRecords moves the log start", deleteRecords},
		{"long-poll", "a consumer that waits gets each record as it comes", longPoll},
		{"read-committed", "read_committed on plain data", readCommitted},
		{"one-byte-fetch", "a fetch size of one byte still moves on", oneByteFetch},
	}
}

func explicitOffsets(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("offset", 100, 30)
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 50, Codec: "gzip"}, sent)
	for _, from := range []int64{0, 1, 50, 99} {
		t.SameRecords(t.Client.Name(), t.Consume(topic, from), sent[from:], from)
	}
	t.SameRecords(t.Client.Name(), t.Consume(topic, suite.Earliest), sent, 0)
	for _, from := range []int64{100, suite.Latest} {
		if got := t.Consume(topic, from); len(got) != 0 {
			t.Fatalf("from %d: %d records, want none", from, len(got))
		}
	}
}

func outOfRange(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("range", 10, 30)
	t.Produce(suite.ProduceOptions{Topic: topic}, sent)
	o := suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: 5000}, Count: len(sent)}
	if t.Can("none") {
		_, err := t.Client.Consume(t.Ctx, o)
		t.FailsWith(err, "OFFSET_OUT_OF_RANGE", "consume from 5000")
	}
	if t.Can("reset") {
		o.Reset = "earliest"
		t.SameRecords(t.Client.Name(), t.ConsumeWith(o), sent, 0)
	}
}

func offsetsByTime(t *T) {
	topic := t.Topic("", 1, "retention.ms=-1") // the records are older than the default keeps them
	const base = int64(1_700_000_000_000)
	sent := suite.Values("time", 50, 30)
	for i := range sent {
		sent[i].Timestamp = base + int64(i)*1000
	}
	sent[30].Timestamp = base + 90_000 // the highest, in the middle
	t.produceBy(t.Ref, suite.ProduceOptions{Topic: topic, LingerMs: 20}, sent[:25])
	t.produceBy(t.Ref, suite.ProduceOptions{Topic: topic, LingerMs: 20, Codec: "gzip"}, sent[25:])
	c := as[suite.OffsetLister](t)
	cases := []struct {
		at, offset, timestamp int64
	}{
		{suite.Earliest, 0, -1},
		{suite.Latest, 50, -1},
		{1, 0, base},
		{base, 0, base},
		{base + 1, 1, base + 1000},
		{base + 10_000, 10, base + 10_000},
		{base + 26_500, 27, base + 27_000},
		{base + 29_500, 30, base + 90_000},
		{base + 90_000, 30, base + 90_000},
		{base + 90_001, -1, -1},
	}
	if t.Can("max") {
		cases = append(cases, struct{ at, offset, timestamp int64 }{suite.MaxTimestamp, 30, base + 90_000})
	}
	if t.Can("tiered") {
		cases = append(cases, []struct{ at, offset, timestamp int64 }{
			{suite.EarliestLocal, 0, -1}, {suite.LatestTiered, -1, -1}, {suite.EarliestPendingUpload, -1, -1},
		}...)
	}
	for _, want := range cases {
		offset, timestamp, err := c.ListOffset(t.Ctx, topic, 0, want.at)
		t.Must(err, fmt.Sprint("list offset at ", want.at))
		if !t.Can("timestamps") {
			timestamp = want.timestamp
		}
		if offset != want.offset || timestamp != want.timestamp {
			t.Errorf("at %d: offset %d with timestamp %d, want %d with %d", want.at, offset, timestamp, want.offset, want.timestamp)
		}
	}
}

func deleteRecords(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("delete", 100, 30)
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 20}, sent)
	c, offsets := as[suite.RecordDeleter](t), as[suite.OffsetLister](t)
	low, err := c.DeleteRecords(t.Ctx, topic, 0, 40)
	t.Must(err, "delete records before 40")
	start, _, err := offsets.ListOffset(t.Ctx, topic, 0, suite.Earliest)
	t.Must(err, "list the earliest offset")
	if low != 40 || start != 40 {
		t.Fatalf("deleted before 40: low watermark %d, earliest offset %d", low, start)
	}
	t.SameRecords(t.Client.Name(), t.Consume(topic, suite.Earliest), sent[40:], 40)
	if t.Can("none") {
		_, err = t.Client.Consume(t.Ctx, suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: 39}, Count: 1})
		t.FailsWith(err, "OFFSET_OUT_OF_RANGE", "consume from 39")
	}
	_, err = c.DeleteRecords(t.Ctx, topic, 0, 101)
	t.FailsWith(err, "OFFSET_OUT_OF_RANGE", "delete before 101")
	low, err = c.DeleteRecords(t.Ctx, topic, 0, suite.Latest)
	t.Must(err, "delete all records")
	if low != 100 {
		t.Fatalf("deleted all: low watermark %d, want 100", low)
	}
	if got := t.Consume(topic, suite.Earliest); len(got) != 0 {
		t.Fatalf("%d records are left", len(got))
	}
	t.Produce(suite.ProduceOptions{Topic: topic}, sent[:1])
	t.SameRecords(t.Client.Name(), t.Consume(topic, suite.Earliest), sent[:1], 100)
}

// longPoll gives each record only after the one before was read, so most of the time the consumer waits in a fetch of five
// minutes: a server that does not wake it lets the cell run into its time limit.
func longPoll(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("poll", 5, 30)
	read := make(chan int, 100)
	type result struct {
		records []suite.Record
		err     error
	}
	done := make(chan result, 1)
	go func() {
		records, err := t.Client.Consume(t.Ctx, suite.ConsumeOptions{
			Topic: topic, From: map[int32]int64{0: 0}, Count: len(sent), MaxWaitMs: 300_000,
			OnRecord: func(n int) { read <- n },
		})
		done <- result{records, err}
	}()
	for i, r := range sent {
		t.produceBy(t.Ref, suite.ProduceOptions{Topic: topic}, []suite.Record{r})
		for n := 0; n <= i && i < len(sent)-1; {
			select {
			case n = <-read:
			case early := <-done:
				t.Fatalf("the consumer ended after %d records: %v", len(early.records), early.err)
			case <-t.Ctx.Done():
				t.Fatalf("record %d did not reach the waiting consumer: %v", i, t.Ctx.Err())
			}
		}
	}
	end := <-done
	t.Must(end.err, "consume")
	t.SameRecords(t.Client.Name(), end.records, sent, 0)
}

func readCommitted(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("committed", 50, 30)
	t.Produce(suite.ProduceOptions{Topic: topic, Idempotent: t.Can("idempotent")}, sent)
	got := t.ConsumeWith(suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true})
	t.SameRecords(t.Client.Name(), got, sent, 0)
}

func oneByteFetch(t *T) {
	topic := t.Topic("", 1)
	sent := suite.Values("byte", 20, 3000)
	t.Produce(suite.ProduceOptions{Topic: topic, OneByOne: true}, sent)
	got := t.ConsumeWith(suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: suite.Earliest}, MaxFetchBytes: 1})
	t.SameRecords(t.Client.Name(), got, sent, 0)
}
