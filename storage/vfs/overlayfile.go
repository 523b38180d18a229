package vfs

import (
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// overlayPage is how much of a file is taken over at a time, in bytes, when it is written to.
const overlayPage = 4096

func (s *shadow) describe(name string) Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Entry{Name: name, Dir: s.dir, Modified: s.modified}
	if !s.dir {
		e.Size = s.size
	}
	return e
}

func (s *shadow) truncate(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = min(s.kept, size)
	for number, page := range s.pages {
		if from := number * overlayPage; from >= size {
			delete(s.pages, number)
		} else if from+overlayPage > size {
			clear(page[size-from:])
		}
	}
	s.size = size
}

// overlayFile is an open file of an Overlay.
type overlayFile struct {
	name     string
	of       *shadow
	below    File // nil: the file was made in the overlay
	writable bool
	closed   atomic.Bool
}

func (f *overlayFile) check(op string, offset int64) error {
	switch {
	case f.closed.Load():
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	case offset < 0:
		return &fs.PathError{Op: op, Path: f.name, Err: syscall.EINVAL}
	}
	return nil
}

// ReadAt implements File.
func (f *overlayFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.check("read", offset); err != nil {
		return 0, err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	wanted := len(p)
	p = p[:max(0, min(int64(wanted), f.of.size-offset))]
	if err := f.fill(p, offset); err != nil {
		return 0, err
	}
	if len(p) < wanted {
		return len(p), io.EOF
	}
	return len(p), nil
}

// fill reads what lies within the file: from the pages taken over, from below, or zeros.
func (f *overlayFile) fill(p []byte, offset int64) error {
	clear(p)
	if below := min(int64(len(p)), f.of.kept-offset); below > 0 {
		if n, err := f.below.ReadAt(p[:below], offset); int64(n) < below {
			return err
		}
	}
	if len(f.of.pages) == 0 {
		return nil
	}
	for done := 0; done < len(p); {
		number, within := (offset+int64(done))/overlayPage, (offset+int64(done))%overlayPage
		n := min(len(p)-done, int(overlayPage-within))
		if page := f.of.pages[number]; page != nil {
			copy(p[done:done+n], page[within:])
		}
		done += n
	}
	return nil
}

// WriteAt implements File.
func (f *overlayFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.check("write", offset); err != nil {
		return 0, err
	}
	if !f.writable {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: syscall.EBADF}
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for done := 0; done < len(p); {
		number, within := (offset+int64(done))/overlayPage, (offset+int64(done))%overlayPage
		page := f.of.pages[number]
		if page == nil {
			page = make([]byte, overlayPage)
			if from := number * overlayPage; from < f.of.size {
				if err := f.fill(page[:min(overlayPage, f.of.size-from)], from); err != nil {
					return done, err
				}
			}
			f.of.pages[number] = page
		}
		done += copy(page[within:], p[done:])
	}
	f.of.size = max(f.of.size, offset+int64(len(p)))
	return len(p), nil
}

// WriteVectorAt implements File.
func (f *overlayFile) WriteVectorAt(buffers [][]byte, offset int64) (int64, error) {
	if err := f.check("writeat", offset); err != nil {
		return 0, err
	}
	return writeEach(f, buffers, offset)
}

// Truncate implements File.
func (f *overlayFile) Truncate(size int64) error {
	if err := f.check("truncate", size); err != nil {
		return err
	}
	if !f.writable {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: syscall.EINVAL}
	}
	f.of.truncate(size)
	return nil
}

// Sync implements File.
func (f *overlayFile) Sync() error { return f.check("sync", 0) }

// SyncData implements File.
func (f *overlayFile) SyncData() error { return f.check("sync", 0) }

// Size implements File.
func (f *overlayFile) Size() (int64, error) {
	if err := f.check("stat", 0); err != nil {
		return 0, err
	}
	return f.of.describe("").Size, nil
}

// Fd implements File: a region of it is sent as bytes.
func (f *overlayFile) Fd() (uintptr, bool) { return 0, false }

// Name implements File.
func (f *overlayFile) Name() string { return f.name }

// Close implements File.
func (f *overlayFile) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	if f.below != nil {
		return f.below.Close()
	}
	return nil
}
