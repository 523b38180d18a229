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
