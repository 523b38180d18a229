//go:build !linux && !darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile refuses: without a lock two servers could write to one directory.
func lockFile(f *os.File) error { return errors.ErrUnsupported }

func usage(name string) (totalBytes, usableBytes int64, err error) {
	return 0, 0, &fs.PathError{Op: "statfs", Path: name, Err: errors.ErrUnsupported}
}
