package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// What decoding may allocate: the bound of RELIABILITY's count bombs. A count
// is a few bytes, the elements it promises are structs of a hundred.
const (
	memoryPerByte  = 64
	memoryAtLeast  = 64 << 10
	firstTagMemory = 448 // a map of unknown tags with its first group of slots
	tagMemory      = 128 // a further entry, the growth it causes included
	stringMemory   = 24  // a pointer's target and the allocator's rounding
)

// guard walks the bytes of a message before kmsg decodes them: it finds what
// does not parse, and adds up the memory that decoding would take. It allocates
// nothing. kmsg checks each count against the bytes that remain, but not how
// large the elements are in memory, nor how many maps unknown tags make.
type guard struct {
	src         []byte
	left        int64 // memory still granted
	unknownTags int   // tags that the schema does not have; for tests
	err         error
}

// checkBody says whether body is a message of this layout that decodes within
// the bound: nil, or an error with ErrMalformed or ErrTooLarge in its chain.
func checkBody(l *layout, body []byte) error {
	g := guard{src: body, left: int64(len(body))*memoryPerByte + memoryAtLeast}
	g.charge(l.memory)
	g.structure(l)
	return g.err
}

func (g *guard) structure(l *layout) {
	for i := range l.fields {
		if g.node(&l.fields[i], l.flexible); g.err != nil {
			return
		}
	}
	if l.flexible {
		g.tags(l)
	}
}

func (g *guard) node(n *node, flexible bool) {
	switch n.kind {
	case kindFixed:
		g.skip(n, n.size)
	case kindString:
		size := g.length(n, flexible, 2)
		if size > math.MaxInt16 {
			// Apache Kafka's decoders refuse it too, and in a key of a log record it has no place.
			g.fail(n, "is a string of %d bytes, more than a string may have", size)
		}
		g.skip(n, size)
		if size > 0 {
			g.charge(size + size>>3 + stringMemory)
		}
	case kindBytes:
		g.skip(n, g.length(n, flexible, 4))
	case kindArray:
		g.array(n, flexible)
	case kindStruct:
		if n.nullable && g.absent(n) {
			return
		}
		if n.nullable {
			g.charge(n.memory)
		}
		g.structure(n.structure)
	}
}

// array charges for all elements before it looks at the first.
func (g *guard) array(n *node, flexible bool) {
	count := g.length(n, flexible, 4)
	if g.err != nil {
		return
	}
	element := n.element
	if element.kind == kindFixed {
		g.charge(count * (element.memory + element.memory>>3))
		g.skip(n, count*element.size)
		return
	}
	if count > int64(len(g.src)) { // every element takes a byte at least
		g.fail(n, "counts %d elements in %d bytes", count, len(g.src))
		return
	}
	g.charge(count * (element.memory + element.memory>>3))
	for ; count > 0 && g.err == nil; count-- {
		g.node(element, flexible)
	}
}

func (g *guard) tags(l *layout) {
	count := g.uvarint(nil)
	unknown := 0
	for ; count > 0 && g.err == nil; count-- {
		tag := g.uvarint(nil)
		size := int64(g.uvarint(nil))
		if g.err != nil {
			return
		}
		if size > int64(len(g.src)) {
			g.fail(nil, "a tagged field of %d bytes in %d", size, len(g.src))
			return
		}
		n, known := l.tagged[tag]
		switch {
		case !known && unknown == 0:
			unknown++
			g.unknownTags++
			g.charge(firstTagMemory)
			g.skip(nil, size)
		case !known:
			g.unknownTags++
			g.charge(tagMemory)
			g.skip(nil, size)
		case n == nil: // kmsg decodes it all the same
			g.unknownTags++
			g.charge(size * memoryPerByte)
			g.skip(nil, size)
		default:
			g.taggedField(n, size)
		}
	}
}

// taggedField walks a tagged field within its own bytes.
func (g *guard) taggedField(n *node, size int64) {
	after := g.src[size:]
	g.src = g.src[:size:size]
	g.node(n, true)
	g.src = after
}

// absent reads the presence byte of a nullable struct.
func (g *guard) absent(n *node) bool {
	if len(g.src) == 0 {
		g.fail(n, "ends early")
		return true
	}
	present := int8(g.src[0]) >= 0
	g.src = g.src[1:]
	return !present
}

// length reads a length or count of a field; null gives 0 where it is allowed.
func (g *guard) length(n *node, flexible bool, wide int) int64 {
	var length int64
	switch {
	case flexible:
		length = int64(g.uvarint(n)) - 1
	case len(g.src) < wide:
		g.fail(n, "ends early")
		return 0
	case wide == 2:
		length = int64(int16(binary.BigEndian.Uint16(g.src)))
		g.src = g.src[2:]
	default:
		length = int64(int32(binary.BigEndian.Uint32(g.src)))
		g.src = g.src[4:]
	}
	if g.err != nil {
		return 0
	}
	if length < 0 {
		if !n.nullable {
			g.fail(n, "is null, which it must not be")
		}
		return 0
	}
	return length
}

func (g *guard) uvarint(n *node) uint32 {
	value, size := binary.Uvarint(g.src)
	if size <= 0 || size > 5 || value > 1<<32-1 {
		g.fail(n, "has a bad variable-length number")
		return 0
	}
	g.src = g.src[size:]
	return uint32(value)
}

func (g *guard) skip(n *node, size int64) {
	if size > int64(len(g.src)) {
		g.fail(n, "takes %d bytes, %d are left", size, len(g.src))
		return
	}
	g.src = g.src[size:]
}

func (g *guard) charge(memory int64) {
	if g.left -= memory; g.left < 0 && g.err == nil {
		g.err = ErrTooLarge
	}
}

func (g *guard) fail(n *node, format string, args ...any) {
	if g.err != nil {
		return
	}
	name := "the tagged fields"
	if n != nil {
		name = "field " + n.name
	}
	g.err = fmt.Errorf("%w: %s: %s", ErrMalformed, name, fmt.Sprintf(format, args...))
}
