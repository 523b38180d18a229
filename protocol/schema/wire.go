package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"ottla/protocol"
)

// Tag is a tagged field whose number this program does not know. It is kept as
// it was read, so that rewriting a record loses nothing.
type Tag struct {
	Number uint32
	Value  []byte
}

var (
	errShort    = errors.New("the bytes end inside a field")
	errVarint   = errors.New("a varint is longer than its type")
	errLength   = errors.New("a length is negative or larger than what is left")
	errNull     = errors.New("a field that cannot be null is null")
	errTagOrder = errors.New("tagged fields are not in ascending order")
	errPresence = errors.New("the marker before a nullable struct is neither that of one nor that of null")
	errTrailing = errors.New("bytes are left over after the last field")
)

// reader takes fields off a slice. The first error sticks and empties the
// slice, so loops over counted elements stay short and callers look once.
type reader struct {
	src []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.src = nil
}

// finish is the error of the whole read; leftover bytes are one.
func (r *reader) finish(name string, version int16) error {
	if r.err == nil && len(r.src) > 0 {
		r.err = errTrailing
	}
	if r.err != nil {
		return fmt.Errorf("%s version %d cannot be read: %w", name, version, r.err)
	}
	return nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.src) {
		r.fail(errShort)
		return nil
	}
	taken := r.src[:n:n]
	r.src = r.src[n:]
	return taken
}

func (r *reader) int8() int8 {
	if raw := r.take(1); raw != nil {
		return int8(raw[0])
	}
	return 0
}

func (r *reader) bool() bool { return r.int8() != 0 }

func (r *reader) uint16() uint16 {
	if raw := r.take(2); raw != nil {
		return binary.BigEndian.Uint16(raw)
	}
	return 0
}

func (r *reader) int16() int16 { return int16(r.uint16()) }

func (r *reader) int32() int32 {
	if raw := r.take(4); raw != nil {
		return int32(binary.BigEndian.Uint32(raw))
	}
	return 0
}

func (r *reader) int64() int64 {
	if raw := r.take(8); raw != nil {
		return int64(binary.BigEndian.Uint64(raw))
	}
	return 0
}

func (r *reader) float64() float64 { return math.Float64frombits(uint64(r.int64())) }

func (r *reader) uuid() (id protocol.UUID) {
	copy(id[:], r.take(len(id)))
	return id
}

func (r *reader) uvarint() uint32 {
	var value uint64
	for shift := 0; shift < 35; shift += 7 {
		raw := r.take(1)
		if raw == nil {
			return 0
		}
		value |= uint64(raw[0]&0x7f) << shift
		if raw[0] < 0x80 {
			if value > math.MaxUint32 {
				break
			}
			return uint32(value)
		}
	}
	r.fail(errVarint)
	return 0
}

// length reads the count before an array or a byte string; -1 is null.
func (r *reader) length(flexible bool, unit int) int {
	var n int64
	if flexible {
		n = int64(r.uvarint()) - 1
	} else {
		n = int64(r.int32())
	}
	return r.bounded(n, unit)
}

// bounded refuses a count of elements, each at least unit bytes, that cannot
// be in what is left: nothing is allocated on the word of a length alone.
func (r *reader) bounded(n int64, unit int) int {
	if r.err != nil {
		return -1
	}
	if n < -1 || n*int64(unit) > int64(len(r.src)) {
		r.fail(errLength)
		return -1
	}
	return int(n)
}

func (r *reader) stringLength(flexible bool) int {
	if flexible {
		return r.length(true, 1)
	}
	return r.bounded(int64(r.int16()), 1)
}

func (r *reader) string(flexible bool) string {
	n := r.stringLength(flexible)
	if n < 0 {
		r.fail(errNull)
		return ""
	}
	return string(r.take(n))
}

func (r *reader) nullableString(flexible bool) *string {
	n := r.stringLength(flexible)
	if n < 0 {
		return nil
	}
	text := string(r.take(n))
	return &text
}

// bytes copies: records outlive the batch they came in.
func (r *reader) bytes(flexible bool) []byte {
	n := r.length(flexible, 1)
	if n < 0 {
		r.fail(errNull)
		return nil
	}
	if n == 0 {
		return nil
	}
	return slices.Clone(r.take(n))
}

// readSlice reads an array whose elements are at least unit bytes long. Null is
// nil; an empty array is nil too where null is not allowed, else not nil.
func readSlice[T any](r *reader, flexible bool, unit int, nullable bool, element func(*T)) []T {
	n := r.length(flexible, unit)
	if n < 0 {
		if !nullable {
			r.fail(errNull)
		}
		return nil
	}
	if n == 0 && !nullable {
		return nil
	}
	elements := make([]T, n)
	for i := range elements {
		if r.err != nil {
			return nil
		}
		element(&elements[i])
	}
	return elements
}

