package replica

import (
	"errors"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/move"
	"ottla/storage/partition"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// Bounds of one step of a move. A step runs on a worker.
const (
	moveReadBytes = 1 << 20
	moveRounds    = 8        // reads in a step
	swapRounds    = 4        // reads while appends wait; what then is left waits for the next step
	moveDirty     = 64 << 20 // bytes copied before they are flushed, so that there is never much to wait for
)

// Pauses of a move.
const (
	moveRetry = 5 * time.Second        // after a full disk
	movePoll  = 200 * time.Millisecond // while the controller's answer is awaited
)

// moving is one replica on its way to another directory.
type moving = move.Move[*Replica]

// SetMoveLimit says how many bytes a second all moves of the node together may copy
// (replica.alter.log.dirs.io.max.bytes.per.second); a negative number is no limit.
func (m *Manager) SetMoveLimit(bytesPerSecond int64) {
	m.moves.Limit.Set(bytesPerSecond)
	m.moves.Hurry()
	m.timers.Wake()
}

// MovingTo gives the directory to which a replica is on its way.
func (m *Manager) MovingTo(tp protocol.TopicPartition) (protocol.DirectoryID, bool) {
	if mv := m.moves.Get(tp); mv != nil {
		return mv.Target, true
	}
	return protocol.DirectoryID{}, false
}

// Move begins to move a replica to another log directory, given by its path; while it is on its way to another one, that
// move ends; to the directory where it is, it stays. It returns when the future log is there. Of a partition that is not
// here the wish is remembered, and it is made there. Errors are those of AlterReplicaLogDirs
// (ReplicaManager.alterReplicaLogDirs): INVALID_TOPIC_EXCEPTION for a name that is too long, LOG_DIR_NOT_FOUND,
// KAFKA_STORAGE_ERROR, REPLICA_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION.
func (m *Manager) Move(now time.Time, tp protocol.TopicPartition, dir string) error {
	if !store.FutureFits(tp) {
		return protocol.Errorf(protocol.InvalidTopicException, "The topic name is too long.")
	}
	target, broken, err := m.moveTarget(dir)
	if err != nil {
		return err
	}
	defer m.lock(tp)()
	value, found := m.replicas.Load(tp)
	if !found {
		err := m.absent(tp)
		if protocol.CodeOf(err) == protocol.KafkaStorageError {
			return err
		}
		m.options.Store.Prefer(tp, target)
		if protocol.CodeOf(err) == protocol.NotLeaderOrFollower {
			err = protocol.Errorf(protocol.ReplicaNotAvailable, "%s is not on this node yet", tp)
		}
		return err
	}
	r := value.(*Replica)
	if r.view.Load().Role == partition.Offline {
		return protocol.Errorf(protocol.KafkaStorageError, "Partition %s is offline", tp)
	}
	if mv := m.moves.Get(tp); mv != nil {
		if mv.Target == target {
			return nil
		}
		m.cancel(now, mv)
	}
	if at, _ := m.options.Store.DirectoryOf(tp); at == target {
		return nil
	}
	if broken != "" {
		// There may be a future log of this partition already.
		return protocol.Errorf(protocol.KafkaStorageError, "%s cannot move while the log directory %s is offline", tp, broken)
	}
	if err := m.options.Store.CreateFuture(tp, target); err != nil {
		return clientError(err)
	}
	m.startMove(now, r, target, false)
	return nil
}

// moveTarget finds a directory by its path, and names one that is offline, if any.
func (m *Manager) moveTarget(dir string) (target protocol.DirectoryID, broken string, err error) {
	found := false
	for _, d := range m.options.Store.Directories() {
		if d.Offline != nil {
			broken = d.Path
		}
		if d.Path != dir {
			continue
		}
		if found, target = true, d.ID; d.Offline != nil {
			return target, broken, protocol.Errorf(protocol.KafkaStorageError, "Log directory %s is offline", dir)
		}
	}
	if !found {
		return target, broken, protocol.Errorf(protocol.LogDirNotFound, "Log dir %s is not found in the config.", dir)
	}
	return target, broken, nil
}

func (m *Manager) startMove(now time.Time, r *Replica, target protocol.DirectoryID, accepted bool) {
	m.moves.Start(now, r.tp, r, target, accepted)
	m.timers.Wake()
}

// moveApplied takes note of the directory in which the cluster has a replica: the target's comes as the answer to Assign.
// Where a start has found a future log, the move goes on.
func (m *Manager) moveApplied(now time.Time, r *Replica, dir protocol.DirectoryID) {
	if m.moves.Accept(now, r.tp, dir) {
		m.timers.Wake()
		return
	}
	future, found := m.options.Store.Future(r.tp)
	switch {
	case !found || m.options.Store.Log(r.tp) == nil: // where the present log has failed, the next start decides
	case future.Log.TopicID() != r.log().TopicID():
		m.removeFuture(now, r.tp) // of a former topic of this name
	default:
		m.startMove(now, r, future.Directory, dir == future.Directory)
	}
}

func (m *Manager) moveOptions(tp protocol.TopicPartition, opts log.Options) {
	if m.moves.Get(tp) == nil {
		return
	}
	_ = m.options.Store.WithFuture(tp, func(l *log.Log) error { // without one the move has just ended
		l.SetOptions(opts)
		return nil
	})
}

// cancel gives a move up; the replica stays where it is.
func (m *Manager) cancel(now time.Time, mv *moving) {
	if m.moves.End(mv.Replica.tp) != mv {
		return
	}
	m.removeFuture(now, mv.Replica.tp)
	m.revert(mv)
}

func (m *Manager) removeFuture(now time.Time, tp protocol.TopicPartition) {
	if err := m.options.Store.RemoveFuture(now, tp); err != nil {
		m.options.Logger.Warn("a future log cannot be removed", "partition", tp.String(), "error", err)
	}
}

// revert tells the controller where the replica stays, if it was told otherwise.
func (m *Manager) revert(mv *moving) {
	if mv.Asked() && m.options.Assign != nil {
		if at, known := m.options.Store.DirectoryOf(mv.Replica.tp); known && at != mv.Target {
			m.options.Assign(mv.Replica.tp, mv.Replica.view.Load().TopicID, at)
		}
	}
}

// tickMoves starts the steps that are due.
func (m *Manager) tickMoves(now time.Time) {
	most := m.options.MoveParallelism
	if most <= 0 {
		most = len(m.options.Store.Directories())
	}
	for _, mv := range m.moves.Due(now, most) {
		m.options.Workers(func() { m.stepMove(now, mv) })
	}
}

// stepMove does one step of a move and says when the next is due.
func (m *Manager) stepMove(now time.Time, mv *moving) {
	next, over := m.copyStep(now, mv)
	m.moves.Stepped(mv, next)
	if over {
		m.moves.End(mv.Replica.tp)
	}
	m.timers.Wake()
}

// copyStep copies what a step may, asks the controller once there is little left, and swaps when it has answered.
func (m *Manager) copyStep(now time.Time, mv *moving) (next time.Time, over bool) {
	allowed, again := m.moves.Limit.Ask(now, moveRounds*moveReadBytes)
	if allowed == 0 {
		return again, false
	}
	r := mv.Replica
	caughtUp := false
	err := m.options.Store.WithFuture(r.tp, func(future *log.Log) error {
		left, done := allowed, false
		for round := 0; round < moveRounds && left > 0 && !done && !m.moves.HasEnded(mv); round++ {
			copied, all, err := move.Step(now, r.log(), future, protocol.Offset(r.highWatermark.Load()), min(left, moveReadBytes))
			m.moves.Limit.Copied(now, copied)
			if err != nil {
				return err
			}
			left -= copied
			mv.Dirty += copied
			done, caughtUp = all || copied == 0, all
		}
		return nil
	})
	if err == nil && (mv.Dirty >= moveDirty || caughtUp && mv.Dirty > 0) {
		m.options.Store.FlushFuture(now, r.tp)
		mv.Dirty = 0
	}
	if err != nil {
		return m.moveFailed(now, mv, err)
	}
	if !caughtUp || m.moves.HasEnded(mv) {
		return now, false
	}
	if !m.askToMove(mv) {
		return now.Add(movePoll), false
	}
	return m.swap(now, mv)
}

// askToMove tells the controller of the target, once, and tells whether it has accepted it (KIP-858).
func (m *Manager) askToMove(mv *moving) (accepted bool) {
	accepted, tell := m.moves.Ask(mv)
	if tell && m.options.Assign != nil {
		m.options.Assign(mv.Replica.tp, mv.Replica.view.Load().TopicID, mv.Target)
	}
	return accepted || m.options.Assign == nil
}

// moveFailed decides what an error means: want of space passes, anything else ends the move.
func (m *Manager) moveFailed(now time.Time, mv *moving, err error) (next time.Time, over bool) {
	if vfs.NoSpace(err) {
		m.warnFull(now, mv.Replica.tp, err)
		return now.Add(moveRetry), false
	}
	if !m.moves.HasEnded(mv) {
		m.options.Logger.Error("a replica cannot move to another directory and stays where it is", "partition", mv.Replica.tp.String(), "error", err)
	}
	var ofSource *move.SourceError
	if errors.As(err, &ofSource) {
		mv.Replica.readFailed(err)
	}
	defer m.lock(mv.Replica.tp)()
	m.cancel(now, mv)
	return now, true
}

// swap puts the future log in the place of the present one, if it can have all of it soon.
func (m *Manager) swap(now time.Time, mv *moving) (next time.Time, over bool) {
	r := mv.Replica
	unlock := m.lock(r.tp) // so that nobody gives the move up in between
	r.appendMu.Lock()
	shown, failed, err := m.swapLocked(now, mv)
	var s settlement
	if err != nil && shown {
		// What is on the disk is for the next start to sort out; nothing more may be written.
		r.stateMu.Lock()
		s = r.publish(r.core.Fail(), false)
		r.stateMu.Unlock()
	}
	r.appendMu.Unlock()
	if err == nil {
		m.moves.End(r.tp)
	}
	unlock()
	r.settle(s)
	defer r.pump(now)
	switch {
	case err == nil:
		r.tellHighWatermark()
		return now, true
	case errors.Is(err, errBehind):
		return now, false
	case !failed.IsZero():
		m.options.Store.FailDirectory(failed, err)
		m.DirectoryFailed(failed)
	}
	if shown {
		return now, true
	}
	if !failed.IsZero() && failed != mv.Target {
		// Whether the present log was put away nobody knows, or it will be late: the future one is perhaps all there is.
		m.revert(mv)
		return now, true
	}
	return m.moveFailed(now, mv, err) // it stays where it is, and works
}

// errBehind says that too much was appended for a swap.
var errBehind = errors.New("the future log is still behind")

// swapLocked is what of a swap needs appendMu. shown tells that readers and appenders have the future log.
func (m *Manager) swapLocked(now time.Time, mv *moving) (shown bool, failed protocol.DirectoryID, err error) {
	r := mv.Replica
	if m.closed || m.moves.HasEnded(mv) || r.failure() != nil || r.view.Load().Role == partition.Offline {
		return false, failed, store.ErrNoFuture
	}
	highWatermark := protocol.Offset(r.highWatermark.Load())
	prepare := func(future *log.Log) error {
		for range swapRounds {
			copied, all, err := move.Step(now, r.log(), future, highWatermark, moveReadBytes)
			m.moves.Limit.Copied(now, copied)
			if err != nil {
				return err
			}
			if all {
				return future.TakeOver(now, r.log())
			}
		}
		return errBehind
	}
	show := func(future *log.Log) { shown = true; r.current.Store(future) }
	failed, err = m.options.Store.Promote(now, r.tp, highWatermark, prepare, show)
	return shown, failed, err
}
