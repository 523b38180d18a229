package assign

import (
	"ottla/protocol"
)

// Member is one member of a group.
type Member struct {
	ID         string
	InstanceID string // group.instance.id; "" if the member is not static
	RackID     string // "" if it did not tell; no assignor of 4.4.0 looks at it
	// Topics are the ids of the topics that the member subscribes to, by name or
	// by regular expression, sorted and each once. Those that Group.Topics does
	// not have are passed over.
	Topics []protocol.TopicID
	// Owned is what the member is to have according to the target assignment of
	// now. Partitions that do not exist any more are passed over.
	Owned map[protocol.TopicID][]int32
}

// Topic is one topic that somebody subscribes to.
type Topic struct {
	ID         protocol.TopicID
	Partitions int32
}

// Group is what an Assignor looks at. It is not changed.
type Group struct {
	Members []Member // sorted by id, each once
	Topics  map[protocol.TopicID]Topic
}

// Assignment says which partitions, sorted, a member is to have, by topic. What
// is empty is not in it.
type Assignment = map[protocol.TopicID][]int32

// Assignor makes the target assignment of a group, by member id.
type Assignor func(Group) map[string]Assignment

// Names gives the names of the assignors that there are, as
// group.consumer.assignors has them by default: the first is the default of a
// group whose members ask for none.
func Names() []string { return []string{"uniform", "range"} }

// ByName finds an assignor.
func ByName(name string) (Assignor, bool) {
	switch name {
	case "uniform":
		return Uniform, true
	case "range":
		return Range, true
	default:
		return nil, false
	}
}

// Uniform gives everybody as many partitions as everybody else, as far as the
// subscriptions allow, and leaves as many as it can where they are
// (UniformAssignor of Apache Kafka 4.4.0).
func Uniform(group Group) map[string]Assignment {
	if len(group.Members) == 0 {
		return map[string]Assignment{}
	}
	l := lay(group)
	if l.even() {
		l.spreadEven()
	} else {
		l.spreadUneven()
	}
	return l.assignments()
}

// Range gives everybody consecutive partitions of each topic, in the order of the
// members' instance ids and ids, so that partitions of the same number in topics
// of the same size meet (RangeAssignor of Apache Kafka 4.4.0).
func Range(group Group) map[string]Assignment {
	l := lay(group)
	l.cut(inRangeOrder(group.Members))
	return l.assignments()
}
