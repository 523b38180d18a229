package metadata

import (
	"fmt"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Values of PartitionChangeRecord that change nothing.
const (
	NoLeaderChange        protocol.NodeID = -2
	NoLeaderRecoveryState int8            = -1
)

func (d *Delta) setPartition(r *schema.PartitionRecord) error {
	topic, err := d.topic(r.TopicID)
	if err != nil {
		return err
	}
	if len(r.Directories) > 0 && len(r.Directories) != len(r.Replicas) {
		return fmt.Errorf("it has %d directories for %d replicas", len(r.Directories), len(r.Replicas))
	}
	if r.LeaderRecoveryState != LeaderRecovered && r.LeaderRecoveryState != LeaderRecovering {
		return fmt.Errorf("the leader recovery state %d is unknown", r.LeaderRecoveryState)
	}
	if topic.Partition(r.PartitionID) == nil {
		d.next.partitions++
	}
	d.putTopic(topic.with(d.editor, r.PartitionID, &Partition{
		Replicas:            r.Replicas,
		Directories:         directoriesOr(r.Directories, len(r.Replicas)),
		ISR:                 r.ISR,
		RemovingReplicas:    r.RemovingReplicas,
		AddingReplicas:      r.AddingReplicas,
		ELR:                 r.EligibleLeaderReplicas,
		LastKnownELR:        r.LastKnownELR,
		Leader:              r.Leader,
		LeaderRecoveryState: r.LeaderRecoveryState,
		LeaderEpoch:         r.LeaderEpoch,
		PartitionEpoch:      r.PartitionEpoch,
		UnknownTags:         r.UnknownTags,
	}))
	return nil
}

// directoriesOr gives the directories, or as many "migrating" ones as there are
// replicas: a record of before 3.7 names none.
func directoriesOr(directories []protocol.DirectoryID, replicas int) []protocol.DirectoryID {
	if len(directories) > 0 || replicas == 0 {
		return directories
	}
	migrating := make([]protocol.DirectoryID, replicas)
	for i := range migrating {
		migrating[i] = protocol.DirectoryMigrating
	}
	return migrating
}

func (d *Delta) changePartition(r *schema.PartitionChangeRecord) error {
	topic, err := d.topic(r.TopicID)
	if err != nil {
		return err
	}
	partition := topic.Partition(r.PartitionID)
	if partition == nil {
		return fmt.Errorf("the topic %q has no partition %d", topic.Name, r.PartitionID)
	}
	changed, err := partition.Merge(r)
	if err != nil {
		return err
	}
	d.putTopic(topic.with(d.editor, r.PartitionID, changed))
	return refuseTags(r.UnknownTags)
}

// Merge is the partition as a change record makes it: what the record leaves
// out stays, the partition epoch rises by one, and the leader epoch rises by one
// whenever the record names a leader, were it the same one.
func (p *Partition) Merge(r *schema.PartitionChangeRecord) (*Partition, error) {
	if r.Replicas != nil && len(r.Directories) > 0 && len(r.Replicas) != len(r.Directories) {
		return nil, fmt.Errorf("it has %d directories for %d replicas", len(r.Directories), len(r.Replicas))
	}
	changed := *p
	set(&changed.Replicas, r.Replicas)
	set(&changed.ISR, r.ISR)
	set(&changed.RemovingReplicas, r.RemovingReplicas)
	set(&changed.AddingReplicas, r.AddingReplicas)
	set(&changed.ELR, r.EligibleLeaderReplicas)
	set(&changed.LastKnownELR, r.LastKnownELR)
	if r.Directories != nil {
		changed.Directories = r.Directories
	}
	changed.Directories = directoriesOr(changed.Directories, len(changed.Replicas))
	switch r.LeaderRecoveryState {
	case NoLeaderRecoveryState:
	case LeaderRecovered, LeaderRecovering:
		changed.LeaderRecoveryState = r.LeaderRecoveryState
	default:
		return nil, fmt.Errorf("the leader recovery state %d is unknown", r.LeaderRecoveryState)
	}
	if r.Leader != NoLeaderChange {
		changed.Leader = r.Leader
		changed.LeaderEpoch++
	}
	changed.PartitionEpoch++
	return &changed, nil
}

// set replaces a list that the record names. An empty one becomes nil, so that
// partitions made by different roads compare equal.
func set(list *[]protocol.NodeID, value []protocol.NodeID) {
	switch {
	case len(value) > 0:
		*list = value
	case value != nil:
		*list = nil
	}
}

// clearELR empties the eligible leader replicas of one topic, or of all if the
// record names none. As a change, it raises the partition epochs.
func (d *Delta) clearELR(r *schema.ClearElrRecord) error {
	if r.TopicName == "" {
		for _, topic := range d.next.topicsByName.All() {
			d.clearTopicELR(topic)
		}
		return refuseTags(r.UnknownTags)
	}
	topic := d.next.Topic(r.TopicName)
	if topic == nil {
		return fmt.Errorf("there is no topic %q", r.TopicName)
	}
	d.clearTopicELR(topic)
	return refuseTags(r.UnknownTags)
}

func (d *Delta) clearTopicELR(topic *Topic) {
	cleared := topic
	for n, partition := range topic.Partitions() {
		if len(partition.ELR) == 0 && len(partition.LastKnownELR) == 0 {
			continue
		}
		changed := *partition
		changed.ELR, changed.LastKnownELR = nil, nil
		changed.PartitionEpoch++
		cleared = cleared.with(d.editor, n, &changed)
	}
	if cleared != topic {
		d.putTopic(cleared)
	}
}
