package node

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"ottla/storage/space"
	"ottla/storage/vfs"
)

// reserveFile is ours: zeros that keep room in each log directory for a start on a disk that has none. Without it such a start could
// not even note that it leads the metadata log, and nobody could delete anything. Apache Kafka passes over files that it does not know.
const reserveFile = "ottla-reserve"

// The size of the reserve: a share of the file system, at most so much. A start after a kill writes some ten KB, and as much again
// for some partitions; those that find no room wait.
const (
	reserveFraction = 256
	mostReserved    = 1 << 20
)

func reserveBytes(totalBytes int64) int64 { return min(totalBytes/reserveFraction, mostReserved) }

// release gives the reserves up where a start would find no room. It comes before anything is written.
func (s *spaces) release() {
	if !s.node.options.KeepReserve {
		return
	}
	for _, w := range s.ordered {
		total, usable, err := s.node.options.FS.Usage(w.Path())
		if err != nil || usable >= reserveBytes(total) {
			continue
		}
		name := path.Join(w.Path(), reserveFile)
		if err := s.node.options.FS.Remove(name); err == nil {
			s.node.options.Logger.Warn("the disk is full: the room that was kept for a start is given up", "file", name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			s.node.options.Logger.Warn("the room that was kept for a start cannot be had", "file", name, "error", err)
		}
	}
}

// reserve keeps room, once there is enough for everybody.
func (s *spaces) reserve(w *watchedSpace, totalBytes int64, state space.State) {
	if !s.node.options.KeepReserve || w.reserved || state != space.Roomy {
		return
	}
	name := path.Join(w.Path(), reserveFile)
	if err := fill(s.node.options.FS, name, reserveBytes(totalBytes)); err != nil {
		s.node.options.Logger.Warn("no room can be kept for a start on a full disk", "file", name, "error", err)
	}
	w.reserved = true // or else it was tried
}

// fill makes a file of zeros that have their place on the disk, if there is none yet of that size. Something else of that name goes
// first: a link is not followed to a file that is not ours.
func fill(fsys vfs.FS, name string, bytes int64) error {
	there, err := fsys.Stat(name)
	if err == nil && there.Size == bytes {
		return nil
	}
	if err == nil {
		if err := fsys.Remove(name); err != nil {
			return err
		}
	}
	file, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, bytes), 0)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, fsys.Remove(name))
	}
	return nil
}
