package assign

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
)

// topicsOfExpressions are the topics that testdata/java/Expressions.java matches.
var topicsOfExpressions = []string{
	"a", "b", "ab", "foo", "foo.bar", "foo-bar", "FOO", "x1", "x12", "_internal", "__consumer_offsets", "topic.1", "a_b", "",
}

// otherReasons are those refused here for another reason; the first is compiled by
// re2j, into millions of steps.
var otherReasons = map[string]string{
	"(a{1000}){1000}": "invalid repeat count",
	"(?P<":            "invalid or unsupported Perl syntax",
}

func TestRegexAsRe2j(t *testing.T) {
	file, err := os.Open("testdata/expressions-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	count := 0
	for ; lines.Scan(); count++ {
		pattern := strings.TrimPrefix(lines.Text(), "pattern ")
		lines.Scan()
		want := lines.Text()
		if reason, differs := otherReasons[pattern]; differs {
			want = "refused " + reason
		}
		got := "matches"
		if r, err := CompileRegex(pattern); err != nil {
			var told *protocol.Error
			if !errors.As(err, &told) || told.Code != protocol.InvalidRegularExpression {
				t.Errorf("%q: %v is no INVALID_REGULAR_EXPRESSION", pattern, err)
			}
			prefix := fmt.Sprintf("SubscribedTopicRegex `%s` is not a valid regular expression: ", pattern)
			got = "refused " + strings.TrimSuffix(strings.TrimPrefix(told.Message, prefix), ".")
		} else {
			for _, topic := range topicsOfExpressions {
				if r.Matches(topic) {
					got += fmt.Sprintf(" %q", topic)
				}
			}
		}
		if got != want {
			t.Errorf("%q: %s, and with re2j: %s", pattern, got, want)
		}
	}
	if count < 100 {
		t.Errorf("only %d expressions were read", count)
	}
}

func TestRegexTopics(t *testing.T) {
	r, err := CompileRegex("foo.*|__.*")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Values(topicsOfExpressions)
	if got, want := r.Topics(all, nil), []string{"__consumer_offsets", "foo", "foo-bar", "foo.bar"}; !slices.Equal(got, want) {
		t.Errorf("the topics are %q, want %q", got, want)
	}
	may := func(topic string) bool { return topic != "foo" && !strings.HasPrefix(topic, "__") }
	if got, want := r.Topics(all, may), []string{"foo-bar", "foo.bar"}; !slices.Equal(got, want) {
		t.Errorf("the topics that may be described are %q, want %q", got, want)
	}
}

// TestRegexSize: what small patterns become is bounded; long lists of names are not refused.
func TestRegexSize(t *testing.T) {
	list := strings.Repeat("name-of-a-topic.1|x.y|", 1489)
	if len(list) > 1<<15 {
		t.Fatal(len(list))
	}
	for pattern, large := range map[string]bool{
		list: false, "(?:ab){999}": false, strings.Repeat("a?", 16_000): false,
		strings.Repeat("(?:.?){999}", 100): true, "(?:" + strings.Repeat(".?.{999}|", 3200) + "x)*": true, strings.Repeat(".{1000}", 40): true,
	} {
		_, err := CompileRegex(pattern)
		if refused := err != nil && strings.HasSuffix(err.Error(), "expression too large."); refused != large || !refused && err != nil {
			t.Errorf("%.20q…: refused %v", pattern, refused)
		}
	}
}

func FuzzCompileRegex(f *testing.F) {
	for _, pattern := range []string{"foo.*", "(a|b)+", "[[:alpha:]]", `\pL`, "(?i)x", "a{2,3}", ")"} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := CompileRegex(pattern)
		runtime.ReadMemStats(&after)
		// An expression may repeat a part of itself: what that costs is bounded whatever its length.
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(2000*len(pattern)+64<<10)+512*maxSteps {
			t.Errorf("%d bytes were allocated for %d", used, len(pattern))
		}
		if err == nil && len(pattern) < 100 {
			r.Matches("some.topic-name_1")
		}
	})
}
