package metadata

import (
	"cmp"
	"iter"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Topic is a topic and its partitions.
type Topic struct {
	Name        string
	ID          protocol.TopicID
	UnknownTags []schema.Tag // of its TopicRecord, kept for snapshots
	partitions  Map[int32, *Partition]
}

func newTopic(record *schema.TopicRecord) *Topic {
	return &Topic{
		Name:        record.Name,
		ID:          record.TopicID,
		UnknownTags: record.UnknownTags,
		partitions:  NewMap[int32, *Partition](cmp.Compare[int32]),
	}
}

// Partition finds a partition by its number, or gives nil.
func (t *Topic) Partition(n int32) *Partition {
	partition, _ := t.partitions.Get(n)
	return partition
}

// PartitionCount counts the partitions; their numbers are 0 to this, less one.
func (t *Topic) PartitionCount() int { return t.partitions.Len() }

// Partitions goes through the partitions in the order of their numbers.
func (t *Topic) Partitions() iter.Seq2[int32, *Partition] { return t.partitions.All() }

// PartitionsFrom goes through the partitions from a number on.
func (t *Topic) PartitionsFrom(n int32) iter.Seq2[int32, *Partition] { return t.partitions.From(n) }

func (t *Topic) with(by *editor, n int32, partition *Partition) *Topic {
	changed := *t
	changed.partitions = t.partitions.with(by, n, partition)
	return &changed
}

// Values of Partition.LeaderRecoveryState.
const (
	LeaderRecovered  int8 = 0
	LeaderRecovering int8 = 1 // elected uncleanly, and has not finished recovering
)

// Partition is what the controller decided about one partition.
type Partition struct {
	Replicas            []protocol.NodeID
	Directories         []protocol.DirectoryID // one for each replica, in the same order
	ISR                 []protocol.NodeID
	RemovingReplicas    []protocol.NodeID
	AddingReplicas      []protocol.NodeID
	ELR                 []protocol.NodeID // eligible leader replicas (KIP-966)
	LastKnownELR        []protocol.NodeID
	Leader              protocol.NodeID // -1: none
	LeaderRecoveryState int8
	LeaderEpoch         protocol.LeaderEpoch
	PartitionEpoch      int32
	UnknownTags         []schema.Tag // of its PartitionRecord, kept for snapshots
}

// IsReassigning tells whether replicas are being added or removed.
func (p *Partition) IsReassigning() bool {
	return len(p.AddingReplicas) > 0 || len(p.RemovingReplicas) > 0
}

// HasReplica tells whether a node is one of the replicas.
func (p *Partition) HasReplica(id protocol.NodeID) bool { return slices.Contains(p.Replicas, id) }

// Directory is the directory that a node keeps the partition in, as far as the
// controller was told; DirectoryMigrating for a node that is no replica.
func (p *Partition) Directory(id protocol.NodeID) protocol.DirectoryID {
	for i, replica := range p.Replicas {
		if replica == id && i < len(p.Directories) {
			return p.Directories[i]
		}
	}
	return protocol.DirectoryMigrating
}

func (p *Partition) equal(other *Partition) bool {
	return slices.Equal(p.Replicas, other.Replicas) &&
		slices.Equal(p.Directories, other.Directories) &&
		slices.Equal(p.ISR, other.ISR) &&
		slices.Equal(p.RemovingReplicas, other.RemovingReplicas) &&
		slices.Equal(p.AddingReplicas, other.AddingReplicas) &&
		slices.Equal(p.ELR, other.ELR) &&
		slices.Equal(p.LastKnownELR, other.LastKnownELR) &&
		p.Leader == other.Leader &&
		p.LeaderRecoveryState == other.LeaderRecoveryState &&
		p.LeaderEpoch == other.LeaderEpoch &&
		p.PartitionEpoch == other.PartitionEpoch &&
		equalTags(p.UnknownTags, other.UnknownTags)
}
