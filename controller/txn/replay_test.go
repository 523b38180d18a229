package txn

import (
	"errors"
	"strings"
	"testing"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// A log that ends between the two records of a transaction without partitions is
// gone on with at once.
func TestPreparedWithoutPartitions(t *testing.T) {
	r := newRig(t, settings())
	r.send(InitProducerID{TransactionalID: "x", TimeoutMs: 1000, Expected: NoProducer, Drawn: protocol.NoProducerID})
	producer := r.c.transactions["x"].durable.producer
	ended := r.send(EndTxn{TransactionalID: "x", Producer: producer, Version: Version2, Drawn: protocol.NoProducerID})
	if len(ended.records) != 2 {
		t.Fatalf("%d records", len(ended.records))
	}
	c := New(r.c.options)
	if err := c.Apply(0, 1, 0, append(r.log[:1:1], ended.records[0])); err != nil {
		t.Fatal(err)
	}
	result, err := c.Activate(machine.Turn{Now: r.now, Next: 2}, 1)
	if err != nil || len(result.Records) != 1 || string(result.Records[0].Value) != string(ended.records[1].Value) || len(result.Effects) > 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// What cannot be understood is refused; a key of a later version is passed over.
func TestStrangeRecords(t *testing.T) {
	r := newRig(t, settings())
	key := keyOf("x")
	if err := r.c.Apply(0, 1, 0, []machine.Record{{Key: []byte{0, 9, 1}, Value: []byte{1}}}); err != nil {
		t.Errorf("a key of an unknown type: %v", err)
	}
	var unknown *schema.UnknownRecordError
	if err := r.c.Apply(0, 1, 0, []machine.Record{{Key: key, Value: []byte{0, 99, 1}}}); !errors.As(err, &unknown) || unknown.Version != 99 {
		t.Errorf("a value of an unknown version: %v", err)
	}
	value := schema.NewTransactionLogValue()
	value.TransactionStatus = 6
	err := r.c.Apply(41, 1, 0, []machine.Record{{Key: key, Value: schema.AppendValue(nil, value, 1)}})
	if err == nil || !strings.Contains(err.Error(), "offset 41") || !strings.Contains(err.Error(), "state 6") {
		t.Errorf("a state that is never written: %v", err)
	}
	if _, err := r.c.Handle(r.turn(), "what"); protocol.CodeOf(err) != protocol.InvalidRequest {
		t.Errorf("a request that is none: %v", err)
	}
}

// FuzzApply: no bytes of a log make the core panic.
func FuzzApply(f *testing.F) {
	m := metadata{producer: Producer{5, 2}, previousID: 4, nextID: 6, state: PrepareCommit, partitions: []protocol.TopicPartition{{Topic: "t", Partition: 1}}}
	for version := range int16(3) {
		r := recordOf("x", &m, version)
		f.Add(r.Key, r.Value)
	}
	f.Add(keyOf("x"), []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := newRig(t, settings())
		if r.c.Apply(0, 1, 0, []machine.Record{{Key: key, Value: value}}) != nil {
			return
		}
		if _, err := r.c.Activate(machine.Turn{Now: r.now, Next: 1}, 2); err != nil {
			t.Fatal(err)
		}
	})
}
