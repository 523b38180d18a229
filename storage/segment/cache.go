package segment

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// FileCache bounds the open descriptors of all segments of a node: the least recently used files that nobody
// has pinned are closed. It is safe for concurrent use.
type FileCache struct {
	fs    vfs.FS
	max   int
	bufs  sync.Pool // *[scratchBytes]byte
	spans sync.Pool // *[spanBytes]byte
	// cursors are *cursor, trails *trail
	cursors, trails sync.Pool
	// moving is read-locked while a file is opened by its name, so that no directory is renamed in between; taken
	// before mu.
	moving sync.RWMutex

	mu    sync.Mutex
	ring  File // sentinel of the open files, most recently used first
	count int
}

// Sizes of the pooled buffers in bytes: lookups take scratch, scans take spans.
const (
	scratchBytes = 8 << 10
	spanBytes    = 256 << 10
)

// NewFileCache makes a cache that keeps about max files open; pinned files are never closed, so a burst of
// readers can pass max for a while.
func NewFileCache(fs vfs.FS, max int) *FileCache {
	c := &FileCache{fs: fs, max: max}
	c.bufs.New = func() any { return new([scratchBytes]byte) }
	c.spans.New = func() any { return new([spanBytes]byte) }
	c.cursors.New = func() any { return new(cursor) }
	c.trails.New = func() any { return new(trail) }
	c.ring.next, c.ring.prev = &c.ring, &c.ring
	return c
}

// FS is the file system of the cached files.
func (c *FileCache) FS() vfs.FS { return c.fs }

// Open counts the open files.
func (c *FileCache) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// CloseIdle closes the files that are not pinned and were not used since the last call. Called every minute
// or so, it leaves idle partitions without an open file.
func (c *FileCache) CloseIdle() {
	c.mu.Lock()
	var idle []vfs.File
	for f := c.ring.prev; f != &c.ring; {
		older := f
		f = f.prev
		if older.pins == 0 && !older.used {
			idle = append(idle, c.detach(older))
		}
		older.used = false
	}
	c.mu.Unlock()
	closeAll(idle)
}

// detach takes an open file off the ring; the caller closes what it returns after unlocking.
func (c *FileCache) detach(f *File) vfs.File {
	f.prev.next, f.next.prev = f.next, f.prev
	f.next, f.prev = nil, nil
	file := f.file
	f.file = nil
	c.count--
	return file
}

func (c *FileCache) pushFront(f *File) {
	f.prev, f.next = &c.ring, c.ring.next
	f.next.prev, c.ring.next = f, f
}

// overflow detaches what must be closed to come back to max.
func (c *FileCache) overflow() (victims []vfs.File) {
	for f := c.ring.prev; f != &c.ring && c.count > c.max; {
		victim := f
		f = f.prev
		if victim.pins == 0 {
			victims = append(victims, c.detach(victim))
		}
	}
	return victims
}

