package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// seeded is a source of randomness for tests.
func seeded(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 0)).Uint64 }

// describe makes errors of the two file systems comparable.
func describe(err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, fs.ErrClosed):
		return "closed"
	default: // package os has its own error for a negative offset
		return syscall.EINVAL.Error()
	}
}

// pair runs one random sequence on a file system; the same seed gives the same calls.
type actor struct {
	fsys  FS
	root  string
	rng   *rand.Rand
	files []File
	log   []string
}

func (a *actor) note(format string, args ...any) { a.log = append(a.log, fmt.Sprintf(format, args...)) }

func (a *actor) name() string {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x", "missing/y"}
	return names[a.rng.IntN(len(names))]
}

func (a *actor) path(name string) string { return a.root + "/" + name }

func (a *actor) bytes() []byte {
	b := make([]byte, a.rng.IntN(6000))
	for i := range b {
		b[i] = byte(a.rng.Uint64())
	}
	return b
}

func (a *actor) step() {
	name := a.name()
	switch a.rng.IntN(16) {
	case 0, 1, 2:
		flags := []int{os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_RDWR | os.O_CREATE | os.O_TRUNC, os.O_APPEND | os.O_RDWR}
		flag := flags[a.rng.IntN(len(flags))]
		f, err := a.fsys.OpenFile(a.path(name), flag)
		a.note("open %s %x: %s", name, flag, describe(err))
		if err == nil {
			a.files = append(a.files, f)
		}
	case 3:
		a.note("remove %s: %s", name, describe(a.fsys.Remove(a.path(name))))
	case 4:
		a.note("remove all %s: %s", name, describe(a.fsys.RemoveAll(a.path(name))))
	case 5, 6:
		to := a.name()
		a.note("rename %s %s: %s", name, to, describe(a.fsys.Rename(a.path(name), a.path(to))))
	case 7:
		a.note("mkdir %s: %s", name, describe(a.fsys.MkdirAll(a.path(name))))
	case 8:
		entries, err := a.fsys.ReadDir(a.path(name))
		a.note("list %s: %s", name, describe(err))
		for _, e := range entries {
			a.note("  %s %v %d", e.Name, e.Dir, e.Size)
		}
	case 9:
		e, err := a.fsys.Stat(a.path(name))
		a.note("stat %s: %s %v %d", name, describe(err), e.Dir, e.Size)
	default:
		a.stepFile()
	}
}

func (a *actor) stepFile() {
	kind, offset, data := a.rng.IntN(8), int64(a.rng.IntN(20000)-100), a.bytes()
	if len(a.files) == 0 {
		return
	}
	i := a.rng.IntN(len(a.files))
	f := a.files[i]
	switch kind {
	case 0:
		n, err := f.WriteAt(data, offset)
		a.note("write %d: %d %s", offset, n, describe(err))
	case 1, 2:
		cut := a.rng.IntN(len(data) + 1)
		n, err := f.WriteVectorAt([][]byte{data[:cut], nil, data[cut:]}, offset)
		a.note("write vector %d: %d %s", offset, n, describe(err))
	case 3, 4:
		n, err := f.ReadAt(data, max(offset, 0))
		a.note("read %d: %d %s %x", offset, n, describe(err), data[:min(n, 8)])
	case 5:
		a.note("truncate %d: %s", offset, describe(f.Truncate(max(offset, 0))))
	case 6:
		a.note("sync: %s %s", describe(f.Sync()), describe(f.SyncData()))
	case 7:
		size, err := f.Size()
		a.note("close at size %d %s: %s", size, describe(err), describe(f.Close()))
		_, err = f.ReadAt(make([]byte, 1), 0)
		a.note("read closed: %v", err != nil)
		a.files = slices.Delete(a.files, i, i+1)
	}
}

func TestOSAndMemAgree(t *testing.T) {
	for seed := range uint64(60) {
		system := &actor{fsys: OS(), root: filepath.ToSlash(t.TempDir()), rng: rand.New(rand.NewPCG(seed, 1))}
		memory := &actor{fsys: NewMem(nil), root: "/r", rng: rand.New(rand.NewPCG(seed, 1))}
		if err := memory.fsys.MkdirAll("/r"); err != nil {
			t.Fatal(err)
		}
		for step := range 400 {
			system.step()
			memory.step()
			if !slices.Equal(system.log, memory.log) {
				t.Fatalf("seed %d, step %d: the system says\n%q\nmemory says\n%q", seed, step,
					system.log[len(system.log)-min(len(system.log), 3):], memory.log[len(memory.log)-min(len(memory.log), 3):])
			}
		}
		if got, want := tree(t, memory.fsys, "/r", ""), tree(t, system.fsys, system.root, ""); !slices.Equal(got, want) {
			t.Fatalf("seed %d: memory holds\n%q\nthe system\n%q", seed, got, want)
		}
		for _, f := range system.files {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tree lists names and contents below a directory.
func tree(t *testing.T, fsys FS, root, prefix string) []string {
	t.Helper()
	var lines []string
	entries, err := fsys.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Dir {
			lines = append(lines, prefix+e.Name+"/")
			lines = append(lines, tree(t, fsys, root+"/"+e.Name, prefix+e.Name+"/")...)
			continue
		}
		data, err := ReadFile(fsys, root+"/"+e.Name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s%s %d %x", prefix, e.Name, len(data), data))
	}
	return lines
}

func TestOSVectorLongerThanTheKernelTakes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := OS().OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	var buffers [][]byte
	var want []byte
	for i := range 5000 {
		b := bytes.Repeat([]byte{byte(i)}, i%7)
		buffers = append(buffers, b)
		want = append(want, b...)
	}
	n, err := f.WriteVectorAt(buffers, 3)
	if err != nil || n != int64(len(want)) {
		t.Fatalf("wrote %d of %d: %v", n, len(want), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(OS(), name)
	if err != nil || !bytes.Equal(got, append(make([]byte, 3), want...)) {
		t.Fatalf("read back %d bytes, %v; they differ from what was written", len(got), err)
	}
}

func TestWriteEachEqualsVector(t *testing.T) {
	f, err := NewMem(nil).OpenFile("f", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := writeEach(f, [][]byte{[]byte("ab"), nil, []byte("c")}, 1); n != 3 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	got := make([]byte, 4)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "\x00abc" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestLock(t *testing.T) {
	for name, fsys := range map[string]FS{filepath.Join(t.TempDir(), ".lock"): OS(), ".lock": NewMem(nil)} {
		first, err := fsys.Lock(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
			t.Fatalf("%T: a second lock gives %v", fsys, err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err == nil {
			t.Fatalf("%T: the lock could be closed twice", fsys)
		}
		again, err := fsys.Lock(name)
		if err != nil {
			t.Fatalf("%T: after release: %v", fsys, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsageAndBootID(t *testing.T) {
	total, usable, err := OS().Usage(t.TempDir())
	if err != nil || total <= 0 || usable < 0 || usable > total {
		t.Fatalf("usage %d of %d: %v", usable, total, err)
	}
	if a, b := OS().BootID(), OS().BootID(); a != b {
		t.Fatalf("two boot ids: %q and %q", a, b)
	}
	if _, _, err := OS().Usage(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Fatal("the usage of a missing directory is known")
	}
}
