package check

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ottla/storage/vfs"
)

// tree is log directories in memory: content by name.
type tree map[string][]byte

// readTree reads a tree below a directory of the disk into names below another.
func readTree(t testing.TB, from, to string) tree {
	t.Helper()
	files := tree{}
	err := filepath.WalkDir(from, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		below, _ := strings.CutPrefix(filepath.ToSlash(name), from)
		files[to+below] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// golden are two log directories of Apache Kafka 4.4.0 after a clean stop; the first has the metadata.
func golden(t testing.TB) tree { return readTree(t, "testdata/kafka-4.4.0", "/d") }

var goldenDirs = []string{"/d/a", "/d/b"}

func (f tree) clone() tree {
	other := tree{}
	for name, data := range f {
		other[name] = slices.Clone(data)
	}
	return other
}

// only keeps what lies below the names given.
func (f tree) only(prefixes ...string) tree {
	kept := tree{}
	for name, data := range f {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			kept[name] = data
		}
	}
	return kept
}

// mem puts the files on a disk in memory.
func (f tree) mem(t testing.TB) vfs.FS {
	t.Helper()
	disk := vfs.NewMem(rand.New(rand.NewPCG(1, 2)).Uint64)
	for _, dir := range goldenDirs {
		if err := disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range f {
		if err := disk.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := put(disk, name, data); err != nil {
			t.Fatal(err)
		}
	}
	return readOnly{disk, t}
}

func put(disk vfs.FS, name string, data []byte) error {
	file, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(data, 0); err != nil {
		return err
	}
	return file.Close()
}

// readOnly fails a test that changes anything.
type readOnly struct {
	vfs.FS
	t testing.TB
}

func (r readOnly) refuse(what, name string) error {
	r.t.Errorf("the check wants to %s %s", what, name)
	return &fs.PathError{Op: what, Path: name, Err: fs.ErrPermission}
}

func (r readOnly) OpenFile(name string, flag int) (vfs.File, error) {
	if flag != os.O_RDONLY {
		return nil, r.refuse("write", name)
	}
	file, err := r.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return readOnlyFile{file, r}, nil
}

func (r readOnly) Remove(name string) error       { return r.refuse("remove", name) }
func (r readOnly) RemoveAll(name string) error    { return r.refuse("remove", name) }
func (r readOnly) Rename(name, _ string) error    { return r.refuse("rename", name) }
func (r readOnly) MkdirAll(name string) error     { return r.refuse("make", name) }
func (r readOnly) SyncDir(name string) error      { return r.refuse("sync", name) }
func (r readOnly) Lock(string) (io.Closer, error) { return nil, r.refuse("lock", "") }

type readOnlyFile struct {
	vfs.File
	r readOnly
}

func (f readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, f.r.refuse("write", f.Name()) }

func (f readOnlyFile) WriteVectorAt([][]byte, int64) (int64, error) {
	return 0, f.r.refuse("write", f.Name())
}
func (f readOnlyFile) Truncate(int64) error { return f.r.refuse("truncate", f.Name()) }
func (f readOnlyFile) Sync() error          { return f.r.refuse("sync", f.Name()) }
func (f readOnlyFile) SyncData() error      { return f.r.refuse("sync", f.Name()) }

// unlocked says that nobody has a directory in use.
func unlocked(string) bool { return false }

func (f tree) check(t testing.TB, dirs ...string) *Report {
	t.Helper()
	report, err := Run(f.mem(t), dirs, Options{InUse: unlocked})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// describe is the report as lines.
func describe(r *Report) string {
	var out strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintln(&out, "FAULT", f)
	}
	for _, f := range r.Notes {
		fmt.Fprintln(&out, "note", f)
	}
	return out.String()
}
