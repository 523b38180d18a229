package metadata

import (
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/schema"
)

func batchOf(base protocol.Offset, records ...schema.MetadataRecord) Batch {
	batch := Batch{BaseOffset: base, LastOffset: base + protocol.Offset(len(records)) - 1, Epoch: 3, TimestampMs: 1000 + int64(base)}
	for _, r := range records {
		batch.Values = append(batch.Values, schema.EncodeMetadata(r, MaxMetadataVersion.RecordVersion(r)))
	}
	return batch
}

func begin() schema.MetadataRecord  { return schema.NewBeginTransactionRecord() }
func end() schema.MetadataRecord    { return schema.NewEndTransactionRecord() }
func aborts() schema.MetadataRecord { return schema.NewAbortTransactionRecord() }

// TestTransactions plays batches with the marks of KIP-868 and says after each
// which topics are published; "-" is a batch that publishes nothing.
func TestTransactions(t *testing.T) {
	a, b, c := topicRecord("a", protocol.TopicID{1}), topicRecord("b", protocol.TopicID{2}), topicRecord("c", protocol.TopicID{3})
	for name, steps := range map[string][]struct {
		records []schema.MetadataRecord
		want    string
	}{
		"without": {{[]schema.MetadataRecord{a}, "a"}, {[]schema.MetadataRecord{b}, "a b"}},
		"ended in one batch": {
			{[]schema.MetadataRecord{begin(), a, b, end()}, "a b"}, {[]schema.MetadataRecord{c}, "a b c"},
		},
		"ended over batches": {
			{[]schema.MetadataRecord{begin()}, "-"}, {[]schema.MetadataRecord{a}, "-"}, {[]schema.MetadataRecord{b, end()}, "a b"},
		},
		"begun in the middle": {
			{[]schema.MetadataRecord{a, begin(), b}, "-"}, {[]schema.MetadataRecord{end(), c}, "a b c"},
		},
		"aborted in one batch": {{[]schema.MetadataRecord{a, begin(), b, aborts(), c}, "a c"}},
		"aborted over batches": {
			{[]schema.MetadataRecord{a}, "a"},
			{[]schema.MetadataRecord{begin(), b}, "-"},
			{[]schema.MetadataRecord{c}, "-"},
			{[]schema.MetadataRecord{aborts()}, "a"},
			{[]schema.MetadataRecord{b}, "a b"},
		},
		"twice": {
			{[]schema.MetadataRecord{begin(), a, end(), begin(), b, aborts(), begin(), c}, "-"}, {[]schema.MetadataRecord{end()}, "a c"},
		},
	} {
		loader := NewLoader()
		offset := protocol.Offset(10)
		for at, step := range steps {
			batch := batchOf(offset, step.records...)
			delta, image, err := loader.Apply(batch)
			if err != nil {
				t.Fatalf("%s, batch %d: %v", name, at, err)
			}
			offset = batch.LastOffset + 1
			if (image == nil) != (step.want == "-") || (delta == nil) != (image == nil) || loader.InTransaction() != (image == nil) {
				t.Fatalf("%s, batch %d: published is %t", name, at, image != nil)
			}
			if image == nil {
				continue
			}
			var names []string
			for topic := range image.Topics() {
				names = append(names, topic.Name)
			}
			if got := strings.Join(names, " "); got != step.want || loader.Image() != image {
				t.Errorf("%s, batch %d: the topics are %q and not %q", name, at, got, step.want)
			}
			if want := (Provenance{batch.LastOffset, 3, batch.TimestampMs}); image.Provenance() != want {
				t.Errorf("%s, batch %d: the provenance is %+v and not %+v", name, at, image.Provenance(), want)
			}
		}
	}
}

