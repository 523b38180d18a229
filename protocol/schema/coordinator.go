package schema

import (
	"encoding/binary"
	"fmt"
)

// Key is the key of a record in a coordinator's log: the first two bytes are
// the type, the body has version 0.
type Key interface {
	Record
	coordinatorKey()
}

// Value is the value of a record in a coordinator's log: the first two bytes
// are the version, the key tells the type. A null value is a tombstone and is
// not seen here.
type Value interface {
	Record
	coordinatorValue()
}

// Log names a coordinator's internal topic, for the types of its records
// overlap in number.
type Log int8

// The logs of coordinators.
const (
	GroupLog       Log = iota // __consumer_offsets
	TransactionLog            // __transaction_state
	ShareLog                  // __share_group_state
)

// String gives the word that errors use.
func (l Log) String() string {
	switch l {
	case GroupLog:
		return "group"
	case TransactionLog:
		return "transaction"
	case ShareLog:
		return "share"
	}
	return fmt.Sprintf("Log(%d)", int8(l))
}

// NewKey makes an empty key of a type, or nil if the log has no such type.
func (l Log) NewKey(key int16) Key {
	switch l {
	case GroupLog:
		return newGroupKey(key)
	case TransactionLog:
		return newTransactionKey(key)
	case ShareLog:
		return newShareKey(key)
	}
	return nil
}

// NewValue makes an empty value of a type, or nil if the log has no such type.
func (l Log) NewValue(key int16) Value {
	switch l {
	case GroupLog:
		return newGroupValue(key)
	case TransactionLog:
		return newTransactionValue(key)
	case ShareLog:
		return newShareValue(key)
	}
	return nil
}

// AppendKey appends a record's key as its log holds it.
func AppendKey(dst []byte, key Key) []byte {
	mustHold(key, 0)
	return key.AppendTo(appendInt16(dst, key.APIKey()), 0)
}

// AppendValue appends a record's value as its log holds it. A value that the
// version cannot hold panics, as EncodeMetadata does.
func AppendValue(dst []byte, value Value, version int16) []byte {
	mustHold(value, version)
	return value.AppendTo(appendInt16(dst, version), version)
}

// DecodeKey reads a record's key. An unknown type is an *UnknownRecordError,
// which Kafka's coordinators skip with a warning.
func DecodeKey(log Log, src []byte) (Key, error) {
	if len(src) < 2 {
		return nil, fmt.Errorf("the key of a %s record cannot be read: %w", log, errShort)
	}
	number := int16(binary.BigEndian.Uint16(src))
	key := log.NewKey(number)
	if key == nil {
		return nil, &UnknownRecordError{Log: log.String(), Key: number}
	}
	if err := key.ReadFrom(src[2:], 0); err != nil {
		return nil, err
	}
	return key, nil
}

// DecodeValue reads the value of a record whose key has the type given.
func DecodeValue(log Log, key int16, src []byte) (value Value, version int16, err error) {
	if len(src) < 2 {
		return nil, 0, fmt.Errorf("the value of a %s record cannot be read: %w", log, errShort)
	}
	version = int16(binary.BigEndian.Uint16(src))
	value = log.NewValue(key)
	if value == nil {
		return nil, version, &UnknownRecordError{Log: log.String(), Key: key, Version: version}
	}
	if err := read(value, log.String(), src[2:], version); err != nil {
		return nil, version, err
	}
	return value, version, nil
}
