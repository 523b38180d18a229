//go:build compat

package compat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ottla/compat/harness"
)

// TestClusterMoveLong is TestClusterMove with OTTLA_MOVE_CALM_SECONDS (60) before each step and at least as long from its start on, in
// which is measured what goes on; the table is appended to testdata/soak/clustermove.txt.
func TestClusterMoveLong(t *testing.T) {
	m := moveCluster(t, time.Duration(setting(t, "OTTLA_MOVE_CALM_SECONDS", 60))*time.Second)
	table := m.table()
	harness.Progress("a cluster moved\n\n%s", table)
	if t.Failed() {
		return
	}
	appendLine(t, soakPath(t, "clustermove.txt"), fmt.Appendf(nil, "%s, %s of calm before each step\n%s", time.Now().UTC().Format(time.DateOnly), m.calm, table))
}

// table tells of each step how long it took, and what was acknowledged each second before it and from its start on.
func (m *moving) table() string {
	var b strings.Builder
	for _, s := range m.steps {
		fmt.Fprintf(&b, "  %5.1f s  %6.1f/s before  %6.1f/s from its start on  %4.2f  %s\n", s.took.Seconds(), s.before, s.during, s.during/s.before, s.name)
	}
	return b.String()
}
