package props

import "unicode/utf16"

// Append adds the properties to out in the form java.util.Properties.store
// uses: one key=value a line, separators, control characters and everything
// beyond ASCII escaped. Each comment becomes a line that starts with '#'; it
// must hold no line break.
func (p *Properties) Append(out []byte, comments ...string) []byte {
	for _, comment := range comments {
		out = append(out, '#')
		out = append(out, comment...)
		out = append(out, '\n')
	}
	for _, entry := range p.entries {
		out = appendEscaped(out, entry.Key, true)
		out = append(out, '=')
		out = appendEscaped(out, entry.Value, false)
		out = append(out, '\n')
	}
	return out
}

// appendEscaped escapes a key or a value. In a key every blank is escaped, in
// a value only one that leads, for only that would be lost.
func appendEscaped(out []byte, text string, key bool) []byte {
	for at, c := range text {
		switch c {
		case ' ':
			if key || at == 0 {
				out = append(out, '\\')
			}
			out = append(out, ' ')
		case '\t':
			out = append(out, `\t`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\f':
			out = append(out, `\f`...)
		case '\\', '=', ':', '#', '!':
			out = append(out, '\\', byte(c))
		default:
			if c >= 0x20 && c <= 0x7e {
				out = append(out, byte(c))
				continue
			}
			for _, unit := range utf16.Encode([]rune{c}) {
				out = appendUnit(out, unit)
			}
		}
	}
	return out
}

func appendUnit(out []byte, unit uint16) []byte {
	const digits = "0123456789ABCDEF"
	return append(out, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}
