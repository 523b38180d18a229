package partition

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
)

// follower is what the leader knows of another replica (Replica.java).
type follower struct {
	id          protocol.NodeID
	logStart    protocol.Offset
	logEnd      protocol.Offset // NoOffset until it fetched in this epoch
	brokerEpoch protocol.BrokerEpoch
	// lastCaughtUp is the latest time at which the follower is known to have had
	// everything the leader had; lastFetch and lastFetchLeaderEnd remember the
	// previous fetch: a follower that now asks for what was the leader's end
	// then, was caught up then.
	lastCaughtUp       time.Time
	lastFetch          time.Time
	lastFetchLeaderEnd protocol.Offset
}

// Partition is one replica's state. Make it with New.
type Partition struct {
	options       Options
	view          *View
	ends          Ends
	highWatermark protocol.Offset
	followers     []follower      // in the order of Replicas; only when leading
	pending       *AlterPartition // the ISR asked for and not yet answered
}

// New gives a replica that has no role. The high watermark is the checkpointed
// one, which the log may fall short of after an unclean stop, and never reaches
// below the log start.
func New(options Options, checkpoint protocol.Offset, ends Ends) *Partition {
	p := &Partition{options: options, ends: ends}
	p.highWatermark = max(min(checkpoint, ends.End), ends.Start)
	p.view = &View{Role: None, EpochStart: protocol.NoOffset, State: State{
		Leader: protocol.NoNode, LeaderEpoch: protocol.NoLeaderEpoch, PartitionEpoch: -1,
	}}
	return p
}

// View gives the state for readers. It stays as it is whatever happens later.
func (p *Partition) View() *View { return p.view }

// HighWatermark is the offset below which records are committed, as far as this
// replica knows.
func (p *Partition) HighWatermark() protocol.Offset { return p.highWatermark }

// LeaderEpoch is the epoch of the current role.
func (p *Partition) LeaderEpoch() protocol.LeaderEpoch { return p.view.LeaderEpoch }

// SetOptions changes what a topic config or the broker's config says. A smaller
// min.insync.replicas can move the high watermark.
func (p *Partition) SetOptions(now time.Time, options Options, brokers Brokers) Effects {
	p.options = options
	view := *p.view
	p.publish(view)
	return Effects{ISR: true, HighWatermark: p.advance(now, brokers)}
}

// publish makes view the current one after filling in what is derived.
func (p *Partition) publish(view View) {
	view.MinISR = max(1, min(p.options.MinInSyncReplicas, max(1, len(view.Replicas))))
	view.MaximalISR = view.ISR
	if p.pending != nil {
		for _, member := range p.pending.ISR {
			if !slices.Contains(view.MaximalISR, member.ID) {
				view.MaximalISR = append(slices.Clone(view.MaximalISR), member.ID)
			}
		}
	}
	p.view = &view
}

// violated panics with the invariant's name: what it guards cannot be repaired,
// and going on would lose acknowledged records. The condition stands at the
// caller, so that a check that holds allocates nothing.
func violated(invariant string, args ...any) {
	panic("invariant: " + fmt.Sprintf(invariant, args...))
}

// setHighWatermark moves the high watermark up and tells whether it moved.
func (p *Partition) setHighWatermark(offset protocol.Offset) bool {
	if offset <= p.highWatermark {
		return false
	}
	if offset > p.ends.End {
		violated("high watermark %d is not beyond the log end %d", offset, p.ends.End)
	}
	p.highWatermark = offset
	return true
}

// stale tells a decision that an earlier one has overtaken.
func (p *Partition) stale(state State) bool {
	return state.LeaderEpoch < p.view.LeaderEpoch ||
		state.LeaderEpoch == p.view.LeaderEpoch && state.PartitionEpoch < p.view.PartitionEpoch
}
