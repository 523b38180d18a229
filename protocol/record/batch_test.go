package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"ottla/protocol"
	"ottla/protocol/compress"
)

func sample(options Options) Batch {
	builder := NewBuilder(options)
	builder.Append(now, []byte("key"), []byte("value"), nil)
	builder.Append(now+1, nil, []byte("value"), []Header{{[]byte("h"), nil}})
	return builder.Build(compress.NewPool())
}

func TestNext(t *testing.T) {
	a, b := sample(PlainOptions()), sample(PlainOptions())
	buf := append(bytes.Clone(a), b...)
	batch, rest, err := Next(buf)
	if err != nil || !bytes.Equal(batch, a) || !bytes.Equal(rest, b) {
		t.Fatal(err)
	}
	if cap(batch) != len(batch) {
		t.Error("an append to the batch would write into the next one")
	}
	for n := range len(a) { // every beginning is short
		if _, _, err := Next(buf[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, magic := range []int8{0, 1, 3, -1} {
		old := bytes.Clone(a)
		old[posMagic] = byte(magic)
		if _, _, err := Next(old); !errors.Is(err, ErrMagic) || !errors.Is(err, ErrCorrupt) {
			t.Errorf("magic %d: %v", magic, err)
		}
	}
	for _, length := range []int32{math.MinInt32, -1, 0, 13, 14, 48} {
		bad := bytes.Clone(a)
		binary.BigEndian.PutUint32(bad[posLength:], uint32(length))
		if _, _, err := Next(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

func TestSizeOf(t *testing.T) {
	batch := sample(PlainOptions())
	if size, ok := SizeOf(batch[:LogOverhead]); size != len(batch) || !ok {
		t.Error(size, ok)
	}
	if _, ok := SizeOf(batch[:LogOverhead-1]); ok {
		t.Error("11 bytes tell no size")
	}
	if _, ok := SizeOf(make([]byte, LogOverhead)); ok {
		t.Error("no batch has no bytes")
	}
}

func TestSequencesWrap(t *testing.T) {
	for _, c := range []struct{ sequence, n, want int32 }{
		{0, 5, 5}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 3, 1}, {1, math.MaxInt32, 0},
	} {
		if got := AddSequence(c.sequence, c.n); got != c.want {
			t.Errorf("%d+%d = %d, want %d", c.sequence, c.n, got, c.want)
		}
	}
}

func TestSetters(t *testing.T) {
	batch := sample(PlainOptions())
	before := batch.CRC()
	batch.SetBaseOffset(1 << 40)
	batch.SetPartitionLeaderEpoch(9)
	if batch.BaseOffset() != 1<<40 || batch.LastOffset() != 1<<40+1 || batch.NextOffset() != 1<<40+2 || batch.PartitionLeaderEpoch() != 9 {
		t.Error("the offsets or the epoch are wrong")
	}
	if batch.CRC() != before || batch.CheckCRC() != nil {
		t.Error("offset and epoch are not covered by the checksum")
	}
	batch.SetLogAppendTime(now + 500)
	if !batch.IsLogAppendTime() || batch.MaxTimestamp() != now+500 || batch.BaseTimestamp() != now || batch.CRC() == before || batch.CheckCRC() != nil {
		t.Error("the append time is wrong")
	}
	for record, err := range Records(batch, nil, 0) {
		if err != nil || record.Timestamp != now+500 {
			t.Error(record.Timestamp, err)
		}
	}
	batch.SetMaxTimestamp(CreateTime, now+1)
	if batch.CRC() != before || batch.IsLogAppendTime() {
		t.Error("the way back is wrong")
	}
	batch[posCRC]++
	if err := batch.CheckCRC(); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	batch.SetMaxTimestamp(CreateTime, now+1) // already there: not even the checksum is renewed
	if batch.CheckCRC() == nil {
		t.Error("nothing was to be done")
	}
}

// Keys and values alias the batch and stay within themselves.
func TestRecordsAlias(t *testing.T) {
	batch := sample(PlainOptions())
	for record := range Records(batch, nil, 0) {
		if record.Key == nil {
			continue
		}
		copy(record.Key, "KEY")
		if cap(record.Key) != len(record.Key) {
			t.Error("an append to the key would write into the value")
		}
	}
	if !bytes.Contains(batch, []byte("KEY")) {
		t.Error("the key was copied")
	}
}

func TestRecordsStopAtTheFirstFault(t *testing.T) {
	pool := compress.NewPool()
	options := PlainOptions()
	for _, codec := range []compress.Codec{compress.None, compress.LZ4} {
		options.Codec = codec
		good := sample(options)
		for count, want := range map[int32]int{0: 0, 1: 1, 3: 2, -1: 0, math.MaxInt32: 2} {
			batch := bytes.Clone(good)
			binary.BigEndian.PutUint32(batch[posCount:], uint32(count))
			records, faults := 0, 0
			for _, err := range Records(batch, pool, maxTest) {
				if err == nil {
					records++
					continue
				}
				faults++
				if !errors.Is(err, ErrCorrupt) {
					t.Error(err)
				}
			}
			if wantFaults := min(1, int(uint32(count))); records != want || faults != wantFaults {
				t.Errorf("%v, count %d: %d records, %d faults", codec, count, records, faults)
			}
		}
	}
	options.Codec = compress.Gzip
	for _, err := range Records(sample(options), pool, 10) {
		if !errors.Is(err, compress.ErrTooLarge) {
			t.Error(err)
		}
	}
	for range Records(sample(options), pool, maxTest) {
		break // leaving early is allowed
	}
}

func TestVarints(t *testing.T) {
	for _, value := range []int64{0, -1, 1, 63, 64, -64, -65, 8191, 8192, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		data := appendVarint(nil, value)
		if len(data) != varintSize(value) {
			t.Errorf("%d takes %d bytes, not %d", value, len(data), varintSize(value))
		}
		if got, next := readVarlong(append(data, 0xff), 0); got != value || next != len(data) {
			t.Errorf("%d: %d, %d", value, got, next)
		}
		for n := range data {
			if _, next := readVarlong(data[:n], 0); next != varintCut {
				t.Errorf("%d cut to %d: %d", value, n, next)
			}
		}
		if value != int64(int32(value)) {
			continue
		}
		if got, next := readVarint(append(data, 0xff), 0); int64(got) != value || next != len(data) {
			t.Errorf("%d: %d, %d", value, got, next)
		}
	}
	if _, next := readVarint(bytes.Repeat([]byte{0x80}, 6), 0); next != varintTooLong {
		t.Error(next)
	}
	if _, next := readVarlong(bytes.Repeat([]byte{0x80}, 11), 0); next != varintTooLong {
		t.Error(next)
	}
}

func TestValidationOfOwnBatches(t *testing.T) {
	marker := BuildEndTxnMarker(EndTxnMarker{ControlCommit, 1}, now, 5, 0)
	v, _ := settings(t, "")
	v.Pool = compress.NewPool()
	if _, err := Validate(marker, v); protocol.CodeOf(err) != protocol.InvalidRecord {
		t.Errorf("a client's marker: %v", err)
	}
	v.Origin = FromCoordinator
	info, err := Validate(marker, v)
	if err != nil || info != (Info{MaxTimestamp: now, Count: 1, UncompressedSize: len(marker)}) {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestInfo(t *testing.T) {
	v, _ := settings(t, "")
	v.Pool = compress.NewPool()
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		options := PlainOptions()
		options.Codec = codec
		builder := NewBuilder(options)
		for _, ago := range []int64{9, 3, 7, 3} {
			builder.Append(now-ago, nil, []byte("value"), nil)
		}
		size := builder.SizeBytes()
		info, err := Validate(builder.Build(v.Pool), v)
		if err != nil || info != (Info{now - 3, 1, 4, size}) {
			t.Errorf("%v: %+v, %v", codec, info, err)
		}
	}
}

// A payload over the limit has its own code, and the errors are bounded.
func TestBounds(t *testing.T) {
	v, _ := settings(t, "cleanup.policy=compact")
	v.Pool = compress.NewPool()
	options := PlainOptions()
	options.Codec = compress.Zstd
	builder := NewBuilder(options)
	for range 5000 {
		builder.Append(now, nil, make([]byte, 100), nil)
	}
	batch := builder.Build(v.Pool)
	_, err := Validate(batch, v)
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Records) != maxRecordErrors || refused.Cause.Code != protocol.InvalidRecord {
		t.Errorf("%v", err)
	}
	v.MaxDecompressed = 100_000
	if _, err := Validate(batch, v); protocol.CodeOf(err) != protocol.MessageTooLarge {
		t.Errorf("%v", err)
	}
}
