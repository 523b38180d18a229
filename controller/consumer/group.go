package consumer

import (
	"ottla/controller/assign"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// Group is one consumer group. Everything but seen is durable, and changed by
// Replay alone.
type Group struct {
	id           string
	epoch        int32
	metadataHash int64 // of the topics that the epoch was made for

	targetEpoch int32 // the group epoch that the target was made for
	targetMs    int64 // when; 0: the next may be made at once
	target      map[string]assign.Assignment
	members     map[string]*Member
	resolved    map[string]*resolved // what regular expressions have found

	// legacyTopics: a record of Kafka before 4.1 tells of the topics; the next
	// epoch removes it.
	legacyTopics bool

	// Counted out of the above.
	instances map[string]string                     // static members' ids
	topics    map[string]subscribers                // by name
	regexes   map[string]int                        // how many members subscribe by one
	assignors map[string]int                        // how many members prefer one
	owners    map[protocol.TopicID]map[int32]string // who has a partition, or has still to give it up
	classics  int                                   // members of the classic protocol
	protocols map[string]int                        // how many of those support one

	// seen is the cluster for which the hash was last compared; nil: not yet.
	seen *metadata.Image
}

// subscribers counts who wants a topic: members that name it, and regular
// expressions that found it.
type subscribers struct{ names, regexes int }

// resolved is what a regular expression has found.
type resolved struct {
	topics      []string // sorted
	version     int64    // the offset of the cluster metadata that it looked at
	timestampMs int64
}

// New makes a group of which nothing is known yet, as it is before its first
// record.
func New(id string) *Group {
	return &Group{
		id: id, epoch: 1, targetEpoch: 1, target: map[string]assign.Assignment{}, members: map[string]*Member{},
		resolved: map[string]*resolved{}, instances: map[string]string{}, topics: map[string]subscribers{},
		regexes: map[string]int{}, assignors: map[string]int{}, owners: map[protocol.TopicID]map[int32]string{}, protocols: map[string]int{},
	}
}

// KeyGroup names the group that a record's key is of; known is false for keys
// of other kinds of groups.
func KeyGroup(key schema.Key) (id string, known bool) {
	switch key := key.(type) {
	case *schema.ConsumerGroupMetadataKey:
		return key.GroupID, true
	case *schema.ConsumerGroupPartitionMetadataKey:
		return key.GroupID, true
	case *schema.ConsumerGroupMemberMetadataKey:
		return key.GroupID, true
	case *schema.ConsumerGroupTargetAssignmentMetadataKey:
		return key.GroupID, true
	case *schema.ConsumerGroupTargetAssignmentMemberKey:
		return key.GroupID, true
	case *schema.ConsumerGroupCurrentMemberAssignmentKey:
		return key.GroupID, true
	case *schema.ConsumerGroupRegularExpressionKey:
		return key.GroupID, true
	}
	return "", false
}

// Replay takes over a record whose key is of this group; a nil value deletes. It
// tells whether the group is gone by it.
func (g *Group) Replay(key schema.Key, value schema.Value) (gone bool) {
	switch key := key.(type) {
	case *schema.ConsumerGroupMetadataKey:
		epoch, _ := value.(*schema.ConsumerGroupMetadataValue)
		if epoch == nil {
			return true
		}
		g.epoch, g.metadataHash = epoch.Epoch, epoch.MetadataHash
	case *schema.ConsumerGroupPartitionMetadataKey:
		g.legacyTopics = value != nil
	case *schema.ConsumerGroupMemberMetadataKey:
		told, _ := value.(*schema.ConsumerGroupMemberMetadataValue)
		g.replayMember(key.MemberID, told)
	case *schema.ConsumerGroupTargetAssignmentMetadataKey:
		g.targetEpoch, g.targetMs = noEpoch, 0
		if target, _ := value.(*schema.ConsumerGroupTargetAssignmentMetadataValue); target != nil {
			g.targetEpoch, g.targetMs = target.AssignmentEpoch, target.AssignmentTimestamp
		}
	case *schema.ConsumerGroupTargetAssignmentMemberKey:
		delete(g.target, key.MemberID)
		if target, _ := value.(*schema.ConsumerGroupTargetAssignmentMemberValue); target != nil {
			g.target[key.MemberID] = targetOf(target)
		}
	case *schema.ConsumerGroupCurrentMemberAssignmentKey:
		current, _ := value.(*schema.ConsumerGroupCurrentMemberAssignmentValue)
		g.replayCurrent(key.MemberID, current)
	case *schema.ConsumerGroupRegularExpressionKey:
		found, _ := value.(*schema.ConsumerGroupRegularExpressionValue)
		g.replayRegex(key.RegularExpression, found)
	}
	return false
}

func (g *Group) replayMember(id string, value *schema.ConsumerGroupMemberMetadataValue) {
	old := g.members[id]
	if old != nil {
		g.count(old, -1)
	}
	if value == nil {
		if old != nil {
			g.release(old)
		}
		delete(g.members, id)
		return
	}
	if old == nil {
		old = newMember(id)
	}
	next := old.tell(value)
	g.members[id] = next
	g.count(next, 1)
}

func (g *Group) replayCurrent(id string, value *schema.ConsumerGroupCurrentMemberAssignmentValue) {
	old := g.members[id]
	if old == nil {
		if value == nil {
			return
		}
		old = newMember(id)
		g.count(old, 1)
	}
	g.release(old)
	next := old.stand(value)
	g.members[id] = next
	g.claim(next)
}

// claim notes that a member has what it has.
func (g *Group) claim(m *Member) {
	for _, owned := range []Owned{m.Assigned, m.Pending} {
		for topic, partitions := range owned {
			if g.owners[topic] == nil {
				g.owners[topic] = make(map[int32]string, len(partitions))
			}
			for partition := range partitions {
				g.owners[topic][partition] = m.ID
			}
		}
	}
}

// release forgets that a member has what it has. What is another's by now stays
// so.
func (g *Group) release(m *Member) {
	for _, owned := range []Owned{m.Assigned, m.Pending} {
		for topic, partitions := range owned {
			for partition := range partitions {
				if g.owners[topic][partition] == m.ID {
					delete(g.owners[topic], partition)
				}
			}
			if len(g.owners[topic]) == 0 {
				delete(g.owners, topic)
			}
		}
	}
}

func (g *Group) replayRegex(regex string, value *schema.ConsumerGroupRegularExpressionValue) {
	if old := g.resolved[regex]; old != nil {
		for _, topic := range old.topics {
			addSubscribers(g.topics, topic, subscribers{regexes: -1})
		}
		delete(g.resolved, regex)
	}
	if value == nil {
		return
	}
	found := &resolved{topics: distinct(value.Topics), version: value.Version, timestampMs: value.Timestamp}
	g.resolved[regex] = found
	for _, topic := range found.topics {
		addSubscribers(g.topics, topic, subscribers{regexes: 1})
	}
}

// count takes what a member has told into the counts, or out of them.
func (g *Group) count(m *Member, step int) {
	if m.InstanceID != nil {
		if step > 0 {
			g.instances[*m.InstanceID] = m.ID
		} else if g.instances[*m.InstanceID] == m.ID {
			delete(g.instances, *m.InstanceID)
		}
	}
	for _, topic := range m.Topics {
		addSubscribers(g.topics, topic, subscribers{names: step})
	}
	if regex := m.regex(); regex != "" {
		add(g.regexes, regex, step)
	}
	if m.Assignor != nil {
		add(g.assignors, *m.Assignor, step)
	}
	if m.Classic == nil {
		return
	}
	g.classics += step
	for _, p := range m.Classic.Protocols {
		add(g.protocols, p.Name, step)
	}
}

// add changes a count; what is not counted is not in it.
func add(counts map[string]int, name string, step int) {
	if counts[name] += step; counts[name] == 0 {
		delete(counts, name)
	}
}

func addSubscribers(counts map[string]subscribers, topic string, step subscribers) {
	c := counts[topic]
	if c = (subscribers{c.names + step.names, c.regexes + step.regexes}); c == (subscribers{}) {
		delete(counts, topic)
		return
	}
	counts[topic] = c
}

func targetOf(value *schema.ConsumerGroupTargetAssignmentMemberValue) assign.Assignment {
	target := assign.Assignment{}
	for _, topic := range value.TopicPartitions {
		target[topic.TopicID] = sortedPartitions(topic.Partitions)
	}
	return target
}

// ID is the group's name.
func (g *Group) ID() string { return g.id }

// Size counts the members.
func (g *Group) Size() int { return len(g.members) }

// Subscribed tells whether a member wants a topic, by its name or because a
// regular expression has found it.
func (g *Group) Subscribed(topic string) bool {
	_, found := g.topics[topic]
	return found
}

// static finds a static member by its instance id, or gives nil.
func (g *Group) static(instanceID *string) *Member {
	if instanceID == nil {
		return nil
	}
	return g.members[g.instances[*instanceID]]
}

// Sleep forgets what is volatile.
func (g *Group) Sleep() { g.seen = nil }

// State names where the group stands as ListGroups and the describing requests
// tell it. It looks at every member.
func (g *Group) State() string {
	switch {
	case len(g.members) == 0:
		return "Empty"
	case g.epoch > g.targetEpoch:
		return "Assigning"
	}
	for _, m := range g.members {
		if !m.reconciled(g.targetEpoch) {
			return "Reconciling"
		}
	}
	return "Stable"
}
