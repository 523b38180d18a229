package schema

import (
	"fmt"
)

// Record is any message of Kafka's logs that this package defines. Records are
// plain structs; once decoded or handed to someone they are not changed any
// more, so that images and queues may share them.
type Record interface {
	// APIKey is the number that names the record's type in its log.
	APIKey() int16
	// RecordName is Kafka's name of the type, as "TopicRecord".
	RecordName() string
	// Versions gives the lowest and the highest version this program knows.
	Versions() (lowest, highest int16)
	// AppendTo appends the body, without any frame, in a version that
	// Versions admits and Check accepts.
	AppendTo(dst []byte, version int16) []byte
	// ReadFrom replaces the record by what src holds. It copies what it
	// keeps, checks every length before it allocates, and refuses leftovers.
	ReadFrom(src []byte, version int16) error
	// Check tells whether the version has room for everything that is set.
	// Kafka drops fields that it declares ignorable; so do we, and only those.
	Check(version int16) error
	// AppendJSON appends the body as Kafka's own JSON converters print it.
	AppendJSON(dst []byte, version int16) []byte
}

// MetadataRecord is a record of __cluster_metadata.
type MetadataRecord interface {
	Record
	metadataRecord()
}

// UnknownRecordError is a record whose type or version this program does not
// know. State must not be built over it: something would silently be missing.
type UnknownRecordError struct {
	Log     string // what log the record is of: "metadata", "group", …
	Key     int16  // the type's number
	Version int16
	Name    string // the type's name, when the type is known and the version is not
}

// Error says which record it is and what it asks for.
func (e *UnknownRecordError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("a %s record of the unknown type %d (version %d): it was written by a newer Kafka", e.Log, e.Key, e.Version)
	}
	return fmt.Sprintf("a %s of the unknown version %d: it was written by a newer Kafka", e.Name, e.Version)
}

// frameVersion is the only framing of metadata records that Kafka has.
const frameVersion = 1

// EncodeMetadata gives the value of a record in __cluster_metadata: frame
// version, type and version as unsigned varints, then the body. A record that
// the version cannot hold is a broken promise of the caller and panics: what
// would be dropped is cluster state.
func EncodeMetadata(record MetadataRecord, version int16) []byte {
	return AppendMetadata(nil, record, version)
}

// AppendMetadata is EncodeMetadata behind what dst holds already.
func AppendMetadata(dst []byte, record MetadataRecord, version int16) []byte {
	mustHold(record, version)
	dst = appendUvarint(dst, frameVersion)
	dst = appendUvarint(dst, uint32(record.APIKey()))
	dst = appendUvarint(dst, uint32(version))
	return record.AppendTo(dst, version)
}

// DecodeMetadata reads the value of a record in __cluster_metadata. Types and
// versions that are not known give an *UnknownRecordError.
func DecodeMetadata(value []byte) (record MetadataRecord, version int16, err error) {
	r := reader{src: value}
	frame, key, number := r.uvarint(), r.uvarint(), r.uvarint()
	if r.err != nil {
		return nil, 0, fmt.Errorf("the frame of a metadata record cannot be read: %w", r.err)
	}
	if frame != frameVersion {
		return nil, 0, fmt.Errorf("a metadata record has frame version %d, not %d", frame, frameVersion)
	}
	if key > maxInt16 || number > maxInt16 {
		return nil, 0, fmt.Errorf("a metadata record names type %d and version %d, which are out of range", key, number)
	}
	version = int16(number)
	record = NewMetadataRecord(int16(key))
	if record == nil {
		return nil, version, &UnknownRecordError{Log: "metadata", Key: int16(key), Version: version}
	}
	if err := read(record, "metadata", r.src, version); err != nil {
		return nil, version, err
	}
	return record, version, nil
}

const maxInt16 = 1<<15 - 1

func mustHold(record Record, version int16) {
	if lowest, highest := record.Versions(); version < lowest || version > highest {
		panic(fmt.Sprintf("schema: %s has no version %d", record.RecordName(), version))
	}
	if err := record.Check(version); err != nil {
		panic(fmt.Sprintf("schema: %s version %d: %v", record.RecordName(), version, err))
	}
}

func read(record Record, log string, body []byte, version int16) error {
	if lowest, highest := record.Versions(); version < lowest || version > highest {
		return &UnknownRecordError{Log: log, Key: record.APIKey(), Version: version, Name: record.RecordName()}
	}
	return record.ReadFrom(body, version)
}
