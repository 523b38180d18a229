package vfs

import (
	"errors"
	"slices"
	"syscall"
)

// NoSpace tells whether an error passes when there is room again, or more of it is granted.
func NoSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// failingNumbers are the errors that mean that the disk, not one file or one moment, is the problem.
var failingNumbers = []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE}

// Failing tells whether an error means that the disk does not work.
func Failing(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && slices.Contains(failingNumbers, number)
}
