package group

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/offsets"
	"ottla/protocol"
	"ottla/protocol/schema"
)

func text(s string) *string { return &s }

// TestReplayOfEveryVersion loads what older Kafkas have written.
func TestReplayOfEveryVersion(t *testing.T) {
	for version := range int16(5) {
		value := schema.NewGroupMetadataValue()
		value.ProtocolType, value.Generation, value.Protocol, value.Leader = "consumer", 7, text("range"), text("m")
		m := schema.GroupMetadataMemberMetadata{MemberID: "m", ClientID: "c", ClientHost: "/h", SessionTimeout: 9000, RebalanceTimeout: -1, Subscription: sub("t"), Assignment: []byte("a")}
		if version >= 1 {
			m.RebalanceTimeout = 5000
		}
		if version >= 2 {
			value.CurrentStateTimestamp = 1234
		}
		if version >= 3 {
			m.GroupInstanceID = text("i")
		}
		value.Members = append(value.Members, m)
		commit := schema.NewOffsetCommitValue()
		commit.Offset, commit.Metadata, commit.CommitTimestamp = 42, "note", 99
		if version >= 3 {
			commit.LeaderEpoch = 6
		}
		c := New(Options{Settings: settings(), Random: func() uint64 { return 1 }})
		d := &decision{now: began}
		d.write(groupKey("g"), value, version)
		d.write(&schema.OffsetCommitKey{Group: "g", Topic: "t", Partition: 3}, commit, version)
		if version == 0 {
			legacy := schema.NewLegacyOffsetCommitKey()
			legacy.Group, legacy.Topic, legacy.Partition = "g", "t", 4
			old := schema.NewLegacyOffsetCommitValue()
			old.Offset, old.Metadata, old.CommitTimestamp = 41, "old", 98
			d.write(legacy, old, 0)
		}
		if err := c.Apply(10, 0, 5, d.records); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Activate(machine.Turn{Now: began}, 1); err != nil {
			t.Fatal(err)
		}
		g := c.classicGroup("g")
		loaded := g.members["m"]
		wantRebalance, wantSince, wantStatic, wantEpoch := int32(9000), int64(-1), false, protocol.LeaderEpoch(-1)
		if version >= 1 {
			wantRebalance = 5000
		}
		if version >= 2 {
			wantSince = 1234
		}
		if version >= 3 {
			wantStatic, wantEpoch = true, 6
		}
		if g.state != stateStable || g.generation != 7 || g.leader != "m" || g.stateMs != wantSince || loaded.rebalanceTimeoutMs != wantRebalance ||
			(loaded.instanceID != nil) != wantStatic || string(loaded.assignment) != "a" || !g.subscribed("t") || g.subscribed("u") {
			t.Errorf("version %d: %+v %+v", version, g.membership, loaded)
		}
		want := offsets.Offset{Offset: 42, Epoch: wantEpoch, Metadata: "note", CommitMs: 99, ExpireMs: -1, Record: 11}
		if got, _ := c.offsets.Get("g", "t", 3); got != want {
			t.Errorf("version %d: %+v, want %+v", version, got, want)
		}
		if got, found := c.offsets.Get("g", "t", 4); found != (version == 0) || found && (got.Offset != 41 || got.Metadata != "old" || got.CommitMs != 98) {
			t.Errorf("version %d: %+v", version, got)
		}
	}
}

// TestReplayOfForeignRecords: a key of an unknown type is passed over, records of
// other kinds of groups too, but nothing else that cannot be read is.
func TestReplayOfForeignRecords(t *testing.T) {
	c := New(Options{Settings: settings()})
	d := &decision{}
	consumer := schema.NewConsumerGroupMetadataKey()
	consumer.GroupID = "k"
	d.write(consumer, schema.NewConsumerGroupMetadataValue(), 0)
	d.write(consumer, nil, 0)
	d.records = append(d.records, machine.Record{Key: []byte{0x7f, 0xff, 1, 2, 3}, Value: []byte{9, 9}})
	if err := c.Apply(0, 0, 0, d.records); err != nil || len(c.groups) != 0 {
		t.Fatalf("%v, %d groups", err, len(c.groups))
	}
	key := schema.AppendKey(nil, groupKey("g"))
	for _, r := range []machine.Record{{}, {Key: []byte{0}}, {Key: key[:4]}, {Key: key, Value: []byte{0}}, {Key: key, Value: []byte{0, 99, 1}}, {Key: key, Value: []byte{0, 3, 1}}} {
		if err := c.Apply(0, 0, 0, []machine.Record{r}); err == nil {
			t.Errorf("%x = %x is taken", r.Key, r.Value)
		}
	}
	var unknown *schema.UnknownRecordError
	if err := c.Apply(0, 0, 0, []machine.Record{{Key: key, Value: []byte{0, 99, 1}}}); !errors.As(err, &unknown) || unknown.Version != 99 {
		t.Errorf("version 99: %v", err)
	}
}

