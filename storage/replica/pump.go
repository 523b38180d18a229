package replica

import (
	"errors"
	"sync"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// Bounds of one turn at the log. A round is one write and, if asked, one fsync.
const (
	roundBatches = 512
	roundBytes   = 4 << 20
	turnRounds   = 16 // then the queue is handed to a worker
)

// queue holds the batches of those who found the log busy.
type queue struct {
	mu      sync.Mutex
	pending []*pendingAppend
	bytes   int
}

// enqueue puts a batch in; false if the queue is over its bound.
func (r *Replica) enqueue(a *pendingAppend) bool {
	q := &r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, a)
	q.bytes += len(a.entry.Batch)
	return len(q.pending) <= r.manager.options.QueueBatches && q.bytes <= r.manager.options.QueueBytes
}

// take gives the next round's batches, in the order they came.
func (q *queue) take() []*pendingAppend {
	q.mu.Lock()
	defer q.mu.Unlock()
	count, bytes := 0, 0
	for count < len(q.pending) && count < roundBatches && bytes < roundBytes {
		bytes += len(q.pending[count].entry.Batch)
		count++
	}
	round := q.pending[:count:count]
	q.pending = q.pending[count:]
	if len(q.pending) == 0 {
		q.pending = nil
	}
	q.bytes -= bytes
	return round
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending) == 0
}

// pump empties the queue unless someone else is at the log: whoever holds
// appendMu calls pump after letting go, so a batch that was queued before the
// failed attempt is seen by the holder's look after it. Everyone who changed the
// log calls it. A round that waits for the disk is the caller's last: his own
// answer waits until he returns.
func (r *Replica) pump(now time.Time) {
	rounds := turnRounds
	if r.published.Load().FlushMessages > 0 {
		rounds = 1
	}
	r.turn(now, rounds)
}

// turn is pump, of so many rounds.
func (r *Replica) turn(now time.Time, rounds int) {
	for round := 0; !r.queue.empty(); round++ {
		if round == rounds {
			// This caller has done enough for others.
			r.manager.options.Workers(func() { r.turn(now, turnRounds) })
			return
		}
		if !r.appendMu.TryLock() {
			return
		}
		finish := r.appendRound(now, r.queue.take())
		r.appendMu.Unlock()
		finish()
	}
}

// appendRound appends what one round holds; appendMu is held. finish, called
// without it, answers.
func (r *Replica) appendRound(now time.Time, round []*pendingAppend) (finish func()) {
	if len(round) == 0 {
		return func() {}
	}
	for _, a := range round {
		if a.now.After(now) {
			now = a.now
		}
	}
	epoch, entries := r.admit(round)
	var failed error
	var fatal bool
	if len(entries) > 0 {
		failed, fatal = r.write(now, epoch, entries)
	}
	clear(r.entries)
	stalled := errors.Is(failed, vfs.ErrStalled)
	for _, a := range round {
		if stalled {
			a.abandonOnce()
		} else {
			a.releaseOnce()
		}
	}
	if failed != nil {
		return func() { r.failRound(round, failed, fatal) }
	}
	return r.confirm(now, epoch, round)
}

// admit asks the core which batches may be appended, and in which epoch.
func (r *Replica) admit(round []*pendingAppend) (protocol.LeaderEpoch, []*log.Entry) {
	entries := r.entries[:0]
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	epoch := r.core.LeaderEpoch()
	for _, a := range round {
		a.err = r.failure()
		if a.err == nil {
			_, a.err = r.core.CanAppend(a.acks == AcksAll)
		}
		if a.err == nil && a.epoch != nil && *a.epoch != epoch {
			a.err = protocol.Errorf(protocol.NotLeaderOrFollower, "the leader epoch is %d, not %d", epoch, *a.epoch)
		}
		if a.err == nil {
			entries = append(entries, &a.entry)
		}
	}
	r.entries = entries
	return epoch, entries
}

