package assign

import (
	"errors"
	"iter"
	"regexp"
	"regexp/syntax"
	"slices"

	"ottla/protocol"
)

// Regex is a regular expression by which a member subscribes to topics: RE2, as
// Apache Kafka has it by re2j, which has Go's syntax. It may be shared.
type Regex struct{ longest *regexp.Regexp }

// CompileRegex reads a regular expression. The error is an
// INVALID_REGULAR_EXPRESSION with the text of Apache Kafka. Refused besides is
// what re2j would make into a program of millions of steps.
func CompileRegex(pattern string) (*Regex, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, invalidRegex(pattern, reasonOf(err))
	}
	names := map[string]bool{}
	for _, name := range parsed.CapNames() {
		if name != "" && names[name] {
			return nil, invalidRegex(pattern, "duplicate capture group name")
		}
		names[name] = true
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, invalidRegex(pattern, reasonOf(err))
	}
	compiled.Longest()
	return &Regex{compiled}, nil
}

// reasonOf is the reason without what it is about, in the words of re2j.
func reasonOf(err error) string {
	var bad *syntax.Error
	switch {
	case !errors.As(err, &bad):
		return err.Error()
	case bad.Code == syntax.ErrUnexpectedParen:
		return syntax.ErrInternalError.String()
	default:
		return bad.Code.String()
	}
}

func invalidRegex(pattern, reason string) error {
	return protocol.Errorf(protocol.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", pattern, reason)
}

// Matches tells whether the whole name of a topic matches: if it does, the longest
// of the leftmost matches is the whole.
func (r *Regex) Matches(topic string) bool {
	at := r.longest.FindStringIndex(topic)
	return at != nil && at[0] == 0 && at[1] == len(topic)
}

// Topics gives those of the topics that match and that may tells the member may
// describe (nil: all), sorted. Internal topics are like any other.
func (r *Regex) Topics(topics iter.Seq[string], may func(topic string) bool) []string {
	var matching []string
	for topic := range topics {
		if r.Matches(topic) && (may == nil || may(topic)) {
			matching = append(matching, topic)
		}
	}
	slices.Sort(matching)
	return matching
}
