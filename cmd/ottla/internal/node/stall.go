package node

import (
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"ottla/controller/config"
	"ottla/storage/guard"
	"ottla/storage/vfs"
)

// A disk that hangs answers nothing: no error, no end. Operations on a log directory that the node can do without are
// handed to other goroutines, and who waits for them gives up after the limit; the goroutine stays behind. Of a directory
// that the node cannot do without it is only noted what is under way: when that takes too long the process ends.

const (
	// leastStall is the shortest limit: a slow disk is no failed one.
	leastStall = time.Second
	// looksPerLimit and mostBetweenLooks say how often the watchdog looks. It counts looks and not time, so that a process
	// that was suspended does not take itself for one whose disk hangs.
	looksPerLimit    = 20
	mostBetweenLooks = time.Second
	// wholePatience is how many limits the sync of a whole file system may take.
	wholePatience = 10
	// stripeCount keeps those who note what they do apart.
	stripeCount = 16
	idleWorkers = 64
)

// watch is the guard.Runner of one directory.
type watch struct {
	dir    string
	leaves bool
	every  time.Duration // between two looks
	limit  uint64        // looks
	logger *slog.Logger
	hangs  func(w *watch, s *vfs.Stalled) // called once

	looks   atomic.Uint64
	oldest  atomic.Uint64 // looks since the oldest operation began, as of the last look
	stalled atomic.Pointer[vfs.Stalled]
	stripes [stripeCount]stripe
	warned  bool // the watchdog's

	mu     sync.Mutex
	idle   []chan *operation
	closed bool
	later  []func()
	tidies bool // a goroutine works on later
}

// stripe is a part of what is under way.
type stripe struct {
	mu    sync.Mutex
	under []*operation
	shut  bool // the directory was given up
	_     [64]byte
}

// operation is a call that is under way; it is used again with its call.
type operation struct {
	call   *guard.Call
	stripe uint32
	begun  uint64 // looks
	at     int    // in stripe.under
	left   bool   // nobody waits for it any more; under the stripe's lock
	done   chan struct{}
}

var dealt atomic.Uint32

func newWatch(dir string, leaves bool, limit time.Duration, logger *slog.Logger, hangs func(*watch, *vfs.Stalled)) *watch {
	limit = max(limit, leastStall)
	every := min(limit/looksPerLimit, mostBetweenLooks)
	return &watch{dir: dir, leaves: leaves, every: every, limit: uint64((limit + every - 1) / every), logger: logger, hangs: hangs}
}

// Leaves implements guard.Runner.
func (w *watch) Leaves() bool { return w.leaves }

// Run implements guard.Runner.
func (w *watch) Run(call *guard.Call) error {
	o, _ := call.Note.(*operation)
	if o == nil {
		o = &operation{stripe: dealt.Add(1) % stripeCount, done: make(chan struct{}, 1)}
		call.Note = o
	}
	o.call, o.begun = call, w.looks.Load()
	s := &w.stripes[o.stripe]
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return w.stalled.Load()
	}
	o.at = len(s.under)
	s.under = append(s.under, o)
	s.mu.Unlock()
	if !w.leaves {
		call.Do()
		w.over(o)
		return nil
	}
	w.give(o)
	<-o.done
	if o.left {
		return w.stalled.Load()
	}
	return nil
}

// over takes an operation off the list; false: it was given up.
func (w *watch) over(o *operation) bool {
	s := &w.stripes[o.stripe]
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.left {
		return false
	}
	last := len(s.under) - 1
	s.under[o.at] = s.under[last]
	s.under[o.at].at = o.at
	s.under[last] = nil
	s.under = s.under[:last]
	return true
}

// give hands an operation to a worker that has nothing to do, or to a new one.
func (w *watch) give(o *operation) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		worker := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		worker <- o
		return
	}
	w.mu.Unlock()
	go w.work(o)
}

// work does operations until there are workers enough. One that hangs takes it along.
func (w *watch) work(o *operation) {
	next := make(chan *operation, 1)
	for {
		o.call.Do()
		awaited := w.over(o)
		stays := w.rest(next) // before the answer, so that whoever gets it finds this one
		if awaited {
			o.done <- struct{}{}
		} else {
			o.call.Abandoned()
		}
		if !stays {
			return
		}
		if o = <-next; o == nil {
			return
		}
	}
}

func (w *watch) rest(next chan *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.idle) == idleWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// Later implements guard.Runner: one after another.
func (w *watch) Later(task func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later = append(w.later, task)
	if !w.tidies {
		w.tidies = true
		go w.tidy()
	}
}

func (w *watch) tidy() {
	for {
		w.mu.Lock()
		if len(w.later) == 0 {
			w.tidies = false
			w.mu.Unlock()
			return
		}
		task := w.later[0]
		w.later = w.later[1:]
		w.mu.Unlock()
		task()
	}
}

// close lets the idle workers go.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, worker := range w.idle {
		close(worker)
	}
	w.idle, w.closed = nil, true
}

