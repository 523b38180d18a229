package vfs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCrashStates: a file that replaces another, with old and new content unsynced, beside one that has grown.
func TestCrashStates(t *testing.T) {
	m := NewMem(nil)
	put := func(name, text string, at int64) {
		t.Helper()
		f, err := m.OpenFile(name, 0o102) // O_RDWR|O_CREATE
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	put("old", "1234", 0)
	put("log", "aa", 0)
	m.SyncAll()
	put("log", "bbbb", 2)
	put("old.tmp", "56", 0)
	if err := m.Rename("old.tmp", "old"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	count := m.CrashStates(func(state string, left *Mem) {
		var lines []string
		entries, err := left.ReadDir("")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := ReadFile(left, e.Name)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s=%q", e.Name, data))
		}
		if left.BootID() == m.BootID() {
			t.Errorf("%s: the boot id has not changed", state)
		}
		seen[strings.Join(lines, " ")] = state
	})
	for _, want := range []string{
		`log="aa" old="1234"`,                      // all lost
		`log="aabbbb" old="56"`,                    // all kept
		`log="aa" old=""`,                          // entries without content
		`log="aa\x00\x00\x00\x00" old="\x00\x00"`,  // sizes without bytes
		`log="aabb" old="5"`,                       // halves
		`log="aabbbb" old="1234" old.tmp="56"`,     // the rename is lost
		`log="aabbbb" old="1234"`,                  // and so is it without its file
		`log="aa" old="1234" old.tmp=""`,           // the first change alone
		`log="aabbbb" old=""`, `log="aa" old="56"`, // one file lost
		`log="aabbbb" old="\x00\x00"`,       // one file's size alone
		`log="aa\x00\x00\x00\x00" old="56"`, // and the other's
	} {
		if seen[want] == "" {
			t.Errorf("no state %s", want)
		}
		delete(seen, want)
	}
	t.Logf("%d states; besides those that must be: %q", count, slices.Sorted(func(yield func(string) bool) {
		for s := range seen {
			if !yield(s) {
				return
			}
		}
	}))
	m.SyncAll()
	if count := m.CrashStates(func(string, *Mem) {}); count != 1 {
		t.Errorf("%d states where all is synced", count)
	}
}
