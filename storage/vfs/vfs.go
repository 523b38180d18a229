package vfs

import (
	"errors"
	"io"
	"time"
)

// FS is a file system. Names are slash-separated paths, absolute or relative to the working directory.
// Errors are *fs.PathError (or *os.LinkError) values, so errors.Is works with fs.ErrNotExist, fs.ErrExist
// and with syscall numbers such as ENOSPC and EIO.
type FS interface {
	// OpenFile opens a file with flags of package os (O_RDONLY, O_RDWR, O_CREATE, O_EXCL, O_TRUNC).
	// New files get mode 0644. O_APPEND is refused: writers say where they write.
	OpenFile(name string, flag int) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a tree; a name that does not exist is no error.
	RemoveAll(name string) error
	// Rename moves a file or directory, replacing a file of the new name. Durable after SyncDir of both
	// parent directories.
	Rename(oldName, newName string) error
	// MkdirAll makes a directory and the parents that are missing, with mode 0755.
	MkdirAll(name string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]Entry, error)
	// Stat describes a file or directory; Entry.Name is the base name.
	Stat(name string) (Entry, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
	// Lock takes an exclusive advisory lock on a file, which is created if missing and stays behind when
	// the lock is closed. It returns ErrLocked, wrapped, if another holder has it; the death of the process
	// releases it.
	Lock(name string) (io.Closer, error)
	// BootID names the boot of the machine, or is "" where that cannot be known. Two equal ids mean that no
	// power was lost in between, so the page cache is whole.
	BootID() string
	// Usage reports the size of the file system that holds name and the bytes that may still be written.
	Usage(name string) (totalBytes, usableBytes int64, err error)
}

// Entry describes a file or a directory.
type Entry struct {
	Name     string
	Dir      bool
	Size     int64 // bytes; 0 for a directory
	Modified time.Time
}

// File is an open file. Every read and write names its offset, so a File may be used by several goroutines;
// who writes where is the caller's to decide.
type File interface {
	io.Closer
	io.ReaderAt
	io.WriterAt
	// WriteVectorAt writes the buffers one after the other at offset, as one pwritev where the system has
	// it. It returns the bytes written, and an error if they are fewer than all.
	WriteVectorAt(buffers [][]byte, offset int64) (int64, error)
	// Sync makes content, size and times durable (fsync).
	Sync() error
	// SyncData makes content and size durable (fdatasync).
	SyncData() error
	// Truncate sets the size, cutting or adding zeros.
	Truncate(sizeBytes int64) error
	// Size returns the size in bytes.
	Size() (int64, error)
	// Fd returns the descriptor for sendfile, or false where there is none.
	Fd() (uintptr, bool)
	// Name returns the name the file was opened by.
	Name() string
}

// ErrLocked means that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("the lock is held by another process")
