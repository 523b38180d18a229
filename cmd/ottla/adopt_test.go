package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// adopt runs the command, and gives what it printed and its exit status.
func adopt(t *testing.T, args ...string) (string, int) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"adopt"}, args...))
	status := exitStatus(root.Execute(), &out)
	return out.String(), status
}

func exitStatus(err error, out *bytes.Buffer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(out, err)
	return statusOf(err)
}

// stateOf is every name below a directory with size, time and content.
func stateOf(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprint(path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if !entry.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", text)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAdopt: the exit status tells whether it is safe, and nothing changes.
func TestAdopt(t *testing.T) {
	dir := t.TempDir()
	data, other, config := filepath.Join(dir, "data"), filepath.Join(dir, "other"), filepath.Join(dir, "server.properties")
	writeConfig(t, config, data+","+other)
	if status := run([]string{"format", "--standalone", "-t", "Yh4XFBD2Rb-8s4xkUUkKcw", "-c", config}); status != 0 {
		t.Fatalf("format ended with %d", status)
	}
	check := func(what string, status int, says string, args ...string) {
		t.Helper()
		before := stateOf(t, dir)
		out, got := adopt(t, args...)
		if got != status || !strings.Contains(out, says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", what, got, status, says, out)
		}
		if !slices.Equal(stateOf(t, dir), before) {
			t.Errorf("%s: the directory has changed", what)
		}
	}
	check("formatted", 0, "\nsafe to start\n", data, other)
	check("metadata in the second", 0, "with the metadata log", other, data)
	check("its configuration", 0, "kraft.version 1", "-c", config)
	check("both", 0, "safe to start", "--dry-run", "-c", config, data, other)
	check("nothing named", exitUsage, "needs the log directories")
	check("a comma", exitUsage, "comma", data+",x")
	check("no such flag", exitUsage, "", "--no-such-flag", data)
	check("no such directory", exitFailed, "not formatted", filepath.Join(dir, "missing"))
	check("not one of them", exitFailed, "not formatted", dir)
	several := filepath.Join(dir, "several")
	if status := run([]string{
		"format", "-t", "Yh4XFBD2Rb-8s4xkUUkKcw", "-c", writeConfig(t, filepath.Join(dir, "other.properties"), several), "-I",
		"1@localhost:9093:Q4InMkSwRsqmXz6yismzwg,2@localhost:9193:Z4InMkSwRsqmXz6yismzwg",
	}); status != 0 {
		t.Fatalf("format ended with %d", status)
	}
	check("several voters", exitFailed, "several controllers is not served yet", several)
	if err := os.WriteFile(filepath.Join(data, "meta.properties"), []byte("version=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("damaged", exitFailed, "cluster.id", data)
	if err := os.WriteFile(filepath.Join(data, "meta.properties"), []byte("version=0\nbroker.id=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("ZooKeeper", exitFailed, "ZooKeeper", data)
}

// writeConfig writes the configuration of a node with these log.dirs.
func writeConfig(t *testing.T, file, data string) string {
	t.Helper()
	text := "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n" +
		"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\nlog.dirs=" + data + "\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
