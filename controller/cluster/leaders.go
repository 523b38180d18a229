package cluster

import (
	"slices"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// eligible tells whether a broker may lead now.
func (c *Controller) eligible(id protocol.NodeID) bool {
	broker := c.image.Broker(id)
	return broker != nil && !broker.Fenced && !broker.InControlledShutdown
}

func newPartitionChange(topic *metadata.Topic, n int32) *schema.PartitionChangeRecord {
	change := schema.NewPartitionChangeRecord()
	change.TopicID, change.PartitionID = topic.ID, n
	return change
}

// leads tells whether any partition has this leader.
func (c *Controller) leads(id protocol.NodeID) bool {
	for topic := range c.image.Topics() {
		for _, partition := range topic.Partitions() {
			if partition.Leader == id {
				return true
			}
		}
	}
	return false
}

// withoutLeader takes a broker that goes away out of leadership and ISR. The
// last member of an ISR stays in it without leading: nobody else has the data.
func (c *Controller) withoutLeader(gone protocol.NodeID) []schema.MetadataRecord {
	var records []schema.MetadataRecord
	for topic := range c.image.Topics() {
		for n, partition := range topic.Partitions() {
			if change := c.leave(topic, n, partition, gone); change != nil {
				records = append(records, change)
			}
		}
	}
	return records
}

func (c *Controller) leave(topic *metadata.Topic, n int32, partition *metadata.Partition, gone protocol.NodeID) *schema.PartitionChangeRecord {
	if partition.Leader != gone && !slices.Contains(partition.ISR, gone) {
		return nil
	}
	change := newPartitionChange(topic, n)
	rest := slices.DeleteFunc(slices.Clone(partition.ISR), func(id protocol.NodeID) bool { return id == gone })
	if len(rest) > 0 {
		change.ISR = rest
	} else if partition.Leader == protocol.NoNode {
		return nil // the last one had no leadership to lose
	}
	if partition.Leader == gone {
		change.Leader = protocol.NoNode
		for _, candidate := range partition.Replicas {
			if slices.Contains(rest, candidate) && c.eligible(candidate) {
				change.Leader = candidate
				break
			}
		}
	}
	return change
}

// electFor gives leaders to the partitions that wait for a broker which is now
// unfenced. Only who was in sync is elected: from the ISR, or from the eligible
// leader replicas that a 4.x controller left (KIP-966); or the last known leader
// where no in-sync replica is known at all, which is then marked as recovering.
func (c *Controller) electFor(back protocol.NodeID) []schema.MetadataRecord {
	var records []schema.MetadataRecord
	for topic := range c.image.Topics() {
		for n, partition := range topic.Partitions() {
			if partition.Leader != protocol.NoNode || !partition.HasReplica(back) {
				continue
			}
			change := newPartitionChange(topic, n)
			change.Leader = back
			switch {
			case slices.Contains(partition.ISR, back):
			case len(partition.ISR) == 0 && slices.Contains(partition.ELR, back):
				change.ISR = []protocol.NodeID{back}
				change.EligibleLeaderReplicas = slices.DeleteFunc(slices.Clone(partition.ELR), func(id protocol.NodeID) bool { return id == back })
			case len(partition.ISR) == 0 && len(partition.ELR) == 0 && slices.Equal(partition.LastKnownELR, []protocol.NodeID{back}):
				change.ISR = []protocol.NodeID{back}
				change.LastKnownELR = []protocol.NodeID{}
				change.LeaderRecoveryState = metadata.LeaderRecovering
			default:
				continue
			}
			records = append(records, change)
		}
	}
	return records
}
