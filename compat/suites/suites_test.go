package suites

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestReadExceptions(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"comments and blanks", "# none\n\n  \n", ""},
		{"a line", "kgo TestA  needs that\nkgo TestB/x needs it\n", ""},
		{"the same name elsewhere", "kgo TestA needs that\nkafka-go TestA needs that\n", ""},
		{"no reason", "kgo TestA\n", "line 1: \"kgo TestA\" is not: suite, test, a reason of some words"},
		{"half a reason", "\nkgo TestA later\n", "line 2: \"kgo TestA later\" is not: suite, test, a reason of some words"},
		{"twice", "kgo TestA needs that\nkgo TestA needs this\n", "line 2: TestA is listed already, by TestA"},
		{"a child of one", "kgo TestA needs that\nkgo TestA/b needs this\n", "line 2: TestA/b is listed already, by TestA"},
		{"a parent of one", "kgo TestA/b needs that\nkgo TestA needs this\n", "line 2: TestA is listed already, by TestA/b"},
	} {
		_, err := ReadExceptions(strings.NewReader(c.text))
		if got := errText(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestExceptions sees to it that the list itself can be read.
func TestExceptions(t *testing.T) {
	file, err := os.Open("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := ReadExceptions(file); err != nil {
		t.Fatal(err)
	}
}

func TestPattern(t *testing.T) {
	if got := Pattern(nil); got != "^$" {
		t.Errorf("no tests: %q", got)
	}
	got := Pattern([]string{"TestA", "TestB/x+y/z"})
	if want := `^TestA$|^TestB$/^x\+y$/^z$`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !regexp.MustCompile(`^x\+y$`).MatchString("x+y") {
		t.Error("the quoted name does not match itself")
	}
}

const printed = `{"Action":"start","Package":"m/root"}
{"Action":"run","Package":"m/root","Test":"TestA"}
{"Action":"output","Package":"m/root","Test":"TestA","Output":"one\n"}
{"Action":"pass","Package":"m/root","Test":"TestA"}
{"Action":"run","Package":"m/root/a/b","Test":"TestB"}
{"Action":"run","Package":"m/root/a/b","Test":"TestB/x"}
{"Action":"output","Package":"m/root/a/b","Test":"TestB/x","Output":"two\n"}
{"Action":"fail","Package":"m/root/a/b","Test":"TestB/x"}
{"Action":"fail","Package":"m/root/a/b","Test":"TestB"}
{"Action":"fail","Package":"m/root/a/b"}
{"Action":"run","Package":"m/root","Test":"TestC"}
{"Action":"skip","Package":"m/root","Test":"TestC"}
{"Action":"run","Package":"m/root","Test":"TestD"}
{"Action":"fail","Package":"m/root"}
{"Action":"output","Package":"m/root/c","Output":"does not compile"}
{"Action":"fail","Package":"m/root/c"}
`

func TestOutcomes(t *testing.T) {
	o, said := Outcomes{}, Said{}
	if err := o.ReadOutcomes(strings.NewReader(printed), "m/root", said); err != nil {
		t.Fatal(err)
	}
	if want := []string{"TestC: skip", "TestD: run", "a/b.TestB/x: fail", "package m/root/c: fail"}; !slices.Equal(o.Wrong(), want) {
		t.Errorf("%v is wrong, want %v", o.Wrong(), want)
	}
	if said["a/b.TestB/x"].String() != "two\n" || o.Passed() != 1 {
		t.Errorf("%q was said, %d passed", said["a/b.TestB/x"], o.Passed())
	}
	for test, want := range map[string]string{
		"TestA": "TestA passes: take it off the list", "a/b.TestB": "", "TestC": "", "TestD": "",
		"TestE": "no such test: take TestE off the list",
	} {
		if got := errText(o.Excused(test)); got != want {
			t.Errorf("%s: %q, want %q", test, got, want)
		}
	}
	if err := o.ReadOutcomes(strings.NewReader("panic: no JSON"), "m/root", said); err == nil {
		t.Error("what is no JSON was taken")
	}
}

func TestPackage(t *testing.T) {
	for test, want := range map[string][2]string{
		"TestA": {".", "TestA"}, "TestA/x.y": {".", "TestA/x.y"}, "sasl.TestS/PLAIN": {"./sasl", "TestS/PLAIN"}, "a/b.TestB": {"./a/b", "TestB"},
	} {
		if pkg, name := Package(test); pkg != want[0] || name != want[1] {
			t.Errorf("%s: package %s, test %s, want %v", test, pkg, name, want)
		}
	}
}
