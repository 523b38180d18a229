package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Allowed describes the values a row takes, besides those its type forbids.
// The zero Allowed allows all.
type Allowed struct {
	HasMin, HasMax bool // numbers
	Min, Max       float64
	OneOf          []string // strings, and every element of lists
	FoldCase       bool     // OneOf does not mind case
	NotEmpty       bool     // strings and lists
	Repeats        bool     // lists: elements may be empty, and are kept where they occur twice
	Also           *int64   // numbers: one more value outside the range
	Check          func(elements []string) error
	Text           string // describes Check
}

func atLeast(low float64) Allowed { return Allowed{HasMin: true, Min: low} }

func between(low, high float64) Allowed {
	return Allowed{HasMin: true, HasMax: true, Min: low, Max: high}
}

func oneOf(values ...string) Allowed     { return Allowed{OneOf: values} }
func oneOfFold(values ...string) Allowed { return Allowed{OneOf: values, FoldCase: true} }
func listOf(values ...string) Allowed    { return Allowed{OneOf: values} }
func someOf(values ...string) Allowed    { return Allowed{OneOf: values, NotEmpty: true} }
func notEmpty() Allowed                  { return Allowed{NotEmpty: true} }

func gzipLevel() Allowed {
	unset := int64(-1)
	return Allowed{HasMin: true, HasMax: true, Min: 1, Max: 9, Also: &unset}
}

func quorumVoters() Allowed {
	return Allowed{Repeats: true, Text: "entries id@host:port", Check: func(elements []string) error {
		_, err := parseVoters(elements)
		return err
	}}
}

func bootstrapServers() Allowed {
	return Allowed{Repeats: true, Text: "entries host:port", Check: func(elements []string) error {
		_, err := parseAddresses(elements)
		return err
	}}
}

var throttledReplica = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

