package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedIsCurrent makes the codecs anew and compares them with those that
// are checked in.
func TestGeneratedIsCurrent(t *testing.T) {
	output := t.TempDir()
	if err := run("../definitions", output); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(output + "/*_gen.go")
	if err != nil || len(made) != 4 {
		t.Fatalf("made %v, %v", made, err)
	}
	for _, file := range made {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join("..", filepath.Base(file)))
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what the definitions make (%v): run go generate", filepath.Base(file), err)
		}
	}
}

func TestBadDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		"metadata 1 X versions 0":                                                 "line 1: want: kind key Name",
		"metadata 1 X versions 0 flexible 0+\n  a what 0+":                        `line 2: unknown type "what"`,
		"metadata 1 X versions 0 flexible 0+\n  a int8":                           "line 2: want: name type versions",
		"metadata 1 X versions 0 flexible 0+\n  a int8 0+ tag 1":                  `line 2: cannot read "tag 1"`,
		"metadata 1 X versions 0 flexible 0+\n  a int8 0+\n    b int8 0+":         "line 3: indented too far",
		"metadata one X versions 0 flexible 0+":                                   "line 1",
		"metadata 1 X versions new flexible 0+":                                   "line 1",
		"metadata 1 X versions 0 flexible 0+\n  a []Y 0+\n    b int8 0+\n  q q q": `unknown type "q"`,
	} {
		file := filepath.Join(t.TempDir(), "x.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parseFile(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, not %q", text, err, want)
		}
	}
}
