package diff

import (
	"slices"
	"strings"
	"testing"
)

// What is shortened comes back whole, and names do not meet over stories.
func TestShorten(t *testing.T) {
	long := strings.Repeat("answer ", 20)
	lines := []string{"# one", "a" + arrow + long, "b" + arrow + long, "c" + arrow + "short", "d" + arrow + "short", "# two", "a" + arrow + long, "without a name", "b" + arrow + long}
	short := Shorten(lines)
	if short[2] != "b → as a" || short[4] != lines[4] || short[6] != lines[6] {
		t.Errorf("%q", short)
	}
	if got, want := Answers(short), Answers(lines); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUncovered(t *testing.T) {
	answers := Answers([]string{
		"# advertised", "broker Metadata" + arrow + "0-1", "broker Vote" + arrow + "0-0", "broker Fetch" + arrow + "4-4", "broker supports x.version" + arrow + "0-1",
		"# Metadata on the broker's listener", "Metadata 0 name: right" + arrow + "{}", "Metadata 0 name: Topics=null" + arrow + "b", "Metadata 1 name: right" + arrow + "{}",
		"# Fetch on the broker's listener", "Fetch 4 right" + arrow + "the connection is closed", "Fetch 4 MaxBytes=-1" + arrow + "{}",
	})
	if got := Uncovered(answers); !slices.Equal(got, []string{"broker Metadata 1", "broker Vote 0", "broker Fetch 4"}) {
		t.Errorf("%q", got)
	}
}

func TestCompare(t *testing.T) {
	recorded := Answers([]string{"# api", "right" + arrow + "0", "wrong" + arrow + "42", "odd" + arrow + "1", "not asked" + arrow + "5"})
	got := Answers([]string{"# api", "right" + arrow + "0", "wrong" + arrow + "3", "odd" + arrow + "2", "new" + arrow + "7"})
	allowed, err := ReadAllowed(strings.NewReader("# comment\n\napi/w*\t1\napi/right\t2\n"))
	if err != nil {
		t.Fatal(err)
	}
	unexplained, explained := Compare(got, recorded, allowed)
	if explained != 1 || len(unexplained) != 2 || unexplained[0].Name != "api/odd" || unexplained[0].Want != "1" || unexplained[0].After != "api/wrong" || unexplained[1].Name != "api/new" {
		t.Errorf("%d explained, %+v", explained, unexplained)
	}
	if got := Unused(allowed); !slices.Equal(got, []string{"api/right"}) {
		t.Errorf("unused %q", got)
	}
	for _, bad := range []string{"no tab", "*\t1"} {
		if _, err := ReadAllowed(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
