package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// consumerBeat is a heartbeat: the first one if epoch is 0.
func consumerBeat(group, member string, epoch int32, topics ...string) *kmsg.ConsumerGroupHeartbeatRequest {
	m := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.MemberEpoch = 1, group, member, epoch
	if epoch == 0 {
		m.RebalanceTimeoutMillis, m.SubscribedTopicNames, m.Topics = 300_000, topics, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return m
}

func (r *rig) beat(m *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
	r.t.Helper()
	return r.send(m, "c").reply.(*kmsg.ConsumerGroupHeartbeatResponse)
}

// owns tells what a member has on the way from one epoch to the next.
func owns(id protocol.TopicID, partitions ...int32) []kmsg.ConsumerGroupHeartbeatRequestTopic {
	return []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: id, Partitions: partitions}}
}

// TestLongestNames: what the longest names become (ids of members, keys) fits the records.
func TestLongestNames(t *testing.T) {
	s := settings()
	s.InitialRebalanceDelay = 0
	r := newRig(t, s)
	r.addTopic("t", topicID("t"), 2)
	name := strings.Repeat("n", 32_767)
	r.beat(consumerBeat(name, name, 0, "t"))
	for _, group := range []string{"classic", name} {
		for _, join := range []*kmsg.JoinGroupRequest{joinOf(group, "", 3), joinOf(group, "", 9)} {
			join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub("t")}}
			if join.Version == 9 {
				join.InstanceID = &name
			}
			r.send(join, name)
			r.advance(5 * time.Second)
		}
		if g := r.c.lookup(group); g.empty() {
			t.Errorf("nobody is in a group with a name of %d bytes", len(group))
		}
	}
}

// TestMigrationPolicies lets a group go each way only where it may.
func TestMigrationPolicies(t *testing.T) {
	for _, policy := range []struct{ upgrade, downgrade bool }{{}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", policy), func(t *testing.T) {
			s := settings()
			s.InitialRebalanceDelay, s.Consumer.Upgrade, s.Consumer.Downgrade = 0, policy.upgrade, policy.downgrade
			r := newRig(t, s)
			r.addTopic("t", topicID("t"), 2)
			// From classic to consumer.
			instance := "i"
			join := joinOf("classic", "", 9)
			join.InstanceID = &instance
			join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub("t")}}
			r.send(join, "c")
			r.advance(time.Second)
			code := protocol.ErrorCode(r.beat(consumerBeat("classic", "m", 0, "t")).ErrorCode)
			if want := map[bool]protocol.ErrorCode{true: protocol.None, false: protocol.GroupIDNotFound}[policy.upgrade]; code != want {
				t.Errorf("upgrade: %v, want %v", code, want)
			}
			if (r.c.lookup("classic").consumer != nil) != policy.upgrade {
				t.Error("the group is of the wrong kind")
			}
			// A classic member in a consumer group, and back.
			r.beat(consumerBeat("consumer", "m", 0, "t"))
			join = joinOf("consumer", "k", 9)
			join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub("t")}}
			code = protocol.ErrorCode(r.send(join, "c").reply.(*kmsg.JoinGroupResponse).ErrorCode)
			if want := policy.upgrade || policy.downgrade; (code == protocol.None) != want || !want && code != protocol.InconsistentGroupProtocol {
				t.Errorf("a classic member joins: %v", code)
			}
			r.beat(consumerBeat("consumer", "m", -1))
			if (r.c.classicGroup("consumer") != nil) != policy.downgrade {
				t.Error("the group is of the wrong kind once its last consumer is gone")
			}
			r.fail()
			r.advance(2 * time.Hour)
		})
	}
}

// TestTooManyRecords wants a heartbeat that would write more than a batch holds to
// change nothing, and a deadline whose records are too many to come again.
func TestTooManyRecords(t *testing.T) {
	r := newRig(t, settings())
	r.addTopic("t", topicID("t"), 1000)
	limit := 1 << 20
	r.c.options.MaxBatchBytes = func() int { return limit }
	r.beat(consumerBeat("g", "m", 0, "t"))
	limit = 1000
	reply := r.beat(consumerBeat("g", "n", 0, "t"))
	if protocol.ErrorCode(reply.ErrorCode) != protocol.UnknownServerError || r.c.lookup("g").consumer.Size() != 1 {
		t.Fatalf("%+v", reply)
	}
	limit = 10
	r.advance(time.Minute)
	if r.c.lookup("g").consumer.Size() != 1 {
		t.Fatal("the member is gone without a record")
	}
	if next := r.c.NextDeadline().Sub(r.now); next > retryAlarm {
		t.Fatalf("nothing is tried again for %v", next)
	}
	limit = 1 << 20
	r.advance(time.Second)
	if r.c.lookup("g").consumer.Size() != 0 {
		t.Fatal("the member's session does not end")
	}
}

// TestSessionsEndOneByOne wants members that fall silent together to be removed
// one decision each: every one sees the epoch that the one before has left.
func TestSessionsEndOneByOne(t *testing.T) {
	r := newRig(t, settings())
	r.addTopic("t", topicID("t"), 4)
	for i := range 5 {
		r.beat(consumerBeat("g", fmt.Sprint("m", i), 0, "t"))
	}
	steps := r.advance(46 * time.Second)
	if len(steps) != 5 || r.c.lookup("g").consumer.Size() != 0 {
		t.Fatalf("%d steps, %d members", len(steps), r.c.lookup("g").consumer.Size())
	}
	d := &decision{now: r.now}
	if described := r.c.lookup("g").consumer.Describe(r.c.turn(d, "g")); described.Epoch != 11 || described.State != "Empty" {
		t.Fatalf("%+v", described)
	}
}

