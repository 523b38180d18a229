package partition

import (
	"slices"
	"time"

	"ottla/protocol"
)

// eligible tells whether the controller would let a follower into the ISR: its
// broker is alive, stays, and is the same registration that fetched (KIP-841,
// KIP-903).
func eligible(f *follower, brokers Brokers) bool {
	if brokers == nil {
		return true
	}
	broker := brokers(f.id)
	return broker.Alive && !broker.ShuttingDown && (f.brokerEpoch == -1 || f.brokerEpoch == broker.Epoch)
}

// expand asks for a follower to join the ISR once it has everything that is
// committed and everything that earlier leaders wrote. From now on the high
// watermark waits for it.
func (p *Partition) expand(f *follower, brokers Brokers) *AlterPartition {
	if p.pending != nil || slices.Contains(p.view.ISR, f.id) || !eligible(f, brokers) {
		return nil
	}
	if f.logEnd < p.highWatermark || f.logEnd < p.view.EpochStart {
		return nil
	}
	return p.propose(append(slices.Clone(p.view.ISR), f.id))
}

// Tick looks for members of the ISR that have fallen behind for longer than
// replica.lag.time.max.ms and asks for an ISR without them. The old ISR goes on
// counting until the controller has agreed.
func (p *Partition) Tick(now time.Time) Effects {
	if p.view.Role != Leader || p.pending != nil {
		return Effects{}
	}
	rest := slices.DeleteFunc(slices.Clone(p.view.ISR), func(id protocol.NodeID) bool {
		if id == p.options.NodeID {
			return false
		}
		f := p.follower(id)
		return f != nil && !p.caughtUp(f, now)
	})
	if len(rest) == len(p.view.ISR) {
		return Effects{}
	}
	return Effects{ISR: true, Alter: p.propose(rest)}
}

// propose makes an ISR the pending one.
func (p *Partition) propose(isr []protocol.NodeID) *AlterPartition {
	members := make([]ISRMember, len(isr))
	for i, id := range isr {
		members[i] = ISRMember{ID: id, BrokerEpoch: -1}
		if f := p.follower(id); f != nil {
			members[i].BrokerEpoch = f.brokerEpoch
		}
	}
	p.pending = &AlterPartition{
		TopicID: p.view.TopicID, LeaderEpoch: p.view.LeaderEpoch, PartitionEpoch: p.view.PartitionEpoch, ISR: members,
	}
	p.publish(*p.view)
	return p.pending
}

// AlterResult is the controller's answer to an AlterPartition.
type AlterResult struct {
	Error          protocol.ErrorCode
	LeaderEpoch    protocol.LeaderEpoch
	PartitionEpoch int32
	ISR            []protocol.NodeID
}

// ISRAltered takes the answer to the request that Effects.Alter gave. An answer
// to another request than the pending one is ignored. A failure that may pass
// gives the same request again, for the shell to repeat after a pause.
func (p *Partition) ISRAltered(now time.Time, asked *AlterPartition, result AlterResult, brokers Brokers) Effects {
	if p.view.Role != Leader || p.pending != asked || asked == nil {
		return Effects{}
	}
	switch result.Error {
	case protocol.None:
	case protocol.OperationNotAttempted, protocol.IneligibleReplica:
		// Refused for good: back to the committed ISR.
		p.pending = nil
		p.publish(*p.view)
		return Effects{ISR: true, HighWatermark: p.advance(now, brokers)}
	case protocol.UnknownTopicOrPartition, protocol.UnknownTopicID, protocol.FencedLeaderEpoch,
		protocol.InvalidUpdateVersion, protocol.InvalidRequest, protocol.NewLeaderElected:
		// The controller is ahead of us: the answer stays open, the maximal ISR
		// counts, until its newer decision arrives through Lead or Follow.
		return Effects{}
	default:
		return Effects{Alter: asked}
	}
	if result.LeaderEpoch != p.view.LeaderEpoch || result.PartitionEpoch < p.view.PartitionEpoch {
		return Effects{}
	}
	p.pending = nil
	view := *p.view
	view.ISR, view.PartitionEpoch = result.ISR, result.PartitionEpoch
	p.publish(view)
	return Effects{ISR: true, HighWatermark: p.advance(now, brokers)}
}
