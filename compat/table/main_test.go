package main

import (
	"testing"

	"ottla/compat/suite"
)

func TestMark(t *testing.T) {
	for _, c := range []struct{ own, control, want string }{
		{suite.Pass, suite.Pass, "✓"}, {suite.Fail, suite.Pass, `✗\|✓`}, {suite.Pass, suite.Fail, `✓\|✗`}, {"", "", "·"}, {suite.Pass, "", `✓\|?`},
	} {
		if got := mark(c.own, c.control); got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.own, c.control, got, c.want)
		}
	}
}
