package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"ottla/protocol"
	"ottla/protocol/compress"
)

// Sizes in bytes of the fixed parts of a batch.
const (
	// LogOverhead is the base offset and the length; the length counts what
	// follows it.
	LogOverhead = 12
	// HeaderSize is everything before the first record.
	HeaderSize = 61
)

// Magic2 is the only batch format written by Apache Kafka since 4.0.
const Magic2 = 2

// Where the header fields lie (KIP-98; DefaultRecordBatch.java).
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21 // the checksum covers everything from here
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
)

// The bits of the attributes.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
	attrKnown         = 0x7f
)

// minLegacyLength is the least length that the smallest message of format 0 has.
const minLegacyLength = 14

// NoSequence and NoTimestamp stand where a batch or record has none.
const (
	NoSequence  int32 = -1
	NoTimestamp int64 = -1
)

var (
	// ErrShort says that the buffer ends before the batch does.
	ErrShort = errors.New("the record batch is incomplete")
	// ErrCorrupt says that the bytes cannot be a record batch.
	ErrCorrupt = errors.New("the record batch is corrupt")
	// ErrMagic is the ErrCorrupt of a format other than 2.
	ErrMagic = fmt.Errorf("%w: its format is not 2", ErrCorrupt)
)

// Batch is exactly one whole record batch of format 2, as Next, OneBatch and
// Builder give it. Its methods panic on shorter slices.
type Batch []byte

// Next cuts the first batch off buf. ErrShort means that buf holds only the
// beginning of one (or nothing); ErrCorrupt and ErrMagic that what stands
// there is no batch of format 2. The checksum is not looked at.
func Next(buf []byte) (batch Batch, rest []byte, err error) {
	if len(buf) < posMagic+1 {
		return nil, buf, ErrShort
	}
	length := int(int32(binary.BigEndian.Uint32(buf[posLength:])))
	if length < minLegacyLength {
		return nil, buf, fmt.Errorf("%w: its length field says %d bytes", ErrCorrupt, length)
	}
	if magic := int8(buf[posMagic]); magic != Magic2 {
		return nil, buf, fmt.Errorf("%w but %d", ErrMagic, magic)
	}
	if length < HeaderSize-LogOverhead {
		return nil, buf, fmt.Errorf("%w: its length field says %d bytes, less than a header", ErrCorrupt, length)
	}
	if len(buf)-LogOverhead < length {
		return nil, buf, ErrShort
	}
	size := LogOverhead + length
	return Batch(buf[:size:size]), buf[size:], nil
}

// SizeOf tells the whole size in bytes that the batch beginning in buf claims;
// ok is false if buf has less than LogOverhead bytes or the length is negative
// or impossibly small.
func SizeOf(buf []byte) (sizeBytes int, ok bool) {
	if len(buf) < LogOverhead {
		return 0, false
	}
	length := int(int32(binary.BigEndian.Uint32(buf[posLength:])))
	return LogOverhead + length, length >= minLegacyLength
}

func (b Batch) int64At(pos int) int64 { return int64(binary.BigEndian.Uint64(b[pos:])) }
func (b Batch) int32At(pos int) int32 { return int32(binary.BigEndian.Uint32(b[pos:])) }
func (b Batch) int16At(pos int) int16 { return int16(binary.BigEndian.Uint16(b[pos:])) }

// BaseOffset is the offset of the first record (even if compaction removed it).
func (b Batch) BaseOffset() protocol.Offset { return protocol.Offset(b.int64At(posBaseOffset)) }

// LastOffset is the offset of the last record (even if compaction removed it).
func (b Batch) LastOffset() protocol.Offset {
	return b.BaseOffset() + protocol.Offset(b.LastOffsetDelta())
}

// NextOffset is the offset that follows the batch.
func (b Batch) NextOffset() protocol.Offset { return b.LastOffset() + 1 }

// Size is the number of bytes of the whole batch.
func (b Batch) Size() int { return len(b) }

// PartitionLeaderEpoch is the epoch of the leader that appended the batch.
func (b Batch) PartitionLeaderEpoch() protocol.LeaderEpoch {
	return protocol.LeaderEpoch(b.int32At(posLeaderEpoch))
}

// Magic is the batch format.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// CRC is the checksum that stands in the batch.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[posCRC:]) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ComputeCRC calculates the checksum: CRC-32C from the attributes to the end,
// so neither the base offset nor the leader epoch is covered.
func (b Batch) ComputeCRC() uint32 { return crc32.Checksum(b[posAttributes:], castagnoli) }

// CheckCRC compares the two; the error wraps ErrCorrupt.
func (b Batch) CheckCRC() error {
	if stored, computed := b.CRC(), b.ComputeCRC(); stored != computed {
		return fmt.Errorf("%w: Record is corrupt (stored crc = %d, computed crc = %d)", ErrCorrupt, stored, computed)
	}
	return nil
}

