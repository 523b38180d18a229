package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Overlay is a file system that shows another one and keeps every change to itself, in memory: what runs on it, a
// start with all its repairs, leaves the one below as it was. It is for examinations; nothing in it is ever durable.
// All methods may be called concurrently.
//
// The one below must not change meanwhile. It is only ever read, but for Lock: where the lock file exists below, the
// lock is tried there, which changes nothing, and given back at once.
type Overlay struct {
	below FS
	mu    sync.Mutex
	roots map[string]*shadow // "/" and "."
}

// shadow is a file or directory as the overlay has it.
type shadow struct {
	dir      bool
	below    string             // where its content is below; "": nowhere, it was made here
	entries  map[string]*shadow // of a directory: what was looked at or changed; nil marks what was removed
	modified time.Time

	mu    sync.Mutex // guards what follows, of a file
	size  int64
	kept  int64 // the bytes below count up to here; behind there are zeros
	pages map[int64][]byte
}

// NewOverlay gives an overlay over a file system.
func NewOverlay(below FS) *Overlay {
	o := &Overlay{below: below, roots: map[string]*shadow{}}
	for _, root := range []string{"/", "."} {
		o.roots[root] = &shadow{dir: true, below: root, entries: map[string]*shadow{}}
	}
	return o
}

// split gives the root of a name and the way from there.
func (o *Overlay) split(name string) (*shadow, []string) {
	name = path.Clean(name)
	root := "."
	if path.IsAbs(name) {
		root, name = "/", strings.TrimPrefix(name, "/")
	}
	if name == "" || name == "." {
		return o.roots[root], nil
	}
	return o.roots[root], strings.Split(name, "/")
}

// find walks to what has a name. The error is a syscall number, or that of the file system below.
func (o *Overlay) find(name string) (*shadow, error) {
	at, way := o.split(name)
	for _, step := range way {
		next, err := o.entry(at, step)
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// parent walks to the directory that holds, or would hold, a name.
func (o *Overlay) parent(name string) (*shadow, string, error) {
	name = path.Clean(name)
	if _, way := o.split(name); len(way) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err := o.find(path.Dir(name))
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, path.Base(name), err
}

func (o *Overlay) entry(dir *shadow, name string) (*shadow, error) {
	if !dir.dir {
		return nil, syscall.ENOTDIR
	}
	known, looked := dir.entries[name]
	switch {
	case known != nil:
		return known, nil
	case looked || dir.below == "":
		return nil, syscall.ENOENT
	}
	found, err := o.below.Stat(path.Join(dir.below, name))
	if err != nil {
		return nil, cause(err)
	}
	made := &shadow{
		dir: found.Dir, below: path.Join(dir.below, name), modified: found.Modified, size: found.Size, kept: found.Size,
		entries: map[string]*shadow{}, pages: map[int64][]byte{},
	}
	dir.entries[name] = made
	return made, nil
}

// cause takes the name below out of an error.
func cause(err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

func at(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: cause(err)}
}

// OpenFile implements FS.
func (o *Overlay) OpenFile(name string, flag int) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	opened, err := o.open(name, flag)
	if err != nil {
		return nil, at("open", name, err)
	}
	file := &overlayFile{name: name, of: opened, writable: flag&(os.O_RDWR|os.O_WRONLY) != 0}
	if opened.below != "" {
		if file.below, err = o.below.OpenFile(opened.below, os.O_RDONLY); err != nil {
			return nil, at("open", name, err)
		}
	}
	if flag&os.O_TRUNC != 0 && file.writable {
		opened.truncate(0)
	}
	return file, nil
}

func (o *Overlay) open(name string, flag int) (*shadow, error) {
	if flag&os.O_APPEND != 0 {
		return nil, syscall.EINVAL
	}
	dir, base, err := o.parent(name)
	if err != nil {
		return nil, err
	}
	found, err := o.entry(dir, base)
	switch {
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case err == nil && found.dir:
		return nil, syscall.EISDIR
	case err == nil || !errors.Is(err, fs.ErrNotExist) || flag&os.O_CREATE == 0:
		return found, err
	}
	found = &shadow{pages: map[int64][]byte{}, modified: time.Unix(0, 0)}
	dir.entries[base] = found
	return found, nil
}

// Remove implements FS.
func (o *Overlay) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	dir, base, err := o.parent(name)
	if err != nil {
		return at("remove", name, err)
	}
	found, err := o.entry(dir, base)
	if err == nil && found.dir {
		var left []Entry
		if left, err = o.list(found); err == nil && len(left) > 0 {
			err = syscall.ENOTEMPTY
		}
	}
	if err != nil {
		return at("remove", name, err)
	}
	dir.entries[base] = nil
	return nil
}

