package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

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
	MaxDecompressed int                     // bytes that a payload may expand to: MESSAGE_TOO_LARGE above
	MaxRecordBytes  int                     // max.decompressed.message.bytes, of one record in a compressed batch; 0: Kafka's default
	Pool            *compress.Pool
	Origin          Origin
	AllowZstd       bool // false for Produce before version 7
}

// Info is what Validate learned on the way.
type Info struct {
	MaxTimestamp int64 // the append time for LogAppendTime, else the records' maximum or NoTimestamp
	// OffsetDeltaOfMaxTimestamp is that of the first record with MaxTimestamp.
	OffsetDeltaOfMaxTimestamp int32
	Count                     int32
	UncompressedSize          int // bytes of the batch were it not compressed
}

// RecordError is one refused record, as Produce v8 and later report it (KIP-467).
type RecordError struct {
	BatchIndex int32
	Message    string
}

// maxRecordErrors is how many refused records are told one by one; a small
// batch could expand to millions. Kafka has no such limit.
const maxRecordErrors = 1000

// Error is a refusal of a batch: the code and sentence for the client and, for
// some, the records at fault.
type Error struct {
	Cause   *protocol.Error
	Records []RecordError
	// NoBatch: what stands first has the length or the format of no batch; then
	// Apache Kafka sends the sentence, too.
	NoBatch bool
}

func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap lets protocol.CodeOf find the code.
func (e *Error) Unwrap() error { return e.Cause }

func refuse(code protocol.ErrorCode, format string, args ...any) *Error {
	return &Error{Cause: protocol.Errorf(code, format, args...)}
}

// OneBatch takes the records of one partition of a Produce request, which must
// be exactly one batch of format 2 (ProduceRequest.validateRecords). As in
// Kafka an incomplete batch behind it is cut off. The error is an *Error.
func OneBatch(records []byte) (Batch, error) {
	batch, rest, err := firstBatch(records)
	if err != nil {
		if refusal := (*Error)(nil); errors.As(err, &refusal) {
			refusal.NoBatch = true
		}
		return nil, err
	}
	if batch == nil {
		return nil, refuse(protocol.InvalidRecord, "Produce requests must have at least one record batch per partition")
	}
	if batch.Magic() != Magic2 {
		return nil, refuse(protocol.InvalidRecord, "Produce requests are only allowed to contain record batches with magic version 2")
	}
	if second, _, err := firstBatch(rest); err != nil {
		return nil, err
	} else if second != nil {
		return nil, refuse(protocol.InvalidRecord, "Produce requests are only allowed to contain exactly one record batch per partition")
	}
	if len(batch) < HeaderSize {
		return nil, refuse(protocol.CorruptMessage, "Record batch is corrupt (the size %d is smaller than the minimum allowed overhead 61)", len(batch))
	}
	return batch, nil
}

// firstBatch cuts a batch of any known format off, which may be shorter than a
// header of format 2; nil if there is none or not all of it
// (ByteBufferLogInputStream.java).
func firstBatch(buf []byte) (batch Batch, rest []byte, err error) {
	if len(buf) < LogOverhead {
		return nil, nil, nil
	}
	length := int(int32(binary.BigEndian.Uint32(buf[posLength:])))
	if length < minLegacyLength {
		return nil, nil, refuse(protocol.CorruptMessage, "Record size %d is less than the minimum record overhead (14)", length)
	}
	if len(buf) <= posMagic {
		return nil, nil, nil
	}
	if magic := int8(buf[posMagic]); magic < 0 || magic > Magic2 {
		return nil, nil, refuse(protocol.CorruptMessage, "Invalid magic found in record: %d", magic)
	}
	size := LogOverhead + length
	if len(buf) < size {
		return nil, nil, nil
	}
	return Batch(buf[:size:size]), buf[size:], nil
}

