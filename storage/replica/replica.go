package replica

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/partition"
	"ottla/storage/traffic"
)

// Replica is one partition on this node: its core, its log and who waits. The
// package comment tells what the two locks guard.
type Replica struct {
	manager *Manager
	tp      protocol.TopicPartition
	current atomic.Pointer[log.Log] // replaced, under appendMu, when the replica moves; see log
	traffic *traffic.Counters       // of the topic

	appendMu sync.Mutex
	options  log.Options  // guarded by appendMu; readers use published
	entries  []*log.Entry // of the round under way; guarded by appendMu
	queue    queue        // has a lock of its own, a leaf

	stateMu   sync.Mutex
	core      *partition.Partition
	acks      ackList
	deletions []*deletion
	polls     []pollRef

	// Published under stateMu, read without.
	view          atomic.Pointer[partition.View]
	highWatermark atomic.Int64
	published     atomic.Pointer[log.Options]
	gone          atomic.Pointer[error] // set once: the replica was removed

	checkpointed protocol.Offset // the high watermark in the file; guarded by Manager.checkpointMu

	// highWatermarkMu orders the telling of the log; a leaf.
	highWatermarkMu sync.Mutex
}

func newReplica(m *Manager, tp protocol.TopicPartition, l *log.Log, checkpoint protocol.Offset) *Replica {
	r := &Replica{manager: m, tp: tp, traffic: m.traffic.Of(tp.Topic), options: l.Options(), checkpointed: checkpoint}
	r.current.Store(l)
	options := r.options
	r.published.Store(&options)
	r.core = partition.New(r.coreOptions(), checkpoint, r.ends())
	r.view.Store(r.core.View())
	r.highWatermark.Store(int64(r.core.HighWatermark()))
	r.tellHighWatermark()
	return r
}

// log is the replica's log of the moment. Who holds appendMu has the same at each call; who does not may find that one
// he got before is closed, see onLog.
func (r *Replica) log() *log.Log { return r.current.Load() }

// onLog reads from the log, again if another one took its place meanwhile: that has all that the former had.
func onLog[T any](r *Replica, read func(l *log.Log) (T, error)) (T, error) {
	for {
		l := r.log()
		found, err := read(l)
		if err == nil || r.log() == l {
			return found, err
		}
	}
}

func (r *Replica) coreOptions() partition.Options {
	return partition.Options{
		NodeID:            r.manager.options.NodeID,
		LagTimeMax:        r.manager.options.LagTimeMax,
		MinInSyncReplicas: r.options.MinInSyncReplicas,
		FlushBeforeAck:    r.options.FlushMessages == 1,
	}
}

func (r *Replica) ends() partition.Ends {
	view := r.log().View()
	return partition.Ends{Start: view.LogStartOffset, End: view.LogEndOffset, Durable: view.DurableEnd}
}

// tellHighWatermark tells the log what is committed, which moves its last
// stable offset. Two who come at once both tell the newest.
func (r *Replica) tellHighWatermark() {
	r.highWatermarkMu.Lock()
	r.log().SetHighWatermark(protocol.Offset(r.highWatermark.Load()))
	r.highWatermarkMu.Unlock()
}

// settlement is what remains to be done after a change of the core, without a
// lock: tell the log, the controller, and those who waited.
type settlement struct {
	highWatermark bool
	alter         *partition.AlterPartition
	answers       []func()
	polls         []pollRef
}

// publish makes the core's state visible and collects who is affected. stateMu
// is held. grew says that the log end moved.
func (r *Replica) publish(effects partition.Effects, grew bool) settlement {
	s := settlement{highWatermark: effects.HighWatermark, alter: effects.Alter}
	if !effects.Any() && !grew {
		return s
	}
	highWatermark := r.core.HighWatermark()
	r.view.Store(r.core.View())
	r.highWatermark.Store(int64(highWatermark))
	if effects.HighWatermark || effects.Role || effects.ISR {
		s.answers = r.acks.take(r, effects.Role || effects.ISR, s.answers)
	}
	if (effects.LowWatermark || effects.Role) && len(r.deletions) > 0 {
		s.answers = r.takeDeletions(s.answers)
	}
	s.polls = append(s.polls, r.polls...)
	return s
}

// tell does the first part of settle, once.
func (r *Replica) tell(s *settlement) {
	if s.highWatermark {
		s.highWatermark = false
		r.tellHighWatermark()
	}
}

