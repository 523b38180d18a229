package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/cmd/ottla/internal/check"
)

// runCheck runs the command, and gives what it printed, what it told meanwhile, and its exit status.
func runCheck(t *testing.T, args ...string) (out, told string, status int) {
	t.Helper()
	root := rootCommand()
	var printed, aside bytes.Buffer
	root.SetOut(&printed)
	root.SetErr(&aside)
	root.SetArgs(append([]string{"check"}, args...))
	status = exitStatus(root.Execute(), &aside)
	return printed.String(), aside.String(), status
}

// checked is a copy of two log directories of Apache Kafka 4.4.0.
func checked(t *testing.T) (dir string, dirs []string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("internal/check/testdata/kafka-4.4.0")); err != nil {
		t.Fatal(err)
	}
	return dir, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
}

func TestCheck(t *testing.T) {
	dir, dirs := checked(t)
	before := stateOf(t, dir)
	out, told, status := runCheck(t, dirs...)
	if status != 0 || told != "" {
		t.Errorf("exit %d, %q\n%s", status, told, out)
	}
	for _, want := range []string{"cluster MkU3OEVBNTcwNTJENDM2Qk, node 1", "closed in order", ": 0 faults, 2 notes\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "note ") {
		t.Errorf("notes without --notes:\n%s", out)
	}
	if out, _, _ := runCheck(t, append(dirs, "--notes")...); strings.Count(out, "note  index-padded ") != 2 {
		t.Errorf("with --notes:\n%s", out)
	}
	if !slices.Equal(before, stateOf(t, dir)) {
		t.Error("the directories are not what they were")
	}
}

// TestCheckFindsFaults has exit status 1, and the same in both forms of the report.
func TestCheckFindsFaults(t *testing.T) {
	_, dirs := checked(t)
	name := filepath.Join(dirs[0], "plain-0", "00000000000000000000.log")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, told, status := runCheck(t, dirs...)
	if status != 1 || strings.Count(out, "FAULT batch-crc "+name+" at byte ") != 1 || strings.Count(out, "FAULT") != 1 {
		t.Errorf("exit %d, %q\n%s", status, told, out)
	}
	out, _, status = runCheck(t, append(dirs, "--json")...)
	var report check.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if status != 1 || report.FaultCount != 1 || len(report.Faults) != 1 || report.Faults[0].Name != check.BatchCRC ||
		report.Faults[0].File != name || report.Faults[0].Partition != "plain-0" || len(report.Directories) != 2 || report.Checked.Records == 0 {
		t.Errorf("exit %d\n%s", status, out)
	}
}

func TestCheckUsage(t *testing.T) {
	for _, args := range [][]string{{}, {filepath.Join(t.TempDir(), "nothing")}, {"--what"}} {
		if out, told, status := runCheck(t, args...); status != 2 || told == "" {
			t.Errorf("check %q: exit %d, %q\n%s", args, status, told, out)
		}
	}
}

func TestCheckProgress(t *testing.T) {
	var out bytes.Buffer
	clock := time.UnixMilli(0)
	progress := progressTo(&out, func() time.Time { return clock })
	progress(check.Totals{}, "first")
	clock = clock.Add(progressEvery)
	progress(check.Totals{Partitions: 3, Bytes: 5 << 20}, "second")
	progress(check.Totals{}, "third")
	if got := out.String(); got != "3 partitions, 0 batches, 5 MB; second\n" {
		t.Errorf("%q", got)
	}
}
