package cluster

import (
	"slices"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// brokerChange is what becomes of brokers, as far as it decides who leads. The
// fields may name the same broker or none (protocol.NoNode).
type brokerChange struct {
	gone    protocol.NodeID // leaves every ISR and leads no more
	back    protocol.NodeID // may lead from now on
	unclean protocol.NodeID // like gone; and what it had not flushed may be lost
}

func nobody() brokerChange {
	return brokerChange{gone: protocol.NoNode, back: protocol.NoNode, unclean: protocol.NoNode}
}

func leaving(id protocol.NodeID) brokerChange {
	return brokerChange{gone: id, back: protocol.NoNode, unclean: protocol.NoNode}
}

func returning(id protocol.NodeID) brokerChange {
	return brokerChange{gone: protocol.NoNode, back: id, unclean: protocol.NoNode}
}

func lost(id protocol.NodeID) brokerChange {
	return brokerChange{gone: protocol.NoNode, back: protocol.NoNode, unclean: id}
}

// topicRules is what a topic's configuration says of elections.
type topicRules struct {
	minISR          int  // min.insync.replicas, at most the replicas that there are
	uncleanElection bool // unclean.leader.election.enable
}

func rulesOf(defaults *config.TopicDefaults, image *metadata.Image, topic *metadata.Topic) topicRules {
	resolved := defaults.Topic(topic.Name, image.Config(topicResource, topic.Name))
	rules := topicRules{minISR: int(resolved.Int("min.insync.replicas")), uncleanElection: resolved.Bool("unclean.leader.election.enable")}
	if first := topic.Partition(0); first != nil {
		rules.minISR = min(rules.minISR, len(first.Replicas))
	}
	return rules
}

// partitionState is the part of a partition that changes here.
type partitionState struct {
	isr, elr                   []protocol.NodeID
	replicas, adding, removing []protocol.NodeID
}

// proposal is a partition on its way to its next state; build gives the record
// that takes it there (PartitionChangeBuilder).
type proposal struct {
	topic      *metadata.Topic
	n          int32
	now        *metadata.Partition
	next       partitionState
	rules      topicRules
	version    metadata.MetadataVersion
	withELR    bool                                       // eligible leader replicas are kept (KIP-966)
	acceptable func(protocol.NodeID) bool                 // may lead, if it is in sync
	unclean    protocol.NodeID                            // not eligible any more
	dirs       []protocol.DirectoryID                     // of the replicas, if they change
	preferred  bool                                       // the first replica shall lead, though another one may
	directory  func(protocol.NodeID) protocol.DirectoryID // of a replica that is added
}

// build gives the change, or nil if there is none.
func (p *proposal) build() *schema.PartitionChangeRecord {
	change := schema.NewPartitionChangeRecord()
	change.TopicID, change.PartitionID = p.topic.ID, p.n
	p.completeReassignment()
	p.next.elr = p.eligible()
	p.elect(change)
	if change.ISR != nil || !p.withELR {
		p.next.elr = nil // nothing is known to be in sync but the new leader
	}
	if !slices.Equal(p.next.elr, p.now.ELR) {
		change.EligibleLeaderReplicas = nonNil(p.next.elr)
	}
	// Without eligible leader replicas the last member stays in the ISR: it is
	// all that is known of who has the data.
	if change.ISR == nil && (len(p.next.isr) > 0 || p.withELR) && !slices.Equal(p.next.isr, p.now.ISR) {
		change.ISR = nonNil(p.next.isr)
	}
	p.noteReplicas(change)
	if p.version.BumpsLeaderEpochOnISRShrink() && change.Leader == noLeaderChange && change.ISR != nil && !containsAll(change.ISR, p.now.ISR) {
		change.Leader = p.now.Leader
	}
	if p.withELR {
		p.noteLastLeader(change)
	}
	if p.dirs != nil && !slices.Equal(p.dirs, p.now.Directories) {
		change.Directories = p.dirs
	}
	if isNoOp(change) {
		return nil
	}
	return change
}

const noLeaderChange protocol.NodeID = -2

func isNoOp(change *schema.PartitionChangeRecord) bool {
	return change.Leader == noLeaderChange && change.ISR == nil && change.EligibleLeaderReplicas == nil && change.LastKnownELR == nil &&
		change.LeaderRecoveryState == -1 && change.Directories == nil &&
		change.Replicas == nil && change.AddingReplicas == nil && change.RemovingReplicas == nil
}

// nonNil makes of nothing the empty list: null would mean no change.
func nonNil(ids []protocol.NodeID) []protocol.NodeID {
	if ids == nil {
		return []protocol.NodeID{}
	}
	return ids
}

func containsAll(ids, wanted []protocol.NodeID) bool {
	for _, id := range wanted {
		if !slices.Contains(ids, id) {
			return false
		}
	}
	return true
}

func without(ids []protocol.NodeID, gone ...protocol.NodeID) []protocol.NodeID {
	var rest []protocol.NodeID
	for _, id := range ids {
		if !slices.Contains(gone, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// eligible gives the replicas that have everything up to the high watermark
// though they are not in sync: those that left the ISR since it fell below the
// minimum, from when on the high watermark stood.
func (p *proposal) eligible() []protocol.NodeID {
	if !p.withELR {
		return p.now.ELR
	}
	if len(p.next.isr) >= p.rules.minISR {
		return nil
	}
	var elr []protocol.NodeID
	for _, id := range slices.Concat(p.now.ELR, p.now.ISR) {
		if id != p.unclean && slices.Contains(p.next.replicas, id) && !slices.Contains(p.next.isr, id) && !slices.Contains(elr, id) {
			elr = append(elr, id)
		}
	}
	slices.Sort(elr)
	return elr
}

// elect finds the leader of the next state and puts it into change, if it is
// another one than now. An unclean one takes the ISR for itself.
func (p *proposal) elect(change *schema.PartitionChangeRecord) {
	leader, unclean := p.candidate()
	if leader == p.now.Leader {
		return
	}
	change.Leader = leader
	if slices.Contains(p.next.elr, leader) {
		p.next.isr = []protocol.NodeID{leader}
		p.next.elr = without(p.next.elr, leader)
	}
	if !unclean {
		return
	}
	change.ISR = []protocol.NodeID{leader}
	if p.now.LeaderRecoveryState != metadata.LeaderRecovering {
		change.LeaderRecoveryState = metadata.LeaderRecovering
	}
}

func (p *proposal) candidate() (leader protocol.NodeID, unclean bool) {
	valid := func(id protocol.NodeID) bool {
		inSync := slices.Contains(p.next.isr, id) || len(p.next.isr) == 0 && slices.Contains(p.next.elr, id)
		return inSync && p.acceptable(id)
	}
	if p.preferred && len(p.next.replicas) > 0 && valid(p.next.replicas[0]) {
		return p.next.replicas[0], false
	}
	if valid(p.now.Leader) {
		return p.now.Leader, false
	}
	for _, id := range p.next.replicas {
		if valid(id) {
			return id, false
		}
	}
	// With nobody known to be in sync, the last leader has the most.
	known := len(p.next.isr) > 0 || len(p.next.elr) > 0
	if p.withELR && !known && len(p.now.LastKnownELR) == 1 && p.acceptable(p.now.LastKnownELR[0]) {
		return p.now.LastKnownELR[0], true
	}
	if p.rules.uncleanElection {
		for _, id := range p.next.replicas {
			if p.acceptable(id) {
				return id, true
			}
		}
	}
	return protocol.NoNode, false
}

// noteLastLeader keeps who led last while nobody leads.
func (p *proposal) noteLastLeader(change *schema.PartitionChangeRecord) {
	switch {
	case change.Leader == protocol.NoNode && len(p.now.LastKnownELR) == 0:
		change.LastKnownELR = []protocol.NodeID{p.now.Leader}
	case change.Leader >= 0 && len(p.now.LastKnownELR) > 0:
		change.LastKnownELR = []protocol.NodeID{}
	}
}

// reconsider makes the records by which the chosen partitions follow a change
// of brokers, by topic name and partition.
func (c *Controller) reconsider(change brokerChange, chosen func(*metadata.Partition) bool) []schema.MetadataRecord {
	var (
		records []schema.MetadataRecord
		propose = c.proposer()
	)
	for topic := range c.image.Topics() {
		for n, partition := range topic.Partitions() {
			if !chosen(partition) {
				continue
			}
			if record := propose(topic, n, partition, change).build(); record != nil {
				records = append(records, record)
			}
		}
	}
	return records
}

// proposer gives proposals for partitions of the present image. What it finds
// out about a topic it keeps for the next partition.
func (c *Controller) proposer() func(*metadata.Topic, int32, *metadata.Partition, brokerChange) *proposal {
	var (
		defaults = c.topicDefaults()
		version  = c.image.MetadataVersion()
		withELR  = c.withELR()
		known    *metadata.Topic
		rules    topicRules
	)
	return func(topic *metadata.Topic, n int32, partition *metadata.Partition, change brokerChange) *proposal {
		if topic != known {
			known, rules = topic, rulesOf(defaults, c.image, topic)
		}
		return &proposal{
			topic: topic, n: n, now: partition, rules: rules, version: version, withELR: withELR, unclean: change.unclean,
			next: partitionState{
				isr:      without(partition.ISR, change.gone, change.unclean),
				replicas: partition.Replicas, adding: partition.AddingReplicas, removing: partition.RemovingReplicas,
			},
			acceptable: func(id protocol.NodeID) bool { return c.acceptable(partition, id, change) },
		}
	}
}

// acceptable tells whether a broker may lead a partition once change is made.
func (c *Controller) acceptable(partition *metadata.Partition, id protocol.NodeID, change brokerChange) bool {
	if id == change.gone || id == change.unclean || id != change.back && !c.active(id) {
		return false
	}
	broker := c.image.Broker(id)
	return broker != nil && online(broker, partition.Directory(id))
}

// online tells whether a broker has a directory, as far as is known.
func online(broker *metadata.Broker, dir protocol.DirectoryID) bool {
	switch dir {
	case protocol.DirectoryUnassigned, protocol.DirectoryMigrating:
		return true
	case protocol.DirectoryLost:
		return false
	}
	// A registration of before 3.7 names none.
	return len(broker.LogDirs) == 0 || slices.Contains(broker.LogDirs, dir)
}

func inISR(id protocol.NodeID) func(*metadata.Partition) bool {
	return func(partition *metadata.Partition) bool { return slices.Contains(partition.ISR, id) }
}

func inELR(id protocol.NodeID) func(*metadata.Partition) bool {
	return func(partition *metadata.Partition) bool { return slices.Contains(partition.ELR, id) }
}

func leaderless(partition *metadata.Partition) bool { return partition.Leader == protocol.NoNode }
