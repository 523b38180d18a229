package guard_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ottla/storage/guard"
	"ottla/storage/vfs"
)

// hanging runs calls at once, until one hangs: that and all that come after are given up. Thaw lets them go on.
type hanging struct {
	hangs   func(call *guard.Call) bool
	stalled *vfs.Stalled
	left    []*guard.Call
	later   []func()
}

func (h *hanging) Run(call *guard.Call) error {
	if h.stalled == nil && h.hangs != nil && h.hangs(call) {
		h.stalled = &vfs.Stalled{Kind: call.Kind, Name: call.Name, After: 30 * time.Second}
		h.left = append(h.left, call)
	}
	if h.stalled != nil {
		return h.stalled
	}
	call.Do()
	return nil
}

func (h *hanging) Leaves() bool      { return true }
func (h *hanging) Later(task func()) { h.later = append(h.later, task) }

func (h *hanging) thaw() {
	for _, call := range h.left {
		call.Do()
		call.Abandoned()
	}
	for _, task := range h.later {
		task()
	}
}

func kindHangs(kind vfs.Kind, part string) func(*guard.Call) bool {
	return func(call *guard.Call) bool { return call.Kind == kind && strings.Contains(call.Name, part) }
}

// guardedDisk is a disk with two guarded directories, of which a may hang.
func guardedDisk(t *testing.T, hangs func(*guard.Call) bool) (*vfs.Mem, *guard.FS, *hanging) {
	t.Helper()
	disk := vfs.NewMem(nil)
	for _, dir := range []string{"/a", "/b"} {
		if err := disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(disk, dir+"/file", []byte("0123456789"), true); err != nil {
			t.Fatal(err)
		}
	}
	h := &hanging{hangs: hangs}
	return disk, guard.New(disk, map[string]guard.Runner{"/a": h, "/b": &hanging{}}), h
}

// everything tries each operation in a directory.
func everything(g *guard.FS, dir string, file vfs.File) map[string]error {
	errs := map[string]error{}
	note := func(what string, err error) { errs[what] = err }
	_, err := file.ReadAt(make([]byte, 3), 0)
	note("read", err)
	_, err = file.WriteAt([]byte("abc"), 0)
	note("write", err)
	_, err = file.WriteVectorAt([][]byte{[]byte("abc"), []byte("def")}, 0)
	note("writev", err)
	note("sync", file.Sync())
	note("syncdata", file.SyncData())
	note("truncate", file.Truncate(10))
	_, err = file.Size()
	note("size", err)
	_, err = g.OpenFile(dir+"/file", os.O_RDWR)
	note("open", err)
	_, err = g.ReadDir(dir)
	note("readdir", err)
	_, err = g.Stat(dir + "/file")
	note("stat", err)
	note("syncdir", g.SyncDir(dir))
	note("mkdir", g.MkdirAll(dir+"/x/y"))
	note("rename", g.Rename(dir+"/file", dir+"/file"))
	note("removeall", g.RemoveAll(dir+"/x"))
	_, err = g.Lock(dir + "/lock")
	note("lock", err)
	_, _, err = g.Usage(dir)
	note("usage", err)
	_, err = vfs.ReadFile(g, dir+"/file")
	note("readfile", err)
	note("close", file.Close())
	return errs
}

