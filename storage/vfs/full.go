package vfs

import (
	"errors"
	"syscall"
)

// NoSpace tells whether an error passes when there is room again, or more of it is granted.
func NoSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
