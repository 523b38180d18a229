package clean

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/log"
)

// Options is what a Cleaner takes from its node.
type Options struct {
	// Logs lists the node's logs; those that are not compacted are passed over.
	Logs func() []*log.Log
	// Offset is how far a partition is compacted by its checkpoint, SetOffset changes that of a log.
	Offset    func(tp protocol.TopicPartition) protocol.Offset
	SetOffset func(l *log.Log, offset protocol.Offset) error
	// Exclusive runs a task while nobody else changes the log, and returns when it has run; false: the log is in use no more.
	Exclusive func(l *log.Log, task func()) bool
	// Failed is told of each log that could not be compacted, after it was logged; nil: nobody wants to know.
	Failed func(l *log.Log, err error)

	Pool    *compress.Pool
	Workers func(task func()) // runs a task elsewhere; nil: inline
	Wake    func()            // NextDeadline may have become earlier; nil: nobody cares
	Logger  *slog.Logger      // nil: silent
}

// Cleaner compacts the logs of a node, the dirtiest first. It works in as many lanes as there are threads; each has one
// log at a time. All methods may be called at any time from anywhere.
type Cleaner struct {
	o Options

	choosing sync.Mutex // one lane looks for a log at a time; before mu

	mu       sync.Mutex // not held over I/O, nor while somebody else is called
	settings Settings
	lanes    []*lane
	throttle throttle
	failing  map[*log.Log]*failure
	seen     seen
	stats    Stats
	last     time.Time // of the last Tick
	closed   bool
	running  sync.WaitGroup // steps with the workers
}

// lane is what Apache Kafka calls a cleaner thread.
type lane struct {
	round *round // nil: idle
	busy  bool   // a step is with the workers
	due   time.Time
	last  result
}

// failure is a log that could not be compacted.
type failure struct {
	times int
	until time.Time // when it is tried again
	bytes int64     // that wait for it
	dir   string
}

// Bounds of the pause after which a log that failed is tried again; it doubles.
const (
	leastPause = 15 * time.Second
	mostPause  = time.Hour
	// supersededPause follows a round that became useless.
	supersededPause = time.Second
)

