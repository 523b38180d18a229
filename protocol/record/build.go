package record

import (
	"ottla/protocol"
	"ottla/protocol/compress"
)

// Options are the header fields of a batch to build. Mind the zero values: a
// batch of no idempotent producer has ProducerID, ProducerEpoch and
// BaseSequence -1, as PlainOptions gives them.
type Options struct {
	BaseOffset           protocol.Offset
	Codec                compress.Codec
	Level                int // of the codec, 0 is its default
	TimestampType        TimestampType
	LogAppendTime        int64 // milliseconds since 1970, for TimestampType LogAppendTime
	ProducerID           protocol.ProducerID
	ProducerEpoch        protocol.ProducerEpoch
	BaseSequence         int32
	Transactional        bool
	Control              bool
	PartitionLeaderEpoch protocol.LeaderEpoch
	BaseTimestamp        int64 // what deltas count from; NoTimestamp: the first record's
}

// PlainOptions are those of a batch without producer, epoch or compression.
func PlainOptions() Options {
	return Options{
		ProducerID: protocol.NoProducerID, ProducerEpoch: -1, BaseSequence: NoSequence,
		PartitionLeaderEpoch: protocol.NoLeaderEpoch, BaseTimestamp: NoTimestamp,
	}
}

// Builder collects records and makes a batch of them.
type Builder struct {
	options Options
}

// NewBuilder starts an empty batch.
func NewBuilder(options Options) *Builder { panic("todo") }

// Append adds a record at the next offset. Nil keys and values are null. The
// arguments are copied.
func (b *Builder) Append(timestampMs int64, key, value []byte, headers []Header) { panic("todo") }

// AppendAt adds a record at an offset of its own, which must rise; gaps are
// what compaction leaves.
func (b *Builder) AppendAt(offset protocol.Offset, timestampMs int64, key, value []byte, headers []Header) {
	panic("todo")
}

// Count is the number of records so far.
func (b *Builder) Count() int { panic("todo") }

// SizeBytes is the size the batch would have without compression.
func (b *Builder) SizeBytes() int { panic("todo") }

// Build makes the batch. The pool may be nil without compression.
func (b *Builder) Build(pool *compress.Pool) Batch { panic("todo") }

// Recompress rebuilds a batch under another codec, as Kafka does where
// compression.type is not the producer's: the records and every other header
// field stay, sizes and checksum are renewed. limit bounds the decompressed size.
func Recompress(b Batch, target compress.Codec, level int, pool *compress.Pool, limit int) (Batch, error) {
	panic("todo")
}
