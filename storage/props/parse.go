package props

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads a property file. The only error that the format knows is a
// malformed \uXXXX escape; it names the line. Surrogates that have no partner,
// which Java keeps and no encoding can write, become U+FFFD.
func Parse(text []byte) (*Properties, error) {
	parsed := &Properties{}
	r := reader{text: text, line: 1}
	for {
		line, number, more := r.logicalLine()
		if !more {
			return parsed, nil
		}
		key, value := split(line)
		entry := Entry{Line: number}
		var err error
		if entry.Key, err = unescape(key); err == nil {
			entry.Value, err = unescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		parsed.set(entry)
	}
}

// reader cuts a text into logical lines: physical lines joined where one ends
// with an odd number of backslashes, comments and blank lines left out.
type reader struct {
	text []byte
	pos  int
	line int // of pos
}

// logicalLine gives the next logical line, still escaped, without leading
// blanks, and the number of the physical line it starts on. As in Java, a line
// that is nothing but a continuation does not begin a logical line (so a
// comment may follow it), except at the end of the text, where it is a line
// with an empty key.
func (r *reader) logicalLine() (line []byte, number int, more bool) {
	for r.pos < len(r.text) {
		if len(line) == 0 {
			number = r.line
		}
		part, continued := r.physicalLine()
		if len(line) == 0 && !continued && len(part) == 0 {
			continue
		}
		if len(line) == 0 && len(part) > 0 && (part[0] == '#' || part[0] == '!') {
			continue // also if it ends with a backslash
		}
		if !continued && len(line) == 0 {
			return part, number, true
		}
		line = append(line, part...)
		if !continued {
			return line, number, true
		}
		if r.pos == len(r.text) {
			// Java sees the end after a lone CR or LF, but not after CR LF.
			return line, number, len(line) > 0 || !bytes.HasSuffix(r.text, []byte("\r\n"))
		}
	}
	return line, number, len(line) > 0
}

// physicalLine gives the rest of the physical line without leading blanks and
// without the backslash that continues it. CR, LF and CR LF end a line.
func (r *reader) physicalLine() (line []byte, continued bool) {
	for r.pos < len(r.text) && isBlank(r.text[r.pos]) {
		r.pos++
	}
	start := r.pos
	for r.pos < len(r.text) && r.text[r.pos] != '\n' && r.text[r.pos] != '\r' {
		r.pos++
	}
	line = r.text[start:r.pos]
	if r.pos < len(r.text) {
		if r.text[r.pos] == '\r' && r.pos+1 < len(r.text) && r.text[r.pos+1] == '\n' {
			r.pos++
		}
		r.pos++
		r.line++
	}
	slashes := 0
	for slashes < len(line) && line[len(line)-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 {
		return line[:len(line)-1], true
	}
	return line, false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

// split cuts a logical line at the first separator that is not escaped: blanks,
// or '=' or ':' with blanks around it.
func split(line []byte) (key, value []byte) {
	at := 0
	for at < len(line) && !isBlank(line[at]) && line[at] != '=' && line[at] != ':' {
		if line[at] == '\\' {
			at++
		}
		at++
	}
	at = min(at, len(line))
	key = line[:at]
	for at < len(line) && isBlank(line[at]) {
		at++
	}
	if at < len(line) && (line[at] == '=' || line[at] == ':') {
		at++
		for at < len(line) && isBlank(line[at]) {
			at++
		}
	}
	return key, line[at:]
}

// unescape turns ISO-8859-1 bytes with escapes into a string.
func unescape(raw []byte) (string, error) {
	out := make([]byte, 0, len(raw))
	high := rune(-1) // a high surrogate that waits for its partner
	add := func(c rune) {
		if high >= 0 {
			if pair := utf16.DecodeRune(high, c); pair != utf8.RuneError {
				out, high = utf8.AppendRune(out, pair), -1
				return
			}
			out, high = utf8.AppendRune(out, utf8.RuneError), -1
		}
		if c >= 0xd800 && c < 0xdc00 {
			high = c
			return
		}
		out = utf8.AppendRune(out, c) // a lone low surrogate becomes U+FFFD here
	}
	for at := 0; at < len(raw); at++ {
		c := raw[at]
		if c != '\\' {
			add(rune(c))
			continue
		}
		if at++; at == len(raw) {
			break // a backslash at the very end says nothing
		}
		switch c = raw[at]; c {
		case 'u':
			unit, err := hexUnit(raw[at+1:])
			if err != nil {
				return "", err
			}
			add(unit)
			at += 4
		case 't':
			add('\t')
		case 'n':
			add('\n')
		case 'r':
			add('\r')
		case 'f':
			add('\f')
		default:
			add(rune(c))
		}
	}
	if high >= 0 {
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	return string(out), nil
}

// hexUnit reads the four hexadecimal digits of a \uXXXX escape.
func hexUnit(digits []byte) (rune, error) {
	if len(digits) < 4 {
		return 0, fmt.Errorf(`the escape \u%s needs four hexadecimal digits`, digits)
	}
	var unit rune
	for _, d := range digits[:4] {
		unit <<= 4
		switch {
		case d >= '0' && d <= '9':
			unit += rune(d - '0')
		case d >= 'a' && d <= 'f':
			unit += rune(d-'a') + 10
		case d >= 'A' && d <= 'F':
			unit += rune(d-'A') + 10
		default:
			return 0, fmt.Errorf(`the escape \u%s needs four hexadecimal digits`, digits[:4])
		}
	}
	return unit, nil
}