// New makes a Cleaner.
func New(o Options, settings Settings) *Cleaner {
	if o.Workers == nil {
		o.Workers = func(task func()) { task() }
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cleaner{o: o, failing: map[*log.Log]*failure{}, last: time.UnixMilli(0)}
	c.Configure(settings)
	return c
}

// Configure changes the settings. Rounds that are under way go on with the map of keys that they have.
func (c *Cleaner) Configure(settings Settings) {
	c.mu.Lock()
	backoff := c.settings.Backoff
	c.settings = settings
	for len(c.lanes) < settings.Threads {
		c.lanes = append(c.lanes, &lane{due: c.last})
	}
	for _, l := range c.lanes {
		if l.round == nil && settings.Backoff < backoff {
			l.due = c.last
		}
	}
	c.mu.Unlock()
	c.o.Wake()
}

// NextDeadline is when Tick wants to be called next; zero: never.
func (c *Cleaner) NextDeadline() (next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.lanes {
		if !l.busy && (c.works(i) || l.round != nil) && (next.IsZero() || l.due.Before(next)) {
			next = l.due
		}
	}
	return next
}

// works tells that a lane is in use. The lock is held.
func (c *Cleaner) works(lane int) bool {
	return c.settings.Enabled && !c.closed && lane < c.settings.Threads
}

// Tick hands the next step of each lane that is due to the workers.
func (c *Cleaner) Tick(now time.Time) {
	c.mu.Lock()
	c.last = now
	var due, idle []*lane
	for i, l := range c.lanes {
		if l.busy || l.due.After(now) {
			continue
		}
		if !c.works(i) {
			idle = append(idle, l)
			continue
		}
		l.busy = true
		c.running.Add(1)
		due = append(due, l)
	}
	c.mu.Unlock()
	for _, l := range idle {
		c.drop(l)
	}
	for _, l := range due {
		c.o.Workers(func() {
			defer c.running.Done()
			c.work(now, l)
		})
	}
}

// drop ends a lane's round without a result. Nothing of it is at work. Until its files are removed the log is in hand.
func (c *Cleaner) drop(l *lane) {
	c.mu.Lock()
	r := l.round
	c.mu.Unlock()
	if r == nil {
		return
	}
	if err := r.abandon(); err != nil {
		c.o.Logger.Warn("what compaction began cannot be removed", "partition", r.log.TopicPartition().String(), "error", err)
	}
	c.mu.Lock()
	l.round = nil
	c.mu.Unlock()
}

// Close ends what is under way; unfinished files are removed. It waits for steps that run.
func (c *Cleaner) Close() {
	c.mu.Lock()
	c.closed = true
	lanes := c.lanes
	c.mu.Unlock()
	c.running.Wait()
	for _, l := range lanes {
		c.drop(l)
	}
}

// work does one step of a lane: it takes a log if it has none, and goes on with it.
func (c *Cleaner) work(now time.Time, l *lane) {
	c.mu.Lock()
	settings, r := c.settings, l.round
	c.mu.Unlock()
	if r == nil {
		r = c.choose(now, l, settings)
	}
	due := now.Add(settings.Backoff)
	if r != nil {
		moved, err := r.step(now, settings.stepBytes())
		due = c.stepped(now, l, moved, err)
	}
	c.mu.Lock()
	l.busy, l.due = false, due
	c.mu.Unlock()
	c.o.Wake()
}

// stepped judges what became of a step, and says when the lane is due again.
func (c *Cleaner) stepped(now time.Time, l *lane, moved int64, err error) time.Time {
	r := l.round
	if err == nil && r.done {
		err = c.o.SetOffset(r.log, r.end)
	}
	c.mu.Lock()
	due := c.throttle.take(now, moved, c.settings.BytesPerSecond)
	c.mu.Unlock()
	switch {
	case errors.Is(err, log.ErrSuperseded):
		c.o.Logger.Info("compaction begins anew, the log has changed", "partition", r.log.TopicPartition().String())
		due = now.Add(supersededPause)
	case err != nil:
		c.failed(now, r.log, bytesOf(between(r.view.Segments, min(r.start, r.bound), r.bound)), err)
	case r.done:
		c.finished(now, l)
		return due
	default:
		return due
	}
	c.drop(l)
	return due
}

// failed notes a log that could not be compacted.
func (c *Cleaner) failed(now time.Time, l *log.Log, waiting int64, err error) {
	c.mu.Lock()
	f := c.failing[l]
	if f == nil {
		f = &failure{}
		c.failing[l] = f
	}
	pause := min(leastPause<<min(f.times, 20), mostPause)
	f.times, f.until, f.dir = f.times+1, now.Add(pause), l.Dir()
	if waiting > 0 {
		f.bytes = waiting
	}
	times := f.times
	c.stats.Failures++
	c.mu.Unlock()
	c.o.Logger.Warn("a log cannot be compacted and is tried again later", "partition", l.TopicPartition().String(),
		"failures", times, "pause", pause, "error", err)
	if c.o.Failed != nil {
		c.o.Failed(l, err)
	}
}

// choose takes the dirtiest log that no lane has (LogCleanerManager.grabFilthiestCompactedLog).
func (c *Cleaner) choose(now time.Time, l *lane, settings Settings) *round {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	var best *candidate
	saw := seen{at: now}
	for _, candidate := range c.free(now) {
		found, err := c.look(now, candidate)
		if err != nil {
			if !errors.Is(err, log.ErrClosed) && !errors.Is(err, log.ErrSuperseded) {
				c.failed(now, candidate, 0, err)
			}
			continue
		}
		saw.count(found)
		if found.wanted() && (best == nil || found.ratio() > best.ratio()) {
			best = found
		}
	}
	var r *round
	if best != nil {
		c.o.Logger.Debug("compacting", "partition", best.log.TopicPartition().String(), "from", int64(best.firstDirty), "to", int64(best.bound),
			"dirtyBytes", best.cleanableBytes, "totalBytes", best.totalBytes)
		r = newRound(now, best, &settings, c.o.Pool, c.o.Exclusive)
	}
	c.mu.Lock()
	c.seen, l.round = saw, r
	c.mu.Unlock()
	return r
}

// free lists the logs that are compacted, that no lane has, and that have not failed just now.
func (c *Cleaner) free(now time.Time) []*log.Log {
	logs := c.o.Logs()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failing) > 0 {
		here := make(map[*log.Log]bool, len(logs))
		for _, l := range logs {
			here[l] = true
		}
		maps.DeleteFunc(c.failing, func(l *log.Log, _ *failure) bool { return !here[l] })
	}
	return slices.DeleteFunc(logs, func(l *log.Log) bool {
		f := c.failing[l]
		return !l.Options().Compact || f != nil && f.until.After(now) ||
			slices.ContainsFunc(c.lanes, func(lane *lane) bool { return lane.round != nil && lane.round.log == l })
	})
}

// look examines a log, and corrects a checkpoint that does not fit it.
func (c *Cleaner) look(now time.Time, l *log.Log) (*candidate, error) {
	stored := c.o.Offset(l.TopicPartition())
	found, err := examine(l, min(stored, l.TakeCut()), now)
	if err != nil {
		return nil, err
	}
	if found.reset && stored != 0 && !found.options.Delete {
		c.o.Logger.Warn("the cleaner's checkpoint does not fit the log and is set to its start", "partition", l.TopicPartition().String(),
			"checkpoint", int64(stored), "start", int64(found.firstDirty))
	}
	if found.firstDirty != stored {
		if err := c.o.SetOffset(l, found.firstDirty); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// finished takes a round's results.
func (c *Cleaner) finished(now time.Time, l *lane) {
	r := l.round
	s := &r.stats
	c.mu.Lock()
	delete(c.failing, r.log)
	l.last = result{stats: *s, took: now.Sub(r.began)}
	l.round = nil
	c.stats.add(s)
	c.mu.Unlock()
	c.o.Logger.Info("a log was compacted", "partition", r.log.TopicPartition().String(), "from", int64(r.start), "to", int64(r.end),
		"bytesRead", s.BytesRead, "bytesWritten", s.BytesWritten, "recordsRead", s.RecordsRead, "recordsKept", s.RecordsKept,
		"segments", s.Segments, "segmentsMade", s.SegmentsMade, "took", now.Sub(r.began))
	if s.Keyless > 0 {
		c.o.Logger.Warn("records without a key were removed", "partition", r.log.TopicPartition().String(), "records", s.Keyless)
	}
}