// closeAll closes files whose bytes are all in the kernel; a close error would tell nothing that an fsync does not.
func closeAll(files []vfs.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// File is one file of a segment, opened on demand. While pinned it is a wire.RegionSource.
type File struct {
	cache      *FileCache
	generation atomic.Uint64

	opening sync.Mutex // serialises opening, renaming and removing; taken before cache.mu

	// Under cache.mu. file does not change while pins > 0.
	stem       string // with suffix, the path
	suffix     string
	file       vfs.File
	pins       int
	used       bool
	gone       bool // removed or closed for good: the last pin closes the descriptor
	prev, next *File
}

// newFiles gives the four files of a segment, in the order of Segment.files. They share what their names begin with: a node
// with many partitions has very many of them.
func (c *FileCache) newFiles(dir string, base protocol.Offset) *[4]File {
	files, stem := new([4]File), path.Join(dir, FileName(base, ""))
	for i, suffix := range [...]string{LogSuffix, IndexSuffix, TimeIndexSuffix, TxnIndexSuffix} {
		f := &files[i]
		f.cache, f.stem, f.suffix = c, stem, suffix
	}
	return files
}

// ErrClosed says that the segment was closed or removed.
var ErrClosed = errors.New("the segment is closed")

// pin opens the file if need be and keeps it open until Release. With create it is made if missing.
func (f *File) pin(create bool) error {
	c := f.cache
	c.mu.Lock()
	if f.pinOpen() {
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	f.opening.Lock()
	defer f.opening.Unlock()
	c.moving.RLock()
	defer c.moving.RUnlock()
	c.mu.Lock()
	if f.pinOpen() {
		c.mu.Unlock()
		return nil
	}
	name, gone := f.stem+f.suffix, f.gone
	c.mu.Unlock()
	if gone {
		return fmt.Errorf("%s: %w", name, ErrClosed)
	}
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	file, err := c.fs.OpenFile(name, flag)
	if err != nil {
		return fmt.Errorf("cannot open a segment file: %w", err)
	}
	c.mu.Lock()
	if f.gone {
		c.mu.Unlock()
		closeAll([]vfs.File{file})
		return fmt.Errorf("%s: %w", name, ErrClosed)
	}
	f.file, f.pins, f.used = file, f.pins+1, true
	c.pushFront(f)
	c.count++
	victims := c.overflow()
	c.mu.Unlock()
	closeAll(victims)
	return nil
}

// pinOpen pins a file that is open already. cache.mu is held.
func (f *File) pinOpen() bool {
	if f.file == nil {
		return false
	}
	f.pins++
	f.used = true
	if f.cache.ring.next != f {
		f.prev.next, f.next.prev = f.next, f.prev
		f.cache.pushFront(f)
	}
	return true
}

// Release unpins the file.
func (f *File) Release() {
	c := f.cache
	c.mu.Lock()
	if f.pins <= 0 {
		c.mu.Unlock()
		panic("segment: a file was released more often than pinned")
	}
	f.pins--
	var victims []vfs.File
	if f.pins == 0 && f.gone && f.file != nil {
		victims = append(victims, c.detach(f))
	} else if c.count > c.max {
		victims = c.overflow()
	}
	c.mu.Unlock()
	closeAll(victims)
}

// ReadAt reads the pinned file.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.file.ReadAt(p, offset) }

// Fd gives the pinned file's descriptor for sendfile, if it has one.
func (f *File) Fd() (uintptr, bool) { return f.file.Fd() }

// Generation is bumped by every truncation.
func (f *File) Generation() uint64 { return f.generation.Load() }

// Name is the file's path.
func (f *File) Name() string {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	return f.stem + f.suffix
}

// with runs do while the file is pinned.
func (f *File) with(create bool, do func(vfs.File) error) error {
	if err := f.pin(create); err != nil {
		return err
	}
	defer f.Release()
	return do(f.file)
}

// readFull fills p from offset on; a short file is an error.
func (f *File) readFull(p []byte, offset int64) error {
	if err := f.pin(false); err != nil {
		return err
	}
	defer f.Release()
	n, err := f.file.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("cannot read %d bytes at %d of %s: %w", len(p), offset, f.file.Name(), shortRead(err))
}

// rename moves the file, open or not; a missing one is no error.
func (f *File) rename(name string) error {
	f.opening.Lock()
	defer f.opening.Unlock()
	old := f.Name()
	if err := f.cache.fs.Rename(old, name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot rename a segment file: %w", err)
	}
	f.moved(name)
	return nil
}

// changeSuffix renames the file; one that has the new name already stays.
func (f *File) changeSuffix(from, to string) error {
	name, has := strings.CutSuffix(f.Name(), from)
	if !has {
		return nil
	}
	return f.rename(name + to)
}

// MoveDir renames a partition's directory while its segments are in use: whoever opens one of their files finds it
// under the old name or under the new one.
func (c *FileCache) MoveDir(from, to string, segments []*Segment) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	if err := c.fs.Rename(from, to); err != nil {
		return err
	}
	for _, s := range segments {
		for _, f := range s.files() {
			f.moved(path.Join(to, path.Base(f.Name())))
		}
	}
	return nil
}

// moved tells that the file has a new path.
func (f *File) moved(name string) {
	f.cache.mu.Lock()
	f.stem, f.suffix = name, ""
	f.cache.mu.Unlock()
}

// rest closes the descriptor unless it is pinned.
func (f *File) rest() {
	c := f.cache
	c.mu.Lock()
	var victims []vfs.File
	if f.file != nil && f.pins == 0 {
		victims = append(victims, c.detach(f))
	}
	c.mu.Unlock()
	closeAll(victims)
}

// close ends the use of the file: it is not opened again. Pins that are out stay good.
func (f *File) close() {
	c := f.cache
	c.mu.Lock()
	f.gone = true
	var victims []vfs.File
	if f.file != nil && f.pins == 0 {
		victims = append(victims, c.detach(f))
	}
	c.mu.Unlock()
	closeAll(victims)
}

// remove deletes the file; a missing one is no error.
func (f *File) remove() error {
	f.opening.Lock()
	defer f.opening.Unlock()
	f.close()
	if err := f.cache.fs.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove a segment file: %w", err)
	}
	return nil
}
