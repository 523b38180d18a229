package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// maxVector is the kernel's limit on the buffers of one pwritev (IOV_MAX).
const maxVector = 1024

func bootID() string {
	data, err := os.ReadFile(bootIDFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func syncData(f *osFile) error {
	err := control(f, func(fd int) error { return retryInterrupted(func() error { return unix.Fdatasync(fd) }) })
	return pathError("fdatasync", f.Name(), err)
}

func writeVectorAt(f *osFile, buffers [][]byte, offset int64) (int64, error) {
	var written int64
	var rest [][]byte // what is still to be written, copied from buffers only after a short write
	for len(buffers) > 0 {
		part := buffers[:min(len(buffers), maxVector)]
		buffers = buffers[len(part):]
		rest = append(rest[:0], part...)
		for {
			n, err := pwritev(f, rest, offset+written)
			written += int64(n)
			if err != nil {
				return written, pathError("pwritev", f.Name(), err)
			}
			if rest = advance(rest, n); len(rest) == 0 {
				break
			}
			if n == 0 {
				return written, pathError("pwritev", f.Name(), unix.EIO)
			}
		}
	}
	return written, nil
}

func pwritev(f *osFile, buffers [][]byte, offset int64) (n int, err error) {
	err = control(f, func(fd int) error {
		return retryInterrupted(func() (err error) {
			n, err = unix.Pwritev(fd, buffers, offset)
			return err
		})
	})
	return max(n, 0), err
}

// ReadNow reads what is in the page cache. Where that is not all, or the file ends before, it tells false.
func (f *osFile) ReadNow(p []byte, offset int64) bool {
	if f.waits.Load() {
		return false
	}
	n := 0
	err := control(f, func(fd int) (err error) {
		n, err = unix.Preadv2(fd, [][]byte{p}, offset, unix.RWF_NOWAIT)
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		f.waits.Store(true)
	}
	return err == nil && n == len(p)
}

// advance drops the first n bytes and every buffer that is then empty at the front.
func advance(buffers [][]byte, n int) [][]byte {
	for len(buffers) > 0 && n >= len(buffers[0]) {
		n -= len(buffers[0])
		buffers = buffers[1:]
	}
	if n > 0 {
		buffers[0] = buffers[0][n:]
	}
	return buffers
}

// control runs a call on the descriptor while the file cannot be closed under it.
func control(f *osFile, call func(fd int) error) error {
	var err error
	if e := f.raw.Control(func(fd uintptr) { err = call(int(fd)) }); e != nil {
		return e
	}
	return err
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// lockFile takes an open-file-description lock on the whole file. flock(2) would be simpler, but Java's
// FileChannel.tryLock, which Apache Kafka uses on the same .lock file, is fcntl(F_SETLK), and the kernel
// does not let the two see each other; a description lock conflicts with both kinds of ours and with Java's.
func lockFile(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err := retryInterrupted(func() error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) })
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

func usage(name string) (totalBytes, usableBytes int64, err error) {
	var s unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Statfs(name, &s) }); err != nil {
		return 0, 0, pathError("statfs", name, err)
	}
	unit := s.Frsize // the unit of the block counts; zero on file systems that do not fill it in
	if unit == 0 {
		unit = s.Bsize
	}
	return int64(s.Blocks) * unit, int64(s.Bavail) * unit, nil
}
