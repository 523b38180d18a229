package props

import (
	"bytes"
	"encoding/hex"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

type goldenCase struct {
	in     []byte
	failed bool
	pairs  map[string]string // key to value
	stored map[string][]byte // key to the line Java stores
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// units decodes UTF-16 code units in hex; surrogates without partner become
// U+FFFD, as Parse promises.
func units(t *testing.T, text string) string {
	t.Helper()
	var all []uint16
	for ; text != ""; text = text[4:] {
		unit, err := strconv.ParseUint(text[:4], 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, uint16(unit))
	}
	return string(utf16.Decode(all))
}

func readGolden(t *testing.T) []goldenCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/java-properties.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	key := ""
	for _, line := range strings.Split(string(raw), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "in":
			cases = append(cases, goldenCase{in: unhex(t, rest), pairs: map[string]string{}, stored: map[string][]byte{}})
		case "error":
			cases[len(cases)-1].failed = true
		case "kv":
			k, v, _ := strings.Cut(rest, " ")
			key = units(t, k)
			cases[len(cases)-1].pairs[key] = units(t, v)
		case "store":
			cases[len(cases)-1].stored[key] = unhex(t, rest)
		}
	}
	return cases
}

func TestParseLikeJava(t *testing.T) {
	cases := readGolden(t)
	if len(cases) < 3000 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		parsed, err := Parse(c.in)
		if (err != nil) != c.failed {
			t.Errorf("%q: error %v, Java failed: %v", c.in, err, c.failed)
			continue
		}
		if c.failed {
			continue
		}
		if parsed.Len() != len(c.pairs) {
			t.Errorf("%q: %+v, Java: %q", c.in, parsed.Entries(), c.pairs)
			continue
		}
		for key, want := range c.pairs {
			if got, ok := parsed.Get(key); !ok || got != want {
				t.Errorf("%q: %q is %q, Java: %q", c.in, key, got, want)
			}
		}
	}
}

func TestAppendLikeJava(t *testing.T) {
	for _, c := range readGolden(t) {
		for key, line := range c.stored {
			if strings.ContainsRune(key+c.pairs[key], '\uFFFD') {
				continue // Java stores a lone surrogate, we store its stand-in
			}
			var p Properties
			p.Set(key, c.pairs[key])
			if got := p.Append(nil); !bytes.Equal(got, line) {
				t.Errorf("%q=%q is stored as %q, Java: %q", key, c.pairs[key], got, line)
			}
		}
	}
}

func TestLinesAndOrder(t *testing.T) {
	p, err := Parse([]byte("# head\n\nb=1\n a = 2 \\\n   3\r\nc=4\rb=5\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{"b", "5", 7}, {"a", "2 3", 4}, {"c", "4", 6}}
	if got := p.Entries(); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("entries are %v, want %v", got, want)
	}
	if p.Line("a") != 4 || p.Line("none") != 0 {
		t.Errorf("lines are %d and %d", p.Line("a"), p.Line("none"))
	}
	if _, err := Parse([]byte("a=1\nb=\\u12\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("the error is %v, it should name line 2", err)
	}
	if got := string(p.Append(nil, "made by a test")); got != "#made by a test\nb=5\na=2 3\nc=4\n" {
		t.Errorf("written %q", got)
	}
}

// FuzzParse: no input panics or takes memory out of proportion, and what was
// read is read again from what Append writes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a=b", "a\\\n b: c\\u0041", "#x\n!y\n\\\n=", "\\uD83D\\uDE00=\\uDE00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Parse(text)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*len(text)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(text))
		}
		if err != nil {
			return
		}
		size := 0
		for _, e := range p.Entries() {
			size += len(e.Key) + len(e.Value)
		}
		if size > 3*len(text) {
			t.Fatalf("%d bytes of properties from %d bytes", size, len(text))
		}
		again, err := Parse(p.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := pairs(p), pairs(again); a != b {
			t.Fatalf("%q became %q", a, b)
		}
	})
}

func pairs(p *Properties) string {
	var all []string
	for _, e := range p.Entries() {
		all = append(all, strconv.Quote(e.Key)+strconv.Quote(e.Value))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}
