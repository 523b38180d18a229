package partition

import (
	"slices"
	"time"

	"ottla/protocol"
)

// Lead takes the leadership that state gives to this node, or a change of the
// ISR or the assignment while leading. ok is false if state is older than what
// is known; nothing changed then. The epoch must be in the log's epoch cache
// already, starting at ends.End, if it is a new one (Partition.makeLeader).
func (p *Partition) Lead(now time.Time, state State, ends Ends, brokers Brokers) (effects Effects, ok bool) {
	if p.view.Role == Offline || p.stale(state) {
		return Effects{}, false
	}
	if state.Leader != p.options.NodeID {
		violated("node %d leads only what names it as leader, not %d", p.options.NodeID, state.Leader)
	}
	newLeader := p.view.Role != Leader
	newEpoch := newLeader || state.LeaderEpoch > p.view.LeaderEpoch
	epochStart := p.view.EpochStart
	if newEpoch {
		epochStart = ends.End
	}
	p.ends = ends
	if newEpoch || state.PartitionEpoch > p.view.PartitionEpoch {
		// The controller has decided something else than what was asked for, or just that. What is known already, as from
		// the answer to an earlier wish, decides nothing about the present one, whose members count until it is answered.
		p.pending = nil
	}
	// Between an epoch of ours and one that is not the next somebody else has led, and followers may have cut their logs
	// since they told us where these end. Metadata comes in steps that may hide it.
	forget := newLeader || state.LeaderEpoch > p.view.LeaderEpoch+1
	p.takeFollowers(now, state, forget, newEpoch)
	p.publish(View{State: state, Role: Leader, EpochStart: epochStart})
	return Effects{Role: newEpoch, ISR: true, HighWatermark: p.advance(now, brokers), LowWatermark: true}, true
}

// takeFollowers makes the list of followers that of the assignment. A new
// leader knows nothing of them; one elected again, with no other in between,
// keeps their positions but gives those in sync a fresh start of the clock.
func (p *Partition) takeFollowers(now time.Time, state State, forget, newEpoch bool) {
	followers := make([]follower, 0, len(state.Replicas))
	for _, id := range state.Replicas {
		if id == p.options.NodeID {
			continue
		}
		f := follower{id: id, logStart: protocol.NoOffset, logEnd: protocol.NoOffset, brokerEpoch: -1}
		if known := p.follower(id); known != nil && !forget {
			f = *known
		}
		if newEpoch {
			f.lastFetchLeaderEnd = p.ends.End
			f.lastFetch, f.lastCaughtUp = time.Time{}, time.Time{}
			if slices.Contains(state.ISR, id) {
				f.lastFetch, f.lastCaughtUp = now, now
			}
		}
		followers = append(followers, f)
	}
	p.followers = followers
}

func (p *Partition) follower(id protocol.NodeID) *follower {
	for i := range p.followers {
		if p.followers[i].id == id {
			return &p.followers[i]
		}
	}
	return nil
}

// CanAppend decides whether records may be appended now: NOT_LEADER_OR_FOLLOWER,
// or NOT_ENOUGH_REPLICAS if all in-sync replicas shall confirm and they are too
// few. It gives the epoch that the batches are to carry.
func (p *Partition) CanAppend(allReplicas bool) (protocol.LeaderEpoch, error) {
	switch {
	case p.view.Role == Offline:
		return 0, protocol.Errorf(protocol.KafkaStorageError, "the log directory of the partition is offline")
	case p.view.Role != Leader:
		return 0, protocol.Errorf(protocol.NotLeaderOrFollower, "this node is not the leader of the partition")
	case allReplicas && p.underMinISR():
		return 0, protocol.Errorf(protocol.NotEnoughReplicas,
			"the in-sync replicas %v are fewer than the %d that min.insync.replicas demands", p.view.ISR, p.view.MinISR)
	}
	return p.view.LeaderEpoch, nil
}

