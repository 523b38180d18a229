package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a disk in memory whose power can be cut. It is an FS; all methods may be called concurrently.
// Relative names start at the root.
type Mem struct {
	mu       sync.Mutex
	random   func() uint64
	hook     func(op Operation) error
	clock    func() time.Time
	root     *node
	journal  []change // changes of directories that no SyncDir has made durable, oldest first
	number   int64    // of the last operation
	boots    int64
	capacity int64 // bytes of file content; 0 means no limit
	used     int64
	locked   map[*node]bool
}

// memTotalBytes is what Usage reports for a disk without a limit.
const memTotalBytes = 1 << 40

// NewMem returns an empty disk. random decides what Crash leaves; nil means that Crash loses everything
// that was not synced.
func NewMem(random func() uint64) *Mem {
	return &Mem{random: random, root: newDirectory(), locked: map[*node]bool{}}
}

// OnOperation sets a hook that sees each operation before it happens, with no lock held: it may clone the
// disk. An error from the hook makes the operation fail with it (a PartialWriteError: after some bytes);
// a failed OpSync leaves the dirty pages in the cache, marked clean, as Linux does: they are lost in a
// crash even if a later Sync succeeds. nil removes the hook. Clones start without one.
func (m *Mem) OnOperation(hook func(op Operation) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// SetClock sets where modification times come from; without it they are all the zero of Unix time.
func (m *Mem) SetClock(clock func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = clock
}

// SetCapacity limits the bytes that files may hold; writes beyond it are cut short and fail with ENOSPC.
// 0 means no limit.
func (m *Mem) SetCapacity(sizeBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = sizeBytes
}

// Operations returns the number of operations so far.
func (m *Mem) Operations() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.number
}

// BootID changes with every Crash.
func (m *Mem) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", m.boots)
}

// begin counts an operation and asks the hook about it; it is called without the lock.
func (m *Mem) begin(op Operation) error {
	m.mu.Lock()
	m.number++
	op.Number = m.number
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(op)
}

func (m *Mem) now() time.Time {
	if m.clock == nil {
		return time.Unix(0, 0)
	}
	return m.clock()
}