// TestRefusedMessages: what is not served here is an error, which changes nothing.
func TestRefusedMessages(t *testing.T) {
	r := newRig(t, settings())
	for _, request := range []any{nil, "x", Request{Message: kmsg.NewPtrProduceRequest()}, Request{Message: kmsg.NewPtrMetadataRequest()}} {
		if result, err := r.c.Handle(r.turn(), request); err == nil || result.Reply != nil {
			t.Errorf("%T: %+v", request, result)
		}
	}
}

// TestRefuse holds the shapes of errors against Apache Kafka's.
func TestRefuse(t *testing.T) {
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 3}}}}
	fetch := func(version int16) kmsg.Request {
		m := kmsg.NewPtrOffsetFetchRequest()
		m.Version = version
		if version >= fetchHasGroups {
			m.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g"}}
		} else {
			m.Group, m.Topics = "g", []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{3}}}
		}
		return m
	}
	describe, remove := kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrDeleteGroupsRequest()
	describe.Groups, remove.Groups = []string{"g", "h"}, []string{"g", "h"}
	moved, loading := protocol.NotCoordinator, protocol.CoordinatorLoadInProgress
	for _, c := range []struct {
		message kmsg.Request
		reason  protocol.ErrorCode
		want    string
	}{
		{joinOf("g", "m", 9), moved, "join v9: NOT_COORDINATOR member \"m\" generation -1 -/- leader \"\"\n"},
		{kmsg.NewPtrSyncGroupRequest(), loading, "sync v0: COORDINATOR_LOAD_IN_PROGRESS\n"},
		{kmsg.NewPtrHeartbeatRequest(), moved, "NOT_COORDINATOR\n"},
		{kmsg.NewPtrHeartbeatRequest(), loading, "NONE\n"},
		{kmsg.NewPtrLeaveGroupRequest(), loading, "COORDINATOR_LOAD_IN_PROGRESS\n"},
		{kmsg.NewPtrOffsetDeleteRequest(), moved, "NOT_COORDINATOR\n"},
		{commit, moved, "t-3: NOT_COORDINATOR\n"},
		{fetch(1), loading, "  t-3: -1 epoch -1 \"\" COORDINATOR_LOAD_IN_PROGRESS\n"},
		{describe, moved, "g  \"\" \"\" NOT_COORDINATOR \"-\"\nh  \"\" \"\" NOT_COORDINATOR \"-\"\n"},
		{remove, moved, "g: NOT_COORDINATOR\nh: NOT_COORDINATOR\n"},
	} {
		if got := (&story{}).showReply(Refuse(c.message, c.reason)); got != c.want {
			t.Errorf("%T: %q, want %q", c.message, got, c.want)
		}
	}
	if r := Refuse(fetch(7), moved).(*kmsg.OffsetFetchResponse); r.ErrorCode != code(moved) || len(r.Topics) != 0 {
		t.Errorf("%+v", r)
	}
	if r := Refuse(fetch(8), moved).(*kmsg.OffsetFetchResponse); r.ErrorCode != 0 || r.Groups[0].Group != "g" || r.Groups[0].ErrorCode != code(moved) {
		t.Errorf("%+v", r)
	}
	if r := Refuse(kmsg.NewPtrListGroupsRequest(), moved).(*kmsg.ListGroupsResponse); r.ErrorCode != code(moved) {
		t.Errorf("%+v", r)
	}
	if r := Refuse(kmsg.NewPtrMetadataRequest(), moved); r != nil {
		t.Errorf("%+v", r)
	}
}

