package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
)

const (
	fileMode      = 0o644
	directoryMode = 0o755
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EINVAL}
	}
	file, err := openFile(name, flag)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &osFile{File: file, raw: raw}, nil
}

func (osFS) Remove(name string) error             { return os.Remove(name) }
func (osFS) RemoveAll(name string) error          { return os.RemoveAll(name) }
func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }
func (osFS) MkdirAll(name string) error           { return os.MkdirAll(name, directoryMode) }
func (osFS) BootID() string                       { return bootID() }

func (osFS) ReadDir(name string) ([]Entry, error) { return readDir(name) }

func (osFS) Stat(name string) (Entry, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(info), nil
}

func entryOf(info fs.FileInfo) Entry {
	e := Entry{Name: info.Name(), Dir: info.IsDir(), Modified: info.ModTime()}
	if !e.Dir {
		e.Size = info.Size()
	}
	return e
}

func (osFS) SyncDir(name string) error { return syncDir(name) }

// SyncFS is what vfs.SyncFS uses.
func (osFS) SyncFS(dir string) error { return syncFS(dir) }

// ReadFile is what vfs.ReadFile uses.
func (osFS) ReadFile(name string) ([]byte, error) { return readFile(name) }

func (osFS) Lock(name string) (io.Closer, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
	return file, nil
}

func (osFS) Usage(name string) (totalBytes, usableBytes int64, err error) { return usage(name) }

// osFile is a file of the operating system. Reads, single writes and Truncate are those of *os.File, which
// knows about EINTR and short counts.
type osFile struct {
	*os.File
	raw   syscall.RawConn
	waits atomic.Bool // its file system cannot read without waiting
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }

func (f *osFile) SyncData() error { return syncData(f) }

// SyncWhole is what vfs.SyncWhole uses.
func (f *osFile) SyncWhole() error { return syncWhole(f) }

func (f *osFile) WriteVectorAt(buffers [][]byte, offset int64) (int64, error) {
	if offset < 0 {
		return 0, &fs.PathError{Op: "writeat", Path: f.Name(), Err: syscall.EINVAL}
	}
	return writeVectorAt(f, buffers, offset)
}

// writeEach is WriteVectorAt where the system has no pwritev.
func writeEach(f io.WriterAt, buffers [][]byte, offset int64) (int64, error) {
	var written int64
	for _, b := range buffers {
		n, err := f.WriteAt(b, offset+written)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
