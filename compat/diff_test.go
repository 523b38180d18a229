//go:build compat

package compat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ottla/compat/diff"
	"ottla/compat/harness"
)

// TestDiff sends the same raw requests to the node as were once sent to Apache Kafka and compares every field of the answers
// with the record. Against Apache Kafka it makes the record, or, without OTTLA_COMPAT_RESULTS, compares too.
func TestDiff(t *testing.T) {
	need(t)
	node := startNode(t, "diff", nil)
	lines, err := diff.Tell(cellContext(t), node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	recorded := filepath.Join(harness.Root(), "testdata", "control", "diff.txt")
	if dir := os.Getenv("OTTLA_COMPAT_RESULTS"); target(t) == harness.Kafka && dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "diff.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
	content, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatalf("there is no record (make control makes it): %v", err)
	}
	want := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	differences := 0
	for i := range max(len(lines), len(want)) {
		got, recorded := at(lines, i), at(want, i)
		if got == recorded {
			continue
		}
		if differences++; differences <= 40 {
			t.Errorf("line %d after %q:\n  is   %s\n  want %s", i+1, at(lines, i-1), got, recorded)
		}
	}
	answers := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "#") }))
	harness.Progress("%d answers, %d differ from those of Apache Kafka %s", answers, differences, harness.KafkaVersion)
	stopCleanly(t, node)
}

func at(lines []string, i int) string {
	if i < 0 || i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
