package replica

import (
	"errors"
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/follow"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

// FollowerPosition is how far a follower's log goes: what its next fetch tells the leader.
type FollowerPosition struct {
	Offset        protocol.Offset      // its end: where to fetch from
	LastEpoch     protocol.LeaderEpoch // of the last record; NoLeaderEpoch: not known, the leader cannot compare
	LogStart      protocol.Offset
	HighWatermark protocol.Offset
}

// LeaderData is what a fetch from the leader has given for one partition; for TopicID and LeaderEpoch see BeginFollowing.
type LeaderData struct {
	Partition     protocol.TopicPartition
	TopicID       protocol.TopicID     // that was fetched; zero: not checked
	LeaderEpoch   protocol.LeaderEpoch // that the fetch carried
	Offset        protocol.Offset      // that was asked for
	Records       []byte               // batches; the last may be incomplete; not kept
	HighWatermark protocol.Offset      // of the leader
	LogStart      protocol.Offset      // of the leader
}

// BeginFollowing gives the position from which a follower is to fetch in a leader epoch, after cutting a log whose epochs are
// not known down to what is committed (KIP-101). topicID, if not zero, tells the topic from a former one of the same name. Errors,
// also of the next three: INCONSISTENT_TOPIC_ID; NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH if the replica does not follow in
// that epoch (any more), KAFKA_STORAGE_ERROR if its disk failed, UNKNOWN_TOPIC_OR_PARTITION; or a wrapped ENOSPC or EDQUOT, which passes.
func (m *Manager) BeginFollowing(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, epoch protocol.LeaderEpoch) (FollowerPosition, error) {
	return m.following(now, tp, topicID, epoch, func(r *Replica) (protocol.Offset, error) {
		highWatermark := protocol.Offset(r.highWatermark.Load())
		if view := r.log().View(); view.LatestEpoch == protocol.NoLeaderEpoch && view.LogEndOffset > highWatermark {
			return protocol.NoOffset, r.truncate(highWatermark)
		}
		return protocol.NoOffset, r.flushBeforeAck(now)
	})
}

// AppendFromLeader appends what the leader has sent, as it is, and takes over its high watermark and log start.
// CORRUPT_MESSAGE: a batch is damaged or does not continue the log; what came before it is appended.
func (m *Manager) AppendFromLeader(now time.Time, data LeaderData) (FollowerPosition, error) {
	return m.following(now, data.Partition, data.TopicID, data.LeaderEpoch, func(r *Replica) (protocol.Offset, error) {
		if end := r.log().View().LogEndOffset; end != data.Offset {
			return protocol.NoOffset, protocol.Errorf(protocol.InvalidRequest, "offset %d of %s was fetched, but its log ends at %d", data.Offset, r.tp, end)
		}
		copied, broken := follow.Append(now, r.log(), data.LeaderEpoch, data.Records, r.restart)
		r.traffic.ReplicatedIn.Add(copied)
		if !isOfLeader(broken) {
			return protocol.NoOffset, broken
		}
		if err := r.flushBeforeAck(now); err != nil {
			return protocol.NoOffset, err
		}
		if err := r.followLogStart(now, &data); err != nil {
			return protocol.NoOffset, err
		}
		return data.HighWatermark, broken
	})
}

// TruncateToLeader cuts a follower's log where it may differ from the leader's: diverging is what the leader answered
// to a fetch (KIP-595), the largest epoch not above the follower's last, and its end at the leader.
func (m *Manager) TruncateToLeader(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, epoch protocol.LeaderEpoch, diverging wire.EpochEndOffset) (FollowerPosition, error) {
	return m.following(now, tp, topicID, epoch, func(r *Replica) (protocol.Offset, error) {
		r.stateMu.Lock()
		offset := r.core.TruncationPoint(partition.EpochEnd{Epoch: diverging.Epoch, End: diverging.EndOffset}, func(asked protocol.LeaderEpoch) partition.EpochEnd {
			known, end := r.log().EpochEnd(asked)
			return partition.EpochEnd{Epoch: known, End: end}
		})
		r.stateMu.Unlock()
		return protocol.NoOffset, r.truncate(offset)
	})
}

// FitToLeader follows OFFSET_OUT_OF_RANGE: a log that ends beyond the leader's is cut to the leader's end, one that ends
// before the leader's start begins anew there (AbstractFetcherThread.fetchOffsetAndTruncate).
func (m *Manager) FitToLeader(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, epoch protocol.LeaderEpoch, leaderStart, leaderEnd protocol.Offset) (FollowerPosition, error) {
	return m.following(now, tp, topicID, epoch, func(r *Replica) (protocol.Offset, error) {
		switch end := r.log().View().LogEndOffset; {
		case leaderEnd < end:
			return protocol.NoOffset, r.truncate(leaderEnd)
		case leaderStart > end:
			return protocol.NoOffset, r.restart(leaderStart)
		}
		return protocol.NoOffset, nil
	})
}

// following lets change work on the log of a replica that follows in an epoch, and gives the position afterwards. change
// gives the leader's high watermark, if it knows it. An error of change that is not a client's, nor want of space, takes the directory offline.
func (m *Manager) following(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, epoch protocol.LeaderEpoch, change func(r *Replica) (protocol.Offset, error)) (FollowerPosition, error) {
	r, err := m.find(tp, topicID)
	if err != nil {
		return FollowerPosition{}, err
	}
	r.appendMu.Lock()
	err = r.checkFollowing(epoch)
	admitted := err == nil
	var s settlement
	if admitted {
		s, err = r.changeFollower(epoch, change)
	}
	view := r.log().View()
	position := FollowerPosition{
		Offset: view.LogEndOffset, LastEpoch: view.LatestEpoch, LogStart: view.LogStartOffset,
		HighWatermark: protocol.Offset(r.highWatermark.Load()),
	}
	r.appendMu.Unlock()
	r.settle(s)
	r.pump(now) // who came meanwhile is told that this is not the leader
	if admitted && err != nil && !isOfLeader(err) {
		if vfs.NoSpace(err) {
			m.warnFull(now, tp, err)
			return position, fmt.Errorf("the log of %s cannot follow its leader: %w", tp, err)
		}
		m.failDirectory(r, err)
		err = protocol.Errorf(protocol.KafkaStorageError, "the log of %s cannot follow its leader: %v", tp, err)
	}
	return position, err
}

// isOfLeader tells the faults that lie with what the leader sent, not with the disk here.
func isOfLeader(err error) bool {
	var known *protocol.Error
	return err == nil || errors.As(err, &known)
}

// checkFollowing refuses what a fetcher of another epoch brings. appendMu is held, so the role stays.
func (r *Replica) checkFollowing(epoch protocol.LeaderEpoch) error {
	view := r.view.Load()
	switch {
	case r.failure() != nil:
		return r.failure()
	case view.Role == partition.Offline:
		return protocol.Errorf(protocol.KafkaStorageError, "the log directory of %s is offline", r.tp)
	case view.Role != partition.Follower:
		return protocol.Errorf(protocol.NotLeaderOrFollower, "%s does not follow here", r.tp)
	}
	return view.CheckEpoch(epoch)
}

// changeFollower makes a change and tells the core, which moves the high watermark with a log that was cut. appendMu is held.
func (r *Replica) changeFollower(epoch protocol.LeaderEpoch, change func(r *Replica) (protocol.Offset, error)) (settlement, error) {
	before := r.log().View()
	highWatermark, err := change(r)
	after := r.log().View()
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	effects, _ := r.core.Replicated(epoch, r.ends(), highWatermark)
	return r.publish(effects, after.LogEndOffset != before.LogEndOffset || after.LogStartOffset != before.LogStartOffset), err
}

// flushBeforeAck makes durable what the next fetch would acknowledge, where only durable records count. appendMu is held.
func (r *Replica) flushBeforeAck(now time.Time) error {
	view := r.log().View()
	if limit := r.options.FlushMessages; limit <= 0 || int64(view.LogEndOffset-view.DurableEnd) < limit {
		return nil
	}
	return r.log().Flush(now)
}

// followLogStart takes over the leader's log start. appendMu is held.
func (r *Replica) followLogStart(now time.Time, data *LeaderData) error {
	view := r.log().View()
	committed := max(protocol.Offset(r.highWatermark.Load()), min(data.HighWatermark, view.LogEndOffset))
	if start := min(data.LogStart, committed); start > view.LogStartOffset {
		r.manager.options.Store.Touch(r.tp)
		return r.log().AdvanceLogStart(now, start)
	}
	return nil
}

// truncate cuts the log. What is cut below the high watermark was committed once, in the eyes of a leader that an unclean
// election has passed over; the checkpoint is lowered first, or a start would take what comes there next for committed.
// appendMu is held.
func (r *Replica) truncate(offset protocol.Offset) error {
	if highWatermark := protocol.Offset(r.highWatermark.Load()); offset < highWatermark {
		r.manager.options.Logger.Warn("a follower truncates its log below its high watermark, as after an unclean election",
			"partition", r.tp.String(), "high watermark", int64(highWatermark), "offset", int64(offset))
		r.truncated(partition.Ends{Start: min(r.ends().Start, offset), End: offset, Durable: min(r.ends().Durable, offset)})
		if err := r.lowerCheckpoint(offset); err != nil {
			return err
		}
	}
	if err := r.log().TruncateTo(offset); err != nil {
		return err
	}
	r.truncated(r.ends())
	return nil
}

// restart drops the whole log, which begins anew at offset. appendMu is held.
func (r *Replica) restart(offset protocol.Offset) error {
	if err := r.log().TruncateFullyAndStartAt(offset); err != nil {
		return err
	}
	r.truncated(r.ends())
	return nil
}

// truncated tells the core of a shorter log; changeFollower wakes those who wait. appendMu is held.
func (r *Replica) truncated(ends partition.Ends) {
	r.stateMu.Lock()
	r.core.Truncated(ends)
	r.highWatermark.Store(int64(r.core.HighWatermark()))
	r.stateMu.Unlock()
	r.tellHighWatermark()
	r.manager.options.Store.Touch(r.tp)
}

// lowerCheckpoint sees to it that the high watermark in the file is not beyond offset.
func (r *Replica) lowerCheckpoint(offset protocol.Offset) error {
	m := r.manager
	m.checkpointMu.Lock()
	defer m.checkpointMu.Unlock()
	if r.checkpointed <= offset {
		return nil
	}
	if err := m.options.Store.CheckpointHighWatermarks(map[protocol.TopicPartition]protocol.Offset{r.tp: offset}); err != nil {
		return fmt.Errorf("the high watermark of %s cannot be lowered: %w", r.tp, err)
	}
	r.checkpointed = offset
	return nil
}
