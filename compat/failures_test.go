//go:build compat

package compat

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// cell is the test of one cell. What it says first when it fails is repeated in the last lines of the run, for whoever sees only those.
type cell struct {
	*testing.T

	mu  sync.Mutex
	why string
}

func (c *cell) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == "" {
		c.why = text
	}
}

// Error is that of testing.T, and is remembered.
func (c *cell) Error(args ...any) {
	c.Helper()
	c.note(fmt.Sprint(args...))
	c.T.Error(args...)
}

// Errorf is that of testing.T, and is remembered.
func (c *cell) Errorf(format string, args ...any) {
	c.Helper()
	c.note(fmt.Sprintf(format, args...))
	c.T.Errorf(format, args...)
}

// Fatal is that of testing.T, and is remembered.
func (c *cell) Fatal(args ...any) {
	c.Helper()
	c.note(fmt.Sprint(args...))
	c.T.Fatal(args...)
}

// Fatalf is that of testing.T, and is remembered.
func (c *cell) Fatalf(format string, args ...any) {
	c.Helper()
	c.note(fmt.Sprintf(format, args...))
	c.T.Fatalf(format, args...)
}

// runCell runs one cell as a subtest, records its result, and remembers why it failed. It says whether the cell passed, and whether it
// ran at all: it may be left out by the pattern of -run.
func runCell(t *testing.T, node *harness.Node, results *suite.Results, test, row, column string, run func(*cell)) (passed, ran bool) {
	t.Helper()
	name := row + " with " + column
	passed = t.Run(test, func(t *testing.T) {
		ran = true
		defer ended.begin(results.Part + ": " + name)()
		c := &cell{T: t}
		defer func() {
			if t.Failed() {
				ended.add(results.Part+": "+name, c.why+"\nlast log lines of the server:\n"+node.LogTail(5))
			}
			tellLog(t, node)
		}()
		run(c)
	})
	if ran {
		results.Add(row, column, !passed)
		word := suite.Pass
		if !passed {
			word = suite.Fail
		}
		harness.Progress("%s  %s", word, name)
	}
	return passed, ran
}

// failures are what TestMain says at the end.
type failures struct {
	mu      sync.Mutex
	list    []failure
	running map[string]time.Time
}

type failure struct{ name, why string }

var ended = failures{running: map[string]time.Time{}}

// begin tells that something runs, and returns how to tell that it has ended.
func (f *failures) begin(name string) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[name] = time.Now()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, name)
	}
}

// add remembers that something has failed, and why; nothing is remembered twice under a name.
func (f *failures) add(name, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.list, func(one failure) bool { return one.name == name }) {
		f.list = append(f.list, failure{name, why})
	}
}

// report is the text of what has failed: all that is known of each, and then a line for each.
func (f *failures) report() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var details, lines strings.Builder
	for _, one := range f.list {
		first, more, _ := strings.Cut(strings.TrimSpace(one.why), "\n")
		if len(first) > 300 {
			first = first[:300] + "…"
		}
		if more != "" {
			fmt.Fprintf(&details, "compat: what is known of %s:\n    %s\n", one.name, strings.ReplaceAll(firstLines(more, 25), "\n", "\n    "))
		}
		fmt.Fprintf(&lines, "compat: FAIL  %s: %s\n", one.name, first)
	}
	for name, since := range f.running {
		fmt.Fprintf(&lines, "compat: FAIL  %s: still runs, since %.0f s\n", name, time.Since(since).Seconds())
	}
	return details.String() + lines.String()
}

func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[:min(len(lines), n)], "\n")
}

// TestMain repeats at the end what has failed: the beginning and the end are what is kept of a long output. It ends a run that is about to
// run into go test's own limit, of which only the stacks of all goroutines would be left.
func TestMain(m *testing.M) {
	flag.Parse()
	limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration)
	if early := limit - 15*time.Second; early > 0 {
		time.AfterFunc(early, func() {
			fmt.Printf("%scompat: FAIL  the run is ended after %s\n", ended.report(), early)
			os.Exit(1)
		})
	}
	code := m.Run()
	fmt.Print(ended.report())
	os.Exit(code)
}

// cellLimit ends a cell that hangs. No cell comes near it, on the busiest machine.
const cellLimit = 6 * time.Minute

// cellContext is the context of one cell.
func cellContext(t *testing.T) context.Context { return limited(t, cellLimit) }

func limited(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}
