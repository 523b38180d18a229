package record

import (
	"fmt"
	"iter"

	"ottla/protocol"
	"ottla/protocol/compress"
)

// TimestampType tells whose clock a timestamp is from (message.timestamp.type).
type TimestampType int8

// The timestamp types, by their value in the attribute bit.
const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
)

// String gives the value of message.timestamp.type.
func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// Header is one header of a record. A nil Value is null; the key cannot be.
type Header struct {
	Key   []byte
	Value []byte
}

// Record is one record of a batch. Key, Value and Headers alias the payload;
// nil is null, an empty slice is empty.
type Record struct {
	Attributes     int8  // unused so far, 0
	TimestampDelta int64 // from the batch's BaseTimestamp, in milliseconds
	OffsetDelta    int32 // from the batch's BaseOffset
	Offset         protocol.Offset
	Timestamp      int64 // milliseconds since 1970; the append time where the batch says so
	Key            []byte
	Value          []byte
	Headers        []Header
}

// MaxRecordBytes is the largest record that Apache Kafka can hold, and the
// default of max.decompressed.message.bytes.
const MaxRecordBytes = 2147483639

// Records walks over the records of a batch, decompressing it first if need be
// (at most limit bytes, else compress.ErrTooLarge). The walk ends after the
// first error, which comes with a zero Record; a payload that is not exactly
// Count records is one (ErrCorrupt). For an uncompressed batch the records
// alias b; for a compressed one they alias a buffer of their own, so they may
// be kept either way as long as b is.
func Records(b Batch, pool *compress.Pool, limit int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		payload, err := payloadOf(b, pool, limit)
		if err != nil {
			yield(Record{}, err)
			return
		}
		reader := newFramer(payload, b.Codec(), 0)
		at, count := 0, b.Count()
		for i := int32(0); i < count; i++ {
			f, bad := reader.read(at)
			if bad.kind != noFault {
				yield(Record{}, fmt.Errorf("%w: record %d of %d: %w", ErrCorrupt, i, count, bad))
				return
			}
			at = f.next
			if !yield(recordOf(b, reader, &f), nil) {
				return
			}
		}
		switch {
		case count < 0:
			yield(Record{}, fmt.Errorf("%w: it claims %d records", ErrCorrupt, count))
		case at != len(payload) && count > 0:
			yield(Record{}, fmt.Errorf("%w: %w", ErrCorrupt, fault{kind: faultLeft}))
		}
	}
}

func payloadOf(b Batch, pool *compress.Pool, limit int) ([]byte, error) {
	if b.Codec() == compress.None || b.Count() <= 0 {
		return b.Payload(), nil
	}
	payload, err := pool.Decompress(nil, b.Codec(), b.Payload(), limit)
	if err != nil {
		return nil, fmt.Errorf("the records cannot be read: %w", err)
	}
	return payload, nil
}

func recordOf(b Batch, reader framer, f *frame) Record {
	return Record{
		Attributes:     f.attributes,
		TimestampDelta: f.timestampDelta,
		OffsetDelta:    f.offsetDelta,
		Offset:         b.BaseOffset() + protocol.Offset(f.offsetDelta),
		Timestamp:      b.timestampOf(f),
		Key:            f.key.of(reader.payload),
		Value:          f.value.of(reader.payload),
		Headers:        reader.headers(f),
	}
}

func (b Batch) timestampOf(f *frame) int64 {
	if b.IsLogAppendTime() {
		return b.MaxTimestamp()
	}
	return b.BaseTimestamp() + f.timestampDelta
}
