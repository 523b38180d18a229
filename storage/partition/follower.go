package partition

import (
	"time"

	"ottla/protocol"
)

// Follow takes the role of a follower, or learns of another leader; also of no
// leader at all. ok is false if state is older than what is known.
func (p *Partition) Follow(_ time.Time, state State, ends Ends) (effects Effects, ok bool) {
	if p.view.Role == Offline || p.stale(state) {
		return Effects{}, false
	}
	if state.Leader == p.options.NodeID {
		violated("node %d does not follow itself", p.options.NodeID)
	}
	changed := p.view.Role != Follower || p.view.Leader != state.Leader || p.view.LeaderEpoch != state.LeaderEpoch
	p.ends = ends
	p.followers, p.pending = nil, nil
	p.publish(View{State: state, Role: Follower, EpochStart: protocol.NoOffset})
	return Effects{Role: changed, ISR: true}, true
}

// Replicated says that a follower's log goes to ends after it appended what the
// leader sent, and how far the leader's high watermark is.
func (p *Partition) Replicated(epoch protocol.LeaderEpoch, ends Ends, leaderHighWatermark protocol.Offset) (effects Effects, ok bool) {
	if p.view.Role != Follower || p.view.LeaderEpoch != epoch {
		return Effects{}, false
	}
	p.ends = ends
	return Effects{HighWatermark: p.setHighWatermark(min(leaderHighWatermark, ends.End))}, true
}

// EpochEnd is a leader epoch and the offset where it ends in a log; (-1, -1) if that is not known.
type EpochEnd struct {
	Epoch protocol.LeaderEpoch
	End   protocol.Offset
}

// TruncationPoint decides where a follower's log is to end after the leader has said that it diverges: leader is the
// largest epoch of the leader's log that is not above the follower's last, and own finds the same in the follower's
// log. What is cut may still diverge, in an epoch that only the follower has; the next fetch, which tells an
// earlier epoch, finds out (AbstractFetcherThread.getOffsetTruncationState; KIP-279).
func (p *Partition) TruncationPoint(leader EpochEnd, own func(protocol.LeaderEpoch) EpochEnd) protocol.Offset {
	if leader.End == protocol.NoOffset {
		return min(p.highWatermark, p.ends.End) // nothing can be compared
	}
	if leader.Epoch == protocol.NoLeaderEpoch {
		return min(leader.End, p.ends.End)
	}
	common := own(leader.Epoch)
	switch {
	case common.End == protocol.NoOffset:
		return min(leader.End, p.ends.End)
	case common.Epoch != leader.Epoch:
		return min(common.End, p.ends.End)
	}
	return min(common.End, leader.End, p.ends.End)
}

// Truncated says that a follower's log was cut, or begun anew at ends.Start. The
// high watermark falls with the end: the records above it were not committed in
// the eyes of the leader, only believed to be by this replica after an unclean
// election.
func (p *Partition) Truncated(ends Ends) Effects {
	if p.view.Role == Leader {
		violated("a leader's log is not truncated")
	}
	p.ends = ends
	before := p.highWatermark
	p.highWatermark = max(min(p.highWatermark, ends.End), ends.Start)
	return Effects{HighWatermark: p.highWatermark != before}
}

// Fail takes the replica offline for good, because its log directory failed.
func (p *Partition) Fail() Effects {
	if p.view.Role == Offline {
		return Effects{}
	}
	view := *p.view
	view.Role, view.EpochStart = Offline, protocol.NoOffset
	p.followers, p.pending = nil, nil
	p.publish(view)
	return Effects{Role: true}
}
