package record

import (
	"encoding/binary"
	"fmt"

	"ottla/protocol"
)

// ControlType is what a control record says; it stands in the record's key
// (ControlRecordType.java).
type ControlType int16

// The control record types of Apache Kafka 4.4.0.
const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2 // this and the following: KRaft (KIP-595, KIP-630, KIP-853)
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
)

var controlNames = [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}

// String gives Kafka's name; any other number is UNKNOWN.
func (t ControlType) String() string {
	if t < 0 || int(t) >= len(controlNames) {
		return "UNKNOWN"
	}
	return controlNames[t]
}

// IsMarker tells the two types that end a transaction.
func (t ControlType) IsMarker() bool { return t == ControlAbort || t == ControlCommit }

const controlKeySize = 4

// ControlKey encodes the key of a control record.
func ControlKey(t ControlType) []byte {
	key := make([]byte, controlKeySize) // the version, 0, and the type
	binary.BigEndian.PutUint16(key[2:], uint16(t))
	return key
}

// ParseControlKey reads the type out of the key of a control record; types and
// versions that Kafka does not know yet are no error. The error wraps
// ErrCorrupt.
func ParseControlKey(key []byte) (ControlType, error) {
	if len(key) < controlKeySize {
		return 0, fmt.Errorf("%w: Invalid value size found for control record key. Must have at least %d bytes, but found only %d", ErrCorrupt, controlKeySize, len(key))
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return 0, fmt.Errorf("%w: Invalid version found for control record: %d. May indicate data corruption", ErrCorrupt, version)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// EndTxnMarker is the value of the two records that end a transaction.
type EndTxnMarker struct {
	Type             ControlType // ControlAbort or ControlCommit
	CoordinatorEpoch int32
}

const endTxnValueSize = 6

// Encode gives the record's key and value.
func (m EndTxnMarker) Encode() (key, value []byte) {
	value = make([]byte, endTxnValueSize) // the version, 0, and the epoch
	binary.BigEndian.PutUint32(value[2:], uint32(m.CoordinatorEpoch))
	return ControlKey(m.Type), value
}

// ParseEndTxnMarker reads a marker; the error wraps ErrCorrupt, and is one too
// for control records that are no markers.
func ParseEndTxnMarker(key, value []byte) (EndTxnMarker, error) {
	kind, err := ParseControlKey(key)
	if err != nil {
		return EndTxnMarker{}, err
	}
	if !kind.IsMarker() {
		return EndTxnMarker{}, fmt.Errorf("%w: a control record of type %v does not end a transaction", ErrCorrupt, kind)
	}
	if len(value) < endTxnValueSize {
		return EndTxnMarker{}, fmt.Errorf("%w: the value of an end marker has %d bytes", ErrCorrupt, len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 {
		return EndTxnMarker{}, fmt.Errorf("%w: Invalid version found for end transaction marker: %d. May indicate data corruption", ErrCorrupt, version)
	}
	return EndTxnMarker{kind, int32(binary.BigEndian.Uint32(value[2:]))}, nil
}

// BuildEndTxnMarker makes the batch of a marker, as WriteTxnMarkers appends it
// (MemoryRecords.withEndTransactionMarker).
func BuildEndTxnMarker(marker EndTxnMarker, timestampMs int64, id protocol.ProducerID, epoch protocol.ProducerEpoch) Batch {
	options := PlainOptions()
	options.ProducerID, options.ProducerEpoch = id, epoch
	options.Transactional, options.Control = true, true
	builder := NewBuilder(options)
	key, value := marker.Encode()
	builder.Append(timestampMs, key, value, nil)
	return builder.Build(nil)
}