func TestTransactionMarksOutOfPlace(t *testing.T) {
	for name, records := range map[string][]schema.MetadataRecord{
		"a second begin":         {begin(), begin()},
		"an end without begin":   {end()},
		"an abort without begin": {aborts()},
		"a second end":           {begin(), end(), end()},
	} {
		if _, _, err := NewLoader().Apply(batchOf(0, records...)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestBatchesInOrder(t *testing.T) {
	loader := NewLoader()
	if _, _, err := loader.Apply(batchOf(0, begin(), end())); err != nil {
		t.Fatal(err)
	}
	// A control batch has no records that the image sees and moves the offset.
	_, image, err := loader.Apply(Batch{BaseOffset: 2, LastOffset: 2, Epoch: 4, TimestampMs: 5})
	if err != nil || image.Provenance() != (Provenance{2, 4, 5}) {
		t.Errorf("a control batch gives %v, %v", image, err)
	}
	if _, _, err := loader.Apply(batchOf(2, begin())); err == nil {
		t.Error("an offset is applied twice")
	}
}

// TestLoadSnapshot goes from one state to an unrelated one, of which a part is
// equal: only the rest may be reported.
func TestLoadSnapshot(t *testing.T) {
	loader := NewLoader()
	same := []schema.MetadataRecord{topicRecord("same", protocol.TopicID{1}), partitionRecord(protocol.TopicID{1}, 0, 1), brokerRecord(1, 5)}
	_, _, err := loader.Apply(batchOf(0, append(same, topicRecord("gone", protocol.TopicID{2}), brokerRecord(2, 6), begin())...))
	if err != nil {
		t.Fatal(err)
	}
	values := batchOf(0, append(same, topicRecord("new", protocol.TopicID{3}), brokerRecord(2, 7))...).Values
	delta, image, err := loader.LoadSnapshot(Provenance{99, 8, 7}, onlyValues(values))
	if err != nil {
		t.Fatal(err)
	}
	if image.Topic("gone") != nil || image.TopicCount() != 2 || image.Provenance() != (Provenance{99, 8, 7}) || loader.InTransaction() {
		t.Errorf("the snapshot gives %d topics at %+v", image.TopicCount(), image.Provenance())
	}
	// The batch above was never published, so all of the snapshot is new.
	if changes := delta.Changes(); len(changes.Topics) != 2 || len(changes.DeletedTopics) != 0 {
		t.Errorf("the changes are %+v", changes)
	}
	delta, _, err = loader.LoadSnapshot(Provenance{120, 8, 7}, onlyValues(values[:4]))
	if err != nil {
		t.Fatal(err)
	}
	changes := delta.Changes()
	if len(changes.Topics) != 0 || len(changes.DeletedTopics) != 0 || len(changes.Brokers) != 1 || changes.Brokers[0] != 2 {
		t.Errorf("the changes are %+v", changes)
	}
	if _, _, err := loader.Apply(batchOf(100)); err == nil {
		t.Error("a batch of before the snapshot is applied")
	}
}

func TestBadSnapshots(t *testing.T) {
	torn := func(yield func([]byte, error) bool) { yield(nil, errors.New("the disk is gone")) }
	for name, values := range map[string]iter.Seq2[[]byte, error]{
		"a read error":       torn,
		"an open end":        onlyValues(batchOf(0, begin(), topicRecord("a", protocol.TopicID{1})).Values),
		"a record too early": onlyValues(batchOf(0, partitionRecord(protocol.TopicID{1}, 0, 1)).Values),
	} {
		loader := NewLoader()
		if _, _, err := loader.LoadSnapshot(Provenance{Offset: 9}, values); err == nil || !strings.Contains(err.Error(), "snapshot of offset 9") {
			t.Errorf("%s gives %v", name, err)
		}
		if loader.Image().Provenance().Offset != protocol.NoOffset {
			t.Errorf("%s is published", name)
		}
	}
}

// FuzzLoader feeds any records: nothing may panic, reading them stays within its
// budget, and what is accepted must come back from its snapshot.
func FuzzLoader(f *testing.F) {
	for _, batch := range batches(f, "00000000000000000000.log") {
		var seed []byte
		for _, value := range batchValues(f, batch) {
			seed = append(append(seed, byte(len(value)>>8), byte(len(value))), value...)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		batch, size := Batch{LastOffset: -1}, len(input)
		for len(input) >= 2 {
			n := min(int(input[0])<<8|int(input[1]), len(input)-2)
			batch.Values = append(batch.Values, input[2:2+n])
			batch.LastOffset++
			input = input[2+n:]
		}
		loader := NewLoader()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, image, err := loader.Apply(batch)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*size+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, size)
		}
		if err != nil || image == nil {
			return
		}
		var values [][]byte
		var cannot error // a record of an old version with a tagged field that only a newer one knows
		image.Records(MaxMetadataVersion, func(r schema.MetadataRecord, v int16) {
			if err := r.Check(v); err != nil {
				cannot = err
				return
			}
			values = append(values, schema.EncodeMetadata(r, v))
		})
		if cannot != nil {
			return
		}
		_, again, err := NewLoader().LoadSnapshot(image.Provenance(), onlyValues(values))
		if err != nil {
			t.Fatalf("the snapshot cannot be read: %v", err)
		}
		if again.TopicCount() != image.TopicCount() || again.PartitionCount() != image.PartitionCount() || again.BrokerCount() != image.BrokerCount() {
			t.Errorf("the snapshot has lost something: %+v", Diff(image, again))
		}
	})
}