// Appended says that batches of a leader epoch were written and how far the log
// goes now. ok is false if the role or epoch changed since CanAppend: the
// batches count for nothing then and truncation removes them.
func (p *Partition) Appended(now time.Time, epoch protocol.LeaderEpoch, ends Ends, brokers Brokers) (effects Effects, ok bool) {
	if p.view.Role != Leader || p.view.LeaderEpoch != epoch {
		return Effects{}, false
	}
	if ends.End < p.ends.End {
		violated("a leader's log end does not move back from %d to %d", p.ends.End, ends.End)
	}
	p.ends = ends
	return Effects{HighWatermark: p.advance(now, brokers)}, true
}

// Progress tells whether the records below required are committed, for a
// producer that waits for all in-sync replicas (acks=all). The error, if any,
// ends the waiting: the role was lost, or the records are committed but by
// fewer replicas than demanded (Partition.checkEnoughReplicasReachOffset).
func (p *Partition) Progress(epoch protocol.LeaderEpoch, required protocol.Offset) (done bool, err error) {
	switch {
	case p.view.Role == Offline:
		return true, protocol.Errorf(protocol.KafkaStorageError, "the log directory of the partition went offline")
	case p.view.Role != Leader || p.view.LeaderEpoch != epoch:
		return true, protocol.Errorf(protocol.NotLeaderOrFollower, "this node ceased to be the leader of epoch %d", epoch)
	case p.highWatermark < required:
		return false, nil
	case len(p.view.MaximalISR) < p.view.MinISR:
		return true, protocol.Errorf(protocol.NotEnoughReplicasAfterAppend,
			"the records were appended, but the in-sync replicas %v became fewer than %d", p.view.MaximalISR, p.view.MinISR)
	}
	return true, nil
}

// FollowerFetch is what a follower's fetch tells about it.
type FollowerFetch struct {
	Replica     protocol.NodeID
	LeaderEpoch protocol.LeaderEpoch // ours when the follower's log was compared with ours
	BrokerEpoch protocol.BrokerEpoch // -1: the follower is too old to say (Fetch before v15)
	Offset      protocol.Offset      // it has everything below
	LogStart    protocol.Offset
	LeaderEnd   protocol.Offset // our log end when the fetch was read
}

