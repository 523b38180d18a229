package wire

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"ottla/protocol"
)

// layouts.txt says how the bytes of every message are laid out; gen makes it.
//
//go:embed layouts.txt
var layoutsText string

// kind is what a field's bytes look like.
type kind int8

const (
	kindFixed  kind = iota // size bytes
	kindString             // a length and text
	kindBytes              // a length and bytes that are not copied
	kindArray              // a count and elements
	kindStruct             // fields, after a presence byte where nullable
)

// node is one field of a message in one version.
type node struct {
	name      string
	kind      kind
	size      int64 // bytes on the wire; only kindFixed
	memory    int64 // bytes the decoded value takes where it stands, without what it points to
	nullable  bool
	element   *node   // kindArray
	structure *layout // kindStruct
}

// layout is a message or a struct inside one, in one version.
type layout struct {
	flexible bool // counts and lengths are compact, and tagged fields follow the fields
	fields   []node
	tagged   map[uint32]*node // nil for a tag that the schema has but this version has not
	memory   int64            // bytes of the Go struct, estimated from above
}

// layoutKey names a message in one version.
type layoutKey struct {
	key      protocol.APIKey
	response bool
	version  int16
}

var (
	layoutLines = sync.OnceValue(indexLayouts)
	layoutCache sync.Map // layoutKey → *layout
)

type lineKey struct {
	key      protocol.APIKey
	response bool
}

func indexLayouts() map[lineKey]string {
	lines := make(map[lineKey]string, 2*len(protocol.APIs))
	for line := range strings.Lines(layoutsText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		key, err := strconv.ParseInt(words[0], 10, 16)
		if err != nil {
			panic(fmt.Sprintf("wire: layouts.txt: %q: %v", line, err))
		}
		lines[lineKey{protocol.APIKey(key), words[1] == "response"}] = line
	}
	return lines
}

// layoutOf gives the layout of a message in a version that protocol.APIs has,
// or nil. It is compiled once.
func layoutOf(k layoutKey) *layout {
	if found, ok := layoutCache.Load(k); ok {
		return found.(*layout) //nolint:forcetypeassert // only layouts are stored
	}
	api := protocol.APIOf(k.key)
	if api == nil || k.version < api.MinVersion || k.version > api.MaxVersion {
		return nil
	}
	line, ok := layoutLines()[lineKey{k.key, k.response}]
	if !ok {
		return nil
	}
	words := strings.Fields(line)
	p := layoutParser{words: words[5:], version: k.version, flexible: isFlexible(k.key, k.version)}
	found, _ := layoutCache.LoadOrStore(k, p.structure())
	return found.(*layout) //nolint:forcetypeassert // only layouts are stored
}

// layoutParser reads the fields of one line of layouts.txt for one version.
type layoutParser struct {
	words    []string
	version  int16
	flexible bool
}

const wordBytes = 8 // every small field is taken for a whole word, which covers padding

// structure reads fields up to the word that ends them.
func (p *layoutParser) structure() *layout {
	s := &layout{flexible: p.flexible, tagged: map[uint32]*node{}, memory: wordBytes} // a word for UnknownTags
	for {
		word := p.words[0]
		p.words = p.words[1:]
		if word == "}" || word == "." {
			return s
		}
		p.field(s, word)
	}
}

// field adds one field to s if the version has it; its struct is read past
// either way. Fields of other versions still take memory in kmsg's struct.
func (p *layoutParser) field(s *layout, word string) {
	parts := strings.Split(word, ":")
	name, kindName, versions := parts[0], parts[1], parts[2]
	nullable, tag, tagVersions := false, -1, ""
	for _, extra := range parts[3:] {
		if extra[0] == '?' {
			nullable = p.has(extra[1:])
			continue
		}
		number, of, _ := strings.Cut(extra[1:], "@")
		tag, tagVersions = mustAtoi(number), of
	}
	array := strings.HasPrefix(kindName, "[]")
	n := p.node(name, strings.TrimPrefix(kindName, "[]"), nullable && !array)
	if array {
		element := n
		n = &node{name: name, kind: kindArray, memory: 3 * wordBytes, nullable: nullable, element: element}
	}
	s.memory += n.memory
	switch {
	case tag >= 0 && p.has(tagVersions):
		s.tagged[uint32(tag)] = n
	case tag >= 0 && p.flexible:
		s.tagged[uint32(tag)] = nil
	case tag < 0 && p.has(versions):
		s.fields = append(s.fields, *n)
	}
}

// node makes the node of a type that is no array.
func (p *layoutParser) node(name, kindName string, nullable bool) *node {
	fixed := func(size int64) *node {
		return &node{name: name, kind: kindFixed, size: size, memory: max(size, wordBytes)}
	}
	switch kindName {
	case "bool", "int8":
		return fixed(1)
	case "int16", "uint16":
		return fixed(2)
	case "int32", "uint32":
		return fixed(4)
	case "int64", "float64":
		return fixed(8)
	case "uuid":
		return fixed(16)
	case "string":
		return &node{name: name, kind: kindString, memory: 2 * wordBytes, nullable: nullable}
	case "bytes", "records":
		return &node{name: name, kind: kindBytes, memory: 3 * wordBytes, nullable: nullable}
	case "{}":
		p.words = p.words[1:] // the opening brace
		inner := p.structure()
		return &node{name: name, kind: kindStruct, memory: inner.memory, nullable: nullable, structure: inner}
	}
	panic("wire: layouts.txt: no type " + kindName)
}

// has tells whether a range such as 3+, 0-12 or 4 has the parser's version.
func (p *layoutParser) has(versions string) bool {
	if from, open := strings.CutSuffix(versions, "+"); open {
		return p.version >= int16(mustAtoi(from))
	}
	from, to, ranged := strings.Cut(versions, "-")
	if !ranged {
		return p.version == int16(mustAtoi(from))
	}
	return p.version >= int16(mustAtoi(from)) && p.version <= int16(mustAtoi(to))
}

func mustAtoi(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic("wire: layouts.txt: " + err.Error())
	}
	return number
}
