package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"syscall"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// A future log is the copy of a partition in another directory, in <topic>-<partition>.<32 hex digits>-future, which
// takes the partition's place when it has all records (KIP-113). Whoever fills it asks for it by WithFuture each time.

// maxFutureName is the longest name of a future directory that file systems take; Apache Kafka does not shorten it.
const maxFutureName = 255

// FutureFits tells whether a partition's name leaves room for what a future directory has at its end.
func FutureFits(tp protocol.TopicPartition) bool {
	return len(tp.String())+len(".-future")+32 <= maxFutureName
}

// ErrNoFuture says that a partition has no future log (any more).
var ErrNoFuture = errors.New("the partition has no future log")

// maxPreferred bounds the wishes for partitions that are not here yet.
const maxPreferred = 10_000

// Prefer has a partition that is not here yet made in a directory, whatever Create is told. One that is here, or whose
// future log is, in that directory needs no wish.
func (s *Store) Prefer(tp protocol.TopicPartition, dir protocol.DirectoryID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.preferred[tp]; known || len(s.preferred) < maxPreferred {
		s.preferred[tp] = dir
	}
}

// takePreferred gives the wish, once, if its directory works.
func (s *Store) takePreferred(tp protocol.TopicPartition) (protocol.DirectoryID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, ok := s.preferred[tp]
	delete(s.preferred, tp)
	for _, d := range s.dirs {
		if ok && d.ID == dir {
			return dir, d.Offline == nil
		}
	}
	return protocol.DirectoryID{}, false
}

// FutureLog is a future log as it stands.
type FutureLog struct {
	Partition protocol.TopicPartition
	Directory protocol.DirectoryID
	Log       *log.Log // for its View and Size only
}

// Futures lists the future logs by topic and partition.
func (s *Store) Futures() []FutureLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]FutureLog, 0, len(s.futures))
	for _, tp := range sortedKeys(s.futures) {
		e := s.futures[tp]
		list = append(list, FutureLog{tp, e.dir.ID, e.log})
	}
	return list
}

// Future gives a partition's future log.
func (s *Store) Future(tp protocol.TopicPartition) (FutureLog, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.futures[tp]
	if e == nil {
		return FutureLog{}, false
	}
	return FutureLog{tp, e.dir.ID, e.log}, true
}

// CreateFuture makes an empty future log of a partition that is here, in another directory.
func (s *Store) CreateFuture(tp protocol.TopicPartition, dir protocol.DirectoryID) error {
	s.mu.Lock()
	e, known := s.logs[tp], s.futures[tp]
	s.mu.Unlock()
	d := s.directory(dir)
	switch {
	case e == nil:
		return fmt.Errorf("%s has no log that works", tp)
	case d == nil:
		return fmt.Errorf("no log directory has the id %s", dir)
	case e.misnamed.Load():
		return fmt.Errorf("%s cannot move before its directory has its own name: %w", tp, syscall.ENOSPC)
	case known != nil || e.dir == d:
		return fmt.Errorf("%s is, or will be, in %s", tp, d.Path)
	case s.offline(d) != nil:
		return s.offline(d)
	}
	if full := s.o.space(d).Refusal(space.Client); full != nil {
		return fmt.Errorf("%s cannot move there: %w", tp, full)
	}
	l, err := s.createIn(d, s.futureName(tp), tp, e.log.TopicID())
	if err != nil {
		err = fmt.Errorf("cannot create a future log of %s in %s: %w", tp, d.Path, err)
		if vfs.Failing(err) {
			s.FailDirectory(d.ID, err)
		}
		return err
	}
	s.register(tp, l, d, protocol.NoOffset, true)
	return s.offline(d)
}

func (s *Store) futureName(tp protocol.TopicPartition) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], s.o.Random())
	binary.BigEndian.PutUint64(id[8:], s.o.Random())
	return fmt.Sprintf("%s.%s-future", tp, hex.EncodeToString(id[:]))
}

// WithFuture lets use work on a partition's future log while nobody else does, and gives its error. ErrNoFuture if there
// is none, or not any more: if the log fails in use, its directory goes offline.
func (s *Store) WithFuture(tp protocol.TopicPartition, use func(l *log.Log) error) error {
	s.mu.Lock()
	e := s.futures[tp]
	s.mu.Unlock()
	if e == nil {
		return ErrNoFuture
	}
	e.mu.Lock()
	if e.gone || e.log.Failed() != nil || !s.isFuture(e) {
		e.mu.Unlock()
		return ErrNoFuture
	}
	err := use(e.log)
	failed := e.log.Failed()
	e.mu.Unlock()
	if failed != nil {
		s.fault(e, "cannot fill its future log", failed)
		return ErrNoFuture
	}
	return err
}

