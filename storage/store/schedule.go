package store

import (
	"container/heap"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

const (
	defaultRetentionCheckInterval = 5 * time.Minute
	defaultCheckpointInterval     = time.Minute
	// flushPollInterval is how often logs with flush.ms are looked at if no interval is configured.
	flushPollInterval = time.Second
)

// schedule is what is due when; it is guarded by the store's lock.
type schedule struct {
	nextRetention  time.Time
	nextCheckpoint time.Time
	nextFlushCheck time.Time // zero: no log has flush.ms
	deadlines      deadlines
	touched        []*entry // to be maintained at the next Tick
	closing        []*entry // of failed directories, to be closed at the next Tick
	removals       []removal
	flushes        []*entry // to be handed to the workers
	faults         []fault  // to be answered without an append lock
	last           time.Time
	checkpointing  map[*directory]bool
}

// fault is an error of the environment met while a log was maintained.
type fault struct {
	entry *entry
	err   error
}

// removal is a directory whose files go at a time.
type removal struct {
	at  time.Time
	dir string
}

func (c *schedule) start(now time.Time, o Options) {
	c.last = now
	c.nextRetention = now.Add(o.RetentionCheckInterval)
	c.nextCheckpoint = now.Add(o.CheckpointInterval)
	if o.FlushCheckInterval > 0 {
		c.nextFlushCheck = now.Add(o.FlushCheckInterval)
	}
	c.checkpointing = map[*directory]bool{}
}

// touch has a log maintained at the next Tick.
func (c *schedule) touch(e *entry) {
	if !e.touched {
		e.touched = true
		c.touched = append(c.touched, e)
	}
}

// forget drops a log that leaves the store.
func (c *schedule) forget(e *entry) {
	if e.heapIndex >= 0 {
		heap.Remove(&c.deadlines, e.heapIndex)
	}
	if e.touched {
		c.touched = slices.DeleteFunc(c.touched, func(t *entry) bool { return t == e })
	}
}

// setDeadline says when a log wants to be maintained; zero is never by itself.
func (c *schedule) setDeadline(e *entry, at time.Time) {
	e.deadline = at
	switch {
	case at.IsZero() && e.heapIndex >= 0:
		heap.Remove(&c.deadlines, e.heapIndex)
	case at.IsZero():
	case e.heapIndex >= 0:
		heap.Fix(&c.deadlines, e.heapIndex)
	default:
		heap.Push(&c.deadlines, e)
	}
}

// deadlines is a heap of logs, the earliest first, equals by name.
type deadlines []*entry

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(i, j int) bool {
	if !d[i].deadline.Equal(d[j].deadline) {
		return d[i].deadline.Before(d[j].deadline)
	}
	return d[i].tp.Compare(d[j].tp) < 0
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].heapIndex, d[j].heapIndex = i, j
}

func (d *deadlines) Push(x any) {
	e := x.(*entry) //nolint:errcheck // only entries are pushed
	e.heapIndex = len(*d)
	*d = append(*d, e)
}

func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	last.heapIndex = -1
	*d = (*d)[:len(*d)-1]
	return last
}

// Touch says that a partition's options or its log start changed, so that it is maintained at the next Tick.
func (s *Store) Touch(tp protocol.TopicPartition) {
	defer s.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.logs[tp]; e != nil {
		s.schedule.touch(e)
	}
}

// due is what one Tick has to do.
type due struct {
	maintain   []*entry
	close      []*entry
	remove     []string
	checkpoint []*directory
	flushCheck bool
}

// Tick does what is due. Flushing, checkpoints and removals are handed to the workers.
func (s *Store) Tick(now time.Time) {
	work, ok := s.collect(now)
	if !ok {
		return
	}
	for _, e := range work.close {
		s.runExclusive(e, func() { _ = s.closeLog(now, e) })
	}
	for _, e := range work.maintain {
		s.maintain(now, e)
	}
	if work.flushCheck {
		s.flushByAge(now)
	}
	s.followUp(now)
	if len(work.remove) > 0 {
		s.task(func() {
			for _, dir := range work.remove {
				s.removeTree(dir)
			}
		})
	}
	for _, d := range work.checkpoint {
		s.liftCaps(d)
		s.task(func() { s.checkpoint(now, d) })
	}
	if len(work.checkpoint) > 0 {
		s.o.Files.CloseIdle()
	}
}