// present reads the marker before a nullable struct: 1, or that for null.
func (r *reader) present(null int8) bool {
	switch r.int8() {
	case 1:
		return r.err == nil
	case null:
		return false
	}
	if r.err == nil {
		r.fail(errPresence)
	}
	return false
}

// tags reads the tagged fields that end a flexible struct. known gets a reader
// over one field's bytes and says whether it knows the number; what it does not
// know is returned.
func (r *reader) tags(known func(number uint32, field *reader) bool) []Tag {
	var unknown []Tag
	previous := int64(-1)
	for count := r.uvarint(); count > 0 && r.err == nil; count-- {
		number := r.uvarint()
		if int64(number) <= previous && r.err == nil {
			r.fail(errTagOrder)
		}
		previous = int64(number)
		field := reader{src: r.take(int(r.uvarint()))}
		if r.err != nil {
			return nil
		}
		if !known(number, &field) {
			unknown = append(unknown, Tag{number, slices.Clone(field.src)})
			continue
		}
		if field.err == nil && len(field.src) > 0 {
			field.err = errTrailing
		}
		if field.err != nil {
			r.fail(field.err)
		}
	}
	return unknown
}

func noTags(uint32, *reader) bool { return false }

func appendBool(dst []byte, value bool) []byte {
	if value {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendInt16(dst []byte, value int16) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(value))
}

func appendInt32(dst []byte, value int32) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(value))
}

func appendInt64(dst []byte, value int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(value))
}

func appendFloat64(dst []byte, value float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(value))
}

func appendUvarint(dst []byte, value uint32) []byte {
	return binary.AppendUvarint(dst, uint64(value))
}

// appendLength writes the count before an array or byte string; -1 is null.
func appendLength(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return appendUvarint(dst, uint32(n+1))
	}
	return appendInt32(dst, int32(n))
}

// appendString writes a string. One that its int16 length cannot hold is a
// broken promise of the caller, who bounds what he accepts.
func appendString(dst []byte, text string, flexible bool) []byte {
	if flexible {
		return append(appendUvarint(dst, uint32(len(text)+1)), text...)
	}
	if len(text) > math.MaxInt16 {
		panic("schema: a string is longer than its length field can say")
	}
	return append(appendInt16(dst, int16(len(text))), text...)
}

func appendNullableString(dst []byte, text *string, flexible bool) []byte {
	switch {
	case text != nil:
		return appendString(dst, *text, flexible)
	case flexible:
		return append(dst, 0)
	default:
		return appendInt16(dst, -1)
	}
}

func appendBytes(dst, value []byte, flexible bool) []byte {
	return append(appendLength(dst, len(value), flexible), value...)
}

// appendTagsBelow writes the unknown tags that sort before a known one and
// returns those that are left.
func appendTagsBelow(dst []byte, unknown []Tag, number uint32) ([]byte, []Tag) {
	for len(unknown) > 0 && unknown[0].Number < number {
		dst = appendTag(dst, unknown[0])
		unknown = unknown[1:]
	}
	return dst, unknown
}

func appendTag(dst []byte, tag Tag) []byte {
	dst = appendUvarint(dst, tag.Number)
	dst = appendUvarint(dst, uint32(len(tag.Value)))
	return append(dst, tag.Value...)
}

func appendTags(dst []byte, unknown []Tag) []byte {
	for _, tag := range unknown {
		dst = appendTag(dst, tag)
	}
	return dst
}

// closeTag puts the length of a tagged field before the bytes written since
// start. Writing first and moving is cheaper than computing sizes twice.
func closeTag(dst []byte, start int) []byte {
	var size [binary.MaxVarintLen32]byte
	n := binary.PutUvarint(size[:], uint64(len(dst)-start))
	return slices.Insert(dst, start, size[:n]...)
}

// checkTags refuses unknown tags that a version cannot carry or that would be
// written twice.
func checkTags(unknown []Tag, flexible bool, known ...uint32) error {
	previous := int64(-1)
	for _, tag := range unknown {
		if !flexible {
			return fmt.Errorf("tagged field %d needs a flexible version", tag.Number)
		}
		if int64(tag.Number) <= previous {
			return errTagOrder
		}
		previous = int64(tag.Number)
		if slices.Contains(known, tag.Number) {
			return fmt.Errorf("tagged field %d is both a field of this version and kept as unknown", tag.Number)
		}
	}
	return nil
}

func errField(name string) error {
	return fmt.Errorf("field %s is set, and this version has no place for it", name)
}