// FlushFuture makes a partition's future log durable. It may be used meanwhile. If that fails its directory goes offline.
func (s *Store) FlushFuture(now time.Time, tp protocol.TopicPartition) {
	s.mu.Lock()
	e := s.futures[tp]
	s.mu.Unlock()
	if e != nil {
		s.flush(now, e)
	}
}

// RemoveFuture gives a partition's future log up: its directory is renamed for deletion. Without one it does nothing.
func (s *Store) RemoveFuture(now time.Time, tp protocol.TopicPartition) error {
	s.mu.Lock()
	e := s.futures[tp]
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	return s.remove(tp, e, func(e *entry) error { return s.putAway(now, e) })
}

// Promote puts a partition's future log in the place of its log. The caller holds the replica's append lock; prepare,
// called first, makes the future log equal to the present one, and show hands it to readers. failed, if not zero, is a
// directory that the caller is to give to FailDirectory once the append lock is free; if show was called before the
// error, nothing may be appended to the partition any more. An error for want of room that names no directory leaves everything
// as it was.
//
// On the disk the present directory is renamed for deletion before the future one gets the plain name: a start that finds
// only a future log takes it as the partition's. So where there is no room for that name the log goes on without (names.go).
func (s *Store) Promote(now time.Time, tp protocol.TopicPartition, highWatermark protocol.Offset, prepare func(future *log.Log) error, show func(future *log.Log)) (failed protocol.DirectoryID, err error) {
	s.mu.Lock()
	present, future := s.logs[tp], s.futures[tp]
	s.mu.Unlock()
	if present == nil || future == nil {
		return failed, ErrNoFuture
	}
	future.promotion.Lock()
	defer future.promotion.Unlock()
	present.mu.Lock()
	defer present.mu.Unlock()
	future.mu.Lock()
	defer future.mu.Unlock()
	if present.gone || future.gone || future.log.Failed() != nil {
		return failed, ErrNoFuture
	}
	if err := prepare(future.log); err != nil {
		if future.log.Failed() != nil {
			failed = future.dir.ID
		}
		return failed, err
	}
	if err := s.checkpointFuture(future, highWatermark); err != nil {
		if !vfs.NoSpace(err) {
			failed = future.dir.ID
		}
		return failed, fmt.Errorf("cannot write a checkpoint for the move of %s: %w", tp, err)
	}
	if err := s.offline(future.dir); err != nil {
		return failed, fmt.Errorf("%s cannot move: %w", tp, err)
	}
	if waits, err := s.giveWay(now, present); waits {
		return failed, err
	} else if err != nil {
		return present.dir.ID, err
	}
	show(future.log)
	return s.replace(present, future)
}

// giveWay renames the directory of a log that is replaced for deletion; readers go on. waits tells that it finds no room for the
// longer name, and nothing has changed.
func (s *Store) giveWay(now time.Time, present *entry) (waits bool, err error) {
	before := present.log.Dir()
	dir, err := present.log.MarkReplaced(s.o.Random)
	if err != nil {
		return vfs.NoSpace(err) && present.log.Dir() == before, fmt.Errorf("%s cannot give its place to another directory: %w", present.tp, err)
	}
	s.removeLater(now.Add(present.log.Options().FileDeleteDelay), dir)
	return false, nil
}

