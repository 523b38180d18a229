package assign

import (
	"slices"

	"ottla/protocol"
)

// layout is a group by numbers: members in the order of their ids, topics in the
// order of theirs, and the owner of each partition.
type layout struct {
	members []Member
	topics  []laidTopic
}

// nobody is the owner of a partition that is not assigned.
const nobody = -1

// laidTopic is one topic that exists and that somebody subscribes to.
type laidTopic struct {
	id          protocol.TopicID
	subscribers []int // ascending
	owners      []int // by partition
}

// lay numbers a group. Nothing is assigned yet.
func lay(group Group) *layout {
	l := &layout{members: group.Members}
	subscribers := make(map[protocol.TopicID][]int, len(group.Topics))
	for m := range group.Members {
		for _, id := range group.Members[m].Topics {
			if group.Topics[id].Partitions > 0 {
				subscribers[id] = append(subscribers[id], m)
			}
		}
	}
	for id, of := range subscribers {
		owners := make([]int, group.Topics[id].Partitions)
		for p := range owners {
			owners[p] = nobody
		}
		l.topics = append(l.topics, laidTopic{id, of, owners})
	}
	slices.SortFunc(l.topics, func(a, b laidTopic) int { return compareIDs(a.id, b.id) })
	return l
}

// compareIDs orders ids as Kafka does: as two signed numbers (Uuid.compareTo).
func compareIDs(a, b protocol.TopicID) int {
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if i%8 == 0 { // the byte with the sign
			return int(int8(a[i])) - int(int8(b[i]))
		}
		return int(a[i]) - int(b[i])
	}
	return 0
}

// even tells whether all members subscribe to the same topics.
func (l *layout) even() bool {
	for t := range l.topics {
		if len(l.topics[t].subscribers) != len(l.members) {
			return false
		}
	}
	return true
}

// keep calls each for every partition that a subscriber of it owns, member by
// member, and topic by topic of a member.
func (l *layout) keep(each func(member, topic int, partitions []int32)) {
	at := make(map[protocol.TopicID]int, len(l.topics))
	for t := range l.topics {
		at[l.topics[t].id] = t
	}
	var owned []int
	for m := range l.members {
		owned = owned[:0]
		for id := range l.members[m].Owned {
			if t, known := at[id]; known {
				owned = append(owned, t)
			}
		}
		slices.Sort(owned)
		for _, t := range owned {
			topic := &l.topics[t]
			if _, subscribes := slices.BinarySearch(topic.subscribers, m); !subscribes {
				continue
			}
			partitions := slices.DeleteFunc(slices.Clone(l.members[m].Owned[topic.id]), func(p int32) bool {
				return p < 0 || int(p) >= len(topic.owners)
			})
			slices.Sort(partitions)
			each(m, t, slices.Compact(partitions))
		}
	}
}

// assignments gives what the layout has become.
func (l *layout) assignments() map[string]Assignment {
	all := make([]Assignment, len(l.members))
	for m := range all {
		all[m] = Assignment{}
	}
	for t := range l.topics {
		topic := &l.topics[t]
		for p, owner := range topic.owners {
			if owner != nobody {
				all[owner][topic.id] = append(all[owner][topic.id], int32(p))
			}
		}
	}
	result := make(map[string]Assignment, len(l.members))
	for m := range all {
		result[l.members[m].ID] = all[m]
	}
	return result
}
