package store

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Store is all logs of a node. All methods may be called at any time from anywhere.
type Store struct {
	o         Options
	all       []*directory // with the metadata directory, if that is another one
	dirs      []*directory // log.dirs, in order
	clusterID string
	tasks     sync.WaitGroup // what Workers was given and has not finished

	remembering sync.Mutex // a leaf but for mu

	mu        sync.Mutex
	logs      map[protocol.TopicPartition]*entry
	futures   map[protocol.TopicPartition]*entry // logs on their way to another directory
	failed    map[protocol.TopicPartition]failure
	busy      map[protocol.TopicPartition]*directory // being created there, or deleted (nil)
	preferred map[protocol.TopicPartition]protocol.DirectoryID
	exclusive func(tp protocol.TopicPartition, task func())
	schedule  schedule
	closed    bool
}

// entry is one log that works.
type entry struct {
	tp  protocol.TopicPartition
	log *log.Log
	dir *directory
	// future: it is in Store.futures, and no append lock guards it but mu. Under the store's lock.
	future bool
	// misnamed: its directory has the name of a future one, as there is no room for its own. Changed under mu.
	misnamed atomic.Bool
	// cutFrom is the base of the first segment whose size may not be durable, though the log believes it; NoOffset: none.
	cutFrom protocol.Offset

	// mu keeps Maintain apart from deletion and closing, when no replica guards the log. The replica's append lock
	// is asked for before it, the store's own after it.
	mu   sync.Mutex
	gone bool // deleted or closed; under mu
	// promotion keeps a future log one while it is maintained, as no append lock does. It is asked for before mu.
	promotion sync.Mutex

	// Under the store's lock.
	deadline   time.Time // when Maintain is due by itself; zero: never
	heapIndex  int       // in schedule.deadlines, -1 if not there
	seen       log.View  // as of the last Maintain
	maintained bool      // seen is valid
	touched    bool      // in schedule.touched
	flushAsked bool      // a flush is with the workers and has not begun
	flushing   bool
}

// failure is a partition that is here and does not work.
type failure struct {
	dir        *directory
	err        error
	everywhere bool   // it is in more directories than one
	roomless   bool   // it could not be opened for want of room
	name       string // of its directory, if it is to get the partition's first
}

func newStore(now time.Time, p *Prepared) *Store {
	s := &Store{
		o: p.o, all: p.all, clusterID: p.clusterID,
		logs:      map[protocol.TopicPartition]*entry{},
		failed:    map[protocol.TopicPartition]failure{},
		futures:   map[protocol.TopicPartition]*entry{},
		busy:      map[protocol.TopicPartition]*directory{},
		preferred: map[protocol.TopicPartition]protocol.DirectoryID{},
		exclusive: func(_ protocol.TopicPartition, task func()) { task() },
	}
	for _, d := range p.all {
		if d.holdsLogs {
			s.dirs = append(s.dirs, d)
		}
	}
	s.schedule.start(now, s.o)
	return s
}

// Log gives a partition's log, or nil if there is none or it is offline; see PartitionError.
func (s *Store) Log(tp protocol.TopicPartition) *log.Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.logs[tp]; e != nil {
		return e.log
	}
	return nil
}

// PartitionError says why a partition that is on this node has no log: its directory failed, or it is damaged.
// nil means that the partition works or was never here.
func (s *Store) PartitionError(tp protocol.TopicPartition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[tp].err
}

// Failed lists the partitions that are here and do not work.
func (s *Store) Failed() []protocol.TopicPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sortedKeys(s.failed)
}

// Logs gives all logs that work, by topic and partition.
func (s *Store) Logs() []*log.Log {
	entries := s.entries(nil)
	logs := make([]*log.Log, 0, len(entries))
	for _, e := range entries {
		logs = append(logs, e.log)
	}
	return logs
}

// entries lists the logs of a directory, future ones too, by topic and partition; with nil those of all, without the
// future ones.
func (s *Store) entries(d *directory) []*entry {
	return s.entriesThat(d, func(*entry) bool { return true })
}

// entriesThat lists those of the entries that are meant, which may be few of many.
func (s *Store) entriesThat(d *directory, meant func(*entry) bool) []*entry {
	s.mu.Lock()
	var list []*entry
	for _, e := range s.logs {
		if (d == nil || e.dir == d) && meant(e) {
			list = append(list, e)
		}
	}
	for _, e := range s.futures {
		if e.dir == d && meant(e) {
			list = append(list, e)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *entry) int { return a.tp.Compare(b.tp) })
	return list
}