// Validate checks a batch as LogValidator of Apache Kafka 4.4.0 does before an
// append, and UnifiedLog before that: the header, then every record. The batch
// is not changed; the caller stamps it afterwards, and calls SetMaxTimestamp
// with v.TimestampType and Info.MaxTimestamp (which does nothing for a correct
// batch). The error is an *Error.
//
// It is stricter than Kafka in three things, all of which would store what
// consumers cannot read: offset deltas other than 0, 1, 2… in an uncompressed
// batch (Kafka stores them; in a compressed one it fails with the same code as
// here), a record in a compressed batch that is not as long as its size says,
// and a payload that expands to more than MaxDecompressed.
func Validate(b Batch, v Validation) (Info, error) {
	if err := v.checkHeader(b); err != nil {
		return Info{}, err
	}
	if b.Codec() == compress.None {
		return v.checkRecords(b, b.Payload(), nil)
	}
	var info Info
	var err error
	v.Pool.Expand(b.Codec(), b.Payload(), v.MaxDecompressed, func(payload []byte, failure error) {
		info, err = v.checkRecords(b, payload, failure)
	})
	return info, err
}

// checkHeader makes the checks in the order of Kafka, which decides the code.
func (v Validation) checkHeader(b Batch) error {
	if !v.AllowZstd && b.Codec() == compress.Zstd {
		return refuse(protocol.UnsupportedCompressionType, "Produce requests before version 7 are not allowed to use ZStandard compression")
	}
	client := v.Origin == FromClient
	if client && b.BaseOffset() != 0 {
		return refuse(protocol.InvalidRecord, "The baseOffset of the record batch in the append to %v should be 0, but it is %d", v.TopicPartition, b.BaseOffset())
	}
	if b.CRC() != b.ComputeCRC() {
		return refuse(protocol.CorruptMessage, "Record is corrupt (stored crc = %d) in topic partition %v.", b.CRC(), v.TopicPartition)
	}
	if !b.Codec().Known() {
		return refuse(protocol.UnknownServerError, "Unknown compression type id: %d", int8(b.Codec()))
	}
	if client {
		return v.checkClientHeader(b)
	}
	return nil
}

func (v Validation) checkClientHeader(b Batch) error {
	base, last, count := b.BaseOffset(), b.LastOffset(), b.Count()
	switch {
	case last < base:
		return refuse(protocol.InvalidRecord, "Batch has an invalid offset range: [%d, %d] in topic partition %v", base, last, v.TopicPartition)
	case count <= 0:
		return refuse(protocol.InvalidRecord, "Invalid reported count for record batch: %d in topic partition %v", count, v.TopicPartition)
	case int64(last-base)+1 != int64(count):
		return refuse(protocol.InvalidRecord, "Inconsistent batch offset range [%d, %d] and count of records %d in topic partition %v", base, last, count, v.TopicPartition)
	case b.IsControl():
		return refuse(protocol.InvalidRecord, "Clients are not allowed to write control records in topic partition %v", v.TopicPartition)
	case b.HasProducerID() && b.BaseSequence() < 0:
		return refuse(protocol.InvalidRecord, "Invalid sequence number %d in record batch with producerId %d in topic partition %v", b.BaseSequence(), b.ProducerID(), v.TopicPartition)
	}
	return nil
}

// checkRecords reads the payload, of which failure may have cut the rest off.
func (v Validation) checkRecords(b Batch, payload []byte, failure error) (Info, error) {
	reader := newFramer(payload, b.Codec(), v.MaxRecordBytes)
	info := Info{MaxTimestamp: NoTimestamp, Count: b.Count(), UncompressedSize: HeaderSize + len(payload)}
	var errs recordErrors
	var lie fault // the first record that is not as long as it says
	outOfOrder := false
	at := 0
	for i := int32(0); i < info.Count; i++ {
		f, bad := reader.read(at)
		switch {
		case bad.kind == noFault:
		case bad.kind == faultSizeLies && reader.compressed: // Kafka would go on, and find other faults first
			lie = bad
		default:
			return Info{}, v.broken(reader, bad, failure)
		}
		at = f.next
		timestamp := b.timestampOf(&f)
		outOfOrder = outOfOrder || f.offsetDelta != i
		if v.Compacted && f.key.isNull() || v.badTimestamp(b, timestamp) {
			errs.add(i, v.recordError(b, &f, timestamp))
		} else if timestamp > info.MaxTimestamp {
			info.MaxTimestamp, info.OffsetDeltaOfMaxTimestamp = timestamp, f.offsetDelta
		}
	}
	if at != len(payload) {
		return Info{}, v.broken(reader, fault{kind: faultLeft}, nil)
	}
	if failure != nil {
		return Info{}, v.broken(reader, fault{kind: faultCut}, failure)
	}
	if errs.total > 0 {
		return Info{}, errs.refusal()
	}
	if outOfOrder && v.Origin == FromClient {
		return Info{}, v.disorder(b)
	}
	if lie.kind != noFault {
		return Info{}, v.broken(reader, lie, nil)
	}
	if v.TimestampType == LogAppendTime {
		info.MaxTimestamp, info.OffsetDeltaOfMaxTimestamp = v.Now, 0
	}
	return info, nil
}