// TestConsumerOffsetsExpire keeps what members want, and deletes an empty group
// with the last of its offsets.
func TestConsumerOffsetsExpire(t *testing.T) {
	s := settings()
	s.OffsetsRetention = time.Hour
	r := newRig(t, s)
	r.addTopic("t", topicID("t"), 1)
	r.beat(consumerBeat("g", "m", 0, "t"))
	for _, topic := range []string{"t", "u"} {
		m := kmsg.NewPtrOffsetCommitRequest()
		m.Version, m.Group, m.MemberID, m.Generation = 9, "g", "m", 2
		m.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{kmsg.NewOffsetCommitRequestTopicPartition()}}}
		r.send(m, "c")
	}
	for range 2 * 60 * 2 {
		r.beat(consumerBeat("g", "m", 2))
		r.advance(30 * time.Second)
	}
	if got := r.c.offsets.Topics("g"); !slices.Equal(got, []string{"t"}) {
		t.Fatalf("after two hours there are offsets of %v", got)
	}
	r.advance(2 * time.Hour)
	if r.c.lookup("g") != nil || len(r.c.offsets.Groups()) != 0 || len(r.c.alarms) != 0 {
		t.Fatalf("%+v", r.c.groups)
	}
}

// TestReplayOfOlderKafkas loads what Kafka before 4.4 has written of a consumer
// group; what 4.4.0 writes is in TestKafkasLog.
func TestReplayOfOlderKafkas(t *testing.T) {
	r := newRig(t, settings())
	r.addTopic("t", topicID("t"), 4)
	member := schema.NewConsumerGroupMemberMetadataValue()
	member.ClientID, member.SubscribedTopicNames, member.ClassicMemberMetadata = "c", []string{"t"}, nil
	// Before 4.4 partitions had no epochs, and before 4.1 there was a record of
	// topics and none of their hash.
	current := schema.NewConsumerGroupCurrentMemberAssignmentValue()
	current.MemberEpoch, current.PreviousMemberEpoch = 7, 6
	current.AssignedPartitions = []schema.ConsumerGroupCurrentMemberAssignmentTopicPartitions{{TopicID: topicID("t"), Partitions: []int32{3, 0, 1, 2}}}
	target := schema.NewConsumerGroupTargetAssignmentMemberValue()
	target.TopicPartitions = []schema.ConsumerGroupTargetAssignmentMemberTopicPartition{{TopicID: topicID("t"), Partitions: []int32{3, 0, 1, 2}}}
	targetEpoch := schema.NewConsumerGroupTargetAssignmentMetadataValue()
	targetEpoch.AssignmentEpoch = 7
	epoch := schema.NewConsumerGroupMetadataValue()
	epoch.Epoch = 7
	d := &decision{now: began}
	d.write(&schema.ConsumerGroupMemberMetadataKey{GroupID: "g", MemberID: "m"}, member, 0)
	d.write(&schema.ConsumerGroupPartitionMetadataKey{GroupID: "g"}, schema.NewConsumerGroupPartitionMetadataValue(), 0)
	d.write(&schema.ConsumerGroupMetadataKey{GroupID: "g"}, epoch, 0)
	d.write(&schema.ConsumerGroupTargetAssignmentMemberKey{GroupID: "g", MemberID: "m"}, target, 0)
	d.write(&schema.ConsumerGroupTargetAssignmentMetadataKey{GroupID: "g"}, targetEpoch, 0)
	d.write(&schema.ConsumerGroupCurrentMemberAssignmentKey{GroupID: "g", MemberID: "m"}, current, 0)
	for _, c := range []*Coordinator{r.c, r.replica} {
		c.Resign()
		if err := c.Apply(0, 1, 0, d.records); err != nil {
			t.Fatal(err)
		}
	}
	r.log = append(r.log, d.records...)
	r.activate()
	a := r.send(consumerBeat("g", "m", 7), "c")
	text := (&story{rig: r}).show(a)
	for _, want := range []string{"record topics g = deleted\n", "record epoch g = 8 for #h1\n", `record current g/"m" = 8 (before 7) state 0 [t-0@7,1@7,2@7,3@7] []`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nhas no %q", text, want)
		}
	}
	// Of a group that is a classic one there is no record of a consumer group.
	classic := &decision{now: began}
	newClassicGroup("k", 0).write(classic)
	classic.write(&schema.ConsumerGroupMetadataKey{GroupID: "k"}, epoch, 0)
	if err := New(r.option).Apply(0, 1, 0, classic.records); err == nil || !strings.Contains(err.Error(), "classic group") {
		t.Errorf("%v", err)
	}
}

// TestCompaction loads what is left of a long history once it has been compacted:
// the last record of each key.
func TestCompaction(t *testing.T) {
	m := newMigration(t, 7)
	for range 300 {
		m.step(m.members[m.rand.IntN(len(m.members))])
	}
	last := map[string]int{}
	for i, r := range m.log {
		last[string(r.Key)] = i
	}
	compacted := New(m.option)
	for i, r := range m.log {
		if last[string(r.Key)] == i && r.Value != nil {
			if err := compacted.Apply(protocol.Offset(i), 1, 0, []machine.Record{r}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := durable(compacted), durable(m.replica); got != want {
		t.Errorf("the compacted log makes\n%s\nthe whole one\n%s", got, want)
	}
}
