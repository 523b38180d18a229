package record

import (
	"ottla/protocol"
	"ottla/protocol/compress"
)

// Origin tells who wants a batch appended, which decides the checks
// (AppendOrigin.java).
type Origin int8

// The origins that Validate tells apart.
const (
	FromClient      Origin = iota // a producer: nothing is taken on trust
	FromCoordinator               // this node's coordinators, markers included
)

// Validation is what a batch is held against.
type Validation struct {
	TopicPartition  protocol.TopicPartition // for the sentences
	Now             int64                   // milliseconds since 1970
	Compacted       bool                    // cleanup.policy has compact: no null keys
	TimestampType   TimestampType           // message.timestamp.type
	BeforeMaxMs     int64                   // message.timestamp.before.max.ms
	AfterMaxMs      int64                   // message.timestamp.after.max.ms
	MaxDecompressed int                     // bytes that a payload may expand to
	Pool            *compress.Pool
	Origin          Origin
	AllowZstd       bool // false for Produce before version 7
}

// Info is what Validate learned on the way.
type Info struct {
	MaxTimestamp int64 // the append time for LogAppendTime, else the records' maximum
	// OffsetDeltaOfMaxTimestamp is that of the first record with MaxTimestamp.
	OffsetDeltaOfMaxTimestamp int32
	Count                     int32
	UncompressedSize          int  // bytes of the batch were it not compressed
	Rebuild                   bool // the caller must Recompress, even to the same codec: see Validate
}

// RecordError is one refused record, as Produce v8 and later report it (KIP-467).
type RecordError struct {
	BatchIndex int32
	Message    string
}

// Error is a refusal of a batch: the code and sentence for the client and, for
// some, the records at fault.
type Error struct {
	*protocol.Error
	Records []RecordError
}

// Unwrap lets protocol.CodeOf find the code.
func (e *Error) Unwrap() error { return e.Error }

// OneBatch takes the records of one partition of a Produce request, which must
// be exactly one batch of format 2 (ProduceRequest.validateRecords). The error
// is an *Error.
func OneBatch(records []byte) (Batch, error) { panic("todo") }

// Validate checks a batch as LogValidator of Apache Kafka 4.4.0 does before an
// append. The batch is not changed. The error is an *Error.
func Validate(b Batch, v Validation) (Info, error) { panic("todo") }