// Attributes are all sixteen attribute bits.
func (b Batch) Attributes() int16 { return b.int16At(posAttributes) }

func (b Batch) has(bit int16) bool { return b.Attributes()&bit != 0 }

// Codec is how the payload is compressed; it may be a number that does not exist.
func (b Batch) Codec() compress.Codec { return compress.Codec(b.Attributes() & attrCodec) }

// IsLogAppendTime tells that MaxTimestamp is the time of the append and counts
// for every record.
func (b Batch) IsLogAppendTime() bool { return b.has(attrLogAppendTime) }

// TimestampType tells whose time the timestamps are.
func (b Batch) TimestampType() TimestampType {
	if b.IsLogAppendTime() {
		return LogAppendTime
	}
	return CreateTime
}

// IsTransactional tells that the batch is part of a transaction.
func (b Batch) IsTransactional() bool { return b.has(attrTransactional) }

// IsControl tells that the records are control records, see control.go.
func (b Batch) IsControl() bool { return b.has(attrControl) }

// HasDeleteHorizon tells that BaseTimestamp is the time after which compaction
// may remove the batch's tombstones (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b.has(attrDeleteHorizon) }

// LastOffsetDelta is the distance from the first offset to the last.
func (b Batch) LastOffsetDelta() int32 { return b.int32At(posLastOffsetDelta) }

// BaseTimestamp is what the records' timestamp deltas count from, in
// milliseconds since 1970.
func (b Batch) BaseTimestamp() int64 { return b.int64At(posBaseTimestamp) }

// MaxTimestamp is the largest timestamp, in milliseconds since 1970.
func (b Batch) MaxTimestamp() int64 { return b.int64At(posMaxTimestamp) }

// ProducerID is the idempotent producer, or protocol.NoProducerID.
func (b Batch) ProducerID() protocol.ProducerID { return protocol.ProducerID(b.int64At(posProducerID)) }

// HasProducerID tells whether the producer is idempotent; as in Kafka any
// negative id is none.
func (b Batch) HasProducerID() bool { return b.ProducerID() > protocol.NoProducerID }

// ProducerEpoch is the incarnation of the producer, or -1.
func (b Batch) ProducerEpoch() protocol.ProducerEpoch {
	return protocol.ProducerEpoch(b.int16At(posProducerEpoch))
}

// BaseSequence is the producer's number of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 { return b.int32At(posBaseSequence) }

// LastSequence is the producer's number of the last record: after the largest
// int32 comes 0. It is NoSequence if the batch has no sequence.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// AddSequence counts a sequence number on by n, wrapping from the largest
// int32 to 0 (DefaultRecordBatch.incrementSequence).
func AddSequence(sequence, n int32) int32 {
	const largest = 1<<31 - 1
	if sequence > largest-n {
		return n - (largest - sequence) - 1
	}
	return sequence + n
}

// Count is the number of records that the header claims.
func (b Batch) Count() int32 { return b.int32At(posCount) }

// Payload is the records, compressed if the batch is.
func (b Batch) Payload() []byte { return b[HeaderSize:] }

// SetBaseOffset writes the offset of the first record. The checksum does not
// cover it.
func (b Batch) SetBaseOffset(offset protocol.Offset) {
	binary.BigEndian.PutUint64(b[posBaseOffset:], uint64(offset))
}

// SetPartitionLeaderEpoch writes the leader's epoch. The checksum does not
// cover it.
func (b Batch) SetPartitionLeaderEpoch(epoch protocol.LeaderEpoch) {
	binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(epoch))
}

// SetLogAppendTime makes ms the time of every record: the attribute bit and
// MaxTimestamp are written and the checksum renewed; BaseTimestamp stays.
func (b Batch) SetLogAppendTime(ms int64) { b.SetMaxTimestamp(LogAppendTime, ms) }

// SetMaxTimestamp writes the timestamp type and the largest timestamp, and
// renews the checksum; where both stand there already it does nothing. Apache
// Kafka does this for each batch it validated, which corrects a header whose
// maximum was not that of its records.
func (b Batch) SetMaxTimestamp(kind TimestampType, ms int64) {
	if b.TimestampType() == kind && b.MaxTimestamp() == ms {
		return
	}
	attributes := b.Attributes() & (attrKnown &^ attrLogAppendTime) // as Kafka, which forgets the others here
	if kind == LogAppendTime {
		attributes |= attrLogAppendTime
	}
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(attributes))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ms))
	b.renewCRC()
}

func (b Batch) renewCRC() { binary.BigEndian.PutUint32(b[posCRC:], b.ComputeCRC()) }