func TestGuardGivesADirectoryUpAtTheFirstOperationThatHangs(t *testing.T) {
	_, g, h := guardedDisk(t, nil)
	a, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	b, err := g.OpenFile("/b/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	h.hangs = kindHangs(vfs.OpSync, "")
	err = a.Sync()
	if !errors.Is(err, vfs.ErrStalled) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"sync", "/a/file", "30s"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
	for what, err := range everything(g, "/a", a) {
		if !errors.Is(err, vfs.ErrStalled) {
			t.Errorf("%s where nothing works any more: %v", what, err)
		}
	}
	for what, err := range everything(g, "/b", b) {
		if err != nil {
			t.Errorf("%s in the other directory: %v", what, err)
		}
	}
	if len(h.left) != 1 {
		t.Errorf("%d calls are left behind", len(h.left))
	}
	if g.Stalled("/a") == nil || g.Stalled("/b") != nil {
		t.Errorf("%v, %v", g.Stalled("/a"), g.Stalled("/b"))
	}
}

// TestWhatALateCallReads: what comes late is what was handed over, though the caller uses his memory again; but for
// WriteVectorAt, of which that is the caller's duty.
func TestWhatALateCallReads(t *testing.T) {
	disk, g, h := guardedDisk(t, nil)
	file, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	h.hangs = kindHangs(vfs.OpWrite, "")
	bytes := []byte("abc")
	if _, err := file.WriteAt(bytes, 3); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	copy(bytes, "zzz")
	h.thaw()
	if got, _ := vfs.ReadFile(disk, "/a/file"); string(got) != "012abc6789" {
		t.Errorf("%q", got)
	}

	_, g, h = guardedDisk(t, nil)
	if file, err = g.OpenFile("/a/file", os.O_RDWR); err != nil {
		t.Fatal(err)
	}
	h.hangs = kindHangs(vfs.OpRead, "")
	if _, err := file.ReadAt(bytes, 0); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	h.thaw()
	if string(bytes) != "zzz" {
		t.Errorf("a late read has written %q into memory that is not its own any more", bytes)
	}

	disk, g, h = guardedDisk(t, nil)
	if file, err = g.OpenFile("/a/file", os.O_RDWR); err != nil {
		t.Fatal(err)
	}
	h.hangs = kindHangs(vfs.OpWrite, "")
	vector := [][]byte{[]byte("ab"), []byte("cd")}
	if _, err := file.WriteVectorAt(vector, 0); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	clear(vector)
	h.thaw()
	if got, _ := vfs.ReadFile(disk, "/a/file"); string(got) != "abcd456789" {
		t.Errorf("%q", got)
	}
}

// TestWhatComesLateIsTakenBack: a file that is opened, or a lock that is taken, when nobody waits for it any more is
// closed; the lock of a directory that was given up is kept.
func TestWhatComesLateIsTakenBack(t *testing.T) {
	disk, g, h := guardedDisk(t, kindHangs(vfs.OpLock, ""))
	if _, err := g.Lock("/a/lock"); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	h.thaw()
	lock, err := disk.Lock("/a/lock")
	if err != nil {
		t.Fatalf("the late lock was not given back: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	var closed atomic.Int32
	disk, g, h = guardedDisk(t, nil)
	disk.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpClose {
			closed.Add(1)
		}
		return nil
	})
	lock, err = g.Lock("/a/lock")
	if err != nil {
		t.Fatal(err)
	}
	file, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	h.hangs = kindHangs(vfs.OpOpen, "")
	if _, err := g.OpenFile("/a/file", os.O_RDWR); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Close(); !errors.Is(err, vfs.ErrStalled) {
		t.Error(err)
	}
	h.thaw()
	if closed.Load() != 2 {
		t.Errorf("%d of 2 files were closed in the end", closed.Load())
	}
	if _, err := disk.Lock("/a/lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the directory is not locked any more: %v", err)
	}
}

// TestGuardBelongsToTheInnermost: nested directories, the parent that is synced, and names of nobody.
func TestGuardBelongsToTheInnermost(t *testing.T) {
	disk := vfs.NewMem(nil)
	for _, dir := range []string{"/data/one", "/data/one/two", "/other"} {
		if err := disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	always := func(*guard.Call) bool { return true }
	one, two := &hanging{}, &hanging{hangs: always}
	g := guard.New(disk, map[string]guard.Runner{"/data/one/": one, "/data/one/two": two})
	if err := g.SyncDir("/data/one/two"); !errors.Is(err, vfs.ErrStalled) {
		t.Error(err)
	}
	for _, name := range []string{"/data/one", "/data", "/other"} {
		if err := g.SyncDir(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	one.hangs = always
	if err := g.SyncDir("/data"); !errors.Is(err, vfs.ErrStalled) {
		t.Errorf("the parent: %v", err)
	}
	if err := g.SyncDir("/other"); err != nil {
		t.Error(err)
	}
}

// TestGuardedReadsAtTheEnd: what is read now, what comes over other memory, and what there is not.
func TestGuardedReadsAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	g := guard.New(vfs.OS(), map[string]guard.Runner{dir: &hanging{}})
	file, err := g.OpenFile(dir+"/file", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("0123456789"), 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   int64
		size int
		want string
		err  error
	}{{0, 10, "0123456789", nil}, {4, 3, "456", nil}, {8, 5, "89", io.EOF}, {10, 1, "", io.EOF}, {3, 0, "", nil}} {
		p := make([]byte, c.size)
		n, err := file.ReadAt(p, c.at)
		if string(p[:n]) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d bytes at %d: %q, %v", c.size, c.at, p[:n], err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.RemoveAll(dir + "/none"); err != nil {
		t.Error(err)
	}
	if err := g.MkdirAll(dir + "/x/y"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/x/link"); err != nil {
		t.Fatal(err)
	}
	if err := g.RemoveAll(dir + "/x"); err != nil {
		t.Fatal(err)
	}
	if entries, err := g.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("a link was followed, or something is left: %v, %v", entries, err)
	}
}