// ClusterID is the cluster's id as meta.properties has it.
func (s *Store) ClusterID() string { return s.clusterID }

// Directories gives the log directories in the order of Options.Dirs.
func (s *Store) Directories() []Directory {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Directory, len(s.dirs))
	for i, d := range s.dirs {
		list[i] = d.Directory
	}
	return list
}

// DirectoryOf gives the directory that holds a partition, offline or not.
func (s *Store) DirectoryOf(tp protocol.TopicPartition) (protocol.DirectoryID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.logs[tp]; e != nil {
		return e.dir.ID, true
	}
	if f, ok := s.failed[tp]; ok {
		return f.dir.ID, true
	}
	return protocol.DirectoryID{}, false
}

// Usage gives the size of the file system of a directory and what may still be written, in bytes.
func (s *Store) Usage(id protocol.DirectoryID) (totalBytes, usableBytes int64, err error) {
	d := s.directory(id)
	if d == nil {
		return 0, 0, fmt.Errorf("no log directory has the id %s", id)
	}
	return s.o.FS.Usage(d.Path)
}

// SetExclusive hands in how to run a task on a log while nobody else writes to it: the replica's append lock.
// run calls task exactly once, at once or later. Until it is set, tasks run directly.
func (s *Store) SetExclusive(run func(tp protocol.TopicPartition, task func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exclusive = run
}

// HighWatermark is a partition's high watermark as the checkpoint last had it; 0 if it had none.
func (s *Store) HighWatermark(tp protocol.TopicPartition) protocol.Offset {
	return s.checkpointed(logdir.HighWatermarkFile, tp)
}

// CleanerOffset is how far a partition was compacted; 0 if it never was.
func (s *Store) CleanerOffset(tp protocol.TopicPartition) protocol.Offset {
	return s.checkpointed(logdir.CleanerFile, tp)
}

func (s *Store) checkpointed(file string, tp protocol.TopicPartition) protocol.Offset {
	s.mu.Lock()
	e := s.logs[tp]
	s.mu.Unlock()
	if e == nil {
		return 0
	}
	return e.dir.checkpoints.Get(file, tp)
}

// wake says that NextDeadline may have become earlier. No lock is held.
func (s *Store) wake() {
	if s.o.Wake != nil {
		s.o.Wake()
	}
}

// The small accessors below take the lock for one field.

func (s *Store) directory(id protocol.DirectoryID) *directory {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dirs {
		if d.ID == id {
			return d
		}
	}
	return nil
}

func (s *Store) describe(d *directory) Directory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.Directory
}

func (s *Store) offline(d *directory) error { return s.describe(d).Offline }

func (s *Store) distrusted(d *directory) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.distrusted
}

// register adds a log that was opened or created, unless its directory failed meanwhile. cutFrom as in entry.
func (s *Store) register(tp protocol.TopicPartition, l *log.Log, d *directory, cutFrom protocol.Offset, future bool) {
	defer s.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{tp: tp, log: l, dir: d, cutFrom: cutFrom, future: future, heapIndex: -1}
	if d.Offline != nil && future {
		s.schedule.closing = append(s.schedule.closing, e)
		return
	}
	if d.Offline != nil {
		s.failed[tp] = failure{dir: d, err: d.Offline}
		s.schedule.closing = append(s.schedule.closing, e)
		return
	}
	d.logs++
	if future {
		s.futures[tp] = e
	} else {
		s.logs[tp] = e
	}
	s.schedule.touch(e)
}

// unflushed tells that not all of the log is durable.
func (e *entry) unflushed() bool {
	view := e.log.View()
	return view.DurableEnd < view.LogEndOffset
}

// holds tells that a log is still in use here. The store's lock is held.
func (s *Store) holds(e *entry) bool { return s.logs[e.tp] == e || s.futures[e.tp] == e }

// damaged notes a partition that does not work though its directory does.
func (s *Store) damaged(tp protocol.TopicPartition, d *directory, err error) {
	s.waitsFor(tp, d, err, "")
}

// waitsFor does the same for one whose directory may have to get its name first.
func (s *Store) waitsFor(tp protocol.TopicPartition, d *directory, err error, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[tp] = failure{dir: d, err: err, roomless: vfs.NoSpace(err), name: name}
	d.distrusted = true
}