// broken gives the refusal for a fault in the records, or for the failure of
// the codec if the record ended where the codec stopped.
func (v Validation) broken(reader framer, bad fault, failure error) *Error {
	switch {
	case errors.Is(failure, compress.ErrTooLarge) && bad.isCut():
		return refuse(protocol.MessageTooLarge, "The record batch for topic partition %v holds more than %d bytes when decompressed", v.TopicPartition, v.MaxDecompressed)
	case failure != nil && bad.isCut():
		return refuse(protocol.UnknownServerError, "Failed to decompress record stream: %v", failure)
	case bad.kind == faultSizeVarint && !reader.compressed:
		return refuse(protocol.UnknownServerError, "Varint is too long")
	}
	return refuse(protocol.InvalidRecord, "%v", bad)
}

// disorder is for offset deltas that do not count up.
func (v Validation) disorder(b Batch) *Error {
	code := protocol.InvalidRecord
	if b.Codec() != compress.None {
		code = protocol.UnknownServerError // Kafka fails with an exception of its own
	}
	return refuse(code, "The offset deltas of the records do not count up from 0 in topic partition %v", v.TopicPartition)
}

// badTimestamp tells whether a record's timestamp is to be refused
// (LogValidator.validateTimestamp). Sums wrap as in Java.
func (v Validation) badTimestamp(b Batch, timestamp int64) bool {
	if v.TimestampType == CreateTime && timestamp != NoTimestamp {
		ahead := timestamp - v.Now
		return ahead > v.AfterMaxMs || -ahead > v.BeforeMaxMs
	}
	return b.IsLogAppendTime()
}

// recordError gives what is wrong with a record that was found bad.
func (v Validation) recordError(b Batch, f *frame, timestamp int64) badRecord {
	switch {
	case v.Compacted && f.key.isNull():
		return badRecord{message: fmt.Sprintf("Compacted topic cannot accept message without key in topic partition %v", v.TopicPartition)}
	case v.TimestampType == CreateTime && timestamp != NoTimestamp:
		return badRecord{true, fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			timestamp, b.BaseOffset()+protocol.Offset(f.offsetDelta), v.Now-v.BeforeMaxMs, v.Now+v.AfterMaxMs)}
	}
	kind, keySize, valueSize := "PartialDefaultRecord", f.key.size, f.value.size
	if b.Codec() == compress.None {
		kind, keySize, valueSize = "DefaultRecord", max(keySize, 0), max(valueSize, 0)
	}
	return badRecord{true, fmt.Sprintf("Invalid timestamp type in message %s(offset=%d, timestamp=%d, key=%d bytes, value=%d bytes). Producer should not set timestamp type to LogAppendTime.",
		kind, b.BaseOffset()+protocol.Offset(f.offsetDelta), timestamp, keySize, valueSize)}
}

type badRecord struct {
	timestamp bool
	message   string
}

// recordErrors collects refused records, the first maxRecordErrors in words.
type recordErrors struct {
	told      []RecordError
	total     int
	timestamp bool
}

func (e *recordErrors) add(index int32, bad badRecord) {
	e.total++
	e.timestamp = e.timestamp || bad.timestamp
	if len(e.told) < maxRecordErrors {
		e.told = append(e.told, RecordError{index, bad.message})
	}
}

// refusal is LogValidator.processRecordErrors.
func (e *recordErrors) refusal() *Error {
	if e.timestamp {
		refused := refuse(protocol.InvalidTimestamp, "One or more records have been rejected due to invalid timestamp")
		refused.Records = e.told
		return refused
	}
	first := make([]string, 0, 3)
	for _, bad := range e.told[:min(3, len(e.told))] {
		first = append(first, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", bad.BatchIndex, bad.Message))
	}
	refused := refuse(protocol.InvalidRecord, "One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
		e.total, strings.Join(first, ", "))
	refused.Records = e.told
	return refused
}
