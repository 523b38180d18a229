package scenario

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// T is one cell: a scenario with a client against a node.
type T struct {
	testing.TB
	Ctx    context.Context
	Client suite.Client
	Ref    *franz.Client // prepares and checks
	Node   interface{ DataDir() string }
	Name   string // the scenario's
	Turn   string // tells this turn of the cell from others on the same servers; "": it is the only one
}

// TopicName is a topic of this cell; suffix may be empty.
func (t *T) TopicName(suffix string) string {
	name := t.Name + "-" + t.Client.Name()
	for _, more := range []string{t.Turn, suffix} {
		if more != "" {
			name += "-" + more
		}
	}
	return name
}

// Topic creates a topic of this cell by the reference client and returns its name.
func (t *T) Topic(suffix string, partitions int, configs ...string) string {
	t.Helper()
	values := map[string]string{}
	for _, c := range configs {
		key, value, _ := strings.Cut(c, "=")
		values[key] = value
	}
	name := t.TopicName(suffix)
	t.Must(createAndWait(t.Ctx, t.Ref, name, partitions, values), "create topic")
	return name
}

// Must ends the cell if err is an error.
func (t *T) Must(err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Produce sends records by the cell's client; every one must be acknowledged.
func (t *T) Produce(o suite.ProduceOptions, records []suite.Record) []suite.Ack {
	t.Helper()
	return t.produceBy(t.Client, o, records)
}

func (t *T) produceBy(c suite.Client, o suite.ProduceOptions, records []suite.Record) []suite.Ack {
	t.Helper()
	acks, err := c.Produce(t.Ctx, o, records)
	t.Must(err, "produce by "+c.Name())
	if len(acks) != len(records) {
		t.Fatalf("%s: %d acknowledgements for %d records", c.Name(), len(acks), len(records))
	}
	for i, a := range acks {
		if a.Err != "" {
			t.Fatalf("%s: record %d: %s", c.Name(), i, a.Err)
		}
	}
	return acks
}

// ProduceFails sends one record that must be refused with the named error.
func (t *T) ProduceFails(o suite.ProduceOptions, record suite.Record, want string) {
	t.Helper()
	acks, err := t.Client.Produce(t.Ctx, o, []suite.Record{record})
	got := suite.ErrorName(err)
	if err == nil && len(acks) == 1 {
		got = acks[0].Err
	}
	if got != want {
		t.Fatalf("produce answered %q (%v), want %s", got, err, want)
	}
}

// Consume reads by the cell's client from an offset of partition 0 to the end.
func (t *T) Consume(topic string, from int64) []suite.Record {
	t.Helper()
	return t.consumeBy(t.Client, suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: from}})
}

// ConsumeWith reads by the cell's client as told.
func (t *T) ConsumeWith(o suite.ConsumeOptions) []suite.Record {
	t.Helper()
	return t.consumeBy(t.Client, o)
}

func (t *T) consumeBy(c suite.Client, o suite.ConsumeOptions) []suite.Record {
	t.Helper()
	records, err := c.Consume(t.Ctx, o)
	t.Must(err, "consume by "+c.Name())
	return records
}

// ReadBack reads a whole partition with the cell's client and with the reference, and compares both with what was sent (nil
// offsets are counted from 0).
func (t *T) ReadBack(topic string, sent []suite.Record) {
	t.Helper()
	options := suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: suite.Earliest}}
	for _, c := range []suite.Client{t.Client, t.Ref} {
		t.SameRecords(c.Name(), t.consumeBy(c, options), sent, 0)
	}
}

// SameRecords compares what a client read with what was sent: offsets in a row from first, keys, values, headers, and
// timestamps where they were given.
func (t *T) SameRecords(reader string, got, want []suite.Record, first int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s read %d records, want %d", reader, len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.Offset != first+int64(i) {
			t.Fatalf("%s: record %d has offset %d, want %d", reader, i, g.Offset, first+int64(i))
		}
		if !same(g.Key, w.Key) || !same(g.Value, w.Value) {
			t.Fatalf("%s: offset %d is %s = %s, want %s = %s", reader, g.Offset, show(g.Key), show(g.Value), show(w.Key), show(w.Value))
		}
		if !sameHeaders(g.Headers, w.Headers) {
			t.Fatalf("%s: offset %d has headers %v, want %v", reader, g.Offset, g.Headers, w.Headers)
		}
		if w.Timestamp != 0 && g.Timestamp != w.Timestamp {
			t.Fatalf("%s: offset %d has timestamp %d, want %d", reader, g.Offset, g.Timestamp, w.Timestamp)
		}
	}
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func sameHeaders(a, b []suite.Header) bool {
	return slices.EqualFunc(a, b, func(x, y suite.Header) bool { return x.Key == y.Key && same(x.Value, y.Value) })
}

func show(b []byte) string {
	if b == nil {
		return "null"
	}
	if len(b) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// Stored reads the batch headers of partition 0 from the node's segment files.
func (t *T) Stored(topic string) []harness.StoredBatch {
	t.Helper()
	batches, err := harness.StoredBatches(t.Node.DataDir(), topic, 0)
	t.Must(err, "read the segment files")
	if len(batches) == 0 {
		t.Fatalf("no batch is stored in %s", topic)
	}
	return batches
}

// FailsWith checks that err carries the named Kafka error.
func (t *T) FailsWith(err error, want, what string) {
	t.Helper()
	if got := suite.ErrorName(err); got != want {
		t.Fatalf("%s: error %q (%v), want %s", what, got, err, want)
	}
}

// createAndWait creates a topic and waits until the broker shows it: it learns of a new topic a little after the controller has
// answered, and some clients give up at once.
func createAndWait(ctx context.Context, ref *franz.Client, topic string, partitions int, configs map[string]string) error {
	if err := ref.CreateTopic(ctx, topic, partitions, configs); err != nil {
		return err
	}
	return suite.Eventually(ctx, func() error {
		n, err := ref.Partitions(ctx, topic)
		if err == nil && n != partitions {
			err = fmt.Errorf("the topic has %d partitions, want %d", n, partitions)
		}
		return err
	})
}

// as gives the client as one of the smaller interfaces; a client that lacks it should not have been listed.
func as[I any](t *T) I {
	t.Helper()
	c, ok := t.Client.(I)
	if !ok {
		t.Fatalf("%s is listed for this scenario but cannot express it", t.Client.Name())
	}
	return c
}
