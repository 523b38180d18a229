package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// survey is Survey on Linux, where a directory tells of each entry whether it is one, and files are reached from the open
// directory.
func survey(name string, wish func(name string) Wish) ([]Entry, []Small, error) {
	fd, err := openRaw(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var entries []Entry
	var files []Small
	err = eachEntry(fd, name, func(entry string, kind byte) error {
		wished := wish(entry)
		if wished == Content && kind == unix.DT_REG {
			if data := smallAt(fd, entry); data != nil {
				files = append(files, Small{entry, data})
			}
		}
		if wished != Described && kind != unix.DT_UNKNOWN {
			entries = append(entries, Entry{Name: entry, Dir: kind == unix.DT_DIR})
			return nil
		}
		described, err := describeAt(fd, entry)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since the directory was read
		}
		entries = append(entries, described)
		return pathError("lstat", name+"/"+entry, err)
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, files, nil
}

// describeAt is lstat from an open directory.
func describeAt(fd int, entry string) (Entry, error) {
	var stat unix.Stat_t
	err := retryInterrupted(func() error { return unix.Fstatat(fd, entry, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	e := Entry{Name: entry, Dir: stat.Mode&unix.S_IFMT == unix.S_IFDIR, Modified: time.Unix(stat.Mtim.Unix())}
	if !e.Dir {
		e.Size = stat.Size
	}
	return e, err
}

// smallAt reads a file of an open directory; nil if it is not small, or cannot be read.
func smallAt(dir int, entry string) []byte {
	fd, err := openAt(dir, entry, unix.O_RDONLY|unix.O_NOFOLLOW)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	data, err := readSmall(fd)
	if err != nil {
		return nil
	}
	return data
}

// Where the parts of a struct linux_dirent64 are.
const (
	direntLength = 16 // uint16, of the whole entry
	direntKind   = 18
	direntName   = 19 // up to a zero
)

// eachEntry reads an open directory, without what stands for itself and its parent, until visit gives an error.
func eachEntry(fd int, dir string, visit func(name string, kind byte) error) error {
	buffer := listBuffers.Get().(*[16 << 10]byte) //nolint:errcheck // nothing else is put there
	defer listBuffers.Put(buffer)
	for {
		var n int
		err := retryInterrupted(func() (err error) {
			n, err = unix.Getdents(fd, buffer[:])
			return err
		})
		if err != nil || n <= 0 {
			return pathError("getdents", dir, err)
		}
		for rest := buffer[:n]; len(rest) > direntName; {
			length := int(binary.NativeEndian.Uint16(rest[direntLength:]))
			if length <= direntName || length > len(rest) {
				return pathError("getdents", dir, unix.EIO) // no kernel gives that
			}
			name, _, _ := bytes.Cut(rest[direntName:length], []byte{0})
			kind := rest[direntKind]
			rest = rest[length:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if err := visit(string(name), kind); err != nil {
				return err
			}
		}
	}
}
