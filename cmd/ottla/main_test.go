package main

import "testing"

// TestExitStatus: scripts tell a wrong command line from a failed operation.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"version"}, 0},
		{nil, 0}, // the help
		{[]string{"no-such-command"}, exitUsage},
		{[]string{"serve", "--no-such-flag"}, exitUsage},
		{[]string{"serve", "a", "b"}, exitUsage},
		{[]string{"serve", "no/such/file"}, exitUsage},
		{[]string{"serve", "--override", "x"}, exitUsage},
		{[]string{"format"}, exitUsage},
		{[]string{"dump"}, exitUsage},
		{[]string{"dump", "no/such/file.log"}, exitFailed},
	} {
		if got := run(c.args); got != c.want {
			t.Errorf("%v: %d", c.args, got)
		}
	}
}
