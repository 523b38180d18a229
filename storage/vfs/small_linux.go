package vfs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A node with many partitions lists a directory and reads two or three files of some bytes for each of them when it
// starts. What *os.File does beside that, for pipes, sockets and deadlines, is most of the system calls then.

// listBuffers are for the entries that the kernel gives at once.
var listBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func openRaw(name string, flag int) (fd int, err error) {
	fd, err = openAt(unix.AT_FDCWD, name, flag)
	return fd, pathError("open", name, err)
}

// timesNoted is set once the system has refused to leave the time of the last access as it is, which only a file's owner may
// ask for. Nobody needs it, and at a start it is another change of five inodes for each partition.
var timesNoted atomic.Bool

func openAt(dir int, name string, flag int) (fd int, err error) {
	open := func(more int) error {
		return retryInterrupted(func() error {
			fd, err = unix.Openat(dir, name, flag|more|unix.O_CLOEXEC, fileMode)
			return err
		})
	}
	// What is created may come to belong to somebody else, and would be there when that is found out.
	if flag&unix.O_CREAT == 0 && !timesNoted.Load() {
		if err = open(unix.O_NOATIME); !errors.Is(err, unix.EPERM) {
			return fd, err
		}
	}
	if err = open(0); err == nil && flag&unix.O_CREAT == 0 {
		timesNoted.Store(true)
	}
	return fd, err
}

func readDir(name string) ([]Entry, error) {
	entries, _, err := survey(name, func(string) Wish { return Described })
	return entries, err
}

// openFile is os.OpenFile for regular files, which no poller can watch: package os finds that out for each of them, in
// eight system calls.
func openFile(name string, flag int) (*os.File, error) {
	fd, err := openRaw(name, flag|unix.O_LARGEFILE)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// smallFile is how many bytes are read before a file's size is asked for.
const smallFile = 512

func readFile(name string) ([]byte, error) {
	fd, err := openRaw(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	data, err := readSmall(fd)
	if err != nil || data != nil {
		return data, pathError("read", name, err)
	}
	return os.ReadFile(name)
}

// readSmall reads a file of less than smallFile bytes, and gives nil for any other.
func readSmall(fd int) ([]byte, error) {
	var small [smallFile]byte
	var n int
	err := retryInterrupted(func() (err error) {
		n, err = unix.Pread(fd, small[:], 0)
		return err
	})
	if err != nil || n == smallFile {
		return nil, err
	}
	return append(make([]byte, 0, n), small[:n]...), nil
}

func syncDir(name string) error {
	fd, err := openRaw(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = retryInterrupted(func() error { return unix.Fsync(fd) })
	return errors.Join(pathError("fsync", name, err), pathError("close", name, unix.Close(fd)))
}

// syncFS tells of a write that failed since the file system was mounted and that nobody was told of yet, as fsync does;
// since Linux 5.8. That the journal failed it tells since 5.17, before which it is not used.
func syncFS(dir string) error {
	if !tellsOfFailedWrites() {
		return errors.ErrUnsupported
	}
	fd, err := openRaw(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = retryInterrupted(func() error { return unix.Syncfs(fd) })
	return errors.Join(pathError("syncfs", dir, err), pathError("close", dir, unix.Close(fd)))
}

// syncWhole is for the file systems whose syncfs is known to wait for the device and to tell of what failed.
func syncWhole(f *osFile) error {
	if !tellsOfFailedWrites() {
		return errors.ErrUnsupported
	}
	err := control(f, func(fd int) error {
		var s unix.Statfs_t
		if err := retryInterrupted(func() error { return unix.Fstatfs(fd, &s) }); err != nil {
			return err
		}
		if s.Type != unix.EXT4_SUPER_MAGIC && s.Type != unix.XFS_SUPER_MAGIC {
			return errors.ErrUnsupported
		}
		return retryInterrupted(func() error { return unix.Syncfs(fd) })
	})
	return pathError("syncfs", f.Name(), err)
}

var tellsOfFailedWrites = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 17
})