// write is the I/O of a round: one write and, as flush.messages says, one fsync.
// Want of space leaves the log as it was and usable. Any other failure is fatal
// for the directory, and so is every failure of an fsync: what it has written
// nobody knows.
func (r *Replica) write(now time.Time, epoch protocol.LeaderEpoch, entries []*log.Entry) (err error, fatal bool) {
	if err := r.log().Append(now, epoch, entries); err != nil {
		if vfs.NoSpace(err) {
			r.manager.warnFull(now, r.tp, err)
		}
		return err, !vfs.NoSpace(err)
	}
	view := r.log().View()
	if limit := r.options.FlushMessages; limit > 0 && int64(view.LogEndOffset-view.DurableEnd) >= limit {
		return r.log().Flush(now), true
	}
	return nil, false
}

// fullWarningInterval keeps a full disk from filling the server's own log too.
const fullWarningInterval = time.Minute

// warnFull says now and then that writes are refused.
func (m *Manager) warnFull(now time.Time, tp protocol.TopicPartition, err error) {
	last := m.warnedFull.Load()
	if now.UnixNano()-last < int64(fullWarningInterval) || !m.warnedFull.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	m.options.Logger.Warn("the disk is full: writes are refused until there is room", "partition", tp.String(), "error", err)
}

// confirm tells the core what was written and decides each answer.
func (r *Replica) confirm(now time.Time, epoch protocol.LeaderEpoch, round []*pendingAppend) (finish func()) {
	view := r.log().View()
	earlier := false
	r.stateMu.Lock()
	effects, stillLeader := r.core.Appended(now, epoch, r.ends(), r.manager.options.Brokers)
	s := r.publish(effects, stillLeader)
	for _, a := range round {
		earlier = r.decide(a, epoch, stillLeader, view) || earlier
	}
	r.stateMu.Unlock()

	return func() {
		// Before anyone is told that a batch is committed, what depends on it (the
		// last stable offset) has moved.
		r.tell(&s)
		if earlier {
			r.manager.timers.Wake()
		}
		for _, a := range round {
			if !a.waiting {
				a.done(a.result)
			}
		}
		r.settle(s)
	}
}

// decide makes a batch's answer or registers it for acks=all, and tells whether
// timers.Wake is to be called. stateMu is held.
func (r *Replica) decide(a *pendingAppend, epoch protocol.LeaderEpoch, stillLeader bool, view log.View) (earlier bool) {
	switch {
	case a.err != nil:
		r.traffic.Refused(len(a.entry.Batch), a.err)
		a.result = refusal(r, a.err)
		return false
	case a.entry.Err != nil:
		r.traffic.Refused(len(a.entry.Batch), a.entry.Err)
		a.result = refusal(r, a.entry.Err)
		return false
	case !stillLeader:
		a.result = refusal(r, protocol.Errorf(protocol.NotLeaderOrFollower, "the leadership was lost during the append"))
		return false
	}
	if !a.entry.Duplicate {
		r.traffic.Appended(len(a.entry.Batch), int64(a.entry.LastOffset-a.entry.FirstOffset+1)) // the bytes are not ours any more
	}
	a.result = AppendResult{
		BaseOffset: a.entry.FirstOffset, LastOffset: a.entry.LastOffset,
		LogStartOffset: view.LogStartOffset, LogAppendTimeMs: a.entry.LogAppendTimeMs,
	}
	if a.acks != AcksAll {
		return false
	}
	required := a.entry.LastOffset + 1
	done, err := r.core.Progress(epoch, required)
	if done {
		a.result.Err = err
		return false
	}
	a.waiting = true
	return r.await(&ack{required: required, epoch: epoch, result: a.result, done: a.done}, a.deadline)
}

// failRound answers a round whose write failed.
func (r *Replica) failRound(round []*pendingAppend, failed error, fatal bool) {
	if fatal {
		r.manager.failDirectory(r, failed)
	}
	for _, a := range round {
		err := a.err
		if err == nil {
			err = protocol.Errorf(protocol.KafkaStorageError, "the records of %s cannot be written: %v", r.tp, failed)
		}
		a.done(refusal(r, err))
	}
}
