package quorum

import (
	"errors"
	"fmt"
	"time"

	"ottla/controller/machine"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// maxGroupBytes bounds what requests that wait together may share as one batch.
const maxGroupBytes = 1 << 20

// submission is a request, or a duty of the shell, that waits for its turn.
type submission struct {
	now    time.Time
	decide func(turn machine.Turn) (machine.Result, error)
	done   func(reply any, err error) // nil for duties
	alone  bool                       // a duty that writes by itself: nothing may be pending
}

type answer struct {
	submission
	reply any
	err   error
}

// Submit decides request by the machine and calls done with its reply once the
// records are committed. The error is a *protocol.Error: NOT_CONTROLLER if this
// node does not lead (or stopped leading in between), or what the machine says.
func (q *Quorum) Submit(now time.Time, request any, done func(reply any, err error)) {
	q.submit(submission{now: now, done: done, decide: func(turn machine.Turn) (machine.Result, error) {
		if !q.active {
			return machine.Result{}, protocol.NotController.Err()
		}
		return q.options.Machine.Handle(turn, request)
	}})
}

func (q *Quorum) submit(s submission) {
	q.queueMu.Lock()
	if s.done != nil && len(q.queue) >= q.options.MaxQueuedRequest {
		q.queueMu.Unlock()
		s.done(nil, protocol.Errorf(protocol.RequestTimedOut, "the controller's queue is full (%d requests)", q.options.MaxQueuedRequest))
		return
	}
	q.queue = append(q.queue, s)
	if q.draining {
		q.queueMu.Unlock()
		return
	}
	q.draining = true
	q.queueMu.Unlock()
	for {
		group := q.take()
		if group == nil {
			return
		}
		q.step(group)
	}
}

func (q *Quorum) take() []submission {
	q.queueMu.Lock()
	defer q.queueMu.Unlock()
	group := q.queue
	q.queue = nil
	if len(group) == 0 {
		q.draining = false
		return nil
	}
	return group
}

// step decides a group of submissions, in one or more batches.
func (q *Quorum) step(group []submission) {
	for len(group) > 0 {
		group = group[q.stepBatch(group):]
	}
	q.publishStatus()
}

// stepBatch decides as many submissions as are committed together, commits them
// and answers them. It tells how many they were.
func (q *Quorum) stepBatch(group []submission) (taken int) {
	var (
		now     = group[0].now
		pending units
		answers []answer
	)
	for _, s := range group {
		if s.alone && taken > 0 {
			break
		}
		taken++
		base := q.log.View().LogEndOffset + protocol.Offset(len(pending.records))
		result, err := s.decide(machine.Turn{Now: s.now, Next: base})
		answers = append(answers, answer{s, result.Reply, err})
		if err == nil && len(result.Records) > 0 {
			if err := q.options.Machine.Apply(base, q.core.Epoch(), now.UnixMilli(), result.Records); err != nil {
				panic(fmt.Sprintf("quorum: the controller cannot apply what it decided: %v", err))
			}
			pending.add(result)
			q.applied = base + protocol.Offset(len(result.Records))
		}
		if s.alone || pending.size >= maxGroupBytes {
			break
		}
	}
	if err := q.commit(now, pending); err != nil {
		q.fail(now, err)
		for i := range answers {
			answers[i].reply, answers[i].err = nil, protocol.NotController.Err()
		}
	}
	for _, a := range answers {
		if a.done != nil {
			a.done(a.reply, a.err)
		} else if a.err != nil {
			q.options.Logger.Error("controller duty failed", "error", a.err)
		}
	}
	return taken
}

// units are records that are to be committed, and where they may be divided into
// batches.
type units struct {
	records []machine.Record
	ends    []int // of atomic units, ascending; the last is len(records)
	size    int   // bytes
}

func (u *units) add(result machine.Result) {
	if result.Divisible {
		for i := range result.Records {
			u.ends = append(u.ends, len(u.records)+i+1)
		}
	} else {
		u.ends = append(u.ends, len(u.records)+len(result.Records))
	}
	u.records = append(u.records, result.Records...)
	u.size += sizeOf(result.Records)
}

func sizeOf(records []machine.Record) (bytes int) {
	for _, r := range records {
		bytes += len(r.Key) + len(r.Value) + 16
	}
	return bytes
}

// commit appends records as one batch, or several where one would be too large,
// makes each durable and, as the high watermark passes, delivers them.
func (q *Quorum) commit(now time.Time, pending units) error {
	from, size := 0, 0
	for i, end := range pending.ends {
		begin := from
		if i > 0 {
			begin = pending.ends[i-1]
		}
		unit := sizeOf(pending.records[begin:end])
		if size > 0 && size+unit > maxGroupBytes {
			if err := q.appendRecords(now, pending.records[from:begin]); err != nil {
				return err
			}
			from, size = begin, 0
		}
		size += unit
	}
	if size == 0 {
		return nil
	}
	if err := q.appendRecords(now, pending.records[from:]); err != nil {
		return err
	}
	return q.advance(now)
}

func (q *Quorum) appendRecords(now time.Time, records []machine.Record) error {
	builder := record.NewBuilder(record.PlainOptions())
	for _, r := range records {
		builder.Append(now.UnixMilli(), r.Key, r.Value, nil)
	}
	return q.append(now, builder.Build(q.pool))
}

// append writes one batch at the end and makes it durable: the next one begins
// only behind a durable one.
func (q *Quorum) append(now time.Time, batch record.Batch) error {
	entry := log.Entry{Batch: batch, Origin: log.OriginRaft, Info: record.Info{
		MaxTimestamp: batch.MaxTimestamp(), Count: batch.Count(), UncompressedSize: batch.Size(),
	}}
	if err := q.log.Append(now, q.core.Epoch(), []*log.Entry{&entry}); err != nil {
		return err
	}
	if entry.Err != nil {
		return entry.Err
	}
	q.snapshots.bytes += int64(batch.Size())
	if err := q.log.Flush(now); err != nil {
		return &flushError{err} // even for want of space: what is on the disk is not known
	}
	return nil
}

// flushError is an fsync that failed. It is never retried over.
type flushError struct{ error }

func (e *flushError) Unwrap() error { return e.error }

// advance tells the core how far the log is and delivers what that commits.
func (q *Quorum) advance(now time.Time) error {
	view := q.log.View()
	effects := q.core.Appended(view.LogEndOffset, view.DurableEnd)
	if effects.HighWatermark == protocol.NoOffset {
		return nil
	}
	q.log.SetHighWatermark(effects.HighWatermark)
	return q.deliver(now, effects.HighWatermark)
}

// Tick does what time demands of the core, the machine, the log and snapshots.
// While one waits for its turn, as behind a slow disk, a second would do nothing
// more; and the machine, told of every moment of the wait, could not see that it
// was held up.
func (q *Quorum) Tick(now time.Time) {
	q.queueMu.Lock()
	waits := q.ticking
	q.ticking = true
	q.queueMu.Unlock()
	if waits {
		return
	}
	q.submit(submission{now: now, alone: true, decide: func(turn machine.Turn) (machine.Result, error) {
		q.tick(turn.Now)
		return machine.Result{}, nil
	}})
	q.submit(submission{now: now, decide: func(turn machine.Turn) (machine.Result, error) {
		q.queueMu.Lock()
		q.ticking = false
		q.queueMu.Unlock()
		if !q.active {
			return machine.Result{}, nil
		}
		return q.options.Machine.Tick(turn)
	}})
}

func (q *Quorum) tick(now time.Time) {
	if q.fatal != nil {
		return
	}
	if q.observes() {
		if err := q.tickObserver(now); err != nil {
			q.fail(now, err)
			return
		}
	} else if effects := q.core.Tick(now); effects.Persist != nil {
		if err := q.takeOffice(now, effects); err != nil {
			q.fail(now, err)
			return
		}
	}
	if err := q.maintain(now); err != nil {
		q.fail(now, err)
	}
}

// NextDeadline tells when Tick has something to do; zero for never.
func (q *Quorum) NextDeadline() time.Time {
	if q.observes() && q.hasArrivals() {
		return time.Unix(0, 0) // at once
	}
	return q.status.Load().deadline
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// takeOffice carries out an election: the state is durable first, then the
// leader change is the first batch of the epoch, then everything before it is
// committed with it, and only then the machine may decide.
func (q *Quorum) takeOffice(now time.Time, effects raft.Effects) error {
	if err := writeState(q.options.Env.FS, q.dir, *effects.Persist, q.kraftVersion, q.core.Voters()); err != nil {
		return err
	}
	if effects.Elected == nil {
		return nil
	}
	start := q.log.View().LogEndOffset
	if err := q.log.AssignEpoch(effects.Elected.Epoch, start); err != nil {
		return err
	}
	if err := q.append(now, q.leaderChange(now, *effects.Elected)); err != nil {
		return err
	}
	if err := q.advance(now); err != nil {
		return err
	}
	return q.activate(now)
}

func (q *Quorum) activate(now time.Time) error {
	base := q.log.View().LogEndOffset
	result, err := q.options.Machine.Activate(machine.Turn{Now: now, Next: base}, q.core.Epoch())
	if err != nil {
		return err
	}
	q.active = true
	if len(result.Records) == 0 {
		return nil
	}
	if err := q.options.Machine.Apply(base, q.core.Epoch(), now.UnixMilli(), result.Records); err != nil {
		return err
	}
	q.applied = base + protocol.Offset(len(result.Records))
	var pending units
	pending.add(result)
	return q.commit(now, pending)
}

// fail ends what cannot be made good. With the log written as it was before
// (no space left), the machine is loaded anew and goes on; else the node stops.
func (q *Quorum) fail(now time.Time, cause error) {
	what := "metadata log write failed"
	if q.observes() {
		what = "the metadata can no longer be followed"
	}
	q.options.Logger.Error(what, "error", cause)
	if q.active && q.noSpace(cause) {
		q.active = false
		q.options.Machine.Resign()
		if err := q.reload(now); err == nil {
			return
		} else {
			cause = errors.Join(cause, err)
		}
	}
	q.resign()
	if q.fatal == nil {
		q.fatal = cause
		if q.options.OnFatal != nil {
			q.options.OnFatal(cause)
		}
	}
}