// TestResignAndActivate: without a Restore between, what was written stands.
func TestResignAndActivate(t *testing.T) {
	r := newRig(t, settings())
	m := joinOf("g", "", 3)
	r.send(m, "a")
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 5, "s", -1
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 3}}}}
	r.send(commit, "a")
	r.c.Resign()
	if !r.c.NextDeadline().IsZero() {
		t.Error("a deadline without being active")
	}
	r.parked = map[machine.Token]int{}
	r.activate()
	if g := r.c.classicGroup("g"); g.state != stateEmpty || len(g.members) != 0 {
		t.Errorf("%+v", g.membership)
	}
	r.send(m, "a")
	r.advance(time.Minute)
}

func joinOf(group, member string, version int16) *kmsg.JoinGroupRequest {
	m := kmsg.NewPtrJoinGroupRequest()
	m.Version, m.Group, m.MemberID, m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = version, group, member, 30_000, 60_000
	m.ProtocolType, m.Protocols = consumerProtocol, []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub("t")}}
	return m
}

// FuzzReplay: no record makes the core panic, while it only replays and when it
// then wakes up, rebalances and is replayed again. Reading one stays within its budget.
func FuzzReplay(f *testing.F) {
	d := &decision{now: began}
	value := schema.NewGroupMetadataValue()
	value.ProtocolType, value.Members = "consumer", []schema.GroupMetadataMemberMetadata{{MemberID: "m", GroupInstanceID: text("i"), Subscription: sub("t")}, {MemberID: "n"}}
	d.write(groupKey("g"), value, 3)
	d.records = append(d.records, offsets.Record("g", "t", 1, offsets.Offset{Offset: 4, ExpireMs: -1}))
	log, err := os.ReadFile("testdata/log-4.4.0/consumer_offsets.log")
	if err != nil {
		f.Fatal(err)
	}
	d.records = append(d.records, load(f, New(Options{Settings: settings()}), log)...)
	for _, r := range d.records {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		c := New(Options{Settings: settings(), Random: func() uint64 { return 7 }})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.Apply(0, 0, 0, []machine.Record{{Key: key, Value: value}})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*(len(key)+len(value))+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(key)+len(value))
		}
		if err != nil {
			return
		}
		turn := machine.Turn{Now: began}
		if _, err := c.Activate(turn, 1); err != nil {
			t.Fatal(err)
		}
		for id, g := range c.groups {
			if g.consumer != nil {
				apply(t, c, turn, Request{Message: consumerBeat(id, "m1", 0, "t")})
				apply(t, c, turn, Request{Message: consumerBeat(id, "m1", -1)})
				break
			}
			if g.classic.written != nil {
				for _, m := range g.classic.written.Members {
					join := joinOf(id, m.MemberID, 9)
					join.InstanceID = m.GroupInstanceID
					apply(t, c, turn, Request{Message: join})
				}
			}
			apply(t, c, turn, Request{Message: joinOf(id, "", 3)})
			break
		}
		for range 100 {
			turn.Now = c.NextDeadline()
			result, err := c.Tick(turn)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(9, 1, 0, result.Records); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func apply(t testing.TB, c *Coordinator, turn machine.Turn, request any) machine.Result {
	result, err := c.Handle(turn, request)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(1, 1, turn.Now.UnixMilli(), result.Records); err != nil {
		t.Fatal(err)
	}
	return result
}

// FuzzSubscription: any metadata is read within bounds.
func FuzzSubscription(f *testing.F) {
	f.Add(sub("a,b,c"))
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, metadata []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		topics := map[string]struct{}{}
		readTopics(metadata, topics)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64*uint64(len(metadata))+64<<10 {
			t.Fatalf("%d bytes for %d", used, len(metadata))
		}
	})
}

// stableGroup makes a Stable group of n members and gives their ids.
func stableGroup(t testing.TB, c *Coordinator, turn machine.Turn, group string, n int) []string {
	for range n {
		apply(t, c, turn, Request{Message: joinOf(group, "", 3), ClientID: "c", ClientHost: "/127.0.0.1"})
	}
	for range 2 { // somebody came in the first delay, so there is a second
		turn.Now = turn.Now.Add(5 * time.Second)
		result, err := c.Tick(turn)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(1, 1, 0, result.Records); err != nil {
			t.Fatal(err)
		}
	}
	g := c.classicGroup(group)
	m := kmsg.NewPtrSyncGroupRequest()
	m.Group, m.MemberID, m.Generation = group, g.leader, g.generation
	var ids []string
	for _, one := range g.order {
		ids = append(ids, one.id)
		m.GroupAssignment = append(m.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: one.id, MemberAssignment: make([]byte, 100)})
	}
	apply(t, c, turn, Request{Message: m})
	if g.state != stateStable || len(ids) != n {
		t.Fatalf("%s is %v with %d members", group, g.state, len(ids))
	}
	return ids
}

