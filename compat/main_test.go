//go:build compat

package compat

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// target is the kind of server under test; a bad setting fails the test.
func target(t *testing.T) harness.Kind {
	t.Helper()
	kind, err := harness.TargetKind()
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// need fails the test when a program is missing: nothing is ever skipped.
func need(t *testing.T, programs ...string) {
	t.Helper()
	programs = append(programs, "java")
	if target(t) == harness.Ottla {
		programs = append(programs, "ottla")
	}
	if err := harness.CheckInstalled(programs...); err != nil {
		t.Fatal(err)
	}
}

// needRoot is for tests that make file systems.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a loop device and its mount need root: run this as root")
	}
}

// startJava starts the Java driver in a directory; it is ended with the test.
func startJava(t *testing.T, dir string) *driver.Process {
	t.Helper()
	java, err := driver.StartJava(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = java.Close() })
	return java
}

// workDir is a temporary directory of the test; OTTLA_COMPAT_KEEP names a folder in which it is made and left, to look at.
func workDir(t *testing.T) string {
	t.Helper()
	keep := os.Getenv("OTTLA_COMPAT_KEEP")
	if keep == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(keep, strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// startNode starts a node of the target kind in a temporary directory; it is ended with the test.
func startNode(t *testing.T, name string, properties map[string]string) *harness.Node {
	t.Helper()
	return startNodeIn(t, harness.Options{Kind: target(t), Name: name, Dir: workDir(t), Properties: properties})
}

func startNodeIn(t *testing.T, o harness.Options) *harness.Node {
	t.Helper()
	node, err := harness.NewNode(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	if _, err := node.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return node
}

// explain prints the server's last log lines under a failed test, and has the test named in the last lines of the run.
func explain(t *testing.T, node *harness.Node) {
	if t.Failed() {
		ended.add(t.Name(), "see above")
		tellLog(t, node)
	}
}

// tellLog prints the server's last log lines under a failed test.
func tellLog(t *testing.T, node *harness.Node) {
	if t.Failed() {
		t.Logf("last log lines of %s (%s):\n%s", filepath.Base(node.LogPath()), node.Kind(), node.LogTail(15))
	}
}

// finish writes the results of a part and prints the table, with the control column beside it when there is one. OTTLA_COMPAT_ONLY
// (a part of the cells was run) writes no file.
func finish(t *testing.T, results *suite.Results) {
	t.Helper()
	var control *suite.Results
	recorded := filepath.Join(harness.Root(), "testdata", "control", results.Part+".json")
	if target(t) == harness.Ottla {
		var err error
		if control, err = suite.ReadResults(recorded); err != nil {
			t.Errorf("the control column is missing (make control records it): %v", err)
		}
	}
	table := results.Table(control)
	harness.Progress("results of %s\n\n%s", results.Part, table)
	if dir := os.Getenv("OTTLA_COMPAT_RESULTS"); dir != "" {
		if err := results.Write(filepath.Join(dir, results.Part+".json")); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, results.Part+".txt"), []byte(table), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// compareControl compares a text line by line with the record under testdata/control, or makes the record: Apache Kafka with
// OTTLA_COMPAT_RESULTS.
func compareControl(t *testing.T, kind harness.Kind, name, got string) {
	t.Helper()
	path := filepath.Join(harness.Root(), "testdata", "control", name)
	if kind == harness.Kafka && os.Getenv("OTTLA_COMPAT_RESULTS") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("there is no record (make control makes it): %v", err)
	}
	is, want := strings.Split(got, "\n"), strings.Split(string(content), "\n")
	for i := range max(len(is), len(want)) {
		if at(is, i) != at(want, i) {
			t.Errorf("line %d:\n  is   %s\n  want %s", i+1, at(is, i), at(want, i))
		}
	}
	if t.Failed() {
		t.Logf("all of it:\n%s", got)
	}
}

// serverName is the heading of the results.
func serverName(kind harness.Kind) string {
	if kind == harness.Kafka {
		return "Apache Kafka " + harness.KafkaVersion
	}
	return "Ottla"
}
