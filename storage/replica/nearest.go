package replica

import (
	"ottla/protocol"
	"ottla/storage/partition"
)

// nearest chooses the replica in the consumer's rack from which it is to read instead of this leader. NoNode: read here.
func (r *Replica) nearest(req *FetchRequest, part *FetchPartition, view *partition.View) protocol.NodeID {
	rack := r.manager.options.Rack
	if rack == nil || req.ClientRack == "" || req.Replica != Consumer || req.Version < 11 || view.Role != partition.Leader {
		return protocol.NoNode
	}
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	return r.core.Nearest(part.Offset, func(id protocol.NodeID) bool { return rack(id) == req.ClientRack })
}

// SetReplicationLimit says how many bytes a second all throttled partitions of the node together may give to followers that
// are not in sync (leader.replication.throttled.rate); a negative number is no limit.
func (m *Manager) SetReplicationLimit(bytesPerSecond int64) { m.replication.Set(bytesPerSecond) }

// mustWait tells that a follower gets no records of a throttled partition for now. One that is in sync is never held back.
func (p *poll) mustWait(i int) bool {
	s := &p.slots[i]
	if s.replica == nil || !p.limits(s.replica) {
		return false
	}
	allowed, _ := p.manager.replication.Ask(p.now, 1)
	return allowed == 0
}

// limits tells whether what the poll's follower gets of a partition counts for the limit.
func (p *poll) limits(r *Replica) bool {
	throttled := p.manager.options.Throttled
	return throttled != nil && p.req.Replica >= 0 && !r.view.Load().InSync(p.req.Replica) && throttled(r.tp, p.req.Replica)
}

// spent counts what followers got.
func (p *poll) spent(results []FetchResult) {
	if p.manager.options.Throttled == nil || p.req.Replica < 0 {
		return
	}
	for i := range results {
		if size := results[i].Records.Len(); size > 0 && p.slots[i].replica != nil && p.limits(p.slots[i].replica) {
			p.manager.replication.Copied(p.now, int(size))
		}
	}
}
