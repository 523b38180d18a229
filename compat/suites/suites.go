package suites

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Exception is a test that may not pass: its suite, its name with those of its parents ("TestTxnEtl/range"), behind its package where
// that is not the suite's root ("sasl.TestSASL"), and the reason.
type Exception struct{ Suite, Test, Reason string }

// Races says that the test may pass as well, because it races with itself: its reason begins with "sometimes:".
func (e Exception) Races() bool { return strings.HasPrefix(e.Reason, "sometimes:") }

// ReadExceptions reads lines of "suite test reason…"; # begins a comment. A line that is no such line, and a test that is listed
// twice or beneath a listed one, is an error.
func ReadExceptions(r io.Reader) ([]Exception, error) {
	var list []Exception
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) < 4 {
			return nil, fmt.Errorf("line %d: %q is not: suite, test, a reason of some words", n, text)
		}
		e := Exception{fields[0], fields[1], strings.Join(fields[2:], " ")}
		for _, other := range list {
			if other.Suite == e.Suite && (e.Test == other.Test || Beneath(e.Test, other.Test) || Beneath(other.Test, e.Test)) {
				return nil, fmt.Errorf("line %d: %s is listed already, by %s", n, e.Test, other.Test)
			}
		}
		list = append(list, e)
	}
	return list, lines.Err()
}

// Beneath says whether a test is a subtest of another, at any depth.
func Beneath(test, parent string) bool { return strings.HasPrefix(test, parent+"/") }

// Package is the package of a test, from the suite's root on ("." for that), and the test's name in it.
func Package(test string) (pkg, name string) {
	top, _, _ := strings.Cut(test, "/Test") // a package's name may hold a slash, a test's begins with Test
	if i := strings.LastIndex(top, ".Test"); i >= 0 {
		return "./" + test[:i], test[i+1:]
	}
	return ".", test
}

// Pattern is the pattern of go test's -run or -skip that means exactly these tests; none means none.
func Pattern(tests []string) string {
	var patterns []string
	for _, test := range tests {
		parts := strings.Split(test, "/")
		for i, part := range parts {
			parts[i] = "^" + quote(part) + "$"
		}
		patterns = append(patterns, strings.Join(parts, "/"))
	}
	if patterns == nil {
		return "^$"
	}
	return strings.Join(patterns, "|")
}

// quote is a name as a pattern. The characters that names of tests hold beside letters, of which a slash would part the pattern.
func quote(name string) string {
	var b strings.Builder
	for _, c := range name {
		if strings.ContainsRune(`.+*?()|[]{}^$\`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Outcomes are the results by test: pass, fail, skip, or "run" for one that began and never ended.
type Outcomes map[string]string

// Said is what was printed, by test.
type Said map[string]*strings.Builder

// ReadOutcomes reads what test2json printed of tests in packages beneath root, and adds it to what is there already. A package that
// failed without any test of its own having failed (it did not compile, say) is an outcome under its own name.
func (o Outcomes) ReadOutcomes(r io.Reader, root string, said Said) error {
	decoder := json.NewDecoder(r)
	for {
		var event struct{ Action, Package, Test, Output string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("what test2json printed: %w", err)
		}
		pkg := strings.TrimPrefix(strings.TrimPrefix(event.Package, root), "/")
		test := event.Test
		switch {
		case test == "" && event.Action == "fail" && !o.failed(pkg):
			test = "package " + event.Package
		case test == "" && event.Action != "output":
			continue
		case test != "" && pkg != "":
			test = pkg + "." + test
		}
		switch event.Action {
		case "run", "pass", "fail", "skip":
			o[test] = event.Action
		case "output":
			if said[test] == nil {
				said[test] = &strings.Builder{}
			}
			said[test].WriteString(event.Output)
		}
	}
}

// failed says whether a test of a package did not pass.
func (o Outcomes) failed(pkg string) bool {
	for test, result := range o {
		at, _ := Package(test)
		if (at == "./"+pkg || at == "." && pkg == "") && result != "pass" && result != "skip" {
			return true
		}
	}
	return false
}

// Wrong are the tests of a run without the listed ones that did not pass, sorted. A parent that failed is left out where a subtest
// says why. "TestX: fail" says which and how.
func (o Outcomes) Wrong() []string {
	var wrong []string
	for test, result := range o {
		if result == "pass" {
			continue
		}
		told := false
		for other, r := range o {
			told = told || Beneath(other, test) && r == result
		}
		if !told {
			wrong = append(wrong, test+": "+result)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Excused says whether a listed test may stay in the list after it was run by itself: it did not pass, and it exists.
func (o Outcomes) Excused(test string) error {
	switch result, ran := o[test]; {
	case !ran:
		return fmt.Errorf("no such test: take %s off the list", test)
	case result == "pass":
		return fmt.Errorf("%s passes: take it off the list", test)
	}
	return nil
}

// Passed counts the tests that passed, subtests among them.
func (o Outcomes) Passed() int {
	n := 0
	for _, result := range o {
		if result == "pass" {
			n++
		}
	}
	return n
}
