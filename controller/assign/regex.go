package assign

import (
	"iter"
)

// Regex is a regular expression by which a member subscribes to topics: RE2, as
// Apache Kafka has it by re2j. It may be shared.
type Regex struct{}

// CompileRegex reads a regular expression. The error is an
// INVALID_REGULAR_EXPRESSION with the text of Apache Kafka.
func CompileRegex(pattern string) (*Regex, error) { panic("regex") }

// Matches tells whether the whole name of a topic matches.
func (r *Regex) Matches(topic string) bool { panic("regex") }

// Topics gives those of the topics that match and that may tells the member may
// describe (nil: all), sorted. Internal topics are like any other.
func (r *Regex) Topics(topics iter.Seq[string], may func(topic string) bool) []string { panic("regex") }