// checkpointFuture stores in the new directory what the old one's checkpoints say of the partition.
func (s *Store) checkpointFuture(future *entry, highWatermark protocol.Offset) error {
	d := future.dir
	if err := s.writeCheckpoints(d); err != nil {
		return err
	}
	moved := map[string]protocol.Offset{logdir.HighWatermarkFile: highWatermark, logdir.CleanerFile: s.CleanerOffset(future.tp)}
	for _, file := range []string{logdir.HighWatermarkFile, logdir.CleanerFile} {
		err := d.checkpoints.Write(file, func(onDisk offsets) logdir.Lines {
			return s.wanted(d, onDisk, func(e *entry) (protocol.Offset, bool) {
				if e == future {
					return moved[file], file != logdir.CleanerFile || moved[file] > 0
				}
				old, ok := onDisk[e.tp]
				return old, ok
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replace gives the future log its partition's name and changes the maps.
func (s *Store) replace(present, future *entry) (failed protocol.DirectoryID, err error) {
	tp := present.tp
	present.log.Abandon()
	present.gone = true
	future.misnamed.Store(true)
	waits, err := s.ownName(future)
	s.mu.Lock()
	s.drop(present)
	if offline := future.dir.Offline; offline != nil { // since a moment ago; FailDirectory saw a future log
		s.failed[tp] = failure{dir: future.dir, err: offline}
		s.mu.Unlock()
		return failed, fmt.Errorf("%s has moved into a directory that failed: %w", tp, offline)
	}
	s.drop(future)
	future.future = false
	s.logs[tp] = future
	future.dir.logs++
	s.schedule.touch(future)
	s.mu.Unlock()
	s.wake()
	if err != nil {
		return future.dir.ID, err
	}
	if waits {
		s.o.Logger.Warn("a partition that has moved works, and its directory gets its name when there is room", "partition", tp, "directory", future.log.Dir())
	}
	s.o.Logger.Info("a partition has moved to another directory", "partition", tp, "from", present.dir.Path, "to", future.dir.Path)
	if err := present.dir.checkpoints.Forget(tp); err != nil {
		// Harmless but for a partition of that name that comes back; who makes it forgets it first.
		s.o.Logger.Warn("the checkpoints still name a partition that has moved", "partition", tp, "directory", present.dir.Path, "error", err)
	}
	return failed, nil
}

// settleFutures decides at the start what becomes of the future logs that were found. One whose partition is here is
// opened as future log, and whoever applies the partition's role goes on with the move. One alone is what a move that
// was interrupted in its last step, or a directory that was taken away, has left: it takes the partition's place, unless
// the partition may lie in a directory that cannot be read, where the cluster does not say that it is here.
func (s *Store) settleFutures(lists []*found) {
	type place struct{ list, at int }
	futures := map[protocol.TopicPartition][]place{}
	here := map[protocol.TopicPartition]bool{}
	offline := false
	for i, f := range lists {
		offline = offline || s.dirs[i].Offline != nil
		for _, tp := range f.partitions {
			here[tp] = true
		}
		for at, future := range f.futures {
			futures[future.tp] = append(futures[future.tp], place{i, at})
		}
	}
	for _, tp := range sortedKeys(futures) {
		kept := -1
		for _, p := range futures[tp] {
			if s.assignedTo(tp, s.dirs[p.list]) || kept < 0 {
				kept = p.list
			}
		}
		chosen := false
		for _, p := range futures[tp] {
			f, future := lists[p.list], &lists[p.list].futures[p.at]
			d := s.dirs[p.list]
			_, failed := s.failed[tp] // it is in two directories, or the like
			switch {
			case p.list != kept || chosen:
				f.deleted = append(f.deleted, future.name) // there is one already
			case here[tp] || failed || offline && !s.assignedTo(tp, d):
				chosen, future.keep = true, true
			default:
				chosen = true
				s.promoteFound(d, f, future)
			}
		}
	}
}

// foundFuture is a future directory met at the start.
type foundFuture struct {
	name string
	tp   protocol.TopicPartition
	keep bool // it is opened as what it is
}

func (s *Store) assignedTo(tp protocol.TopicPartition, d *directory) bool {
	return s.o.Assigned != nil && !d.ID.IsZero() && s.o.Assigned(tp) == d.ID
}

// openFuture opens a future log. It is only a copy: one that is damaged is given up, and the move begins anew.
func (s *Store) openFuture(now time.Time, d *directory, future foundFuture) {
	state := log.OpenState{
		RecoveryPoint:  d.checkpoints.Get(logdir.RecoveryPointFile, future.tp),
		LogStartOffset: d.checkpoints.Get(logdir.LogStartFile, future.tp),
		Trust:          d.trust,
		Now:            now,
	}
	dir := path.Join(d.Path, future.name)
	l, _, err := log.Open(*d.env, dir, future.tp, s.o.LogOptions(future.tp.Topic), state)
	switch {
	case err == nil:
		cutFrom := protocol.NoOffset
		if d.trust != log.Clean {
			cutFrom = l.View().ActiveSegmentBase
		}
		s.register(future.tp, l, d, cutFrom, true)
	case vfs.Failing(err) && !isDamage(err):
		s.FailDirectory(d.ID, fmt.Errorf("cannot open %s: %w", future.name, err))
	case s.present(future.tp):
		s.o.Logger.Warn("a future log is damaged and removed", "directory", dir, "error", err)
		s.removeTree(dir)
	default:
		s.o.Logger.Error("a future log is damaged, and its partition is not here; it is left alone", "directory", dir, "error", err)
	}
}

// present tells that a partition has a log that works.
func (s *Store) present(tp protocol.TopicPartition) bool { return s.partition(tp) != nil }
