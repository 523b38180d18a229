package group

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/record"
)

// TestKafkasLog loads a partition of __consumer_offsets that Apache Kafka 4.4.0 has
// written, batch by batch as it is, and wants of it what Kafka told of it itself:
// testdata/log-4.4.0/made is how it came about, consumer_offsets.log what was
// written, topics the cluster's topics, found what Kafka then told. With
// OTTLA_APACHE_KAFKA all of them are made anew (testdata/README.md).
func TestKafkasLog(t *testing.T) {
	const made, found = "testdata/log-4.4.0/made", "testdata/log-4.4.0/found"
	const written, topics = "testdata/log-4.4.0/consumer_offsets.log", "testdata/log-4.4.0/topics"
	run := func(s *story, step func() answers, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.rig.t, s.d = t, d
			a := step()
			return s.tidy(s.show(a))
		})
	}
	begin := func() *story {
		s := &story{rig: newRig(t, apacheSettings()), ids: map[string]string{}, timeless: true}
		s.addTopic("t", topicsOf["t"], 8)
		s.addTopic("u", topicsOf["u"], 8)
		return s
	}
	s := begin()
	if address := os.Getenv("OTTLA_APACHE_KAFKA"); address != "" {
		a := newApache(t, address, s)
		a.next = 0
		a.records()
		run(s, a.step, made)
		var list strings.Builder
		for _, name := range slices.Sorted(maps.Keys(a.topics)) {
			fmt.Fprintln(&list, name, a.topics[name])
		}
		if err := errors.Join(os.WriteFile(written, a.batches(), 0o644), os.WriteFile(topics, []byte(list.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
		s.hashes = nil
		run(s, a.step, found)
		return
	}
	run(s, s.coreStep, made)
	log, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	loaded := &story{rig: newRig(t, apacheSettings()), ids: map[string]string{}, timeless: true, topics: map[string]protocol.TopicID{}}
	list, err := os.ReadFile(topics)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, err := protocol.ParseUUID(text)
		if err != nil {
			t.Fatal(err)
		}
		loaded.topics[name] = id
		loaded.addTopic(name, id, map[string]int32{"t": 8, "u": 8, "lx-a": 3, "lx-b": 1}[name])
	}
	for _, c := range []*Coordinator{loaded.c, loaded.replica} {
		c.Resign()
		loaded.log = load(t, c, log)
	}
	loaded.activate()
	run(loaded, loaded.coreStep, found)
}

// load applies the batches of a log, and gives their records.
func load(t testing.TB, c *Coordinator, log []byte) (all []machine.Record) {
	t.Helper()
	for len(log) > 0 {
		batch, rest, err := record.Next(log)
		if err != nil {
			t.Fatal(err)
		}
		var records []machine.Record
		for r, err := range record.Records(batch, nil, 1<<20) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, machine.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		}
		if err := c.Apply(protocol.Offset(len(all)), 1, 0, records); err != nil {
			t.Fatal(err)
		}
		all, log = append(all, records...), rest
	}
	return all
}

// batches are the whole of __consumer_offsets-0 as it is on disk.
func (a *apache) batches() (log []byte) {
	for next := int64(0); ; {
		fetch := kmsg.NewPtrFetchRequest()
		fetch.Version, fetch.MaxBytes = 11, 1<<20
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = protocol.ConsumerOffsetsTopic
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.FetchOffset, partition.PartitionMaxBytes = next, 1<<20
		topic.Partitions = append(topic.Partitions, partition)
		fetch.Topics = append(fetch.Topics, topic)
		batches := (<-a.request(fetch, "oracle")).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
		if len(batches) == 0 {
			break
		}
		log = append(log, batches...)
		for len(batches) > 0 {
			batch, rest, err := record.Next(batches)
			if err != nil {
				a.t.Fatal(err)
			}
			next, batches = int64(batch.NextOffset()), rest
		}
	}
	return log
}
