package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value is a value of a row: parsed is nil (Java's null), bool, int64, float64,
// string or []string, by the row's type. It has passed the row's checks.
type value struct{ parsed any }

// parse reads and checks a value as Kafka's ConfigDef does.
func (r *Row) parse(text string) (value, *problem) {
	parsed, bad := r.parseType(strings.TrimFunc(text, func(c rune) bool { return c <= ' ' }))
	if list, ok := parsed.([]string); ok && !r.Allowed.Repeats {
		parsed = withoutRepeats(list)
	}
	if bad == nil {
		bad = r.Allowed.check(r, parsed)
	}
	return value{parsed}, bad
}

// withoutRepeats keeps the first of equal elements. Kafka does so with a
// warning, until 5.0.
func withoutRepeats(list []string) []string {
	kept := []string{}
	for _, element := range list {
		if !slices.Contains(kept, element) {
			kept = append(kept, element)
		}
	}
	return kept
}

var listSeparator = regexp.MustCompile(`[ \t\n\x0B\f\r]*,[ \t\n\x0B\f\r]*`)

func (r *Row) parseType(text string) (any, *problem) {
	switch r.Type {
	case Boolean:
		if strings.EqualFold(text, "true") {
			return true, nil
		}
		if strings.EqualFold(text, "false") {
			return false, nil
		}
		return nil, &problem{kafka: "Expected value to be either true or false"}
	case Int:
		return r.parseWhole(text, 32)
	case Short:
		return r.parseWhole(text, 16)
	case Long:
		return r.parseWhole(text, 64)
	case Double:
		return r.parseDouble(text)
	case List:
		if text == "" {
			return []string{}, nil
		}
		return listSeparator.Split(text, -1), nil
	}
	return text, nil
}

func (r *Row) parseWhole(text string, bits int) (any, *problem) {
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, &problem{kafka: "Not a number of type " + r.Type.String()}
	}
	return v, nil
}

// parseDouble takes what both Java and Go read; Java alone has the suffixes d
// and f, Go alone underscores and the short names of infinity.
func (r *Row) parseDouble(text string) (any, *problem) {
	digits := strings.TrimRight(text, "dDfF")
	if len(text)-len(digits) > 1 || strings.ContainsAny(text, "xX_") || strings.ContainsAny(digits, "iInN") {
		digits = ""
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(v, 0) {
		return nil, &problem{kafka: "Not a number of type " + r.Type.String()}
	}
	return v, nil
}

// text gives the value as DescribeConfigs shows it; nil for null.
func (v value) text() *string {
	var text string
	switch p := v.parsed.(type) {
	case nil:
		return nil
	case bool:
		text = strconv.FormatBool(p)
	case int64:
		text = strconv.FormatInt(p, 10)
	case float64:
		text = javaDouble(p)
	case string:
		text = p
	case []string:
		text = strings.Join(p, ",")
	}
	return &text
}

func (v value) equal(other value) bool {
	a, b := v.text(), other.text()
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// javaDouble formats as Double.toString: plain from 10^-3 to 10^7, with an
// exponent outside, and always with a fraction.
func javaDouble(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	if size := math.Abs(v); v != 0 && (size < 1e-3 || size >= 1e7) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		sign := strings.TrimLeft(exponent[:1], "+")
		return mantissa + "E" + sign + strings.TrimLeft(exponent[1:], "0")
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// defaultValue gives the row's default; null for Null and Required.
func (r *Row) defaultValue() value {
	if r.Default == Null || r.Default == Required {
		return value{}
	}
	v, bad := r.parse(r.Default)
	if bad != nil && r.Type != List && r.Type != String {
		panic(fmt.Sprintf("config: the default of %s is %q: %s", r.Name, r.Default, bad.kafka))
	}
	return v
}

// defaultText gives the default as Kafka prints it in chains of synonyms; ok
// is false where there is none.
func (r *Row) defaultText() (text string, ok bool) {
	if r.Default == Null || r.Default == Required {
		return "", false
	}
	return r.Default, true
}

// kafkaSentence is the message Kafka gives for a bad value.
func (r *Row) kafkaSentence(text string, bad *problem) string {
	if bad.whole {
		return bad.kafka
	}
	if bad.value != nil {
		text = *bad.value
	}
	if r.Sensitive() {
		text = "[hidden]"
	}
	return fmt.Sprintf("Invalid value %s for configuration %s: %s", text, r.Name, bad.kafka)
}
