package vfs

import (
	"io"
	"io/fs"
	"syscall"
	"time"
)

// pageBytes is the unit in which unsynced content is kept or lost, and sectorBytes the unit in which a
// page that was being written is torn.
const (
	pageBytes   = 4096
	sectorBytes = 512
)

// node is a file or a directory, apart from its names.
type node struct {
	modified time.Time

	// Of a directory.
	entries map[string]*node // what the process sees; nil in a file
	durable map[string]*node // what is on the platter

	// Of a file.
	data        []byte
	durableSize int64
	undo        map[int64]undoPage // pages of data that differ from the platter, by page number
	unlinked    bool               // no name leads here; its bytes are not counted as used
}

// undoPage is what the platter holds where the cache holds something newer.
type undoPage struct {
	platter []byte // at most pageBytes; what is missing is zero
	lost    bool   // a Sync failed: the page counts as clean, so later Syncs do not write it
}

func newDirectory() *node {
	return &node{entries: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) isDirectory() bool { return n.entries != nil }

func (n *node) entry(name string) Entry {
	return Entry{Name: name, Dir: n.isDirectory(), Size: int64(len(n.data)), Modified: n.modified}
}

// dirty remembers what the platter holds under the pages of [from, to), before they change.
func (n *node) dirty(from, to int64) {
	if n.undo == nil {
		n.undo = map[int64]undoPage{}
	}
	for p := from / pageBytes; p*pageBytes < to; p++ {
		old, ok := n.undo[p]
		if !ok {
			start := min(p*pageBytes, int64(len(n.data)))
			end := min(start+pageBytes, int64(len(n.data)))
			old.platter = append([]byte(nil), n.data[start:end]...)
		}
		old.lost = false
		n.undo[p] = old
	}
}

// resize changes the size; bytes that appear are zero.
func (n *node) resize(size int64) {
	old := int64(len(n.data))
	if size < old {
		n.dirty(size, old)
		n.data = n.data[:size]
		return
	}
	if size <= int64(cap(n.data)) {
		n.data = n.data[:size]
		clear(n.data[old:])
		return
	}
	n.data = append(n.data, make([]byte, size-old)...)
}

func (n *node) write(buffers [][]byte, offset, length int64) {
	n.dirty(min(offset, int64(len(n.data))), offset+length) // a gap before offset is new as well
	if offset+length > int64(len(n.data)) {
		n.resize(offset + length)
	}
	at := offset
	for _, b := range buffers {
		at += int64(copy(n.data[at:offset+length], b))
	}
}

// sync makes the content durable, except pages that an earlier failed sync has given up.
func (n *node) sync() {
	for p, old := range n.undo {
		if !old.lost {
			delete(n.undo, p)
		}
	}
	n.durableSize = int64(len(n.data))
}

// failSync is what a failed sync leaves: the pages are no longer dirty, and not on the platter either.
func (n *node) failSync() {
	for p, old := range n.undo {
		old.lost = true
		n.undo[p] = old
	}
}

// memFile is an open file of a Mem.
type memFile struct {
	disk     *Mem
	node     *node
	name     string
	writable bool
	closed   bool // under disk.mu
}

func (f *memFile) Name() string        { return f.name }
func (f *memFile) Fd() (uintptr, bool) { return 0, false }

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// begin asks the hook and takes the disk's lock, unless it returns an error.
func (f *memFile) begin(op string, operation Operation) error {
	operation.Name = clean(f.name)
	hookErr := f.disk.begin(operation)
	f.disk.mu.Lock()
	err := hookErr
	if f.closed {
		err = fs.ErrClosed
	}
	if err == nil {
		return nil
	}
	if operation.Kind == OpSync && !f.closed {
		f.node.failSync()
	}
	f.disk.mu.Unlock()
	return f.fail(op, err)
}

func (f *memFile) Close() error {
	if err := f.begin("close", Operation{Kind: OpClose}); err != nil {
		return err
	}
	defer f.disk.mu.Unlock()
	f.closed = true
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return 0, f.fail("stat", fs.ErrClosed)
	}
	return int64(len(f.node.data)), nil
}

func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.begin("read", Operation{Kind: OpRead, Offset: offset, Length: int64(len(p))}); err != nil {
		return 0, err
	}
	defer f.disk.mu.Unlock()
	if offset < 0 {
		return 0, f.fail("readat", syscall.EINVAL)
	}
	n := 0
	if offset < int64(len(f.node.data)) {
		n = copy(p, f.node.data[offset:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.WriteVectorAt([][]byte{p}, offset)
	return int(n), err
}

func (f *memFile) WriteVectorAt(buffers [][]byte, offset int64) (int64, error) {
	var length int64
	for _, b := range buffers {
		length += int64(len(b))
	}
	hookErr := f.disk.begin(Operation{Kind: OpWrite, Name: clean(f.name), Offset: offset, Length: length})
	allowed := length
	if hookErr != nil {
		allowed = 0
		if partial, ok := hookErr.(*PartialWriteError); ok { //nolint:errorlint // the hook's own value
			allowed, hookErr = min(max(partial.Bytes, 0), length), partial.Err
		}
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	switch {
	case f.closed:
		return 0, f.fail("write", fs.ErrClosed)
	case !f.writable:
		return 0, f.fail("write", syscall.EBADF)
	case offset < 0:
		return 0, f.fail("writeat", syscall.EINVAL)
	}
	written := f.writeLocked(buffers, offset, allowed)
	switch {
	case hookErr != nil:
		return written, f.fail("write", hookErr)
	case written < length:
		return written, f.fail("write", syscall.ENOSPC)
	}
	return written, nil
}

// writeLocked writes as much of the buffers as is allowed and as the disk has room for.
func (f *memFile) writeLocked(buffers [][]byte, offset, length int64) int64 {
	m, n := f.disk, f.node
	if grow := offset + length - int64(len(n.data)); grow > 0 && m.capacity > 0 && !n.unlinked {
		if short := grow - (m.capacity - m.used); short > 0 {
			length = max(length-short, 0)
		}
	}
	if length == 0 {
		return 0
	}
	before := int64(len(n.data))
	n.write(buffers, offset, length)
	n.modified = m.now()
	f.sizeChanged(before)
	return length
}

func (f *memFile) sizeChanged(before int64) {
	if !f.node.unlinked {
		f.disk.used += int64(len(f.node.data)) - before
	}
}

func (f *memFile) Sync() error { return f.sync("fsync") }

// SyncWhole is what vfs.SyncWhole uses.
func (f *memFile) SyncWhole() error { return f.disk.SyncFS(f.name) }

func (f *memFile) SyncData() error { return f.sync("fdatasync") }

func (f *memFile) sync(op string) error {
	if err := f.begin(op, Operation{Kind: OpSync}); err != nil {
		return err
	}
	defer f.disk.mu.Unlock()
	f.node.sync()
	return nil
}

func (f *memFile) Truncate(sizeBytes int64) error {
	if err := f.begin("truncate", Operation{Kind: OpTruncate, Offset: sizeBytes}); err != nil {
		return err
	}
	defer f.disk.mu.Unlock()
	if !f.writable || sizeBytes < 0 {
		return f.fail("truncate", syscall.EINVAL)
	}
	before := int64(len(f.node.data))
	f.node.resize(sizeBytes)
	f.node.modified = f.disk.now()
	f.sizeChanged(before)
	return nil
}