// look counts one interval more and judges what is under way. One caller at a time.
func (w *watch) look() {
	if w.stalled.Load() != nil {
		return
	}
	now := w.looks.Add(1)
	s, age, over := w.judge(now)
	w.oldest.Store(age)
	switch {
	case over && w.leaves:
		w.giveUp(s)
		w.hangs(w, s)
	case over:
		w.stalled.Store(s)
		w.hangs(w, s)
	case age > max(w.limit/3, 1) && !w.warned:
		w.warned = true
		w.logger.Warn("an operation on a log directory has not come back yet", "directory", w.dir, "operation", s.Kind.String(), "file", s.Name,
			"waited", s.After, "limit", w.every*time.Duration(w.limit))
	case age <= 1 && w.warned:
		w.warned = false
		w.logger.Info("operations on a log directory come back again", "directory", w.dir)
	}
}

// judge finds the oldest operation, or one that has taken too long.
func (w *watch) judge(now uint64) (s *vfs.Stalled, age uint64, over bool) {
	for i := range w.stripes {
		stripe := &w.stripes[i]
		stripe.mu.Lock()
		for _, o := range stripe.under {
			limit := w.limit
			if o.call.Kind == vfs.OpSyncFS {
				limit *= wholePatience
			}
			waited := now - o.begun
			if late := waited > limit; late && !over || !late && !over && waited > age {
				s, age, over = &vfs.Stalled{Kind: o.call.Kind, Name: o.call.Name, After: w.every * time.Duration(waited)}, waited, late
			}
		}
		stripe.mu.Unlock()
	}
	return s, age, over
}

// giveUp sends everybody home: with what is under way now, and with all that comes.
func (w *watch) giveUp(s *vfs.Stalled) {
	w.stalled.Store(s)
	for i := range w.stripes {
		stripe := &w.stripes[i]
		stripe.mu.Lock()
		stripe.shut = true
		for _, o := range stripe.under {
			o.left = true
			o.done <- struct{}{}
		}
		stripe.under = nil
		stripe.mu.Unlock()
	}
}

// waited is how long the oldest operation has been under way, as of the last look.
func (w *watch) waited() time.Duration { return time.Duration(w.oldest.Load()) * w.every }

// watches are those of all directories, and the watchdog.
type watches struct {
	mu   sync.Mutex
	all  []*watch
	stop chan struct{}
}

// add takes a watch in; the first one starts the watchdog.
func (ws *watches) add(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
	if ws.stop == nil {
		ws.stop = make(chan struct{})
		go ws.run(w.every, ws.stop)
	}
}

func (ws *watches) run(every time.Duration, stop chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		ws.mu.Lock()
		all := ws.all
		ws.mu.Unlock()
		for _, w := range all {
			w.look()
		}
	}
}

func (ws *watches) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.stop != nil {
		close(ws.stop)
	}
	for _, w := range ws.all {
		w.close()
	}
}

// guard has the operations on the log directories run by Options.Runner.
func (n *Node) guard() {
	if n.options.Runner == nil {
		return
	}
	metadata := path.Clean(n.config.MetadataLogDir)
	runners := map[string]guard.Runner{metadata: n.options.Runner(metadata, true)}
	for _, dir := range n.config.LogDirs {
		if dir = path.Clean(dir); runners[dir] == nil {
			runners[dir] = n.options.Runner(dir, len(n.config.LogDirs) < 2)
		}
	}
	n.runners = runners
	n.guarded = guard.New(n.options.FS, runners)
	n.options.FS = n.guarded
}

// waited tells how long the oldest operation on a directory has been under way, where that is watched.
func (n *Node) waited(dir string) (time.Duration, bool) {
	w, ok := n.runners[path.Clean(dir)].(*watch)
	if !ok {
		return 0, false
	}
	return w.waited(), true
}

// DirectoryStalled is told by a Runner that it has given a directory up, on any goroutine that may wait. Whoever met the
// operation that hangs takes the directory offline too, but not everybody who meets an error does.
func (n *Node) DirectoryStalled() {
	if n.guarded == nil || !n.started.Load() {
		return
	}
	for _, directory := range n.store.Directories() {
		if err := n.guarded.Stalled(directory.Path); err != nil && directory.Offline == nil {
			n.store.FailDirectory(directory.ID, err)
		}
	}
}

// directoryRunner makes the watches; nil: a disk is waited for for ever.
func (r *runner) directoryRunner(c *config.BrokerConfig) func(dir string, alone bool) guard.Runner {
	limit := millis(int64(c.Int("ottla.disk.timeout.ms")))
	if limit == 0 {
		return nil
	}
	return func(dir string, alone bool) guard.Runner {
		hangs := r.leave
		if alone {
			hangs = r.hang
		}
		w := newWatch(dir, !alone, limit, r.logger, hangs)
		r.watches.add(w)
		return w
	}
}

// leave goes on without a directory that hangs.
func (r *runner) leave(w *watch, s *vfs.Stalled) {
	r.logger.Error("a log directory hangs and is given up", "directory", w.dir, "error", s)
	if n := r.watched.Load(); n != nil {
		go n.DirectoryStalled()
	}
}

// hang ends the process: nothing can go on without a directory that hangs, and nothing could be closed. The log may be on
// the same disk.
func (r *runner) hang(w *watch, s *vfs.Stalled) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		r.logger.Error("the node cannot go on", "error", fmt.Errorf("the log directory %s hangs: %w", w.dir, s))
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
	r.exit(1)
}
