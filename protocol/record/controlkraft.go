package record

import (
	"encoding/binary"
	"fmt"

	"ottla/protocol"
)

// The values of KRaft's control records, by the schemas in Apache Kafka's
// clients (LeaderChangeMessage.json and its neighbours). Kafka writes and reads
// all of them by schema version 0, whatever their Version field says; it is
// flexible, so each struct ends with tagged fields, of which there are none
// yet: unknown ones are skipped.

// LeaderChange is the first record of each leader of the metadata log.
type LeaderChange struct {
	Version        int16 // 1 where kraft.version is 1 (KIP-853), else 0
	LeaderID       protocol.NodeID
	Voters         []protocol.NodeID
	GrantingVoters []protocol.NodeID
}

// SnapshotHeader is the first record of a snapshot.
type SnapshotHeader struct {
	Version                   int16
	LastContainedLogTimestamp int64 // milliseconds since 1970
}

// SnapshotFooter is the last record of a snapshot.
type SnapshotFooter struct {
	Version int16
}

// KRaftVersion sets the feature level kraft.version.
type KRaftVersion struct {
	Version      int16
	KRaftVersion int16
}

// VoterEndpoint is where a voter can be reached.
type VoterEndpoint struct {
	Name string // of the listener
	Host string
	Port uint16
}

// Voter is one member of the quorum, with the range of kraft.version that it
// supports.
type Voter struct {
	ID              protocol.NodeID
	DirectoryID     protocol.DirectoryID
	Endpoints       []VoterEndpoint
	MinKRaftVersion int16
	MaxKRaftVersion int16
}

// Voters sets the members of the quorum (KIP-853).
type Voters struct {
	Version int16
	Voters  []Voter
}

// Encode gives the record's key and value.
func (r LeaderChange) Encode() (key, value []byte) {
	value = binary.BigEndian.AppendUint16(nil, uint16(r.Version))
	value = binary.BigEndian.AppendUint32(value, uint32(r.LeaderID))
	for _, ids := range [][]protocol.NodeID{r.Voters, r.GrantingVoters} {
		value = binary.AppendUvarint(value, uint64(len(ids))+1)
		for _, id := range ids {
			value = append(binary.BigEndian.AppendUint32(value, uint32(id)), noTags)
		}
	}
	return ControlKey(ControlLeaderChange), append(value, noTags)
}

// Encode gives the record's key and value.
func (r SnapshotHeader) Encode() (key, value []byte) {
	value = binary.BigEndian.AppendUint16(nil, uint16(r.Version))
	value = binary.BigEndian.AppendUint64(value, uint64(r.LastContainedLogTimestamp))
	return ControlKey(ControlSnapshotHeader), append(value, noTags)
}

// Encode gives the record's key and value.
func (r SnapshotFooter) Encode() (key, value []byte) {
	value = binary.BigEndian.AppendUint16(nil, uint16(r.Version))
	return ControlKey(ControlSnapshotFooter), append(value, noTags)
}

// Encode gives the record's key and value.
func (r KRaftVersion) Encode() (key, value []byte) {
	value = binary.BigEndian.AppendUint16(nil, uint16(r.Version))
	value = binary.BigEndian.AppendUint16(value, uint16(r.KRaftVersion))
	return ControlKey(ControlKRaftVersion), append(value, noTags)
}

// Encode gives the record's key and value.
func (r Voters) Encode() (key, value []byte) {
	value = binary.BigEndian.AppendUint16(nil, uint16(r.Version))
	value = binary.AppendUvarint(value, uint64(len(r.Voters))+1)
	for _, voter := range r.Voters {
		value = binary.BigEndian.AppendUint32(value, uint32(voter.ID))
		value = append(value, voter.DirectoryID[:]...)
		value = binary.AppendUvarint(value, uint64(len(voter.Endpoints))+1)
		for _, endpoint := range voter.Endpoints {
			value = appendCompactString(value, endpoint.Name)
			value = appendCompactString(value, endpoint.Host)
			value = append(binary.BigEndian.AppendUint16(value, endpoint.Port), noTags)
		}
		value = binary.BigEndian.AppendUint16(value, uint16(voter.MinKRaftVersion))
		value = binary.BigEndian.AppendUint16(value, uint16(voter.MaxKRaftVersion))
		value = append(value, noTags, noTags)
	}
	return ControlKey(ControlKRaftVoters), append(value, noTags)
}

func appendCompactString(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))+1), text...)
}

const noTags = 0

// ParseLeaderChange reads the value; the error wraps ErrCorrupt.
func ParseLeaderChange(value []byte) (LeaderChange, error) {
	in := controlReader{rest: value}
	record := LeaderChange{Version: in.int16(), LeaderID: protocol.NodeID(in.int32())}
	record.Voters = in.voterIDs()
	record.GrantingVoters = in.voterIDs()
	in.tags()
	return record, in.failure(ControlLeaderChange)
}