// collect takes what is due off the schedule.
func (s *Store) collect(now time.Time) (work due, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.schedule
	if s.closed {
		return due{}, false
	}
	c.last = now
	work.close, c.closing = c.closing, nil
	work.maintain, c.touched = c.touched, nil
	for _, e := range work.maintain {
		e.touched = false
	}
	for len(c.deadlines) > 0 && !c.deadlines[0].deadline.After(now) {
		work.maintain = append(work.maintain, heap.Pop(&c.deadlines).(*entry)) //nolint:errcheck // as in Push
	}
	waiting := c.removals[:0]
	for _, r := range c.removals {
		if r.at.After(now) {
			waiting = append(waiting, r)
		} else {
			work.remove = append(work.remove, r.dir)
		}
	}
	c.removals = waiting
	retention := !c.nextRetention.After(now)
	if retention {
		c.nextRetention = now.Add(s.o.RetentionCheckInterval)
	}
	if !c.nextCheckpoint.After(now) {
		c.nextCheckpoint = now.Add(s.o.CheckpointInterval)
		for _, d := range s.dirs {
			if d.Offline == nil && !c.checkpointing[d] {
				c.checkpointing[d] = true
				work.checkpoint = append(work.checkpoint, d)
			}
		}
	}
	if retention || len(work.checkpoint) > 0 {
		work.maintain = append(work.maintain, s.changedLocked(retention)...)
	}
	if !c.nextFlushCheck.IsZero() && !c.nextFlushCheck.After(now) {
		work.flushCheck = true
		c.nextFlushCheck = s.nextFlushCheckLocked(now)
	}
	slices.SortFunc(work.maintain, func(a, b *entry) int { return a.tp.Compare(b.tp) })
	work.maintain = slices.Compact(work.maintain)
	slices.SortFunc(work.close, func(a, b *entry) int { return a.tp.Compare(b.tp) })
	return work, true
}

// changedLocked lists the logs that have changed since they were last maintained, and with retention those of
// more than one segment too: what keeps them from being deleted may have been a high watermark, which no view
// shows. An idle log of one segment is not looked at: its deadline says when it expires.
func (s *Store) changedLocked(retention bool) []*entry {
	var list []*entry
	for _, logs := range []map[protocol.TopicPartition]*entry{s.logs, s.futures} {
		for _, e := range logs {
			view := e.log.View()
			several := view.ActiveSegmentBase > view.LogStartOffset
			if !e.maintained || view != e.seen || (retention && several) {
				list = append(list, e)
			}
		}
	}
	return list
}

func (s *Store) nextFlushCheckLocked(now time.Time) time.Time {
	if s.o.FlushCheckInterval > 0 {
		return now.Add(s.o.FlushCheckInterval)
	}
	for _, e := range s.logs {
		if e.log.Options().FlushAge > 0 {
			return now.Add(flushPollInterval)
		}
	}
	return time.Time{}
}

// maintain lets a log do what is due, while nobody writes to it.
func (s *Store) maintain(now time.Time, e *entry) {
	s.runExclusive(e, func() {
		e.mu.Lock()
		if e.gone {
			e.mu.Unlock()
			return
		}
		waits, err := s.ownName(e)
		result := e.log.Maintain(now)
		if result.Err = errors.Join(err, result.Err); waits && (result.NextDeadline.IsZero() || result.NextDeadline.After(now.Add(retryName))) {
			result.NextDeadline = now.Add(retryName)
		}
		view := e.log.View()
		flushAge := e.log.Options().FlushAge
		e.mu.Unlock()
		s.maintainedLog(now, e, result, view, flushAge)
	})
}

func (s *Store) maintainedLog(now time.Time, e *entry, result log.Maintenance, view log.View, flushAge time.Duration) {
	s.mu.Lock()
	switch {
	case result.Err != nil:
		s.schedule.faults = append(s.schedule.faults, fault{e, result.Err})
	case result.FlushWanted && !e.flushAsked && !e.flushing:
		e.flushAsked = true
		s.schedule.flushes = append(s.schedule.flushes, e)
	}
	if s.holds(e) {
		e.seen, e.maintained = view, true
		next := result.NextDeadline
		if (e.flushAsked || e.flushing) && !next.After(now) {
			next = now.Add(flushPollInterval) // what is due is under way; when it is over the log is looked at again
		}
		s.schedule.setDeadline(e, next)
		if flushAge > 0 && s.schedule.nextFlushCheck.IsZero() {
			s.schedule.nextFlushCheck = now.Add(flushPollInterval)
		}
	}
	s.mu.Unlock()
	if result.SegmentsDeleted > 0 {
		s.o.Logger.Info("segments were deleted", "partition", e.tp, "segments", result.SegmentsDeleted,
			"bytes", result.BytesDeleted, "logStartOffset", result.LogStartOffset)
	}
}

// followUp does what came out of maintenance and must not run under an append lock. If the exclusive tasks run
// later, so does what they ask for.
func (s *Store) followUp(now time.Time) {
	s.mu.Lock()
	flushes, faults := s.schedule.flushes, s.schedule.faults
	s.schedule.flushes, s.schedule.faults = nil, nil
	s.mu.Unlock()
	for _, f := range faults {
		s.fault(f.entry, "cannot maintain it", f.err)
	}
	for _, e := range flushes {
		s.task(func() { s.flush(now, e) })
	}
}

