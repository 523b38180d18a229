//go:build compat

package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suites"
)

// clientSuite is what one library ships.
type clientSuite struct {
	name   string // in exceptions.txt
	module string
	root   string // the topmost package whose tests run, below the module
	flags  []string
	env    []string
	// prepare, if set, changes the copy of the module that is run.
	prepare func(dir string, node *harness.Node) error
}

func clientSuites(node *harness.Node) []clientSuite {
	return []clientSuite{
		{
			name: "kgo", module: "github.com/twmb/franz-go", root: "pkg/kgo",
			env: []string{"KGO_SEEDS=" + node.Addr(), "KGO_TEST_RF=1", "KGO_TEST_RECORDS=5000"},
		},
		{
			name: "kafka-go", module: "github.com/segmentio/kafka-go",
			flags:   []string{"-modfile=" + filepath.Join(harness.CompatDir(), "suites", "kafka-go.mod"), "-p=1"},
			env:     []string{"KAFKA_VERSION=" + harness.KafkaVersion, "KAFKA_SKIP_NETTEST=1"},
			prepare: readdress,
		},
	}
}

// readdress writes the node's port into the tests of kafka-go, which speak to localhost:9092.
func readdress(dir string, node *harness.Node) error {
	_, port, err := net.SplitHostPort(node.Addr())
	if err != nil {
		return err
	}
	written := regexp.MustCompile(`\b9092\b`)
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, written.ReplaceAll(text, []byte(port)), 0o644)
	})
}

// TestSuites runs the tests that client libraries ship against one node. Each must pass or be listed in suites/exceptions.txt; a
// listed one must not pass, unless it races with itself.
func TestSuites(t *testing.T) {
	need(t)
	node := startNode(t, "suites", map[string]string{"auto.create.topics.enable": "true"})
	file, err := os.Open(filepath.Join(harness.CompatDir(), "suites", "exceptions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	exceptions, err := suites.ReadExceptions(file)
	if err != nil {
		t.Fatalf("exceptions.txt: %v", err)
	}
	t.Run("all", func(t *testing.T) {
		for _, s := range clientSuites(node) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel() // they wait more than they work
				var listed []suites.Exception
				for _, e := range exceptions {
					if e.Suite == s.name {
						listed = append(listed, e)
					}
				}
				s.run(t, node, listed)
			})
		}
	})
	stopCleanly(t, node)
}

// run runs the tests that are not listed, and then each listed one by itself.
func (s clientSuite) run(t *testing.T, node *harness.Node, listed []suites.Exception) {
	ctx, cancel := context.WithTimeout(context.Background(), 28*time.Minute)
	defer cancel()
	begin := time.Now()
	dir := s.copyModule(t)
	if s.prepare != nil {
		if err := s.prepare(dir, node); err != nil {
			t.Fatal(err)
		}
	}
	byPackage := map[string][]string{}
	for _, e := range listed {
		pkg, name := suites.Package(e.Test)
		byPackage[pkg] = append(byPackage[pkg], name)
	}
	all, said := suites.Outcomes{}, suites.Said{}
	var others []string
	for _, pkg := range s.packages(t, ctx, dir) {
		if byPackage[pkg] == nil {
			others = append(others, pkg)
			continue
		}
		s.test(t, ctx, dir, all, said, "-timeout=12m", "-skip="+suites.Pattern(byPackage[pkg]), pkg)
	}
	if len(others) > 0 {
		s.test(t, ctx, dir, all, said, append([]string{"-timeout=12m"}, others...)...)
	}
	wrongs := 0
	for _, wrong := range all.Wrong() {
		name, result, _ := strings.Cut(wrong, ": ")
		if result != "skip" && s.passesAlone(t, ctx, dir, name) {
			continue
		}
		wrongs++
		words := ""
		if said[name] != nil {
			words = lastLines(said[name].String(), 30)
		}
		ended.add("suites: "+s.name+": "+name, result+"\n"+words)
		t.Errorf("%s\n%s", wrong, words)
	}
	for _, e := range listed {
		if e.Races() {
			continue
		}
		pkg, name := suites.Package(e.Test)
		alone := suites.Outcomes{}
		s.test(t, ctx, dir, alone, suites.Said{}, "-timeout=10s", "-run="+suites.Pattern([]string{name}), pkg)
		if err := alone.Excused(e.Test); err != nil && node.Kind() == harness.Ottla { // the list is of Ottla
			t.Error(err)
		}
	}
	harness.Progress("suite %s: %d tests and subtests pass, %d are listed as exceptions, %d are wrong, %.0f s",
		s.name, all.Passed(), len(listed), wrongs, time.Since(begin).Seconds())
}

// passesAlone says whether a test that failed among the others passes by itself, at one of three attempts: some have deadlines of their
// own that are short for a machine that does other things too.
func (s clientSuite) passesAlone(t *testing.T, ctx context.Context, dir, test string) bool {
	t.Helper()
	pkg, name := suites.Package(test)
	if !strings.HasPrefix(name, "Test") {
		return false
	}
	for range 3 {
		alone := suites.Outcomes{}
		s.test(t, ctx, dir, alone, suites.Said{}, "-timeout=3m", "-run="+suites.Pattern([]string{name}), pkg)
		if alone[test] == "pass" {
			harness.Progress("suite %s: %s failed among the others and passes alone", s.name, test)
			return true
		}
	}
	return false
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// copyModule copies the module out of Go's cache, where nothing may be written.
func (s clientSuite) copyModule(t *testing.T) string {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", s.module)
	list.Dir = filepath.Join(harness.CompatDir(), "suites", "modules")
	list.Env = append(os.Environ(), "GOPROXY=off")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("run `compat/run.sh install` first: %v\n%s", err, out)
	}
	dir := filepath.Join(workDir(t), s.name)
	if err := os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.FromSlash(s.root))
}

func (s clientSuite) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOPROXY=off", "GOFLAGS=-trimpath"), s.env...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// packages are the packages beneath the root, "./sasl" and the like.
func (s clientSuite) packages(t *testing.T, ctx context.Context, dir string) []string {
	t.Helper()
	args := append([]string{"list"}, slices.DeleteFunc(slices.Clone(s.flags), func(flag string) bool { return flag == "-p=1" })...)
	out, err := s.command(ctx, dir, append(args, "-f", "{{.Dir}}", "./...")...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for line := range strings.Lines(string(out)) {
		rel, err := filepath.Rel(dir, strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if rel != "." {
			rel = "./" + filepath.ToSlash(rel)
		}
		packages = append(packages, rel)
	}
	return packages
}

// test runs go test and adds what became of the tests.
func (s clientSuite) test(t *testing.T, ctx context.Context, dir string, o suites.Outcomes, said suites.Said, args ...string) {
	t.Helper()
	cmd := s.command(ctx, dir, append(append([]string{"test", "-json", "-count=1"}, s.flags...), args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run() // fails when a test fails, of which the output tells
	if keep := os.Getenv("OTTLA_COMPAT_KEEP"); keep != "" {
		_ = os.WriteFile(filepath.Join(keep, fmt.Sprintf("%s-%d.json", s.name, time.Now().UnixNano())), stdout.Bytes(), 0o644)
	}
	if ctx.Err() != nil {
		t.Fatalf("the suite did not end in time")
	}
	root := strings.TrimSuffix(s.module+"/"+s.root, "/")
	if failed := o.ReadOutcomes(&stdout, root, said); failed != nil || err != nil && stderr.Len() > 0 && len(o) == 0 {
		t.Fatalf("go test %v: %v, %v\n%s", args, err, failed, stderr.String())
	}
}
