package segment

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"ottla/storage/vfs"
)

// entries is a file of fixed-size index entries, of which the newest may be only in memory. One writer, any
// number of readers. Entries are never changed; truncation makes new slices, so that a reader's stay good.
type entries struct {
	file *File
	size int // bytes an entry

	mu     sync.RWMutex
	count  int    // all entries
	stored int    // of them, how many the file holds
	first  int    // number of the first entry in tail
	tail   []byte // entries [first, count); first <= stored
	loaded *[scratchBytes]byte
	from   int // number of the first entry in loaded
	to     int // beyond the last one
}

// Bounds of what an active segment keeps in memory of each index, in entries.
const (
	tailMost = 1024
	tailKept = 512
)

func (e *entries) len() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.count
}

func (e *entries) append(entry []byte) {
	e.mu.Lock()
	e.tail = append(e.tail, entry...)
	e.count++
	e.mu.Unlock()
}

// load keeps the newest entries of the file at hand until unload: a start asks for several of them.
func (e *entries) load() error {
	count := min(e.stored, scratchBytes/e.size)
	if count == 0 || e.loaded != nil {
		return nil
	}
	block := e.file.cache.bufs.Get().(*[scratchBytes]byte)
	if err := e.file.readFull(block[:count*e.size], int64(e.stored-count)*int64(e.size)); err != nil {
		e.file.cache.bufs.Put(block)
		return err
	}
	e.mu.Lock()
	e.loaded, e.from, e.to = block, e.stored-count, e.stored
	e.mu.Unlock()
	return nil
}

func (e *entries) unload() {
	e.mu.Lock()
	block := e.loaded
	e.loaded, e.to = nil, 0
	e.mu.Unlock()
	if block != nil {
		e.file.cache.bufs.Put(block)
	}
}

// setStored makes the file's first count entries the whole index.
func (e *entries) setStored(count int) {
	e.mu.Lock()
	e.count, e.stored, e.first, e.tail, e.to = count, count, count, nil, 0
	e.mu.Unlock()
}

// reset makes the index empty, to be rebuilt in memory; the file is overwritten by the next store.
func (e *entries) reset() {
	e.mu.Lock()
	e.count, e.stored, e.first, e.tail, e.to = 0, 0, 0, nil, 0
	e.mu.Unlock()
}

// at gives entry i.
func (e *entries) at(i int) (entry [12]byte, err error) {
	e.mu.RLock()
	if i < 0 || i >= e.count {
		e.mu.RUnlock()
		return entry, errors.New("no such index entry")
	}
	if i >= e.first {
		copy(entry[:], e.tail[(i-e.first)*e.size:][:e.size])
		e.mu.RUnlock()
		return entry, nil
	}
	if i >= e.from && i < e.to {
		copy(entry[:], e.loaded[(i-e.from)*e.size:][:e.size])
		e.mu.RUnlock()
		return entry, nil
	}
	e.mu.RUnlock()
	return entry, e.file.readFull(entry[:e.size], int64(i)*int64(e.size))
}

// last finds the last entry for which holds is true; it must be true for a prefix of the entries. i is -1 if
// it is true for none.
func (e *entries) last(holds func(entry []byte) bool) (entry [12]byte, i int, err error) {
	e.mu.RLock()
	first, tail := e.first, e.tail
	from := e.from
	var loaded []byte // entries [from, first)
	if from < first && first <= e.to {
		loaded = e.loaded[:(first-from)*e.size]
	}
	e.mu.RUnlock()
	if len(tail) > 0 && holds(tail[:e.size]) {
		i = e.lastIn(tail, holds)
		copy(entry[:], tail[i*e.size:][:e.size])
		return entry, first + i, nil
	}
	if len(loaded) > 0 && (from == 0 || holds(loaded[:e.size])) {
		if i = e.lastIn(loaded, holds); i < 0 {
			return entry, -1, nil
		}
		copy(entry[:], loaded[i*e.size:][:e.size])
		return entry, from + i, nil
	}
	if first == 0 {
		return entry, -1, nil
	}
	return e.lastStored(first, holds)
}

