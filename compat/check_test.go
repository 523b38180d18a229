//go:build compat

package compat

import (
	"os/exec"
	"strings"
	"testing"

	"ottla/compat/harness"
)

// checkFiles has ottla check look at log directories: no fault, whoever wrote them and however they were left.
func checkFiles(t *testing.T, what string, dirs ...string) {
	t.Helper()
	harness.Progress("ottla check on what %s: %s", what, noFaults(t, what, dirs...))
}

// noFaults is checkFiles without a word; it returns the last line of the report.
func noFaults(t *testing.T, what string, dirs ...string) string {
	t.Helper()
	out, err := exec.Command(harness.OttlaBinary(), append([]string{"check"}, dirs...)...).CombinedOutput()
	if err != nil {
		t.Errorf("ottla check on what %s: %v\n%s", what, err, out)
		return "FAULTS"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
