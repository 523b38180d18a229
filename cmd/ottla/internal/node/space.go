package node

import (
	"fmt"
	"path"
	"sync/atomic"
	"time"

	"ottla/controller/config"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// spaceInterval is how often the file systems are asked what is left. What is written in between is counted.
const spaceInterval = time.Second

// spaces watches what is left in the log directories.
type spaces struct {
	node    *Node
	byPath  map[string]*watchedSpace
	ordered []*watchedSpace
	due     time.Time
}

// watchedSpace is one directory. A look may take long on a disk that hangs, and keeps nobody but the next look waiting.
type watchedSpace struct {
	*space.Directory
	looking atomic.Bool
	failed  bool        // the last look was no success
	told    space.State // what the log was last told
	// reserved: room is kept for a start; see reserve.go.
	reserved bool
}

func spaceSettings(c *config.BrokerConfig) space.Settings {
	return space.Settings{Free: c.Long("ottla.disk.free.bytes"), Reserve: c.Long("ottla.disk.reserve.bytes")}
}

func newSpaces(n *Node) *spaces {
	s := &spaces{node: n, byPath: map[string]*watchedSpace{}}
	for _, dir := range n.config.LogDirs {
		dir = path.Clean(dir)
		if s.byPath[dir] != nil {
			continue // the store refuses it
		}
		w := &watchedSpace{Directory: space.New(dir, spaceSettings(n.config))}
		w.Wake = n.wakes.of(partSpace)
		s.byPath[dir] = w
		s.ordered = append(s.ordered, w)
	}
	return s
}

// of is what the store asks.
func (s *spaces) of(dir string) *space.Directory {
	if w := s.byPath[dir]; w != nil {
		return w.Directory
	}
	return nil
}

// set changes the marks.
func (s *spaces) set(c *config.BrokerConfig) {
	for _, w := range s.ordered {
		w.Set(spaceSettings(c))
	}
}

// first looks before anything is written.
func (s *spaces) first() {
	for _, w := range s.ordered {
		s.look(w)
	}
}

func (s *spaces) tick(now time.Time) {
	periodic := !now.Before(s.due)
	if periodic {
		s.due = now.Add(spaceInterval)
	}
	for _, w := range s.ordered {
		if (periodic || w.Hurried()) && w.looking.CompareAndSwap(false, true) {
			s.node.work(func() {
				defer w.looking.Store(false)
				s.look(w)
			})
		}
	}
}

// deadline is at once where somebody wants a look that is not under way yet.
func (s *spaces) deadline(now time.Time) time.Time {
	for _, w := range s.ordered {
		if w.Hurried() && !w.looking.Load() {
			return now
		}
	}
	return s.due
}

// look asks the file system and says what has changed.
func (s *spaces) look(w *watchedSpace) {
	logger := s.node.options.Logger
	begun := w.Begin()
	total, usable, err := s.node.options.FS.Usage(w.Path())
	if err != nil {
		if !w.failed {
			logger.Warn("nobody knows how much room is left", "directory", w.Path(), "error", err)
		}
		w.failed = true
		w.Calm()
		return
	}
	w.failed = false
	_, after := w.Looked(begun, total, usable)
	before := w.told
	w.told = after
	s.reserve(w, total, after)
	_, _, clients, internal := w.Usage()
	about := []any{"directory", w.Path(), "free", usable, "total", total, "forClients", clients, "forGroupsAndTransactions", internal}
	switch {
	case after == before:
	case after == space.Critical:
		logger.Error("the disk is almost full: clients may not write, nor groups and transactions be changed, until there is room", about...)
	case after == space.Low && before == space.Roomy:
		logger.Warn("the disk is nearly full: clients may not write until there is room", about...)
	case after == space.Low:
		logger.Info("groups and transactions may be changed again; clients may not write yet", about...)
	default:
		logger.Info("there is room on the disk again: clients may write", about...)
	}
}

// withAdvice adds to the error of a start that found no room what helps: a start writes to the metadata log.
func withAdvice(err error) error {
	if !vfs.NoSpace(err) {
		return err
	}
	return fmt.Errorf("%w; a start needs a little room, one MiB will do: then topics can be deleted and retention shortened", err)
}

// work runs a task elsewhere, if there is an elsewhere.
func (n *Node) work(task func()) {
	if n.options.Workers == nil {
		task()
		return
	}
	n.options.Workers(task)
}

// Space is what is left in a log directory; nil for others. For whoever watches a node from within.
func (n *Node) Space(dir string) *space.Directory { return n.spaces.of(path.Clean(dir)) }
