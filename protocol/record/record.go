package record

import (
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

// Records walks over the records of a batch, decompressing it first if need be
// (at most limit bytes, else compress.ErrTooLarge). The walk ends after the
// first error, which comes with a zero Record; a payload that is not exactly
// Count records is one (ErrCorrupt). For an uncompressed batch the records
// alias b; for a compressed one they alias a buffer of their own, so they may
// be kept either way as long as b is.
func Records(b Batch, pool *compress.Pool, limit int) iter.Seq2[Record, error] {
	panic("todo")
}