// clean gives the one spelling by which operations are reported and nodes are found.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// find walks to a node. The error is a syscall number.
func (m *Mem) find(name string) (*node, error) {
	n := m.root
	name = clean(name)
	for name != "" {
		var first string
		first, name, _ = strings.Cut(name, "/")
		if !n.isDirectory() {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[first]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// findParent walks to the directory that holds, or would hold, name.
func (m *Mem) findParent(name string) (parent *node, base string, err error) {
	name = clean(name)
	if name == "" {
		return nil, "", syscall.EINVAL // the root has no parent
	}
	parent, err = m.find(path.Dir("/" + name))
	if err == nil && !parent.isDirectory() {
		err = syscall.ENOTDIR
	}
	return parent, path.Base(name), err
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int) (File, error) {
	fail := func(err error) (File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if flag&os.O_APPEND != 0 {
		return fail(syscall.EINVAL)
	}
	kind := OpOpen
	m.mu.Lock()
	if _, err := m.find(name); errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		kind = OpCreate
	}
	m.mu.Unlock()
	if err := m.begin(Operation{Kind: kind, Name: clean(name)}); err != nil {
		return fail(err)
	}
	n, err := m.openNode(name, flag)
	if err != nil {
		return fail(err)
	}
	f := &memFile{disk: m, node: n, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	if flag&os.O_TRUNC != 0 && f.writable && kind == OpOpen {
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (m *Mem) openNode(name string, flag int) (*node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	switch {
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case err == nil && n.isDirectory():
		return nil, syscall.EISDIR
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		return m.createLocked(name)
	}
	return n, err
}

func (m *Mem) createLocked(name string) (*node, error) {
	parent, base, err := m.findParent(name)
	if err != nil {
		return nil, err
	}
	n := &node{modified: m.now()}
	m.changeLocked(link{parent, base, n})
	return n, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	fail := func(err error) error { return &fs.PathError{Op: "remove", Path: name, Err: err} }
	if err := m.begin(Operation{Kind: OpRemove, Name: clean(name)}); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return fail(err)
	}
	if len(n.entries) > 0 {
		return fail(syscall.ENOTEMPTY)
	}
	parent, base, err := m.findParent(name)
	if err != nil {
		return fail(err)
	}
	m.changeLocked(link{parent, base, nil})
	m.unlinkLocked(n)
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	n, err := m.find(name)
	var names []string
	if err == nil {
		names = n.sortedNames()
	}
	m.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	for _, child := range names {
		if err := m.RemoveAll(path.Join(name, child)); err != nil {
			return err
		}
	}
	return m.Remove(name)
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	err := m.begin(Operation{Kind: OpRename, Name: clean(oldName), NewName: clean(newName)})
	if err == nil {
		err = m.rename(oldName, newName)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.findParent(oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.findParent(newName)
	if err != nil {
		return err
	}
	moved, err := m.find(oldName)
	if err != nil {
		return err
	}
	replaced := to.entries[newBase]
	switch {
	case replaced != nil && replaced.isDirectory():
		return syscall.EEXIST // as os.Rename
	case moved.isDirectory() && strings.HasPrefix(clean(newName), clean(oldName)+"/"):
		return syscall.EINVAL
	case moved.isDirectory() && replaced != nil:
		return syscall.ENOTDIR
	case moved == replaced:
		return nil
	}
	m.changeLocked(link{from, oldBase, nil}, link{to, newBase, moved})
	m.unlinkLocked(replaced)
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	fail := func(err error) error { return &fs.PathError{Op: "mkdir", Path: name, Err: err} }
	m.mu.Lock()
	n, err := m.find(name)
	m.mu.Unlock()
	if err == nil {
		if n.isDirectory() {
			return nil
		}
		return fail(syscall.ENOTDIR)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err := m.MkdirAll(path.Dir("/" + clean(name))); err != nil {
		return err
	}
	if err := m.begin(Operation{Kind: OpMkdir, Name: clean(name)}); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.findParent(name)
	if err != nil {
		return fail(err)
	}
	if parent.entries[base] == nil {
		m.changeLocked(link{parent, base, newDirectory()})
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]Entry, error) {
	fail := func(err error) ([]Entry, error) { return nil, &fs.PathError{Op: "readdir", Path: name, Err: err} }
	if err := m.begin(Operation{Kind: OpReadDir, Name: clean(name)}); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.isDirectory() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fail(err)
	}
	entries := make([]Entry, 0, len(n.entries))
	for _, child := range n.sortedNames() {
		entries = append(entries, n.entries[child].entry(child))
	}
	return entries, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Entry, error) {
	fail := func(err error) (Entry, error) { return Entry{}, &fs.PathError{Op: "stat", Path: name, Err: err} }
	if err := m.begin(Operation{Kind: OpStat, Name: clean(name)}); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return fail(err)
	}
	return n.entry(path.Base(name)), nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	fail := func(err error) (io.Closer, error) { return nil, &fs.PathError{Op: "lock", Path: name, Err: err} }
	if err := m.begin(Operation{Kind: OpLock, Name: clean(name)}); err != nil {
		return fail(err)
	}
	n, err := m.openNode(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[n] {
		return fail(ErrLocked)
	}
	m.locked[n] = true
	return &memLock{disk: m, node: n}, nil
}

type memLock struct {
	disk *Mem
	node *node // nil when released
}

func (l *memLock) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.node == nil {
		return fs.ErrClosed
	}
	delete(l.disk.locked, l.node)
	l.node = nil
	return nil
}

// Usage implements FS.
func (m *Mem) Usage(name string) (totalBytes, usableBytes int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(name); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	total := m.capacity
	if total == 0 {
		total = memTotalBytes
	}
	return total, max(total-m.used, 0), nil
}

// sortedNames lists a directory; a file has none.
func (n *node) sortedNames() []string {
	names := make([]string, 0, len(n.entries))
	for name := range n.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
