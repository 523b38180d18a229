package replica

import (
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/deadlines"
	"ottla/storage/log"
	"ottla/storage/partition"
)

var nothingFound = OffsetResult{TimestampMs: -1, Offset: protocol.NoOffset, LeaderEpoch: protocol.NoLeaderEpoch}

// ListOffset finds an offset by time or by one of the special timestamps
// (Partition.fetchOffsetForTimestamp). Errors are *protocol.Error:
// NOT_LEADER_OR_FOLLOWER, the two of the epoch, OFFSET_NOT_AVAILABLE (KIP-207),
// UNSUPPORTED_VERSION for a special timestamp that there is not.
func (m *Manager) ListOffset(_ time.Time, q OffsetQuery) (OffsetResult, error) {
	r, err := m.find(q.Partition, protocol.ZeroUUID)
	if err != nil {
		return nothingFound, err
	}
	view := r.view.Load()
	if err := r.failure(); err != nil {
		return nothingFound, err
	}
	if err := view.CheckRead(q.CurrentLeaderEpoch, q.Replica != Debugging); err != nil {
		return nothingFound, err
	}
	result, err := r.listOffset(q, view)
	r.readFailed(err)
	return result, clientError(err)
}

func (r *Replica) listOffset(q OffsetQuery, view *partition.View) (OffsetResult, error) {
	highWatermark := protocol.Offset(r.highWatermark.Load())
	ends := r.log().View()
	bound := ends.LogEndOffset
	var lagging error
	if q.Replica == Consumer {
		bound = min(highWatermark, ends.LogEndOffset)
		if q.ReadCommitted {
			bound = lastStable(bound, ends)
		}
		lagging = view.CheckLatest(highWatermark)
	}
	switch {
	case q.TimestampMs == LatestTimestamp:
		if lagging != nil {
			return nothingFound, lagging
		}
		return OffsetResult{TimestampMs: -1, Offset: bound, LeaderEpoch: view.LeaderEpoch}, nil
	case q.TimestampMs == EarliestTimestamp:
		return OffsetResult{-1, ends.LogStartOffset, r.log().EpochOf(ends.LogStartOffset)}, nil
	case q.TimestampMs == EarliestLocalTimestamp:
		return OffsetResult{-1, ends.LocalLogStartOffset, r.log().EpochOf(ends.LocalLogStartOffset)}, nil
	case q.TimestampMs == LatestTieredTimestamp || q.TimestampMs == EarliestPendingUpload:
		return nothingFound, nil // nothing is tiered
	case q.TimestampMs < 0 && q.TimestampMs != MaxTimestamp:
		return nothingFound, protocol.Errorf(protocol.UnsupportedVersion, "%d is no special timestamp", q.TimestampMs)
	}
	ok := false
	found, err := onLog(r, func(l *log.Log) (found log.TimestampOffset, err error) {
		if q.TimestampMs == MaxTimestamp {
			found, ok, err = l.MaxTimestamp()
		} else {
			found, ok, err = l.OffsetForTime(q.TimestampMs)
		}
		return found, err
	})
	if err != nil {
		return nothingFound, err
	}
	if !ok || found.Offset >= bound {
		return nothingFound, lagging
	}
	return OffsetResult{found.TimestampMs, found.Offset, found.LeaderEpoch}, nil
}

// EpochEnd gives the largest leader epoch not above the asked one and where it
// ends, or (-1, -1) if that is not known (OffsetForLeaderEpoch, KIP-101). Only
// the leader answers.
func (m *Manager) EpochEnd(tp protocol.TopicPartition, currentEpoch, epoch protocol.LeaderEpoch) (protocol.LeaderEpoch, protocol.Offset, error) {
	r, err := m.find(tp, protocol.ZeroUUID)
	if err == nil {
		err = r.failure()
	}
	if err == nil {
		err = r.view.Load().CheckRead(currentEpoch, true)
	}
	if err != nil {
		return protocol.NoLeaderEpoch, protocol.NoOffset, err
	}
	known, end := r.log().EpochEnd(epoch)
	return known, end, nil
}

