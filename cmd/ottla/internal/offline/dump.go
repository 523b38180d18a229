package offline

import (
	"errors"
	"io"

	"ottla/storage/vfs"
)

// ErrDamaged means that a dump met damage, each instance of which it has written about.
var ErrDamaged = errors.New("the file is damaged")

// DumpOptions is what dump is told.
type DumpOptions struct {
	// Deep prints the records of batches, not only the batches (--deep).
	Deep bool
	// MaxDecompressed bounds what one batch may expand to, in bytes; 0 is 1 GiB.
	MaxDecompressed int
}

// Dump prints a file of a log directory; what it is, its name tells.
func Dump(w io.Writer, fsys vfs.FS, file string, o DumpOptions) error { panic("being written") }
