package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"ottla/protocol/compress"
)

// allocated runs f and gives the bytes it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// budget is what may be allocated for an input, and for a compressed one what
// its decoder and the output up to limit take.
func budget(size int, compressed bool, limit int) uint64 {
	bound := uint64(64*size + 64<<10)
	if compressed {
		bound += uint64(4*limit + 2<<20)
	}
	return bound
}

func seeds(f *testing.F) {
	for _, row := range table(f, "batches/java-written.tsv") {
		f.Add(unbase64(f, row[1]))
	}
	for i, row := range table(f, "validate/verdicts.tsv") {
		if i%20 == 0 {
			f.Add(unbase64(f, row[2]))
		}
	}
}

func FuzzNext(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var batches []Batch
		total := 0
		got := allocated(func() {
			for rest := data; ; {
				batch, after, err := Next(rest)
				if err != nil {
					if !errors.Is(err, ErrShort) && !errors.Is(err, ErrCorrupt) {
						t.Error(err)
					}
					break
				}
				if len(batch) < HeaderSize || len(batch)+len(after) != len(rest) {
					t.Fatalf("%d and %d of %d", len(batch), len(after), len(rest))
				}
				batches, rest, total = append(batches, batch), after, total+len(batch)
			}
		})
		if bound := budget(len(data), false, 0); got > bound {
			t.Errorf("%d bytes allocated, more than %d", got, bound)
		}
		if !bytes.Equal(bytes.Join(asSlices(batches), nil), data[:total]) {
			t.Error("the batches are not the data")
		}
		if batch, err := OneBatch(data); err == nil && !bytes.HasPrefix(data, batch) {
			t.Error("the batch is not the beginning")
		}
	})
}

func asSlices(batches []Batch) [][]byte {
	slices := make([][]byte, len(batches))
	for i, batch := range batches {
		slices[i] = batch
	}
	return slices
}

const fuzzLimit = 256 << 10

// asBatch makes a batch of any data: its length, format and checksum are right.
func asBatch(data []byte) Batch {
	batch := Batch(bytes.Clone(data))
	if len(batch) < HeaderSize {
		batch = append(batch, make([]byte, HeaderSize-len(batch))...)
	}
	batch[posMagic] = Magic2
	return seal(batch)
}

func FuzzRecords(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		batch := asBatch(data)
		count := 0
		got := allocated(func() {
			for _, err := range Records(batch, compress.NewPool(), fuzzLimit) {
				if err == nil {
					count++
				}
			}
		})
		if bound := budget(len(batch), batch.Codec() != compress.None, 24*fuzzLimit); got > bound { // 24: headers
			t.Errorf("%d bytes allocated, more than %d", got, bound)
		}
		if count > int(max(batch.Count(), 0)) {
			t.Errorf("%d records of %d", count, batch.Count())
		}
	})
}

func FuzzValidate(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		batch := asBatch(data)
		batch.SetBaseOffset(0)
		if len(data) > 0 && data[0]&1 == 1 { // also such as pass the header's checks
			count := batch.Count()&0xff + 1
			binary.BigEndian.PutUint32(batch[posCount:], uint32(count))
			binary.BigEndian.PutUint32(batch[posLastOffsetDelta:], uint32(count-1))
			seal(batch)
		}
		v, _ := settings(t, "")
		v.MaxDecompressed, v.Compacted = fuzzLimit, batch.Size()%2 == 0
		v.Pool = compress.NewPool()
		before := bytes.Clone(batch)
		var info Info
		var err error
		got := allocated(func() { info, err = Validate(batch, v) })
		if bound := budget(len(batch), batch.Codec() != compress.None, 2*fuzzLimit); got > bound {
			t.Errorf("%d bytes allocated, more than %d", got, bound)
		}
		if !bytes.Equal(before, batch) {
			t.Error("the batch was changed")
		}
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) {
				t.Errorf("%v is not an *Error", err)
			}
			return
		}
		count := int32(0) // what is valid can be read
		for record, err := range Records(batch, v.Pool, fuzzLimit) {
			if err != nil || record.OffsetDelta != count {
				t.Fatalf("record %d: %v", count, err)
			}
			count++
		}
		if count != info.Count || count != batch.Count() {
			t.Errorf("%d records of %d", count, info.Count)
		}
	})
}

func FuzzControl(f *testing.F) {
	for _, row := range table(f, "batches/control.tsv") {
		f.Add([]byte(row[1]), []byte(row[2]))
	}
	for kind := ControlAbort; kind <= ControlKRaftVoters+1; kind++ {
		f.Add(ControlKey(kind), bytes.Repeat([]byte{0, 0, 3}, 20))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var parsed any
		var err error
		got := allocated(func() { parsed, err = parseControl(key, value) })
		if bound := budget(len(key)+len(value), false, 0); got > bound {
			t.Errorf("%d bytes allocated, more than %d", got, bound)
		}
		if err != nil {
			return
		}
		againKey, againValue := parsed.(control).Encode()
		if again, err := parseControl(againKey, againValue); err != nil {
			t.Errorf("%+v is not read again: %+v, %v", parsed, again, err)
		}
	})
}