func throttledReplicas() Allowed {
	return Allowed{Repeats: true, Text: "entries partition:broker, or * alone", Check: func(elements []string) error {
		if joined := strings.Join(elements, ""); joined == "" || joined == "*" {
			return nil
		}
		for _, element := range elements {
			if !throttledReplica.MatchString(strings.TrimSpace(element)) {
				//lint:ignore ST1005 Kafka's sentence, which tools show
				return errors.New("must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
			}
		}
		return nil
	}}
}

func distinctTags() Allowed {
	return Allowed{Repeats: true, Text: "tags, none empty or twice", Check: func(elements []string) error {
		if slices.Contains(elements, "") || len(withoutRepeats(elements)) < len(elements) {
			return errors.New("must hold no tag that is empty or stands there twice")
		}
		return nil
	}}
}

var isoDuration = regexp.MustCompile(`^(?i)by_duration:P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?$`)

func shareOffsetReset() Allowed {
	return Allowed{Text: "latest, earliest or by_duration:PnDTnHnMn.nS", Check: func(elements []string) error {
		value := strings.ToLower(elements[0])
		if value == "latest" || value == "earliest" ||
			isoDuration.MatchString(elements[0]) && strings.ContainsAny(value[len("by_duration:"):], "dhms") {
			return nil
		}
		//lint:ignore ST1005 Kafka's sentence, which tools show
		return fmt.Errorf("Invalid value `%s` for configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.", elements[0])
	}}
}

// problem is what is wrong with a value, in the words of a Kafka error and as
// what the row takes instead.
type problem struct {
	kafka string // after "Invalid value … for configuration …: ", or whole
	whole bool
	value *string // what Kafka shows as the value, where it is not the text given
}

// check tests a parsed value; nil is good.
func (a *Allowed) check(row *Row, parsed any) *problem {
	switch v := parsed.(type) {
	case int64:
		if a.Also != nil && v == *a.Also {
			return nil
		}
		return a.checkNumber(float64(v), value{v})
	case float64:
		return a.checkNumber(v, value{v})
	case string:
		return a.checkString(v)
	case []string:
		return a.checkList(row, v)
	}
	return nil
}

func (a *Allowed) checkNumber(v float64, given value) *problem {
	shown := given.text()
	if a.Also != nil && (v < a.Min || v > a.Max) {
		return &problem{kafka: fmt.Sprintf("Value must be between %s and %s or equal to %d", number(a.Min), number(a.Max), *a.Also), value: shown}
	}
	if a.HasMin && v < a.Min {
		return &problem{kafka: "Value must be at least " + number(a.Min), value: shown}
	}
	if a.HasMax && v > a.Max {
		return &problem{kafka: "Value must be no more than " + number(a.Max), value: shown}
	}
	return nil
}

func (a *Allowed) checkString(v string) *problem {
	if a.NotEmpty && v == "" {
		return &problem{kafka: "String must be non-empty", value: &v}
	}
	if a.OneOf != nil && !a.has(v) {
		return &problem{kafka: "String must be one of: " + strings.Join(a.OneOf, ", "), value: &v}
	}
	if a.Check != nil {
		if err := a.Check([]string{v}); err != nil {
			return &problem{kafka: err.Error()}
		}
	}
	return nil
}

// checkList follows the order of the checks in Kafka's ValidList.
func (a *Allowed) checkList(row *Row, v []string) *problem {
	whole := func(text string) *problem {
		return &problem{whole: true, kafka: fmt.Sprintf("Configuration '%s' %s", row.Name, text)}
	}
	if a.NotEmpty && len(v) == 0 {
		valid := "any non-empty value"
		if a.OneOf != nil {
			valid = "[" + strings.Join(a.OneOf, ", ") + "]"
		}
		return whole("must not be empty. Valid values include: " + valid)
	}
	for _, element := range v {
		switch {
		case element == "" && !a.Repeats:
			return whole("values must not be empty.")
		case a.OneOf != nil && !a.has(element):
			return &problem{kafka: "String must be one of: " + strings.Join(a.OneOf, ", "), value: &element}
		}
	}
	if a.Check != nil && len(v) > 0 {
		if err := a.Check(v); err != nil {
			shown := "[" + strings.Join(v, ", ") + "]"
			return &problem{kafka: row.Name + " " + err.Error(), value: &shown}
		}
	}
	return nil
}

func (a *Allowed) has(value string) bool {
	return slices.ContainsFunc(a.OneOf, func(one string) bool {
		return one == value || a.FoldCase && strings.EqualFold(one, value)
	})
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// takes says what a row takes: the end of "num.partitions takes …".
func (r *Row) takes() string {
	a := &r.Allowed
	switch r.Type {
	case Boolean:
		return "true or false"
	case Int:
		return a.numbers("a whole number", -1<<31, 1<<31-1)
	case Short:
		return a.numbers("a whole number", -1<<15, 1<<15-1)
	case Long:
		return a.numbers("a whole number", -1<<63, 1<<63-1)
	case Double:
		return a.numbers("a number", 0, 0)
	case List:
		return a.lists()
	}
	switch {
	case a.OneOf != nil:
		return "one of " + strings.Join(a.OneOf, ", ")
	case a.Text != "":
		return a.Text
	case a.NotEmpty:
		return "text that is not empty"
	}
	return "text"
}

// numbers describes a range; low and high bound the type where the row does
// not, and are not named when the range is only that of 64 bits.
func (a *Allowed) numbers(what string, low, high float64) string {
	text := what
	switch {
	case a.HasMin && a.HasMax:
		text += " from " + number(a.Min) + " to " + number(a.Max)
	case a.HasMin && high > 0 && high < 1<<62:
		text += " from " + number(a.Min) + " to " + number(high)
	case a.HasMin:
		text += " of at least " + number(a.Min)
	case low != 0 && low > -(1<<62):
		text += " from " + number(low) + " to " + number(high)
	}
	if a.Also != nil {
		text += " or " + strconv.FormatInt(*a.Also, 10)
	}
	return text
}

func (a *Allowed) lists() string {
	text := "a list with commas between"
	if a.NotEmpty {
		text += ", which must not be empty"
	}
	switch {
	case a.OneOf != nil:
		return text + ", of " + strings.Join(a.OneOf, ", ")
	case a.Text != "":
		return text + ", of " + a.Text
	}
	return text
}