// settle does what publish left. No lock is held.
func (r *Replica) settle(s settlement) {
	r.tell(&s)
	if send := r.manager.options.AlterPartition; s.alter != nil && send != nil {
		wish := s.alter
		send(r.tp, wish, func(now time.Time, result partition.AlterResult) { r.altered(now, wish, result) })
	}
	for _, answer := range s.answers {
		answer()
	}
	for _, ref := range s.polls {
		ref.poll.wake(ref.slot)
	}
}

// altered takes the controller's answer to an AlterPartition.
func (r *Replica) altered(now time.Time, wish *partition.AlterPartition, result partition.AlterResult) {
	r.stateMu.Lock()
	s := r.publish(r.core.ISRAltered(now, wish, result, r.manager.options.Brokers), false)
	r.stateMu.Unlock()
	r.settle(s)
}

// apply takes a role. appendMu is held. An error is the environment's.
func (r *Replica) apply(now time.Time, state partition.State) (settlement, error) {
	if state.Leader != r.manager.options.NodeID {
		r.stateMu.Lock()
		defer r.stateMu.Unlock()
		effects, _ := r.core.Follow(now, state, r.ends())
		return r.publish(effects, false), nil
	}
	if r.view.Load().Role == partition.Offline {
		return settlement{}, nil
	}
	if state.LeaderEpoch > r.view.Load().LeaderEpoch {
		if err := r.beginEpoch(now, state.LeaderEpoch); err != nil {
			return settlement{}, err
		}
	}
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	effects, _ := r.core.Lead(now, state, r.ends(), r.manager.options.Brokers)
	return r.publish(effects, false), nil
}

// beginEpoch makes the log ready for a new leader: its epoch is known before
// its first batch can be read, and where only durable records count, all are.
func (r *Replica) beginEpoch(now time.Time, epoch protocol.LeaderEpoch) error {
	if r.log().LatestEpoch() < epoch {
		if err := r.log().AssignEpoch(epoch, r.log().View().LogEndOffset); err != nil {
			return fmt.Errorf("leader epoch %d cannot be recorded: %w", epoch, err)
		}
	}
	if known := r.log().LatestEpoch(); known < epoch {
		panic(fmt.Sprintf("invariant: a new leader's epoch is in the cache before its first batch (%d, not %d)", known, epoch))
	}
	if view := r.log().View(); r.options.FlushMessages == 1 && view.DurableEnd < view.LogEndOffset {
		if err := r.log().Flush(now); err != nil {
			return fmt.Errorf("the log cannot be made durable: %w", err)
		}
	}
	return nil
}

// setOptions takes new options. appendMu is held.
func (r *Replica) setOptions(now time.Time, options log.Options) settlement {
	r.log().SetOptions(options)
	r.options = options
	r.published.Store(&options)
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	return r.publish(r.core.SetOptions(now, r.coreOptions(), r.manager.options.Brokers), false)
}

// leave ends the replica's life here; everyone who waits is answered with why.
// appendMu is held, so no append is under way.
func (r *Replica) leave(why error) settlement {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	r.gone.Store(&why)
	s := settlement{polls: append([]pollRef(nil), r.polls...)}
	s.answers = r.acks.fail(r, why, nil)
	s.answers = r.failDeletions(why, s.answers)
	return s
}

// failure gives why the replica serves nobody any more, or nil.
func (r *Replica) failure() error {
	if why := r.gone.Load(); why != nil {
		return *why
	}
	return nil
}

// logStartMoved takes note of where the log starts now.
func (r *Replica) logStartMoved() settlement {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	return r.publish(r.core.LogStartMoved(r.log().View().LogStartOffset), false)
}

// currentLeader names the leader for a client that came to the wrong node.
func currentLeader(view *partition.View, err error) *wire.LeaderIDAndEpoch {
	switch protocol.CodeOf(err) {
	case protocol.NotLeaderOrFollower, protocol.FencedLeaderEpoch:
		if view.Role != partition.None {
			return &wire.LeaderIDAndEpoch{ID: view.Leader, Epoch: view.LeaderEpoch}
		}
	}
	return nil
}

// lastStable is the bound for read_committed: no open transaction below it.
func lastStable(highWatermark protocol.Offset, view log.View) protocol.Offset {
	if view.FirstUnstableOffset == protocol.NoOffset {
		return highWatermark
	}
	return min(highWatermark, view.FirstUnstableOffset)
}

// clientError gives err as one that a client may see: what is not a
// protocol.Error is a fault of the storage.
func clientError(err error) error {
	var known *protocol.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return protocol.Errorf(protocol.KafkaStorageError, "%v", err)
}

// limitInt keeps a sum of sizes an int on every machine.
func limitInt(n int64) int { return int(min(n, math.MaxInt32)) }
