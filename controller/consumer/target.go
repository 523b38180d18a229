package consumer

import (
	"maps"
	"slices"
	"strings"

	"ottla/controller/assign"
	"ottla/protocol"
)

// updateTopics compares the topics that the group wants, once updated has taken
// member's place in it, with those that its epoch was made for. If they have
// changed, or bump says so, the group goes on to another epoch.
func (g *Group) updateTopics(t *Turn, bump bool, member, updated *Member) (epoch int32) {
	hash := t.Topics.hash(g.wantedTopics(member, updated))
	epoch = g.epoch
	if bump || hash != g.metadataHash {
		epoch++
		g.writeEpoch(t, epoch, hash)
	}
	t.looked = true
	if g.legacyTopics {
		t.write(g.legacyTopicsKey(), nil)
	}
	return epoch
}

// wantedTopics are the names of the topics that the group wants once updated has
// taken member's place, sorted. A member that is new has told nothing yet.
func (g *Group) wantedTopics(member, updated *Member) []string {
	counts := maps.Clone(g.topics)
	for _, topic := range member.Topics {
		addSubscribers(counts, topic, subscribers{names: -1})
	}
	for _, topic := range updated.Topics {
		addSubscribers(counts, topic, subscribers{names: 1})
	}
	if old := member.regex(); old != "" && old != updated.regex() && g.regexes[old] == 1 {
		g.dropRegex(old, counts)
	}
	return slices.Sorted(maps.Keys(counts))
}

// dropRegex takes out of counts what a regular expression has found that nobody
// uses any more.
func (g *Group) dropRegex(regex string, counts map[string]subscribers) {
	if found := g.resolved[regex]; found != nil {
		for _, topic := range found.topics {
			addSubscribers(counts, topic, subscribers{regexes: -1})
		}
	}
}

// preferred is the assignor that most members want once updated has taken member's
// place. Of equal votes "uniform" wins, as it does in Kafka's hash table: the name
// that sorts last.
func (g *Group) preferred(t *Turn, member, updated *Member) string {
	counts := g.assignors
	if !equal(member.Assignor, updated.Assignor) {
		counts = maps.Clone(g.assignors)
		if member.Assignor != nil {
			add(counts, *member.Assignor, -1)
		}
		if updated.Assignor != nil {
			add(counts, *updated.Assignor, 1)
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if best == "" || counts[name] >= counts[best] {
			best = name
		}
	}
	if best == "" {
		return t.Settings.Assignors[0]
	}
	return best
}

// updateTarget makes the target assignment of an epoch, unless there is one or the
// last is too young, and gives what updated is to have.
func (g *Group) updateTarget(t *Turn, epoch int32, member, updated *Member) (target assign.Assignment, targetEpoch int32) {
	if g.targetEpoch >= epoch || !g.mayAssign(t) {
		return g.targetOf(updated), g.targetEpoch
	}
	assignor, found := assign.ByName(g.preferred(t, member, updated))
	if !found { // a record of a broker that had others
		assignor, _ = assign.ByName(t.Settings.Assignors[0])
	}
	members, before := g.membersWith(updated)
	made := assignor(g.describeTo(t, members, before))
	for _, m := range members {
		now := made[m.ID]
		if was, told := before[m.ID]; !told || !equalTargets(was, now) {
			g.writeTarget(t, m.ID, now)
		}
	}
	g.writeTargetEpoch(t, epoch, t.nowMs())
	return made[updated.ID], epoch
}

// mayAssign tells whether the last target is old enough for another.
func (g *Group) mayAssign(t *Turn) bool {
	interval := int64(t.assignmentIntervalMs(g.id))
	return g.targetMs == 0 || interval == 0 || t.nowMs() >= g.targetMs+interval
}

// targetOf is what a member is to have; one that has taken another's place, what
// that one was to have.
func (g *Group) targetOf(m *Member) assign.Assignment {
	id := m.ID
	if m.InstanceID != nil {
		id = g.instances[*m.InstanceID]
	}
	if target := g.target[id]; target != nil {
		return target
	}
	return noTarget
}

// membersWith are the group's members by id, and what each was to have so far,
// with updated among them.
func (g *Group) membersWith(updated *Member) (members []*Member, before map[string]assign.Assignment) {
	before = g.target
	replaced := ""
	if old := g.static(updated.InstanceID); old != nil && old.ID != updated.ID {
		replaced = old.ID
		before = maps.Clone(g.target)
		if target, told := before[replaced]; told {
			before[updated.ID] = target
		}
		delete(before, replaced)
	}
	for id, m := range g.members {
		if id != updated.ID && id != replaced {
			members = append(members, m)
		}
	}
	members = append(members, updated)
	slices.SortFunc(members, func(a, b *Member) int { return strings.Compare(a.ID, b.ID) })
	return members, before
}

// describeTo tells an assignor of the group.
func (g *Group) describeTo(t *Turn, members []*Member, target map[string]assign.Assignment) assign.Group {
	group := assign.Group{Topics: map[protocol.TopicID]assign.Topic{}}
	known := map[string][]protocol.TopicID{} // members that want the same are many
	for _, m := range members {
		key := m.regex() + "\n" + strings.Join(m.Topics, "\n")
		ids, found := known[key]
		if !found {
			ids = g.topicIDs(t, m)
			known[key] = ids
		}
		one := assign.Member{ID: m.ID, Topics: ids, Owned: target[m.ID]}
		if m.InstanceID != nil {
			one.InstanceID = *m.InstanceID
		}
		if m.RackID != nil {
			one.RackID = *m.RackID
		}
		group.Members = append(group.Members, one)
	}
	for _, ids := range known {
		for _, id := range ids {
			group.Topics[id] = assign.Topic{ID: id, Partitions: int32(t.Topics.image.TopicByID(id).PartitionCount())}
		}
	}
	return group
}

// topicNames are the names that a member wants, by name and by what its regular
// expression has found.
func (g *Group) topicNames(m *Member) []string {
	found := g.resolved[m.regex()]
	switch {
	case found == nil || len(found.topics) == 0:
		return m.Topics
	case len(m.Topics) == 0:
		return found.topics
	}
	return distinct(slices.Concat(m.Topics, found.topics))
}

// topicIDs are the topics that a member wants and that exist, sorted.
func (g *Group) topicIDs(t *Turn, m *Member) (ids []protocol.TopicID) {
	for _, name := range g.topicNames(m) {
		if id, exists := t.Topics.id(name); exists {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareTopics)
	return ids
}

func equalTargets(a, b assign.Assignment) bool {
	return maps.EqualFunc(a, b, func(a, b []int32) bool { return slices.Equal(a, b) })
}

func (g *Group) memberIDs() []string { return slices.Sorted(maps.Keys(g.members)) }