// deletion is a DeleteRecords that waits until every live replica has moved its
// log start.
type deletion struct {
	offset protocol.Offset
	done   func(protocol.Offset, error)
	timer  deadlines.Timer
}

// DeleteRecords moves the log start of a partition that this node leads up to
// offset; -1 is the high watermark. done gets the low watermark, the least log
// start of the live replicas, once that has reached the offset; -1 with an
// error: OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION if
// cleanup.policy lacks delete, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER. Internal
// topics are the caller's to refuse.
func (m *Manager) DeleteRecords(now time.Time, tp protocol.TopicPartition, offset protocol.Offset, timeout time.Duration, done func(lowWatermark protocol.Offset, err error)) {
	r, err := m.find(tp, protocol.ZeroUUID)
	if err != nil {
		done(protocol.NoOffset, err)
		return
	}
	r.appendMu.Lock()
	offset, err = r.deleteRecords(now, offset)
	r.appendMu.Unlock()
	defer r.pump(now)
	if err != nil {
		done(protocol.NoOffset, clientError(err))
		return
	}
	d := &deletion{offset: offset, done: done}
	d.timer = deadlines.Timer{At: now.Add(timeout), Expire: func(time.Time) { r.expireDeletion(d) }}
	r.stateMu.Lock()
	s := r.publish(r.core.LogStartMoved(r.log().View().LogStartOffset), false)
	r.deletions = append(r.deletions, d)
	earlier := m.timers.Add(&d.timer)
	s.answers = r.takeDeletions(s.answers)
	r.stateMu.Unlock()
	if earlier {
		m.timers.Wake()
	}
	r.settle(s)
	m.options.Store.Touch(tp)
}

// deleteRecords checks and moves the log start. appendMu is held.
func (r *Replica) deleteRecords(now time.Time, offset protocol.Offset) (protocol.Offset, error) {
	if err := r.failure(); err != nil {
		return 0, err
	}
	if err := r.view.Load().CheckRead(protocol.NoLeaderEpoch, true); err != nil {
		return 0, err
	}
	if !r.options.Delete && r.options.Compact {
		return 0, protocol.Errorf(protocol.PolicyViolation,
			"records of %s cannot be deleted because its cleanup.policy has no delete", r.tp)
	}
	highWatermark := protocol.Offset(r.highWatermark.Load())
	if offset == protocol.NoOffset {
		offset = highWatermark
	}
	if offset < 0 || offset > highWatermark {
		return 0, protocol.Errorf(protocol.OffsetOutOfRange,
			"the records of %s cannot be deleted up to %d: the high watermark is %d", r.tp, offset, highWatermark)
	}
	return offset, r.log().AdvanceLogStart(now, offset)
}

// takeDeletions moves out those that are done. stateMu is held.
func (r *Replica) takeDeletions(answers []func()) []func() {
	view := r.core.View()
	if err := view.CheckRead(protocol.NoLeaderEpoch, true); err != nil {
		return r.failDeletions(err, answers)
	}
	low := r.core.LowWatermark(r.manager.options.Brokers)
	var rest []*deletion
	for _, d := range r.deletions {
		if low < d.offset {
			rest = append(rest, d)
			continue
		}
		r.manager.timers.Remove(&d.timer)
		answers = append(answers, func() { d.done(low, nil) })
	}
	r.deletions = rest
	return answers
}

// failDeletions moves all out. stateMu is held.
func (r *Replica) failDeletions(why error, answers []func()) []func() {
	for _, d := range r.deletions {
		r.manager.timers.Remove(&d.timer)
		answers = append(answers, func() { d.done(protocol.NoOffset, why) })
	}
	r.deletions = nil
	return answers
}

func (r *Replica) expireDeletion(d *deletion) {
	r.stateMu.Lock()
	at := slices.Index(r.deletions, d)
	if at >= 0 {
		r.deletions = slices.Delete(r.deletions, at, at+1)
	}
	r.stateMu.Unlock()
	if at >= 0 {
		d.done(protocol.NoOffset, protocol.Errorf(protocol.RequestTimedOut, "not every replica has deleted the records in time"))
	}
}
