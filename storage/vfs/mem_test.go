package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func create(t *testing.T, m *Mem, name string) File {
	t.Helper()
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, f File, data string, offset int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(data), offset); err != nil {
		t.Fatal(err)
	}
}

// content is the content of a file, or why it cannot be read.
func content(m *Mem, name string) string {
	data, err := ReadFile(m, name)
	if err != nil {
		return describe(err)
	}
	return string(data)
}

func TestCrashWithoutChoicesLosesWhatWasNotSynced(t *testing.T) {
	m := NewMem(nil)
	f := create(t, m, "d0")
	write(t, f, "data", 0)
	must(t, f.Sync())
	if got := content(m.Crash(), "d0"); got != "no such file or directory" {
		t.Errorf("a file whose directory was not synced: %q", got)
	}
	must(t, m.SyncDir("/"))
	if got := content(m.Crash(), "d0"); got != "data" {
		t.Errorf("a synced file: %q", got)
	}
	write(t, f, "more and more", 2)
	if got := content(m.Crash(), "d0"); got != "data" {
		t.Errorf("after unsynced writes: %q", got)
	}
	if got := content(m.Kill(), "d0"); got != "damore and more" {
		t.Errorf("after the death of the process: %q", got)
	}
	if got := content(m.Kill().Crash(), "d0"); got != "data" {
		t.Errorf("after the death of the process and a power cut: %q", got)
	}
	must(t, f.SyncData(), f.Truncate(1))
	if got := content(m.Crash(), "d0"); got != "damore and more" {
		t.Errorf("after an unsynced truncation: %q", got)
	}
	must(t, f.Sync())
	if got := content(m.Crash(), "d0"); got != "d" {
		t.Errorf("after a synced truncation: %q", got)
	}
}

func TestDirectoriesNeedTheirOwnSync(t *testing.T) {
	m := NewMem(nil)
	must(t, m.MkdirAll("a/b"))
	f := create(t, m, "a/b/f")
	must(t, f.Sync(), m.SyncDir("a/b"), m.SyncDir("a"))
	if _, err := m.Crash().Stat("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root was not synced, yet a exists: %v", err)
	}
	must(t, m.SyncDir("/"))
	if got := content(m.Crash(), "a/b/f"); got != "" {
		t.Errorf("all was synced: %q", got)
	}
	must(t, m.Rename("a/b", "c"))
	if got := content(m.Crash(), "a/b/f"); got != "" {
		t.Errorf("the rename was not synced: %q", got)
	}
	must(t, m.SyncDir("a")) // either parent makes the rename durable as a whole
	if got := content(m.Crash(), "c/f"); got != "" {
		t.Errorf("the rename was synced: %q", got)
	}
	must(t, m.RemoveAll("c"))
	if got := content(m.Crash(), "c/f"); got != "" {
		t.Errorf("the removal was not synced: %q", got)
	}
	must(t, m.SyncDir("/"))
	if _, err := m.Crash().Stat("c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the removal was synced, yet c exists: %v", err)
	}
}

func TestSyncDirTakesOlderChangesOfTheSameEntriesAlong(t *testing.T) {
	m := NewMem(nil)
	must(t, m.MkdirAll("a"), m.MkdirAll("b"), m.SyncDir("/"))
	f := create(t, m, "a/f")
	write(t, f, "x", 0)
	must(t, f.Sync(), m.Rename("a/f", "b/f"), m.SyncDir("b"))
	k := m.Crash()
	if got := content(k, "b/f"); got != "x" {
		t.Errorf("the renamed file: %q", got)
	}
	if got := content(k, "a/f"); got != "no such file or directory" {
		t.Errorf("the old name: %q", got)
	}
}

// TestCrashKeepsWhatWasPromised writes, syncs and renames at random and checks the promises of doc.go on
// many crashes.
func TestCrashKeepsWhatWasPromised(t *testing.T) {
	const page = pageBytes
	seen := map[string]bool{}
	for seed := range uint64(300) {
		random := seeded(seed)
		m := NewMem(random)
		f := create(t, m, "f")
		old := strings.Repeat("o", 3*page)
		write(t, f, old, 0)
		must(t, f.Sync(), m.SyncDir("/"))
		write(t, f, strings.Repeat("n", 3*page), page)
		k := m.Crash()
		got := content(k, "f")
		if len(got) < 3*page || len(got) > 4*page || got[:page] != old[:page] {
			t.Fatalf("seed %d: %d bytes are left, or synced bytes that nobody wrote over have changed", seed, len(got))
		}
		for i := page; i < len(got); i += sectorBytes {
			end := min(i+sectorBytes, len(got))
			sector := got[i:end]
			same := strings.Count(sector, sector[:1]) == len(sector)
			if !same || !strings.ContainsAny(sector[:1], "on\x00") || (i < 3*page && sector[0] == 0) {
				t.Fatalf("seed %d: the sector at %d is neither old nor new", seed, i)
			}
			seen[sector[:1]] = true
		}
		seen[got[page:page+1]+got[2*page:2*page+1]] = true
		if again := content(k.Crash(), "f"); again != got {
			t.Fatalf("seed %d: a second crash changed what the first had left", seed)
		}
	}
	for _, want := range []string{"o", "n", "\x00", "oo", "nn", "on", "no"} {
		if !seen[want] {
			t.Errorf("no crash left %q", want)
		}
	}
}

