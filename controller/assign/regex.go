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

// maxSteps bounds the program that a regular expression becomes: each of its steps
// may be looked at for each character of each topic's name. Without counted
// repetitions a pattern of the longest string of the protocol stays about below it.
const maxSteps = 1 << 15

// CompileRegex reads a regular expression. The error is an
// INVALID_REGULAR_EXPRESSION with the text of Apache Kafka. Refused besides is
// what re2j would make into a program of more than maxSteps.
func CompileRegex(pattern string) (*Regex, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, invalidRegex(pattern, reasonOf(err))
	}
	if steps(parsed) > maxSteps {
		return nil, invalidRegex(pattern, syntax.ErrLarge.String())
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

// steps tells about how many steps the program of an expression has. The parser
// lets nested repetitions be a thousand together, so the number stays small.
func steps(re *syntax.Regexp) int {
	if re.Op == syntax.OpLiteral {
		return len(re.Rune)
	}
	count := 1
	for _, sub := range re.Sub {
		count += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		count *= max(re.Min, re.Max, 1)
	}
	return count
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
