package vfs

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// ErrStalled says that an operation has not come back for so long that its directory is given up. Whoever knows only
// broken disks finds EIO in it.
var ErrStalled = errors.New("the disk hangs")

// Stalled names the operation for which a directory was given up.
type Stalled struct {
	Kind  Kind
	Name  string
	After time.Duration // how long it was waited for
}

func (s *Stalled) Error() string {
	return fmt.Sprintf("%v: a %v of %s has not come back for %v", ErrStalled, s.Kind, s.Name, s.After)
}

// Unwrap makes it ErrStalled and EIO.
func (s *Stalled) Unwrap() []error { return []error{ErrStalled, syscall.EIO} }
