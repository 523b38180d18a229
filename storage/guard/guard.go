package guard

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"ottla/storage/vfs"
)

// Runner runs the operations of one directory for an FS. All methods may be called concurrently.
type Runner interface {
	// Run calls call.Do and returns nil when that has come back. It may give it up instead: it returns an error that is
	// vfs.ErrStalled, the call belongs to whoever still runs it, and all calls of the directory from then on are answered by
	// such an error without being run. Whoever still runs it calls Do to its end, and Abandoned then.
	Run(call *Call) error
	// Leaves tells that Run may give a call up.
	Leaves() bool
	// Later runs something that nobody waits for. It may never come back.
	Later(task func())
}

// FS is a file system in which operations on some directories, and on everything below them, go through a Runner, so
// that a disk that hangs keeps nobody for ever: the caller comes back with vfs.ErrStalled, though the system call does not,
// and so does everybody after him at once. To the layers above that is a disk that fails.
//
// What the caller handed over may still be read by the call that was given up. An FS copies what WriteAt is given and
// what ReadAt is to fill; the bytes of WriteVectorAt are not copied, and after vfs.ErrStalled nobody may ever change them.
type FS struct {
	fs   vfs.FS
	dirs []*guarded
}

// guarded is one directory.
type guarded struct {
	path    string
	within  string // path with a slash
	runner  Runner
	leaves  bool
	stalled atomic.Pointer[vfs.Stalled]
}

// New guards directories. A file belongs to the innermost of them.
func New(below vfs.FS, runners map[string]Runner) *FS {
	g := &FS{fs: below}
	for dir, runner := range runners {
		g.dirs = append(g.dirs, &guarded{path: path.Clean(dir), within: path.Clean(dir) + "/", runner: runner, leaves: runner.Leaves()})
	}
	slices.SortFunc(g.dirs, func(a, b *guarded) int { return strings.Compare(a.path, b.path) })
	return g
}

// Stalled tells why a directory was given up; nil: it was not.
func (g *FS) Stalled(dir string) error {
	for _, d := range g.dirs {
		if d.path == path.Clean(dir) {
			return d.given()
		}
	}
	return nil
}

// given is the error of a directory that was given up.
func (d *guarded) given() error {
	if s := d.stalled.Load(); s != nil {
		return s
	}
	return nil
}

// of finds whose a name is; nil: nobody's. The parent of directories counts as a part of one of them that is needed, or
// works: it is synced when a directory is made.
func (g *FS) of(name string) *guarded {
	var found *guarded
	for _, d := range g.dirs {
		if inside := name == d.path || strings.HasPrefix(name, d.within); inside && (found == nil || len(d.path) > len(found.path)) {
			found = d
		}
	}
	if found != nil {
		return found
	}
	for _, d := range g.dirs {
		if path.Dir(d.path) == name && (found == nil || !d.leaves || found.leaves && found.given() != nil) {
			found = d
		}
	}
	return found
}

// Call is one operation on its way through a Runner.
type Call struct {
	Kind vfs.Kind
	Name string
	// Note is the Runner's own; it stays when the call is used again.
	Note any

	act, undo func(*Call) // undo takes back what came late
	file      vfs.File
	bytes     []byte
	own       []byte // memory of the call
	vector    [][]byte
	offset    int64
	n         int64
	err       error
}

var calls = sync.Pool{New: func() any { return new(Call) }}

// Do does the operation.
func (c *Call) Do() { c.act(c) }

// Abandoned takes back what Do has made and nobody waits for.
func (c *Call) Abandoned() {
	if c.undo != nil {
		c.undo(c)
	}
}

// mostOwned is how much memory a call keeps for the next one, in bytes.
const mostOwned = 512 << 10

// memory gives a call's own.
func (c *Call) memory(size int) []byte {
	if cap(c.own) < size {
		c.own = make([]byte, size)
	}
	return c.own[:size]
}

// free lets a call that has come back be used again.
func (c *Call) free() {
	clear(c.vector)
	own := c.own
	if cap(own) > mostOwned {
		own = nil
	}
	*c = Call{Note: c.Note, own: own, vector: c.vector[:0]}
	calls.Put(c)
}

func begin(kind vfs.Kind, name string, act func(*Call)) *Call {
	c := calls.Get().(*Call) //nolint:errcheck // nothing else is put there
	c.Kind, c.Name, c.act = kind, name, act
	return c
}

// run returns nil when the call has come back; else it is not to be touched any more.
func (d *guarded) run(c *Call) error {
	kind, name := c.Kind, c.Name
	if err := d.refusal(kind, name); err != nil {
		c.free()
		return err
	}
	err := d.runner.Run(c)
	if err == nil {
		return nil
	}
	var stalled *vfs.Stalled
	if !errors.As(err, &stalled) {
		stalled = &vfs.Stalled{Kind: kind, Name: name}
	}
	d.stalled.CompareAndSwap(nil, stalled)
	return d.refusal(kind, name)
}