// ParseSnapshotHeader reads the value; the error wraps ErrCorrupt.
func ParseSnapshotHeader(value []byte) (SnapshotHeader, error) {
	in := controlReader{rest: value}
	record := SnapshotHeader{Version: in.int16(), LastContainedLogTimestamp: in.int64()}
	in.tags()
	return record, in.failure(ControlSnapshotHeader)
}

// ParseSnapshotFooter reads the value; the error wraps ErrCorrupt.
func ParseSnapshotFooter(value []byte) (SnapshotFooter, error) {
	in := controlReader{rest: value}
	record := SnapshotFooter{Version: in.int16()}
	in.tags()
	return record, in.failure(ControlSnapshotFooter)
}

// ParseKRaftVersion reads the value; the error wraps ErrCorrupt.
func ParseKRaftVersion(value []byte) (KRaftVersion, error) {
	in := controlReader{rest: value}
	record := KRaftVersion{Version: in.int16(), KRaftVersion: in.int16()}
	in.tags()
	return record, in.failure(ControlKRaftVersion)
}

// ParseVoters reads the value; the error wraps ErrCorrupt.
func ParseVoters(value []byte) (Voters, error) {
	in := controlReader{rest: value}
	record := Voters{Version: in.int16()}
	count := in.arrayLength(voterMinSize)
	record.Voters = make([]Voter, 0, count)
	for range count {
		record.Voters = append(record.Voters, in.voter())
	}
	in.tags()
	return record, in.failure(ControlKRaftVoters)
}

// The fewest bytes that an element of an array takes, so that an array's
// length can be held against what is left before it is believed.
const (
	voterIDMinSize  = 4 + 1
	voterMinSize    = 4 + 16 + 1 + 5 + 1
	endpointMinSize = 1 + 1 + 2 + 1
)

// controlReader reads the fields of a value in turn. After the first failure
// everything is zero.
type controlReader struct {
	rest []byte
	bad  bool
}

func (in *controlReader) failure(t ControlType) error {
	if in.bad {
		return fmt.Errorf("%w: the value of a control record of type %v", ErrCorrupt, t)
	}
	return nil
}

func (in *controlReader) take(n int) []byte {
	if n > len(in.rest) {
		in.bad, in.rest = true, nil
		return nil
	}
	field := in.rest[:n]
	in.rest = in.rest[n:]
	return field
}

func (in *controlReader) int16() int16 {
	if field := in.take(2); field != nil {
		return int16(binary.BigEndian.Uint16(field))
	}
	return 0
}

func (in *controlReader) int32() int32 {
	if field := in.take(4); field != nil {
		return int32(binary.BigEndian.Uint32(field))
	}
	return 0
}

func (in *controlReader) int64() int64 {
	if field := in.take(8); field != nil {
		return int64(binary.BigEndian.Uint64(field))
	}
	return 0
}

// uvarint reads a number of at most 32 bits.
func (in *controlReader) uvarint() int {
	number, size := binary.Uvarint(in.rest)
	if size <= 0 || number > 1<<32-1 {
		in.bad, in.rest = true, nil
		return 0
	}
	in.rest = in.rest[size:]
	return int(number)
}

// arrayLength reads the length of a compact array; null is a failure.
func (in *controlReader) arrayLength(elementSize int) int {
	length := in.uvarint() - 1
	if length < 0 || length > len(in.rest)/elementSize {
		in.bad, in.rest = true, nil
		return 0
	}
	return length
}

func (in *controlReader) string() string {
	length := in.uvarint() - 1
	if length < 0 {
		in.bad, in.rest = true, nil
		return ""
	}
	return string(in.take(length))
}

// tags skips the tagged fields.
func (in *controlReader) tags() {
	for count := in.uvarint(); count > 0 && !in.bad; count-- {
		in.uvarint()
		in.take(in.uvarint())
	}
}

func (in *controlReader) voterIDs() []protocol.NodeID {
	count := in.arrayLength(voterIDMinSize)
	ids := make([]protocol.NodeID, 0, count)
	for range count {
		ids = append(ids, protocol.NodeID(in.int32()))
		in.tags()
	}
	return ids
}

func (in *controlReader) voter() Voter {
	voter := Voter{ID: protocol.NodeID(in.int32())}
	copy(voter.DirectoryID[:], in.take(len(voter.DirectoryID)))
	count := in.arrayLength(endpointMinSize)
	voter.Endpoints = make([]VoterEndpoint, 0, count)
	for range count {
		endpoint := VoterEndpoint{Name: in.string(), Host: in.string(), Port: uint16(in.int16())}
		in.tags()
		voter.Endpoints = append(voter.Endpoints, endpoint)
	}
	voter.MinKRaftVersion, voter.MaxKRaftVersion = in.int16(), in.int16()
	in.tags()
	in.tags()
	return voter
}
