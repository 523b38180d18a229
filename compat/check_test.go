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
	out, err := exec.Command(harness.OttlaBinary(), append([]string{"check"}, dirs...)...).CombinedOutput()
	if err != nil {
		t.Errorf("ottla check on what %s: %v\n%s", what, err, out)
		return
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	harness.Progress("ottla check on what %s: %s", what, lines[len(lines)-1])
}
