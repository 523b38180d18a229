package check

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockedByOther asks whether a server holds the lock of a directory, without taking it: Apache Kafka's and Ottla's are
// both seen by a lock of an open file description.
func lockedByOther(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false
	}
	return lock.Type != unix.F_UNLCK
}
