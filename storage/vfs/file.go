package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// TempSuffix ends the names of files that WriteFileAtomic has not finished. Apache Kafka uses the same
// suffix for its checkpoint files, and like it we overwrite what a crash left behind.
const TempSuffix = ".tmp"

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	if whole, ok := fsys.(interface {
		ReadFile(name string) ([]byte, error)
	}); ok {
		return whole.ReadFile(name)
	}
	file, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// WriteFileAtomic replaces a file so that after a crash at any moment it holds the old content or the new:
// a temporary file beside it is written and fsynced, renamed over the name, and the directory is fsynced.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	if err := WriteFile(fsys, name+TempSuffix, data, true); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return PutInPlace(fsys, name)
}

// SyncFS makes all files and directories of the file system that holds a directory durable, whoever wrote them: one call
// instead of an fsync for each of many files. errors.ErrUnsupported: not here.
func SyncFS(fsys FS, dir string) error {
	if whole, ok := fsys.(interface{ SyncFS(dir string) error }); ok {
		return whole.SyncFS(dir)
	}
	return errors.ErrUnsupported
}

// SyncWhole makes all of the file system durable that holds an open file, whoever wrote it. A write that failed since the file was
// opened is an error of one call, whoever else was told of it. errors.ErrUnsupported: not here, or not reliably.
func SyncWhole(file File) error {
	if whole, ok := file.(interface{ SyncWhole() error }); ok {
		return whole.SyncWhole()
	}
	return errors.ErrUnsupported
}

// ReplaceFile is WriteFileAtomic without the last step: the caller syncs the directory, perhaps for more files at once.
func ReplaceFile(fsys FS, name string, data []byte) error {
	if err := WriteFile(fsys, name+TempSuffix, data, true); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	if err := fsys.Rename(name+TempSuffix, name); err != nil {
		return fmt.Errorf("cannot put %s in place: %w", name, err)
	}
	return nil
}

// WriteTemp is the first half of WriteFileAtomic, and leaves the temporary file durable beside the name. It is for
// files in several directories that are to change together: when all are written, PutInPlace ends each.
func WriteTemp(fsys FS, name string, data []byte) error {
	if err := WriteFile(fsys, name+TempSuffix, data, true); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("cannot make the new %s durable: %w", name, err)
	}
	return nil
}

// PutInPlace is the second half of WriteFileAtomic.
func PutInPlace(fsys FS, name string) error {
	if err := fsys.Rename(name+TempSuffix, name); err != nil {
		return fmt.Errorf("cannot put %s in place: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("cannot make the new %s durable: %w", name, err)
	}
	return nil
}

// WriteFile replaces the content of a file, durably or not. A crash may leave it torn: it is for content with a checksum.
func WriteFile(fsys FS, name string, data []byte, sync bool) (err error) {
	file, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteAt(data, 0); err != nil || !sync {
		return err
	}
	return file.Sync()
}

// SyncFile makes an existing file durable.
func SyncFile(fsys FS, name string) error {
	file, err := fsys.OpenFile(name, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
