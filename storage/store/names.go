package store

import (
	"fmt"
	"path"
	"time"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// A log that has taken its partition's place keeps the name of a future directory for as long as the partition's finds no room.
// It works; a start would take it for the partition, too, as it finds no other.

// retryName is how soon it is tried again.
const retryName = 10 * time.Second

// ownName gives a log's directory the name of its partition, if it has another one. It tells whether that waits for room; any other
// error takes the directory offline. The log's maintenance is the caller's, or nobody else knows the log.
func (s *Store) ownName(e *entry) (waits bool, err error) {
	if !e.misnamed.Load() {
		return false, nil
	}
	name := path.Join(e.dir.Path, e.tp.String())
	err = e.log.MoveTo(name)
	if waits = vfs.NoSpace(err) && e.log.Dir() != name; waits {
		return true, nil
	}
	e.misnamed.Store(false)
	if err != nil {
		return false, fmt.Errorf("%s cannot take its new place: %w", e.tp, err)
	}
	return false, nil
}

// promoteFound gives a future log that is alone its partition's name. Without room for it the partition waits.
func (s *Store) promoteFound(d *directory, f *found, future *foundFuture) {
	err := s.renameFound(d, future.name, future.tp)
	switch {
	case vfs.NoSpace(err):
		s.waitsFor(future.tp, d, fmt.Errorf("%s in %s cannot be opened: %w", future.tp, d.Path, err), future.name)
		s.o.Logger.Warn("a partition waits for room for its name", "partition", future.tp, "directory", d.Path, "error", err)
	case err != nil:
		s.FailDirectory(d.ID, err)
	default:
		f.collector.promoted(future.name)
		f.partitions = append(f.partitions, future.tp)
	}
}

func (s *Store) renameFound(d *directory, name string, tp protocol.TopicPartition) error {
	if err := s.o.FS.Rename(path.Join(d.Path, name), path.Join(d.Path, tp.String())); err != nil {
		return fmt.Errorf("cannot put %s in its place: %w", name, err)
	}
	if err := s.o.FS.SyncDir(d.Path); err != nil {
		// Not to be taken for a name that waits: nobody knows what is durable.
		return fmt.Errorf("cannot put %s in its place durably: %s", name, err.Error())
	}
	s.o.Logger.Info("a future log takes the place of its partition", "partition", tp, "directory", d.Path)
	return nil
}

// nameFirst finishes, before a partition is opened, what promoteFound could not.
func (s *Store) nameFirst(f *failure, tp protocol.TopicPartition) error {
	if f.name == "" {
		return nil
	}
	err := s.renameFound(f.dir, f.name, tp)
	if err == nil {
		f.name = ""
	}
	return err
}