// FollowerFetched takes note of a follower's position, which may move the high
// watermark or let the follower into the ISR. The error refuses the fetch of a
// broker that has registered anew since (Partition.updateFollowerFetchState).
func (p *Partition) FollowerFetched(now time.Time, fetch FollowerFetch, brokers Brokers) (Effects, error) {
	f := p.follower(fetch.Replica)
	if p.view.Role != Leader || f == nil || fetch.LeaderEpoch != p.view.LeaderEpoch {
		return Effects{}, protocol.Errorf(protocol.NotLeaderOrFollower, "node %d does not follow this replica", fetch.Replica)
	}
	if brokers != nil && fetch.BrokerEpoch != -1 {
		if known := brokers(fetch.Replica); known.Alive && known.Epoch > fetch.BrokerEpoch {
			return Effects{}, protocol.Errorf(protocol.NotLeaderOrFollower,
				"node %d fetches with broker epoch %d, but has registered with %d", fetch.Replica, fetch.BrokerEpoch, known.Epoch)
		}
	}
	if fetch.Offset >= fetch.LeaderEnd {
		f.lastCaughtUp = later(f.lastCaughtUp, now)
	} else if fetch.Offset >= f.lastFetchLeaderEnd {
		f.lastCaughtUp = later(f.lastCaughtUp, f.lastFetch)
	}
	effects := Effects{LowWatermark: fetch.LogStart > f.logStart}
	f.logStart, f.logEnd, f.brokerEpoch = fetch.LogStart, fetch.Offset, fetch.BrokerEpoch
	f.lastFetchLeaderEnd = fetch.LeaderEnd
	f.lastFetch = later(f.lastFetch, now)
	effects.Alter = p.expand(f, brokers)
	effects.ISR = effects.Alter != nil
	effects.HighWatermark = p.advance(now, brokers)
	return effects, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// LowWatermark is the least log start offset of the live replicas: what
// DeleteRecords reports, and waits for.
func (p *Partition) LowWatermark(brokers Brokers) protocol.Offset {
	low := p.ends.Start
	for _, f := range p.followers {
		if brokers == nil || brokers(f.id).Alive {
			low = min(low, f.logStart)
		}
	}
	return low
}

// LogStartMoved says that the leader's or follower's log begins later now.
func (p *Partition) LogStartMoved(start protocol.Offset) Effects {
	if start <= p.ends.Start {
		return Effects{}
	}
	p.ends.Start = start
	return Effects{LowWatermark: true}
}

// Flushed says how much of the log is durable now.
func (p *Partition) Flushed(now time.Time, durable protocol.Offset, brokers Brokers) Effects {
	p.ends.Durable = max(p.ends.Durable, durable)
	return Effects{HighWatermark: p.advance(now, brokers)}
}

// advance moves a leader's high watermark to the least log end of the maximal
// ISR and of those that are about to join it. Nothing is committed while the
// ISR is below its minimum (KIP-966).
func (p *Partition) advance(now time.Time, brokers Brokers) bool {
	if p.view.Role != Leader || p.underMinISR() {
		return false
	}
	committed := p.ends.End
	if p.options.FlushBeforeAck {
		committed = min(committed, p.ends.Durable)
	}
	for i := range p.followers {
		f := &p.followers[i]
		if f.logEnd < committed && (slices.Contains(p.view.MaximalISR, f.id) || p.aboutToJoin(f, now, brokers)) {
			committed = f.logEnd
		}
	}
	return p.setHighWatermark(committed)
}

func (p *Partition) underMinISR() bool { return len(p.view.ISR) < p.view.MinISR }

// aboutToJoin tells a follower that keeps up and will be in the ISR soon: the
// high watermark waits for it, or it might never catch up with it.
func (p *Partition) aboutToJoin(f *follower, now time.Time, brokers Brokers) bool {
	return p.caughtUp(f, now) && eligible(f, brokers)
}

// caughtUp tells a follower that has everything or had everything recently.
func (p *Partition) caughtUp(f *follower, now time.Time) bool {
	return f.logEnd == p.ends.End || now.Sub(f.lastCaughtUp) <= p.options.LagTimeMax
}

// Progress of the followers, for tests, metrics and DescribeQuorum-like views.
type Progress struct {
	ID           protocol.NodeID
	LogStart     protocol.Offset
	LogEnd       protocol.Offset
	LastCaughtUp time.Time
}

// Nearest chooses the replica from which a consumer is to read instead of this leader: of those that are near it and have
// the offset the one that is furthest, then the one that was caught up last; NoNode if the leader is near too, or nobody is
// (KIP-392, RackAwareReplicaSelector).
func (p *Partition) Nearest(offset protocol.Offset, near func(protocol.NodeID) bool) protocol.NodeID {
	if near(p.options.NodeID) {
		return protocol.NoNode
	}
	var best *follower
	for i := range p.followers {
		f := &p.followers[i]
		if f.logEnd < offset || f.logStart > offset || !near(f.id) {
			continue
		}
		if best == nil || f.logEnd > best.logEnd || f.logEnd == best.logEnd && f.lastCaughtUp.After(best.lastCaughtUp) {
			best = f
		}
	}
	if best == nil {
		return protocol.NoNode
	}
	return best.id
}

// Followers gives the progress of each follower, in the order of the assignment.
func (p *Partition) Followers() []Progress {
	progress := make([]Progress, len(p.followers))
	for i, f := range p.followers {
		progress[i] = Progress{f.id, f.logStart, f.logEnd, f.lastCaughtUp}
	}
	return progress
}
