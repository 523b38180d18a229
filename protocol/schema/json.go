package schema

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"ottla/protocol"
)

// JSON prints a record of __cluster_metadata as Kafka's DumpLogSegments does:
// {"type":"TOPIC_RECORD","version":0,"data":{…}}.
func JSON(record MetadataRecord, version int16) string {
	dst := append([]byte(`{"type":"`), TypeName(record)...)
	dst = append(dst, `","version":`...)
	dst = strconv.AppendInt(dst, int64(version), 10)
	dst = append(dst, `,"data":`...)
	dst = record.AppendJSON(dst, version)
	return string(append(dst, '}'))
}

// KeyJSON prints the key of a coordinator's record as DumpLogSegments does:
// {"type":"2","data":{…}}.
func KeyJSON(key Key) string {
	dst := append([]byte(`{"type":"`), strconv.Itoa(int(key.APIKey()))...)
	return string(append(key.AppendJSON(append(dst, `","data":`...), 0), '}'))
}

// ValueJSON prints the value of a coordinator's record as DumpLogSegments does:
// {"version":"3","data":{…}}.
func ValueJSON(value Value, version int16) string {
	dst := append([]byte(`{"version":"`), strconv.Itoa(int(version))...)
	return string(append(value.AppendJSON(append(dst, `","data":`...), version), '}'))
}

// TypeName gives a record's name as Kafka's MetadataRecordType spells it, as
// TOPIC_RECORD for TopicRecord.
func TypeName(record Record) string {
	var out strings.Builder
	for i, letter := range record.RecordName() {
		if i > 0 && letter >= 'A' && letter <= 'Z' && !(record.RecordName()[i-1] >= 'A' && record.RecordName()[i-1] <= 'Z') {
			out.WriteByte('_')
		}
		out.WriteRune(letter)
	}
	return strings.ToUpper(out.String())
}

func appendJSONName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendJSONArray[T any](dst []byte, elements []T, nullable bool, element func([]byte, *T) []byte) []byte {
	if elements == nil && nullable {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, &elements[i])
	}
	return append(dst, ']')
}

func appendJSONInt(dst []byte, value int64) []byte { return strconv.AppendInt(dst, value, 10) }

func appendJSONBool(dst []byte, value bool) []byte { return strconv.AppendBool(dst, value) }

// appendJSONFloat64 spells a double as Java does: plain between a thousandth
// and ten million, with an exponent elsewhere, and always with a fraction.
func appendJSONFloat64(dst []byte, value float64) []byte {
	size := math.Abs(value)
	switch {
	case math.IsNaN(value):
		return append(dst, `"NaN"`...)
	case math.IsInf(value, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(value, -1):
		return append(dst, `"-Infinity"`...)
	case size == 0 || size >= 1e-3 && size < 1e7:
		text := strconv.FormatFloat(value, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return append(dst, text...)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(value, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		// Java wants two digits, and takes the nearest two.
		mantissa, exponent, _ = strings.Cut(strconv.FormatFloat(value, 'e', 1, 64), "e")
	}
	power, _ := strconv.Atoi(exponent)
	return append(dst, mantissa+"E"+strconv.Itoa(power)...)
}

func appendJSONUuid(dst []byte, id protocol.UUID) []byte {
	return append(append(append(dst, '"'), id.String()...), '"')
}

func appendJSONBytes(dst, value []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, value)
	return append(dst, '"')
}

func appendJSONNullableString(dst []byte, text *string) []byte {
	if text == nil {
		return append(dst, "null"...)
	}
	return appendJSONString(dst, *text)
}

// appendJSONString escapes what Jackson escapes: quotes, backslashes and
// control characters, and leaves every other character as it is.
func appendJSONString(dst []byte, text string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for _, letter := range text {
		switch {
		case letter == '"' || letter == '\\':
			dst = append(dst, '\\', byte(letter))
		case letter == '\n':
			dst = append(dst, '\\', 'n')
		case letter == '\r':
			dst = append(dst, '\\', 'r')
		case letter == '\t':
			dst = append(dst, '\\', 't')
		case letter == '\b':
			dst = append(dst, '\\', 'b')
		case letter == '\f':
			dst = append(dst, '\\', 'f')
		case letter < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[letter>>4], hex[letter&15])
		default:
			dst = utf8.AppendRune(dst, letter)
		}
	}
	return append(dst, '"')
}