// refusal is the answer of a directory that was given up.
func (d *guarded) refusal(kind vfs.Kind, name string) error {
	if s := d.stalled.Load(); s != nil {
		return &fs.PathError{Op: kind.String(), Path: name, Err: s}
	}
	return nil
}

// onPath runs an operation on a name. undo, if not nil, takes back what comes late.
func onPath[T any](g *FS, kind vfs.Kind, name string, do func() (T, error), undo func(T)) (T, error) {
	d := g.of(name)
	if d == nil {
		return do()
	}
	var value, none T
	var err error
	c := begin(kind, name, func(*Call) { value, err = do() })
	c.undo = func(*Call) {
		if err == nil && undo != nil {
			undo(value)
		}
	}
	if gone := d.run(c); gone != nil {
		return none, gone
	}
	c.free()
	return value, err
}

// change is onPath without a result.
func (g *FS) change(kind vfs.Kind, name string, do func() error) error {
	_, err := onPath(g, kind, name, func() (struct{}, error) { return struct{}{}, do() }, nil)
	return err
}

// OpenFile implements FS.
func (g *FS) OpenFile(name string, flag int) (vfs.File, error) {
	open := func() (vfs.File, error) { return g.fs.OpenFile(name, flag) }
	file, err := onPath(g, vfs.OpOpen, name, open, func(late vfs.File) { _ = late.Close() }) // nobody has written to it
	d := g.of(name)
	if err != nil || d == nil {
		return file, err
	}
	return newGuardedFile(d, file), nil
}

// Remove implements FS.
func (g *FS) Remove(name string) error {
	return g.change(vfs.OpRemove, name, func() error { return g.fs.Remove(name) })
}

// RemoveAll implements FS. Each file is an operation of its own: many files may take long on a disk that works.
func (g *FS) RemoveAll(name string) error {
	if g.of(name) == nil {
		return g.fs.RemoveAll(name)
	}
	err := g.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	entries, err := g.ReadDir(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := g.RemoveAll(path.Join(name, e.Name)); err != nil {
			return err
		}
	}
	if err := g.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Rename implements FS.
func (g *FS) Rename(oldName, newName string) error {
	return g.change(vfs.OpRename, oldName, func() error { return g.fs.Rename(oldName, newName) })
}

// MkdirAll implements FS.
func (g *FS) MkdirAll(name string) error {
	return g.change(vfs.OpMkdir, name, func() error { return g.fs.MkdirAll(name) })
}

// ReadDir implements FS.
func (g *FS) ReadDir(name string) ([]vfs.Entry, error) {
	return onPath(g, vfs.OpReadDir, name, func() ([]vfs.Entry, error) { return g.fs.ReadDir(name) }, nil)
}

// Stat implements FS.
func (g *FS) Stat(name string) (vfs.Entry, error) {
	return onPath(g, vfs.OpStat, name, func() (vfs.Entry, error) { return g.fs.Stat(name) }, nil)
}

// SyncDir implements FS.
func (g *FS) SyncDir(name string) error {
	return g.change(vfs.OpSyncDir, name, func() error { return g.fs.SyncDir(name) })
}

// SyncFS is what vfs.SyncFS uses.
func (g *FS) SyncFS(dir string) error {
	return g.change(vfs.OpSyncFS, dir, func() error { return vfs.SyncFS(g.fs, dir) })
}

// ReadFile is what vfs.ReadFile uses.
func (g *FS) ReadFile(name string) ([]byte, error) {
	return onPath(g, vfs.OpRead, name, func() ([]byte, error) { return vfs.ReadFile(g.fs, name) }, nil)
}

// BootID implements FS; it is no directory's.
func (g *FS) BootID() string { return g.fs.BootID() }

// Usage implements FS.
func (g *FS) Usage(name string) (totalBytes, usableBytes int64, err error) {
	sizes, err := onPath(g, vfs.OpUsage, name, func() (sizes [2]int64, err error) {
		sizes[0], sizes[1], err = g.fs.Usage(name)
		return sizes, err
	}, nil)
	return sizes[0], sizes[1], err
}

// Lock implements FS.
func (g *FS) Lock(name string) (io.Closer, error) {
	lock, err := onPath(g, vfs.OpLock, name, func() (io.Closer, error) { return g.fs.Lock(name) }, func(late io.Closer) { _ = late.Close() })
	if d := g.of(name); err == nil && d != nil {
		return &guardedLock{dir: d, name: name, lock: lock}, nil
	}
	return lock, err
}

// guardedLock is the lock of a directory. Where the directory was given up it stays locked as long as the process lives:
// what was left behind may still change something in it.
type guardedLock struct {
	dir  *guarded
	name string
	lock io.Closer
}

func (l *guardedLock) Close() error {
	if l.dir.given() != nil {
		return nil
	}
	var failed error
	c := begin(vfs.OpClose, l.name, func(*Call) { failed = l.lock.Close() })
	if err := l.dir.run(c); err != nil {
		return err
	}
	c.free()
	return failed
}
