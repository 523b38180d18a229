package consumer

import (
	"bytes"
	"maps"
	"slices"

	"ottla/controller/assign"
	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// All values are of version 0, the only one that 4.4.0 has.
const recordVersion = 0

// write appends a record of the group; a nil value deletes.
func (t *Turn) write(key schema.Key, value schema.Value) {
	r := machine.Record{Key: schema.AppendKey(nil, key)}
	if value != nil {
		r.Value = schema.AppendValue(nil, value, recordVersion)
	}
	t.Records = append(t.Records, r)
}

func (g *Group) epochKey() *schema.ConsumerGroupMetadataKey {
	key := schema.NewConsumerGroupMetadataKey()
	key.GroupID = g.id
	return key
}

func (g *Group) memberKey(id string) *schema.ConsumerGroupMemberMetadataKey {
	key := schema.NewConsumerGroupMemberMetadataKey()
	key.GroupID, key.MemberID = g.id, id
	return key
}

func (g *Group) currentKey(id string) *schema.ConsumerGroupCurrentMemberAssignmentKey {
	key := schema.NewConsumerGroupCurrentMemberAssignmentKey()
	key.GroupID, key.MemberID = g.id, id
	return key
}

func (g *Group) targetKey(id string) *schema.ConsumerGroupTargetAssignmentMemberKey {
	key := schema.NewConsumerGroupTargetAssignmentMemberKey()
	key.GroupID, key.MemberID = g.id, id
	return key
}

func (g *Group) targetEpochKey() *schema.ConsumerGroupTargetAssignmentMetadataKey {
	key := schema.NewConsumerGroupTargetAssignmentMetadataKey()
	key.GroupID = g.id
	return key
}

func (g *Group) regexKey(regex string) *schema.ConsumerGroupRegularExpressionKey {
	key := schema.NewConsumerGroupRegularExpressionKey()
	key.GroupID, key.RegularExpression = g.id, regex
	return key
}

func (g *Group) legacyTopicsKey() *schema.ConsumerGroupPartitionMetadataKey {
	key := schema.NewConsumerGroupPartitionMetadataKey()
	key.GroupID = g.id
	return key
}

func (g *Group) writeEpoch(t *Turn, epoch int32, hash int64) {
	value := schema.NewConsumerGroupMetadataValue()
	value.Epoch, value.MetadataHash = epoch, hash
	t.write(g.epochKey(), value)
}

func (g *Group) writeMember(t *Turn, m *Member) {
	value := schema.NewConsumerGroupMemberMetadataValue()
	value.InstanceID, value.RackID, value.ClientID, value.ClientHost = m.InstanceID, m.RackID, m.ClientID, m.ClientHost
	value.SubscribedTopicNames, value.SubscribedTopicRegex = m.Topics, m.Regex
	value.RebalanceTimeoutMs, value.ServerAssignor, value.ClassicMemberMetadata = m.RebalanceTimeoutMs, m.Assignor, nil
	if m.Classic != nil {
		value.ClassicMemberMetadata = &schema.ConsumerGroupMemberMetadataClassicMemberMetadata{SessionTimeoutMs: m.Classic.SessionTimeoutMs}
		for _, p := range m.Classic.Protocols {
			one := schema.ConsumerGroupMemberMetadataClassicProtocol{Name: p.Name, Metadata: p.Metadata}
			value.ClassicMemberMetadata.SupportedProtocols = append(value.ClassicMemberMetadata.SupportedProtocols, one)
		}
	}
	t.write(g.memberKey(m.ID), value)
}

func (g *Group) writeTarget(t *Turn, memberID string, target assign.Assignment) {
	value := schema.NewConsumerGroupTargetAssignmentMemberValue()
	for _, topic := range sortedTopics(target) {
		one := schema.ConsumerGroupTargetAssignmentMemberTopicPartition{TopicID: topic, Partitions: target[topic]}
		value.TopicPartitions = append(value.TopicPartitions, one)
	}
	t.write(g.targetKey(memberID), value)
}

func (g *Group) writeTargetEpoch(t *Turn, epoch int32, timestampMs int64) {
	value := schema.NewConsumerGroupTargetAssignmentMetadataValue()
	value.AssignmentEpoch, value.AssignmentTimestamp = epoch, timestampMs
	t.write(g.targetEpochKey(), value)
}

func (g *Group) writeCurrent(t *Turn, m *Member) {
	value := schema.NewConsumerGroupCurrentMemberAssignmentValue()
	value.MemberEpoch, value.PreviousMemberEpoch, value.State = m.Epoch, m.PreviousEpoch, int8(m.State)
	value.AssignedPartitions, value.PartitionsPendingRevocation = m.Assigned.record(), m.Pending.record()
	t.write(g.currentKey(m.ID), value)
}

func (o Owned) record() (topics []schema.ConsumerGroupCurrentMemberAssignmentTopicPartitions) {
	for _, topic := range sortedTopics(o) {
		one := schema.ConsumerGroupCurrentMemberAssignmentTopicPartitions{TopicID: topic, Partitions: partitionsOf(o[topic])}
		one.AssignmentEpochs = make([]int32, len(one.Partitions))
		for i, partition := range one.Partitions {
			one.AssignmentEpochs[i] = o[topic][partition]
		}
		topics = append(topics, one)
	}
	return topics
}

// removeMember deletes all records of a member.
func (g *Group) removeMember(t *Turn, id string) {
	t.write(g.currentKey(id), nil)
	t.write(g.targetKey(id), nil)
	t.write(g.memberKey(id), nil)
}

// WriteTombstones deletes the whole group.
func (g *Group) WriteTombstones(t *Turn) { g.writeTombstones(t, "", "") }

// writeTombstones deletes the whole group, in which a member has been replaced by
// another in the same decision.
func (g *Group) writeTombstones(t *Turn, replaced, by string) {
	ids := slices.Sorted(maps.Keys(g.members))
	if at, found := slices.BinarySearch(ids, replaced); found {
		ids[at] = by
		slices.Sort(ids)
	}
	for _, id := range ids {
		t.write(g.currentKey(id), nil)
	}
	for _, id := range ids {
		t.write(g.targetKey(id), nil)
	}
	t.write(g.targetEpochKey(), nil)
	for _, id := range ids {
		t.write(g.memberKey(id), nil)
	}
	for _, regex := range slices.Sorted(maps.Keys(g.resolved)) {
		t.write(g.regexKey(regex), nil)
	}
	t.write(g.legacyTopicsKey(), nil)
	t.write(g.epochKey(), nil)
}

// WriteAll writes the whole group, as it is made out of a classic one.
func (g *Group) WriteAll(t *Turn) {
	ids := slices.Sorted(maps.Keys(g.members))
	for _, id := range ids {
		g.writeMember(t, g.members[id])
	}
	g.writeEpoch(t, g.epoch, g.metadataHash)
	for _, id := range ids {
		g.writeTarget(t, id, g.target[id])
	}
	g.writeTargetEpoch(t, g.targetEpoch, g.targetMs)
	for _, id := range ids {
		g.writeCurrent(t, g.members[id])
	}
	for _, regex := range slices.Sorted(maps.Keys(g.resolved)) {
		g.writeResolved(t, regex, g.resolved[regex])
	}
}

func (g *Group) writeResolved(t *Turn, regex string, found *resolved) {
	value := schema.NewConsumerGroupRegularExpressionValue()
	value.Topics, value.Version, value.Timestamp = found.topics, found.version, found.timestampMs
	t.write(g.regexKey(regex), value)
}

func sortedTopics[V any](topics map[protocol.TopicID]V) []protocol.TopicID {
	return slices.SortedFunc(maps.Keys(topics), compareTopics)
}

func compareTopics(a, b protocol.TopicID) int { return bytes.Compare(a[:], b[:]) }

func partitionsOf(partitions map[int32]int32) []int32 { return slices.Sorted(maps.Keys(partitions)) }

func sortedPartitions(partitions []int32) []int32 {
	return slices.Compact(slices.Sorted(slices.Values(partitions)))
}
