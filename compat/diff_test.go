//go:build compat

package compat

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/compat/diff"
	"ottla/compat/harness"
)

// bookLimit ends a book that hangs. Apache Kafka, beside other work, takes minutes for the longest.
const bookLimit = 8 * time.Minute

// TestDiff sends the same raw requests to the node as were once sent to Apache Kafka and compares every field of the answers
// with the record. Against Apache Kafka it makes the record, or, without OTTLA_COMPAT_RESULTS, compares too. A difference that
// compat/diff/allowed.txt explains passes; a line there that explains none fails.
func TestDiff(t *testing.T) {
	need(t)
	allowed := readAllowed(t)
	counts, explained, whole := map[string]int{}, 0, true
	for _, book := range diff.Books {
		whole = t.Run(book.Name, func(t *testing.T) {
			answers, known := tellBook(t, book, allowed)
			if target(t) == harness.Ottla {
				for _, what := range diff.Uncovered(answers) {
					t.Errorf("%s is advertised, and compat/diff/rules.go has no right and wrong request for it", what)
				}
			}
			explained += known
			for api, n := range diff.Counts(answers) {
				counts[api] += n
			}
		}) && whole
	}
	if target(t) == harness.Ottla && os.Getenv("OTTLA_COMPAT_RUN") == "" {
		for _, pattern := range diff.Unused(allowed) {
			t.Errorf("allowed.txt: nothing like %q differs any more", pattern)
		}
	}
	sum := 0
	var list []string
	for _, api := range slices.Sorted(maps.Keys(counts)) {
		sum += counts[api]
		list = append(list, fmt.Sprintf("%s %d", api, counts[api]))
	}
	harness.Progress("%d answers, %d differ as allowed.txt says; by API: %s", sum, explained, strings.Join(list, ", "))
}

// tellBook tells one book to a node of its own.
func tellBook(t *testing.T, book diff.Book, allowed []*diff.Allowed) (got []diff.Answer, explained int) {
	t.Helper()
	node := startNode(t, "diff-"+book.Name, book.Settings)
	ctx, cancel := context.WithTimeout(context.Background(), bookLimit)
	defer cancel()
	lines, err := diff.Tell(ctx, diff.Server{Broker: node.Addr(), Controller: node.ControllerAddr()}, book)
	if keep := os.Getenv("OTTLA_COMPAT_KEEP"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, "diff-"+book.Name+"-told.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	stopCleanly(t, node)
	recorded := filepath.Join(harness.Root(), "testdata", "control", "diff-"+book.Name+".txt")
	if dir := os.Getenv("OTTLA_COMPAT_RESULTS"); target(t) == harness.Kafka && dir != "" {
		recorded = filepath.Join(dir, filepath.Base(recorded))
		if err := os.WriteFile(recorded, []byte(strings.Join(diff.Shorten(lines), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatalf("there is no record (make control makes it): %v", err)
	}
	got = diff.Answers(lines)
	if target(t) == harness.Kafka {
		allowed = nil
	}
	differences, explained := diff.Compare(got, diff.Answers(strings.Split(string(content), "\n")), allowed)
	for i, d := range differences {
		if i == 60 && os.Getenv("OTTLA_COMPAT_KEEP") == "" {
			t.Errorf("and %d more", len(differences)-i)
			break
		}
		t.Errorf("%s\n  is   %s\n  want %s\n  (after %s)", d.Name, d.Text, d.Want, d.After)
	}
	return got, explained
}

// readAllowed reads the differences that there may be, each of which must be in DIFFERENCES.md or wait for something to be built.
func readAllowed(t *testing.T) []*diff.Allowed {
	t.Helper()
	file, err := os.Open(filepath.Join(harness.CompatDir(), "diff", "allowed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	allowed, err := diff.ReadAllowed(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(harness.Root(), "DIFFERENCES.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range allowed {
		if strings.HasPrefix(l.Why, "not built: ") {
			continue
		}
		if ok, _ := regexp.Match(`(?m)^`+regexp.QuoteMeta(l.Why)+`\. `, text); !ok {
			t.Errorf("allowed.txt: %s is no entry of DIFFERENCES.md", l.Why)
		}
	}
	if entries := len(regexp.MustCompile(`(?m)^\d+\. `).FindAll(text, -1)); entries > 20 {
		t.Errorf("DIFFERENCES.md has %d entries; who reads it is promised 20 at most", entries)
	}
	return allowed
}

func at(lines []string, i int) string {
	if i < 0 || i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
