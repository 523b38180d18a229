package schema

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestUnknownRecords(t *testing.T) {
	for _, c := range []struct {
		value   []byte
		key     int16
		version int16
		text    string
	}{
		{[]byte{1, 6, 0}, 6, 0, "unknown type 6 (version 0)"},
		{[]byte{1, 0xc8, 1, 3, 9, 9}, 200, 3, "unknown type 200 (version 3)"},
		{[]byte{1, 2, 1, 0}, 2, 1, "TopicRecord of the unknown version 1"},
	} {
		_, _, err := DecodeMetadata(c.value)
		var unknown *UnknownRecordError
		if !errors.As(err, &unknown) || unknown.Key != c.key || unknown.Version != c.version || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%x gives %v", c.value, err)
		}
	}
	var unknown *UnknownRecordError
	if _, err := DecodeKey(GroupLog, []byte{0, 9, 0, 0}); !errors.As(err, &unknown) || unknown.Key != 9 {
		t.Errorf("a group key of type 9 gives %v", err)
	}
	if _, _, err := DecodeValue(GroupLog, 2, []byte{0, 5}); !errors.As(err, &unknown) || unknown.Version != 5 {
		t.Errorf("a group value of version 5 gives %v", err)
	}
}

func TestDamagedRecords(t *testing.T) {
	for name, value := range map[string][]byte{
		"nothing":                {},
		"another frame":          {0, 2, 0, 0},
		"a type above int16":     {1, 0xff, 0xff, 0xff, 0x0f, 0},
		"an endless varint":      {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a varint above uint32":  {1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},
		"a string past the end":  {1, 2, 0, 50, 'a'},
		"a null name":            append([]byte{1, 2, 0, 0}, make([]byte, 17)...),
		"leftover bytes":         append([]byte{1, 20, 0, 0}, 0),
		"tags out of order":      {1, 20, 0, 2, 9, 0, 8, 0},
		"a tag twice":            {1, 20, 0, 2, 9, 0, 9, 0},
		"a tag past the end":     {1, 20, 0, 1, 9, 4, 0},
		"leftovers in a tag":     {1, 23, 0, 1, 0, 3, 2, 'a', 'b'},
		"an array past the end":  {1, 10, 0, 1, 1, 200, 0},
		"a count near the limit": {1, 10, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		if record, _, err := DecodeMetadata(value); err == nil {
			t.Errorf("%s is read as %+v", name, record)
		}
	}
}

// TestTruncated cuts every golden at every byte: each is an error, except for
// a cut that leaves a whole record, which there is none of.
func TestTruncated(t *testing.T) {
	for _, g := range goldens(t) {
		if g.kind != "metadata" {
			continue
		}
		for n := range g.bytes {
			if _, _, err := DecodeMetadata(g.bytes[:n]); err == nil {
				t.Errorf("%v: %d of %d bytes are read as a whole record", g, n, len(g.bytes))
			}
		}
	}
}

func TestNothingSetIsDropped(t *testing.T) {
	partition := NewPartitionRecord()
	partition.LastKnownELR = append(partition.LastKnownELR, 3)
	if err := partition.Check(2); err != nil {
		t.Error(err)
	}
	if err := partition.Check(1); err == nil || !strings.Contains(err.Error(), "lastKnownElr") {
		t.Errorf("version 1 has no last known ELR, and Check says %v", err)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "PartitionRecord version 1") {
			t.Errorf("encoding it panics with %q", text)
		}
	}()
	EncodeMetadata(partition, 1)
}

func TestIgnorableIsDropped(t *testing.T) {
	value := NewOffsetCommitValue()
	value.LeaderEpoch = 7
	if err := value.Check(1); err != nil {
		t.Errorf("Kafka drops the leader epoch at version 1, and Check says %v", err)
	}
}

// TestTagOfALaterVersion keeps a tag that is unknown at one version and refuses
// to write it where it would be a field twice over.
func TestTagOfALaterVersion(t *testing.T) {
	record := NewRegisterBrokerRecord()
	record.UnknownTags = []Tag{{Number: 1, Value: []byte{1}}}
	if err := record.Check(3); err != nil {
		t.Error(err)
	}
	again := NewRegisterBrokerRecord()
	if err := again.ReadFrom(record.AppendTo(nil, 3), 3); err != nil || len(again.UnknownTags) != 1 {
		t.Errorf("read back as %+v, %v", again, err)
	}
	if err := record.Check(4); err == nil {
		t.Error("tag 1 is a field of version 4 and is accepted as unknown")
	}
}

// allocated is the heap that a call asks for.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func checkBudget(t *testing.T, input []byte, call func()) {
	t.Helper()
	budget := uint64(64*len(input) + 64<<10)
	if used := allocated(call); used > budget {
		// Other goroutines of the test binary allocate too: the least of
		// a few tries is the decoder's own.
		for range 3 {
			used = min(used, allocated(call))
		}
		if used > budget {
			t.Errorf("%d bytes of input allocate %d, more than %d", len(input), used, budget)
		}
	}
}