// flushByAge lets the logs that have something unflushed and flush.ms say whether it is time.
func (s *Store) flushByAge(now time.Time) {
	for _, e := range s.entriesThat(nil, func(e *entry) bool { return e.unflushed() && e.log.Options().FlushAge > 0 }) {
		s.maintain(now, e)
	}
}

// flush makes a log durable up to its end. Two flushes of one log at a time would only wait for each other.
func (s *Store) flush(now time.Time, e *entry) {
	s.mu.Lock()
	skip := e.flushing || !s.holds(e)
	e.flushAsked = false
	if !skip {
		e.flushing = true
	}
	s.mu.Unlock()
	if skip {
		return
	}
	err := e.log.Flush(now)
	s.mu.Lock()
	e.flushing = false
	if s.holds(e) && err == nil {
		s.schedule.touch(e)
	}
	s.mu.Unlock()
	s.wake()
	if err != nil {
		s.fault(e, "cannot flush it", err)
	}
}

// fault answers an error of the environment met in the background. A full disk passes; damage in one log's files takes
// that partition offline; anything else takes the directory offline and is never retried over. Errors of a log that has
// left meanwhile, or is about to (mu is held for that), mean nothing.
func (s *Store) fault(e *entry, what string, err error) {
	e.mu.Lock()
	s.mu.Lock()
	gone := !s.holds(e)
	s.mu.Unlock()
	e.mu.Unlock()
	switch {
	case gone:
	case vfs.NoSpace(err) && e.log.Failed() == nil:
		s.o.Logger.Warn("the disk is full", "partition", e.tp, "error", err)
	case isDamage(err) && !vfs.Failing(err):
		s.failPartition(e, fmt.Errorf("%s: %w", what, err))
	default:
		s.FailDirectory(e.dir.ID, fmt.Errorf("%s: %s: %w", e.tp, what, err))
	}
}

// failPartition takes one log offline, as one whose damage was found when it was opened; its files are not touched.
func (s *Store) failPartition(e *entry, reason error) {
	s.mu.Lock()
	if !s.holds(e) {
		s.mu.Unlock()
		return
	}
	s.drop(e)
	s.schedule.closing = append(s.schedule.closing, e)
	if e.future {
		s.mu.Unlock()
		s.o.Logger.Error("a partition's copy for another directory is damaged", "partition", e.tp, "directory", e.dir.Path, "reason", reason)
		return // whoever fills it will miss it
	}
	s.failed[e.tp] = failure{dir: e.dir, err: reason}
	e.dir.distrusted = true
	s.mu.Unlock()
	s.o.Logger.Error("a partition is damaged and offline", "partition", e.tp, "directory", e.dir.Path, "reason", reason)
	// A start that trusts the page cache would not look for the damage.
	if err := logdir.RemoveDurably(s.o.FS, path.Join(e.dir.Path, logdir.BootIDFile)); err != nil {
		s.o.Logger.Warn("the boot id of a directory with a damaged partition cannot be removed", "directory", e.dir.Path, "error", err)
	}
	if s.o.PartitionOffline != nil {
		s.o.PartitionOffline(e.tp)
	}
	s.wake()
}

// runExclusive runs a task on a log under the replica's append lock; that of a future log is its entry's own, and it
// stays a future log as long as the task runs.
func (s *Store) runExclusive(e *entry, task func()) {
	if s.isFuture(e) {
		e.promotion.Lock()
		future := s.isFuture(e)
		if future {
			task()
		}
		e.promotion.Unlock()
		if future {
			return
		}
	}
	s.mu.Lock()
	run := s.exclusive
	s.mu.Unlock()
	run(e.tp, task)
}

func (s *Store) isFuture(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.future
}

// task hands work to the workers; Close waits for it.
func (s *Store) task(work func()) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.tasks.Add(1) // under the lock, so that it cannot come after Close began to wait
	s.mu.Unlock()
	s.o.Workers(func() {
		defer s.tasks.Done()
		work()
	})
}

// NextDeadline is when Tick wants to be called next.
func (s *Store) NextDeadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.schedule
	next := c.nextRetention
	earlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	earlier(c.nextCheckpoint)
	earlier(c.nextFlushCheck)
	if len(c.deadlines) > 0 {
		earlier(c.deadlines[0].deadline)
	}
	for _, r := range c.removals {
		earlier(r.at)
	}
	if len(c.touched)+len(c.closing)+len(c.flushes)+len(c.faults) > 0 {
		return c.last // at once
	}
	return next
}
