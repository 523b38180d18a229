package vfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSurvey compares what Survey finds out with ReadDir and ReadFile, of more entries than the kernel gives at once.
func TestSurvey(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("small-1", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		for _, kind := range []string{"small", "large"} {
			size := map[string]int{"small": i, "large": smallFile + i}[kind]
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d", kind, i)), bytes.Repeat([]byte{byte(i)}, size), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := OS().ReadDir(dir)
	if err != nil || len(want) != 1202 {
		t.Fatalf("%d entries, %v", len(want), err)
	}
	contents := map[string][]byte{}
	wish := func(name string) Wish {
		switch {
		case strings.HasSuffix(name, "5"):
			return Described
		case strings.HasSuffix(name, "7") || name == "link" || name == "folder":
			return Content
		}
		return Named
	}
	got, err := Survey(OS(), dir, wish, func(name string, data []byte) { contents[name] = data })
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries instead of %d, %v", len(got), len(want), err)
	}
	for i, e := range want {
		if wish(e.Name) != Described && (got[i].Name != e.Name || got[i].Dir != e.Dir) || wish(e.Name) == Described && got[i] != e {
			t.Errorf("%+v instead of %+v", got[i], e)
		}
	}
	read := 0
	for name, data := range contents {
		if all, err := ReadFile(OS(), dir+"/"+name); err != nil || !bytes.Equal(all, data) || data == nil || wish(name) != Content || len(data) >= smallFile {
			t.Errorf("%s: %d bytes instead of %d, %v", name, len(data), len(all), err)
		}
		read++
	}
	// Where the system has no quick way all is left to ReadFile.
	if small := 51; read != small && read != 0 {
		t.Errorf("%d contents, want %d", read, small)
	}
	if _, err := Survey(OS(), filepath.Join(dir, "missing"), wish, nil); !os.IsNotExist(err) {
		t.Errorf("a directory that is missing gives %v", err)
	}
	// Others are asked for everything.
	m := NewMem(seeded(1))
	if err := m.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(m, "d/a7", []byte("xyz"), false); err != nil {
		t.Fatal(err)
	}
	plain, err := m.ReadDir("d")
	if surveyed, err2 := Survey(m, "d", wish, nil); err != nil || err2 != nil || len(surveyed) != 1 || surveyed[0] != plain[0] {
		t.Errorf("%v, %v, %v", surveyed, err, err2)
	}
}