// TestAllocationBudget reads the input that costs most for its size: arrays of
// the smallest structs.
func TestAllocationBudget(t *testing.T) {
	const n = 1 << 18
	quota := append([]byte{1, 14, 0}, appendUvarint(nil, n+1)...)
	quota = append(quota, bytes.Repeat([]byte{1, 0, 0}, n)...)
	quota = append(quota, make([]byte, 1+8+1+1)...)
	checkBudget(t, quota, func() { _, _, _ = DecodeMetadata(quota) })

	renewers := append([]byte{1, 10, 0, 1, 1}, appendUvarint(nil, n+1)...)
	renewers = append(renewers, bytes.Repeat([]byte{1}, n)...)
	checkBudget(t, renewers, func() { _, _, _ = DecodeMetadata(renewers) })

	tags := append([]byte{1, 20, 0}, appendUvarint(nil, n)...)
	for number := range uint32(n) {
		tags = append(appendUvarint(tags, number), 0)
	}
	checkBudget(t, tags, func() { _, _, _ = DecodeMetadata(tags) })
}

func FuzzDecodeMetadata(f *testing.F) {
	for _, g := range goldens(f) {
		if g.kind == "metadata" {
			f.Add(g.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var record MetadataRecord
		var version int16
		var err error
		checkBudget(t, value, func() { record, version, err = DecodeMetadata(value) })
		if err != nil {
			return
		}
		_ = JSON(record, version)
		first := EncodeMetadata(record, version)
		again, _, err := DecodeMetadata(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second := EncodeMetadata(again, version); !bytes.Equal(first, second) {
			t.Errorf("written as %x, and after reading it as %x", first, second)
		}
	})
}

func FuzzDecodeCoordinator(f *testing.F) {
	for _, g := range goldens(f) {
		log := map[string]Log{"group": GroupLog, "transaction": TransactionLog, "share": ShareLog}[g.log]
		if g.kind != "metadata" {
			f.Add(int8(log), g.kind == "key", g.key, g.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, log int8, isKey bool, number int16, src []byte) {
		if isKey {
			checkBudget(t, src, func() {
				if key, err := DecodeKey(Log(log), src); err == nil && !bytes.Equal(AppendKey(nil, key), src) {
					t.Errorf("a key is written as %x", AppendKey(nil, key))
				}
			})
			return
		}
		var value Value
		var version int16
		var err error
		checkBudget(t, src, func() { value, version, err = DecodeValue(Log(log), number, src) })
		if err != nil {
			return
		}
		first := AppendValue(nil, value, version)
		again, _, err := DecodeValue(Log(log), number, first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second := AppendValue(nil, again, version); !bytes.Equal(first, second) {
			t.Errorf("written as %x, and after reading it as %x", first, second)
		}
	})
}