func (e *entries) lastIn(block []byte, holds func([]byte) bool) int {
	low, high := -1, len(block)/e.size // holds(low), not holds(high)
	for high-low > 1 {
		middle := low + (high-low)/2
		if holds(block[middle*e.size:][:e.size]) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// lastStored searches the file: single entries until a block remains, then the block in memory.
func (e *entries) lastStored(count int, holds func([]byte) bool) (entry [12]byte, i int, err error) {
	if err := e.file.pin(false); err != nil {
		return entry, -1, err
	}
	defer e.file.Release()
	scratch := e.file.cache.bufs.Get().(*[scratchBytes]byte)
	defer e.file.cache.bufs.Put(scratch)
	block := scratchBytes / e.size
	low, high := -1, count
	for high-low > block {
		middle := low + (high-low)/2
		if err := readAll(e.file.file, scratch[:e.size], int64(middle)*int64(e.size)); err != nil {
			return entry, -1, err
		}
		if holds(scratch[:e.size]) {
			low = middle
		} else {
			high = middle
		}
	}
	from := max(low, 0)
	rest := scratch[:(high-from)*e.size]
	if err := readAll(e.file.file, rest, int64(from)*int64(e.size)); err != nil {
		return entry, -1, err
	}
	found := e.lastIn(rest, holds)
	if found < 0 {
		return entry, -1, nil
	}
	copy(entry[:], rest[found*e.size:][:e.size])
	return entry, from + found, nil
}

// store writes the entries that are only in memory to the file, and keeps the newest in memory too.
func (e *entries) store() error {
	e.mu.RLock()
	missing := e.tail[(e.stored-e.first)*e.size:]
	stored, count := e.stored, e.count
	e.mu.RUnlock()
	if len(missing) > 0 {
		err := e.file.with(true, func(file vfs.File) error {
			_, err := file.WriteAt(missing, int64(stored)*int64(e.size))
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot write index entries: %w", err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored = count
	if kept := e.count - e.first; kept > tailMost {
		drop := kept - tailKept
		e.tail = append([]byte(nil), e.tail[drop*e.size:]...)
		e.first += drop
	}
	return nil
}

// seal stores everything and gives the file its exact size; nothing stays in memory.
func (e *entries) seal() error {
	if err := e.store(); err != nil {
		return err
	}
	if err := e.trim(); err != nil {
		return err
	}
	e.setStored(e.len())
	return nil
}

// trim gives the file the exact size of its entries, and makes it if missing.
func (e *entries) trim() error {
	return e.file.with(true, func(file vfs.File) error {
		want := int64(e.len()) * int64(e.size)
		size, err := file.Size()
		if err != nil || size == want {
			return err
		}
		return file.Truncate(want)
	})
}

// dropUnknown cuts off the file what stands behind the entries that are known to be in it.
func (e *entries) dropUnknown() error {
	return e.file.with(true, func(file vfs.File) error {
		e.mu.RLock()
		known := int64(e.stored) * int64(e.size)
		e.mu.RUnlock()
		size, err := file.Size()
		if err != nil || size <= known {
			return err
		}
		return file.Truncate(known)
	})
}

// exact tells that a file of so many bytes has the entries that are said to be in it, and no others.
func (e *entries) exact(sizeBytes int64) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return sizeBytes == int64(e.stored)*int64(e.size)
}

// cut keeps the first count entries, in memory and in the file.
func (e *entries) cut(count int) error {
	if !e.forget(count) {
		return nil
	}
	return e.file.with(true, func(file vfs.File) error { return file.Truncate(int64(count) * int64(e.size)) })
}

// forget keeps the first count entries in memory; it tells whether the file has more.
func (e *entries) forget(count int) (fileHasMore bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if count >= e.count {
		return false
	}
	e.count, e.to = count, min(e.to, count)
	if count >= e.first {
		end := (count - e.first) * e.size
		e.tail = e.tail[:end:end] // a later append must not write into what readers hold
	} else {
		e.first, e.tail = count, nil
	}
	fileHasMore = e.stored > count
	e.stored = min(e.stored, count)
	return fileHasMore
}

func readAll(file vfs.File, p []byte, offset int64) error {
	n, err := file.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("cannot read %d bytes at %d of %s: %w", len(p), offset, file.Name(), shortRead(err))
}

func shortRead(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