func TestCrashIsDeterministic(t *testing.T) {
	run := func() []string {
		m := NewMem(seeded(7))
		var lines []string
		for i := range 30 {
			name := string(rune('a' + i%5))
			f := create(t, m, name)
			write(t, f, strings.Repeat(name, 3000), int64(i)*1000)
			if i%3 == 0 {
				must(t, f.Sync(), m.SyncDir("/"))
			}
			if i%7 == 0 {
				must(t, m.Rename(name, name+"x"))
			}
			lines = append(lines, tree(t, m.Crash(), "/", "")...)
		}
		return lines
	}
	if !slices.Equal(run(), run()) {
		t.Fatal("the same seed left two different disks")
	}
}

func TestWriteFileAtomicUnderCrash(t *testing.T) {
	for seed := range uint64(40) {
		m := NewMem(seeded(seed))
		must(t, m.MkdirAll("d"), m.SyncDir("/"), WriteFileAtomic(m, "d/f", []byte("old")))
		if got := content(m.CrashWith(nil), "d/f"); got != "old" {
			t.Fatalf("seed %d: finished, yet after a crash there is %q", seed, got)
		}
		var bad []string
		check := func(when string) {
			for _, k := range []*Mem{m.Crash(), m.CrashWith(nil), m.Kill()} {
				if got := content(k, "d/f"); got != "old" && got != "new content" {
					bad = append(bad, when+": "+got)
				}
			}
		}
		m.OnOperation(func(op Operation) error { check(op.String()); return nil })
		must(t, WriteFileAtomic(m, "d/f", []byte("new content")))
		check("at the end")
		if len(bad) > 0 {
			t.Fatalf("seed %d: %q", seed, bad)
		}
		m.OnOperation(nil)
		if got := content(m.CrashWith(nil), "d/f"); got != "new content" {
			t.Fatalf("seed %d: finished, yet after a crash there is %q", seed, got)
		}
	}
}

func TestWriteFileAtomicReportsFaults(t *testing.T) {
	for _, kind := range []Kind{OpCreate, OpWrite, OpSync, OpRename, OpSyncDir, OpClose} {
		m := NewMem(nil)
		m.OnOperation(Script(Fault{Kinds: []Kind{kind}, Err: syscall.EIO}))
		if err := WriteFileAtomic(m, "f", []byte("x")); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v fails, and the answer is %v", kind, err)
		}
	}
}

func TestFailedSyncIsNotRepairedByAnother(t *testing.T) {
	m := NewMem(nil)
	f := create(t, m, "f")
	write(t, f, "old", 0)
	must(t, f.Sync(), m.SyncDir("/"))
	m.OnOperation(Script(Fault{Kinds: []Kind{OpSync}, Times: 1, Err: syscall.EIO}))
	write(t, f, "new", 0)
	if err := f.SyncData(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync was to fail: %v", err)
	}
	must(t, f.Sync())
	if got := content(m, "f"); got != "new" {
		t.Errorf("the cache holds %q", got)
	}
	if got := content(m.Crash(), "f"); got != "old" {
		t.Errorf("the second sync has written %q", got)
	}
	write(t, f, "NEW", 0) // dirty again
	must(t, f.Sync())
	if got := content(m.Crash(), "f"); got != "NEW" {
		t.Errorf("written again and synced: %q", got)
	}
}

func TestCapacity(t *testing.T) {
	m := NewMem(nil)
	m.SetCapacity(10)
	f, g := create(t, m, "f"), create(t, m, "g")
	write(t, f, "123456", 0)
	n, err := g.WriteVectorAt([][]byte{[]byte("123"), []byte("456")}, 0)
	if n != 4 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	write(t, f, "abcdef", 0) // writing over what is there needs no room
	if total, usable, err := m.Usage("/"); total != 10 || usable != 0 || err != nil {
		t.Fatalf("usage %d of %d, %v", usable, total, err)
	}
	must(t, m.Remove("f"))
	write(t, g, "567", 4)
	if _, usable, _ := m.Usage("/"); usable != 3 {
		t.Fatalf("%d bytes are usable", usable)
	}
	if _, usable, _ := m.Kill().Usage("/"); usable != 3 {
		t.Fatalf("%d bytes are usable in the clone", usable)
	}
}