// RemoveAll implements FS.
func (o *Overlay) RemoveAll(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	dir, base, err := o.parent(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return at("unlinkat", name, err)
	}
	dir.entries[base] = nil
	return nil
}

// Rename implements FS.
func (o *Overlay) Rename(oldName, newName string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.rename(oldName, newName); err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: cause(err)}
	}
	return nil
}

func (o *Overlay) rename(oldName, newName string) error {
	from, oldBase, err := o.parent(oldName)
	if err != nil {
		return err
	}
	to, newBase, err := o.parent(newName)
	if err != nil {
		return err
	}
	moved, err := o.entry(from, oldBase)
	if err != nil {
		return err
	}
	replaced, err := o.entry(to, newBase)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && replaced.dir:
		return syscall.EEXIST // as os.Rename
	case moved.dir && strings.HasPrefix(path.Clean(newName), path.Clean(oldName)+"/"):
		return syscall.EINVAL
	case moved.dir && err == nil:
		return syscall.ENOTDIR
	case moved == replaced:
		return nil
	}
	from.entries[oldBase] = nil
	to.entries[newBase] = moved
	return nil
}

// MkdirAll implements FS.
func (o *Overlay) MkdirAll(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	dir, way := o.split(name)
	for _, step := range way {
		next, err := o.entry(dir, step)
		if errors.Is(err, fs.ErrNotExist) {
			next, err = &shadow{dir: true, entries: map[string]*shadow{}, modified: time.Unix(0, 0)}, nil
			dir.entries[step] = next
		}
		if err == nil && !next.dir {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return at("mkdir", name, err)
		}
		dir = next
	}
	return nil
}

// ReadDir implements FS.
func (o *Overlay) ReadDir(name string) ([]Entry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	dir, err := o.find(name)
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, at("open", name, err)
	}
	entries, err := o.list(dir)
	return entries, at("open", name, err)
}

func (o *Overlay) list(dir *shadow) ([]Entry, error) {
	var entries []Entry
	if dir.below != "" {
		found, err := o.below.ReadDir(dir.below)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if _, looked := dir.entries[e.Name]; !looked {
				entries = append(entries, e)
			}
		}
	}
	for name, one := range dir.entries {
		if one != nil {
			entries = append(entries, one.describe(name))
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// Stat implements FS.
func (o *Overlay) Stat(name string) (Entry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, err := o.find(name)
	if err != nil {
		return Entry{}, at("stat", name, err)
	}
	return found.describe(path.Base(name)), nil
}

// SyncDir implements FS.
func (o *Overlay) SyncDir(name string) error {
	_, err := o.Stat(name)
	return err
}

// SyncFS is what vfs.SyncFS uses.
func (o *Overlay) SyncFS(dir string) error { return o.SyncDir(dir) }

// Lock implements FS.
func (o *Overlay) Lock(name string) (io.Closer, error) {
	if _, err := o.below.Stat(name); err == nil {
		lock, err := o.below.Lock(name)
		switch {
		case errors.Is(err, ErrLocked):
			return nil, err
		case err == nil:
			_ = lock.Close() // nothing was written
		}
	}
	return o.OpenFile(name, os.O_RDWR|os.O_CREATE)
}

// BootID implements FS.
func (o *Overlay) BootID() string { return o.below.BootID() }

// Usage implements FS.
func (o *Overlay) Usage(name string) (totalBytes, usableBytes int64, err error) {
	return o.below.Usage(name)
}
