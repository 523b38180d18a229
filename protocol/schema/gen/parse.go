package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// message is one record type of a log.
type message struct {
	kind     string // metadata, group-key, group-value, …
	key      int
	name     string
	versions span
	flexible span
	body     *structure
}

// structure is a message's body or a struct within it.
type structure struct {
	goName string
	fields []*field
}

type field struct {
	name      string // Kafka's, lower camel: what JSON prints
	goName    string
	array     bool
	base      string     // the element's type for an array
	inner     *structure // when base names a struct
	versions  span
	nullable  span
	tagged    span
	tag       int // -1: none
	def       string
	ignorable bool
}

// span is a range of versions; an empty one has high < low.
type span struct{ low, high int }

const forever = 1<<15 - 1

var never = span{0, -1}

func (s span) empty() bool { return s.high < s.low }

// clip cuts the span to what another admits.
func (s span) clip(to span) span { return span{max(s.low, to.low), min(s.high, to.high)} }

func parseSpan(text string) (span, error) {
	if text == "none" {
		return never, nil
	}
	if low, ok := strings.CutSuffix(text, "+"); ok {
		n, err := strconv.Atoi(low)
		return span{n, forever}, err
	}
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		high = low
	}
	from, err := strconv.Atoi(low)
	if err != nil {
		return never, err
	}
	to, err := strconv.Atoi(high)
	return span{from, to}, err
}

// parseFile reads one definitions file; its form is described in the package
// comment.
func parseFile(path string) ([]*message, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := parser{structs: map[string]*structure{}}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, number, err)
		}
	}
	return p.messages, lines.Err()
}

type parser struct {
	messages []*message
	open     []*structure // by indentation: the struct that a field at this depth belongs to
	structs  map[string]*structure
}

func (p *parser) line(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 || words[0] == "#" {
		return nil
	}
	depth := (len(text) - len(strings.TrimLeft(text, " "))) / 2
	if depth == 0 {
		return p.message(words)
	}
	if depth > len(p.open) {
		return fmt.Errorf("indented too far")
	}
	p.open = p.open[:depth]
	f, err := p.field(words)
	if err != nil {
		return err
	}
	owner := p.open[depth-1]
	owner.fields = append(owner.fields, f)
	if f.inner != nil {
		p.open = append(p.open, f.inner)
	}
	return nil
}

// message reads "kind key Name versions V flexible V".
func (p *parser) message(words []string) error {
	if len(words) != 7 || words[3] != "versions" || words[5] != "flexible" {
		return fmt.Errorf("want: kind key Name versions V flexible V")
	}
	m := &message{kind: words[0], name: words[2], body: &structure{goName: words[2]}}
	var err error
	if m.key, err = strconv.Atoi(words[1]); err != nil {
		return err
	}
	if m.versions, err = parseSpan(words[4]); err != nil {
		return err
	}
	if m.flexible, err = parseSpan(words[6]); err != nil {
		return err
	}
	p.messages = append(p.messages, m)
	p.open = []*structure{m.body}
	return nil
}

// field reads "name type versions [null V] [tag N V] [default X] [ignorable]".
func (p *parser) field(words []string) (*field, error) {
	if len(words) < 3 {
		return nil, fmt.Errorf("want: name type versions …")
	}
	f := &field{name: words[0], goName: goName(words[0]), nullable: never, tagged: never, tag: -1}
	f.base, f.array = strings.CutPrefix(words[1], "[]")
	if f.base[0] >= 'A' && f.base[0] <= 'Z' {
		f.inner = p.structs[f.base]
		if f.inner == nil {
			f.inner = &structure{goName: f.base}
			p.structs[f.base] = f.inner
		}
	} else if _, ok := scalars[f.base]; !ok {
		return nil, fmt.Errorf("unknown type %q", f.base)
	}
	var err error
	if f.versions, err = parseSpan(words[2]); err != nil {
		return nil, err
	}
	for rest := words[3:]; len(rest) > 0; {
		if rest, err = f.attribute(rest); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *field) attribute(words []string) (rest []string, err error) {
	need := map[string]int{"null": 2, "tag": 3, "default": 2, "ignorable": 1}[words[0]]
	if need == 0 || len(words) < need {
		return nil, fmt.Errorf("cannot read %q", strings.Join(words, " "))
	}
	switch words[0] {
	case "null":
		f.nullable, err = parseSpan(words[1])
	case "tag":
		if f.tag, err = strconv.Atoi(words[1]); err == nil {
			f.tagged, err = parseSpan(words[2])
		}
	case "default":
		f.def = words[1]
	case "ignorable":
		f.ignorable = true
	}
	return words[need:], err
}

// goName gives Kafka's lower-camel name as an exported Go name.
func goName(name string) string {
	var out strings.Builder
	for _, word := range camelWords(name) {
		switch word = strings.ToLower(word); word {
		case "id", "isr", "elr":
			out.WriteString(strings.ToUpper(word))
		case "ids":
			out.WriteString("IDs")
		default:
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

func camelWords(name string) []string {
	var words []string
	start := 0
	for i := 1; i < len(name); i++ {
		if name[i] >= 'A' && name[i] <= 'Z' {
			words = append(words, name[start:i])
			start = i
		}
	}
	return append(words, name[start:])
}