func TestHookSeesAndStopsOperations(t *testing.T) {
	m := NewMem(nil)
	var trace []string
	script := Script(
		Fault{Kinds: []Kind{OpWrite}, Pattern: "*.log", Skip: 1, Times: 1, Err: &PartialWriteError{2, syscall.ENOSPC}},
		Fault{Pattern: "d/secret", Err: syscall.EIO})
	m.OnOperation(func(op Operation) error { trace = append(trace, op.String()); return script(op) })
	must(t, m.MkdirAll("d"))
	f := create(t, m, "d/a.log")
	write(t, f, "abc", 0)
	n, err := f.WriteAt([]byte("xyz"), 3)
	if n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	write(t, f, "!", 5)
	must(t, f.Truncate(4), m.Rename("d/a.log", "d/b.log"), f.Close())
	if _, err := m.OpenFile("d/secret", os.O_RDWR|os.O_CREATE); !errors.Is(err, syscall.EIO) {
		t.Fatalf("opened, %v", err)
	}
	if got := content(m, "d/b.log"); got != "abcx" {
		t.Fatalf("the file holds %q", got)
	}
	want := []string{
		"1 mkdir d", "2 create d/a.log", "3 write d/a.log @0 +3", "4 write d/a.log @3 +3", "5 write d/a.log @5 +1",
		"6 truncate d/a.log to 4", "7 rename d/a.log -> d/b.log", "8 close d/a.log", "9 create d/secret",
		"10 open d/b.log", "11 read d/b.log @0 +4", "12 close d/b.log",
	}
	if !slices.Equal(trace, want) {
		t.Fatalf("the trace is\n%s", strings.Join(trace, "\n"))
	}
	if got := m.Operations(); got != 12 {
		t.Fatalf("%d operations", got)
	}
	if got := m.Kill().Operations(); got != 12 {
		t.Fatalf("the clone starts at %d operations", got)
	}
}

func TestHookFailsEveryKind(t *testing.T) {
	m := NewMem(nil)
	must(t, m.MkdirAll("d"))
	f := create(t, m, "f")
	m.OnOperation(func(op Operation) error { return syscall.EIO })
	_, openErr := m.OpenFile("f", os.O_RDWR)
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	_, writeErr := f.WriteAt([]byte("x"), 0)
	_, listErr := m.ReadDir("d")
	_, statErr := m.Stat("d")
	_, lockErr := m.Lock("d/.lock")
	for name, err := range map[string]error{
		"open": openErr, "read": readErr, "write": writeErr, "list": listErr, "stat": statErr, "lock": lockErr,
		"truncate": f.Truncate(0), "sync": f.Sync(), "syncdir": m.SyncDir("d"), "rename": m.Rename("f", "g"),
		"remove": m.Remove("f"), "remove all": m.RemoveAll("d"), "mkdir": m.MkdirAll("d/e"), "close": f.Close(),
	} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.OnOperation(nil)
	if size, err := f.Size(); size != 0 || err != nil {
		t.Errorf("the file has %d bytes, %v", size, err)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	m := NewMem(nil)
	f := create(t, m, "f")
	write(t, f, "one", 0)
	lock, err := m.Lock(".lock")
	must(t, err)
	k := m.Kill()
	write(t, f, "two", 0)
	must(t, m.Rename("f", "g"))
	if got := content(k, "f"); got != "one" {
		t.Errorf("the clone holds %q", got)
	}
	if _, err := k.Lock(".lock"); err != nil {
		t.Errorf("the dead process still holds its lock: %v", err)
	}
	must(t, k.Remove("f"))
	if got := content(m, "g"); got != "two" {
		t.Errorf("the origin holds %q", got)
	}
	must(t, lock.Close())
	if a, b := m.BootID(), k.BootID(); a != b {
		t.Errorf("killing changed the boot id from %s to %s", a, b)
	}
	if a, b := m.BootID(), m.Crash().BootID(); a == b {
		t.Errorf("a power cut left the boot id %s", a)
	}
}

func TestOpenFileOutlivesItsName(t *testing.T) {
	m := NewMem(nil)
	f := create(t, m, "f")
	write(t, f, "x", 0)
	must(t, m.Remove("f"))
	write(t, f, "y", 1)
	got := make([]byte, 2)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, []byte("xy")) {
		t.Fatalf("read %q, %v", got, err)
	}
	if _, usable, _ := m.Usage("/"); usable != memTotalBytes {
		t.Fatalf("%d bytes are usable", usable)
	}
}

func TestClock(t *testing.T) {
	m := NewMem(nil)
	now := time.Unix(1000, 0)
	m.SetClock(func() time.Time { return now })
	f := create(t, m, "f")
	now = now.Add(time.Hour)
	write(t, f, "x", 0)
	if e, err := m.Crash().Stat("f"); err == nil {
		t.Fatalf("an unsynced file is there: %v", e)
	}
	if e, err := m.Stat("f"); err != nil || !e.Modified.Equal(now) {
		t.Fatalf("modified at %v, %v", e.Modified, err)
	}
}
