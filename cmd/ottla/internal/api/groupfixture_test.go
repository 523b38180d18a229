package api

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// offsetsPartitions is how many partitions __consumer_offsets has in tests.
const offsetsPartitions = 4

// coordinate creates __consumer_offsets, led by node 1, and waits until its
// partitions are loaded. Node 2 is a replica out of sync, so that the leadership
// can move.
func (f *fixture) coordinate() {
	f.t.Helper()
	f.createOffsetsTopic(offsetsPartitions)
	f.settle()
}

func (f *fixture) createOffsetsTopic(partitions int) {
	f.t.Helper()
	id := topicID(protocol.ConsumerOffsetsTopic)
	created := schema.NewTopicRecord()
	created.Name, created.TopicID = protocol.ConsumerOffsetsTopic, id
	records := []schema.MetadataRecord{created}
	for n := range partitions {
		p := partitionRecord(id, int32(n), topicSpec{leader: 1, replicas: []protocol.NodeID{1, 2}})
		p.ISR = []protocol.NodeID{1}
		records = append(records, p)
	}
	f.write(records...)
}

// lead gives the partition of a group another leader, in the next epoch.
func (f *fixture) lead(group string, leader protocol.NodeID) {
	f.t.Helper()
	change := schema.NewPartitionChangeRecord()
	change.TopicID, change.PartitionID = topicID(protocol.ConsumerOffsetsTopic), shard.PartitionFor(group, offsetsPartitions)
	change.Leader, change.ISR = leader, []protocol.NodeID{leader}
	f.write(change)
}

// groupsOnEachPartition gives the first name of the form g0, g1, … that every
// partition holds, by partition.
func groupsOnEachPartition() []string {
	names := make([]string, offsetsPartitions)
	for n := 0; slices.Contains(names, ""); n++ {
		name := "g" + string(rune('a'+n))
		if at := shard.PartitionFor(name, offsetsPartitions); names[at] == "" {
			names[at] = name
		}
	}
	return names
}

// fence fences a broker.
func (f *fixture) fence(id protocol.NodeID) {
	r := schema.NewBrokerRegistrationChangeRecord()
	r.BrokerID, r.BrokerEpoch, r.Fenced = id, protocol.BrokerEpoch(id), 1
	f.write(r)
}

// join asks for membership as a consumer of topic "orders".
func join(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription("orders")}}
	return req
}

func subscription(topics ...string) []byte {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version, meta.Topics = 3, topics
	return meta.AppendTo(nil)
}

func syncing(group, member string, generation int32, assignments ...kmsg.SyncGroupRequestGroupAssignment) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation, req.GroupAssignment = group, member, generation, assignments
	req.ProtocolType, req.Protocol = ptr("consumer"), ptr("range")
	return req
}

func beating(group, member string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	return req
}

func leaving(version int16, group, member string) *kmsg.LeaveGroupRequest {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	if version < 3 {
		req.MemberID = member
		return req
	}
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	return req
}

// committing commits offsets of partition 0 and so on of a topic, as somebody who
// is no member.
func committing(version int16, group, topic string, offsets ...int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	t := kmsg.NewOffsetCommitRequestTopic()
	if version >= commitHasIDsFrom {
		t.TopicID = topicID(topic)
	} else {
		t.Topic = topic
	}
	for n, offset := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = int32(n), offset, 0, ptr("note")
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// askingFor asks for what a group has committed for partitions of a topic; without
// partitions, for everything.
func askingFor(version int16, group, topic string, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	if version < fetchHasGroupsFrom {
		req.Group = group
		if len(partitions) > 0 {
			req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: partitions}}
		}
		return req
	}
	req.Groups = []kmsg.OffsetFetchRequestGroup{groupAsking(version, group, topic, partitions...)}
	return req
}

func groupAsking(version int16, group, topic string, partitions ...int32) kmsg.OffsetFetchRequestGroup {
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	if len(partitions) > 0 {
		t := kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: partitions}
		if version >= fetchHasIDsFrom {
			t.Topic, t.TopicID = "", topicID(topic)
		}
		asked.Topics = append(asked.Topics, t)
	}
	return asked
}

// fetchedOffset is what one partition of a response says.
type fetchedOffset struct {
	code      codeOf
	offset    int64
	epoch     int32
	metadata  string
	partition int32
}

// offsetsIn gives the outcome of a group and its partitions, whatever the version.
func offsetsIn(resp *kmsg.OffsetFetchResponse, group int) (code codeOf, offsets []fetchedOffset) {
	if resp.Version >= fetchHasGroupsFrom {
		g := resp.Groups[group]
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				offsets = append(offsets, fetchedOffset{codeOf(p.ErrorCode), p.Offset, p.LeaderEpoch, *p.Metadata, p.Partition})
			}
		}
		return codeOf(g.ErrorCode), offsets
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			offsets = append(offsets, fetchedOffset{codeOf(p.ErrorCode), p.Offset, p.LeaderEpoch, *p.Metadata, p.Partition})
		}
	}
	return codeOf(resp.ErrorCode), offsets
}

func commitCodes(resp *kmsg.OffsetCommitResponse) (codes []codeOf) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			codes = append(codes, codeOf(p.ErrorCode))
		}
	}
	return codes
}

// commit commits, and fails unless every offset is accepted.
func (p *peer) commit(group, topic string, offsets ...int64) {
	p.f.t.Helper()
	resp := request[*kmsg.OffsetCommitResponse](p, committing(9, group, topic, offsets...), 9)
	for _, code := range commitCodes(resp) {
		if code != protocol.None {
			p.f.t.Fatalf("the commit of %s: %v", group, code)
		}
	}
}

// member is a member of a group on a connection of its own.
type member struct {
	*peer
	group      string
	id         string
	generation int32
}

// alone makes a Stable group with one member.
func (f *fixture) alone(group string) *member {
	f.t.Helper()
	m := &member{peer: f.connect(), group: group}
	required := request[*kmsg.JoinGroupResponse](m.peer, join(group, ""), 9)
	if codeOf(required.ErrorCode) != protocol.MemberIDRequired {
		f.t.Fatalf("the first JoinGroup: %v", codeOf(required.ErrorCode))
	}
	again := join(group, required.MemberID)
	m.send(again, 9)
	f.pass(3 * time.Second) // group.initial.rebalance.delay.ms
	joined := m.receive(again).(*kmsg.JoinGroupResponse)
	m.id, m.generation = joined.MemberID, joined.Generation
	assigned := request[*kmsg.SyncGroupResponse](m.peer, syncing(group, m.id, m.generation,
		kmsg.SyncGroupRequestGroupAssignment{MemberID: m.id, MemberAssignment: []byte("all")}), 5)
	if joined.ErrorCode != 0 || assigned.ErrorCode != 0 || string(assigned.MemberAssignment) != "all" {
		f.t.Fatalf("joined %+v, assigned %+v", joined, assigned)
	}
	return m
}

// beat sends a heartbeat and gives its outcome.
func (m *member) beat() codeOf {
	m.f.t.Helper()
	return codeOf(request[*kmsg.HeartbeatResponse](m.peer, beating(m.group, m.id, m.generation), 4).ErrorCode)
}