// BenchmarkHeartbeat is the cost of one heartbeat among many.
func BenchmarkHeartbeat(b *testing.B) {
	for _, size := range []struct{ groups, members int }{{1, 1}, {1, 1000}, {1000, 1}, {100, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size.groups, size.members), func(b *testing.B) {
			words := uint64(0)
			c := New(Options{Settings: settings(), Random: func() uint64 { words += 1 << 20; return words }})
			turn := machine.Turn{Now: began}
			if _, err := c.Activate(turn, 1); err != nil {
				b.Fatal(err)
			}
			var beats []*kmsg.HeartbeatRequest
			for i := range size.groups {
				group := fmt.Sprint("g", i)
				for _, id := range stableGroup(b, c, turn, group, size.members) {
					m := kmsg.NewPtrHeartbeatRequest()
					m.Group, m.MemberID, m.Generation = group, id, 1
					beats = append(beats, m)
				}
			}
			turn.Now = turn.Now.Add(15 * time.Second)
			b.ResetTimer()
			b.ReportAllocs()
			for i := range b.N {
				turn.Now = turn.Now.Add(time.Microsecond)
				result, err := c.Handle(turn, Request{Message: beats[i%len(beats)]})
				if err != nil || result.Reply.(*kmsg.HeartbeatResponse).ErrorCode != 0 {
					b.Fatal(err, result.Reply)
				}
				c.NextDeadline()
			}
		})
	}
}

// BenchmarkRebalance is a whole rebalance of a group: join and sync of all.
func BenchmarkRebalance(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			words := uint64(0)
			c := New(Options{Settings: settings(), Random: func() uint64 { words += 1 << 20; return words }})
			turn := machine.Turn{Now: began}
			if _, err := c.Activate(turn, 1); err != nil {
				b.Fatal(err)
			}
			ids := stableGroup(b, c, turn, "g", n)
			turn.Now = turn.Now.Add(15 * time.Second)
			b.ResetTimer()
			for range b.N {
				for _, id := range ids { // the leader, which comes first, begins it
					apply(b, c, turn, Request{Message: joinOf("g", id, 9)})
				}
				g := c.classicGroup("g")
				for i := range ids {
					m := kmsg.NewPtrSyncGroupRequest()
					m.Group, m.MemberID, m.Generation = "g", ids[len(ids)-1-i], g.generation
					apply(b, c, turn, Request{Message: m})
				}
				if g.state != stateStable {
					b.Fatal(g.state)
				}
			}
		})
	}
}

func TestManyGroups(t *testing.T) {
	words := uint64(0)
	c := New(Options{Settings: settings(), Random: func() uint64 { words += 1 << 20; return words }})
	turn := machine.Turn{Now: began}
	if _, err := c.Activate(turn, 1); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	stableGroup(t, c, turn, "large", 1000)
	for i := range 1000 {
		stableGroup(t, c, turn, fmt.Sprint("g", i), 2)
	}
	// All sessions end at one moment: bounded ticks, each group is written Empty once.
	turn.Now = began.Add(time.Hour)
	empties, ticks := 0, 0
	for ; len(c.deadlines.heap) > 1; ticks++ {
		result, err := c.Tick(turn)
		if err != nil {
			t.Fatal(err)
		}
		if !result.Divisible || len(result.Records) > maxExpiries {
			t.Fatalf("%d records in one tick", len(result.Records))
		}
		empties += len(result.Records)
		if err := c.Apply(1, 1, 0, result.Records); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d groups became Empty in %d ticks, all within %v", empties, ticks, time.Since(start))
	for id, g := range c.groups {
		if g.classic.state != stateEmpty {
			t.Fatalf("%s is %v", id, g.classic.state)
		}
	}
}
