package record

import (
	"encoding/binary"
	"fmt"

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

	// The rest is for compaction, which keeps the range of offsets when records
	// go, and for KIP-534.
	LastOffset    protocol.Offset // of the batch, if larger than that of its last record
	DeleteHorizon bool            // BaseTimestamp is the delete horizon
}

// PlainOptions are those of a batch without producer, epoch or compression.
func PlainOptions() Options {
	return Options{
		ProducerID: protocol.NoProducerID, ProducerEpoch: -1, BaseSequence: NoSequence,
		PartitionLeaderEpoch: protocol.NoLeaderEpoch, BaseTimestamp: NoTimestamp,
	}
}

// OptionsOf are those that rebuild a batch with its offsets, producer and
// timestamps, to be filled with the records that are to stay.
func OptionsOf(b Batch) Options {
	return Options{
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Codec: b.Codec(),
		TimestampType: b.TimestampType(), LogAppendTime: b.MaxTimestamp(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
		Transactional: b.IsTransactional(), Control: b.IsControl(),
		PartitionLeaderEpoch: b.PartitionLeaderEpoch(),
		BaseTimestamp:        b.BaseTimestamp(), DeleteHorizon: b.HasDeleteHorizon(),
	}
}

// Builder collects records and makes a batch of them.
type Builder struct {
	options       Options
	batch         []byte // the header's room, then the records uncompressed
	count         int32
	nextOffset    protocol.Offset
	baseTimestamp int64
	maxTimestamp  int64
}

// NewBuilder starts an empty batch.
func NewBuilder(options Options) *Builder {
	return &Builder{
		options: options, batch: make([]byte, HeaderSize, 512), nextOffset: options.BaseOffset,
		baseTimestamp: options.BaseTimestamp, maxTimestamp: NoTimestamp,
	}
}

// Append adds a record at the next offset. Nil keys and values are null. The
// arguments are copied.
func (b *Builder) Append(timestampMs int64, key, value []byte, headers []Header) {
	b.AppendAt(b.nextOffset, timestampMs, key, value, headers)
}

// AppendAt adds a record at an offset of its own, which must rise; gaps are
// what compaction leaves. It panics on an offset that does not, or lies more
// than an int32 after the first.
func (b *Builder) AppendAt(offset protocol.Offset, timestampMs int64, key, value []byte, headers []Header) {
	delta := int64(offset - b.options.BaseOffset)
	if offset < b.nextOffset || delta != int64(int32(delta)) {
		panic(fmt.Sprintf("record offsets rise within a batch: %d at %d from %d", offset, b.nextOffset, b.options.BaseOffset))
	}
	if b.count == 0 && b.options.BaseTimestamp == NoTimestamp && !b.options.DeleteHorizon {
		b.baseTimestamp = timestampMs
	}
	b.batch = appendRecord(b.batch, timestampMs-b.baseTimestamp, delta, key, value, headers)
	b.maxTimestamp = max(b.maxTimestamp, timestampMs)
	b.nextOffset = offset + 1
	b.count++
}

func appendRecord(dst []byte, timestampDelta, offsetDelta int64, key, value []byte, headers []Header) []byte {
	size := 1 + varintSize(timestampDelta) + varintSize(offsetDelta) + fieldSize(key) + fieldSize(value) + varintSize(int64(len(headers)))
	for _, header := range headers {
		size += varintSize(int64(len(header.Key))) + len(header.Key) + fieldSize(header.Value)
	}
	dst = appendVarint(dst, int64(size))
	dst = append(dst, 0)
	dst = appendVarint(dst, timestampDelta)
	dst = appendVarint(dst, offsetDelta)
	dst = appendField(dst, key)
	dst = appendField(dst, value)
	dst = appendVarint(dst, int64(len(headers)))
	for _, header := range headers {
		dst = appendVarint(dst, int64(len(header.Key))) // a header's key is never null
		dst = append(dst, header.Key...)
		dst = appendField(dst, header.Value)
	}
	return dst
}

func fieldSize(field []byte) int {
	if field == nil {
		return 1
	}
	return varintSize(int64(len(field))) + len(field)
}

func appendField(dst, field []byte) []byte {
	if field == nil {
		return appendVarint(dst, -1)
	}
	return append(appendVarint(dst, int64(len(field))), field...)
}

// Count is the number of records so far.
func (b *Builder) Count() int { return int(b.count) }

// NextOffset is where Append puts the next record.
func (b *Builder) NextOffset() protocol.Offset { return b.nextOffset }

// SizeBytes is the size the batch would have without compression.
func (b *Builder) SizeBytes() int { return len(b.batch) }

// Build makes the batch; the Builder is used up. The pool may be nil without
// compression. A batch without records is possible where LastOffset tells its
// range: that is what compaction leaves of a producer's last batch.
func (b *Builder) Build(pool *compress.Pool) Batch {
	last := max(b.options.LastOffset, b.nextOffset-1)
	if last < b.options.BaseOffset {
		panic("a batch covers at least one offset")
	}
	built := b.batch
	if b.options.Codec != compress.None && b.count > 0 {
		packed, err := pool.Compress(make([]byte, HeaderSize, HeaderSize+len(built)/2), b.options.Codec, b.options.Level, built[HeaderSize:])
		if err != nil {
			panic("a batch is built with a known codec: " + err.Error())
		}
		built = packed
	}
	maxTimestamp := b.maxTimestamp
	if b.options.TimestampType == LogAppendTime || b.count == 0 {
		maxTimestamp = b.options.LogAppendTime
	}
	binary.BigEndian.PutUint64(built[posBaseOffset:], uint64(b.options.BaseOffset))
	binary.BigEndian.PutUint32(built[posLeaderEpoch:], uint32(b.options.PartitionLeaderEpoch))
	built[posMagic] = Magic2
	binary.BigEndian.PutUint16(built[posAttributes:], uint16(b.options.attributes()))
	binary.BigEndian.PutUint32(built[posLastOffsetDelta:], uint32(last-b.options.BaseOffset))
	binary.BigEndian.PutUint64(built[posBaseTimestamp:], uint64(b.baseTimestamp))
	binary.BigEndian.PutUint64(built[posMaxTimestamp:], uint64(maxTimestamp))
	binary.BigEndian.PutUint64(built[posProducerID:], uint64(b.options.ProducerID))
	binary.BigEndian.PutUint16(built[posProducerEpoch:], uint16(b.options.ProducerEpoch))
	binary.BigEndian.PutUint32(built[posBaseSequence:], uint32(b.options.BaseSequence))
	binary.BigEndian.PutUint32(built[posCount:], uint32(b.count))
	b.batch = nil
	return seal(built)
}

// seal writes the length and the checksum.
func seal(batch Batch) Batch {
	binary.BigEndian.PutUint32(batch[posLength:], uint32(len(batch)-LogOverhead))
	batch.renewCRC()
	return batch
}

func (o Options) attributes() int16 {
	attributes := int16(o.Codec) & attrCodec
	if o.TimestampType == LogAppendTime {
		attributes |= attrLogAppendTime
	}
	if o.Transactional {
		attributes |= attrTransactional
	}
	if o.Control {
		attributes |= attrControl
	}
	if o.DeleteHorizon {
		attributes |= attrDeleteHorizon
	}
	return attributes
}

// Recompress rebuilds a batch under another codec, as Kafka does where
// compression.type is not the producer's: the records and every other header
// field stay, sizes and checksum are renewed. limit bounds the decompressed
// size in bytes (compress.ErrTooLarge). The new batch shares no bytes with b.
func Recompress(b Batch, target compress.Codec, level int, pool *compress.Pool, limit int) (Batch, error) {
	rebuilt := []byte(nil)
	var err error
	pool.Expand(b.Codec(), b.Payload(), limit, func(payload []byte, failure error) {
		if err = failure; err == nil {
			rebuilt = append(make([]byte, 0, HeaderSize+len(payload)/2), b[:HeaderSize]...)
			rebuilt, err = pool.Compress(rebuilt, target, level, payload)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("the batch cannot be recompressed: %w", err)
	}
	batch := Batch(rebuilt)
	binary.BigEndian.PutUint16(batch[posAttributes:], uint16(b.Attributes()&^attrCodec|int16(target)))
	return seal(batch), nil
}
