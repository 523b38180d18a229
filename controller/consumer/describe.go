package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// Describe tells of the group as ConsumerGroupDescribe has it. Topics that do not
// exist any more are left out. The operations that somebody may do are not told.
func (g *Group) Describe(t *Turn) kmsg.ConsumerGroupDescribeResponseGroup {
	described := kmsg.NewConsumerGroupDescribeResponseGroup()
	described.Group, described.State, described.Epoch, described.AssignmentEpoch = g.id, g.State(), g.epoch, g.targetEpoch
	described.AssignorName = g.preferred(t, noMember, noMember)
	for _, id := range g.memberIDs() {
		m := g.members[id]
		one := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		one.MemberID, one.InstanceID, one.RackID, one.MemberEpoch = id, m.InstanceID, m.RackID, m.Epoch
		one.ClientID, one.ClientHost, one.SubscribedTopics, one.SubscribedTopicRegex = m.ClientID, m.ClientHost, m.Topics, m.Regex
		has := map[protocol.TopicID][]int32{}
		for _, owned := range []Owned{m.Assigned, m.Pending} {
			for topic, partitions := range owned {
				has[topic] = append(has[topic], partitionsOf(partitions)...)
			}
		}
		one.Assignment, one.TargetAssignment = t.assignment(has), t.assignment(g.target[id])
		if one.MemberType = 1; m.Classic != nil {
			one.MemberType = 0
		}
		described.Members = append(described.Members, one)
	}
	return described
}

// noMember has told nothing and has nothing.
var noMember = newMember("")

func (t *Turn) assignment(of map[protocol.TopicID][]int32) kmsg.Assignment {
	assignment := kmsg.NewAssignment()
	for _, id := range sortedTopics(of) {
		if topic := t.Topics.image.TopicByID(id); topic != nil {
			one := kmsg.AssignmentTopicPartition{TopicID: id, Topic: topic.Name, Partitions: slices.Sorted(slices.Values(of[id]))}
			assignment.TopicPartitions = append(assignment.TopicPartitions, one)
		}
	}
	return assignment
}
