package cluster

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// fixture drives a controller as the quorum's shell does.
type fixture struct {
	t    *testing.T
	c    *Controller
	now  time.Time
	next protocol.Offset
	log  []machine.Record
}

func newFixture(t *testing.T, properties ...string) *fixture {
	t.Helper()
	return newFixtureWith(t, map[string]int16{metadata.MetadataVersionFeature: int16(metadata.MaxMetadataVersion)}, properties...)
}

// newFixtureWith finalizes levels from the beginning.
func newFixtureWith(t *testing.T, levels map[string]int16, properties ...string) *fixture {
	t.Helper()
	given, err := config.FromOverrides(properties)
	if err != nil {
		t.Fatal(err)
	}
	broker, _, err := config.Broker(config.Layer(config.Default(), given))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(1)
	random := func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed }
	f := &fixture{t: t, now: time.UnixMilli(1_800_000_000_000), c: New(Options{
		NodeID: 1, ClusterID: "cluster", Config: broker, SessionTimeout: 9 * time.Second, Random: random,
		Features: map[string]Range{metadata.MetadataVersionFeature: {int16(metadata.OldestMetadataVersion), int16(metadata.MaxMetadataVersion)}},
	})}
	var formatted []machine.Record
	for _, name := range sortedNames(levels) {
		level := schema.NewFeatureLevelRecord()
		level.Name, level.FeatureLevel = name, levels[name]
		formatted = append(formatted, machine.Record{Value: schema.EncodeMetadata(level, 0)})
	}
	if err := f.c.Restore(0, 0, -1, formatted); err != nil {
		t.Fatal(err)
	}
	f.next = 1 // the leader change
	result, err := f.c.Activate(f.turn(), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.apply(result)
	return f
}

func (f *fixture) turn() machine.Turn { return machine.Turn{Now: f.now, Next: f.next} }

func (f *fixture) apply(result machine.Result) {
	f.t.Helper()
	if len(result.Records) == 0 {
		return
	}
	if err := f.c.Apply(f.next, 1, f.now.UnixMilli(), result.Records); err != nil {
		f.t.Fatal(err)
	}
	f.log = append(f.log, result.Records...)
	f.next += protocol.Offset(len(result.Records))
}

func handle[R kmsg.Response](f *fixture, req kmsg.Request) R {
	f.t.Helper()
	result, err := f.c.Handle(f.turn(), Request{req})
	if err != nil {
		f.t.Fatal(err)
	}
	f.apply(result)
	return result.Reply.(R)
}

func registration(id int32, incarnation byte) *kmsg.BrokerRegistrationRequest {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.Version, req.BrokerID, req.ClusterID, req.IncarnationID = 4, id, "cluster", [16]byte{incarnation}
	req.LogDirs = [][16]byte{{0xd0, byte(id)}}
	req.Features = []kmsg.BrokerRegistrationRequestFeature{{Name: metadata.MetadataVersionFeature, MinSupportedVersion: 7, MaxSupportedVersion: 33}}
	return req
}

// join registers and unfences a broker.
func (f *fixture) join(id int32, incarnation byte) (epoch int64) {
	f.t.Helper()
	registered := handle[*kmsg.BrokerRegistrationResponse](f, registration(id, incarnation))
	if registered.ErrorCode != 0 {
		f.t.Fatalf("registration of %d: %v", id, protocol.ErrorCode(registered.ErrorCode))
	}
	if beat := f.beat(id, registered.BrokerEpoch, false); beat.IsFenced || beat.ErrorCode != 0 {
		f.t.Fatalf("heartbeat of %d: %+v", id, beat)
	}
	return registered.BrokerEpoch
}

func (f *fixture) beat(id int32, epoch int64, shutdown bool) *kmsg.BrokerHeartbeatResponse {
	f.t.Helper()
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset, req.WantShutdown = id, epoch, int64(f.next), shutdown
	return handle[*kmsg.BrokerHeartbeatResponse](f, req)
}

func createTopic(name string, partitions int32, factor int16) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, factor
	req.Topics = append(req.Topics, topic)
	return req
}

func (f *fixture) create(req *kmsg.CreateTopicsRequest) kmsg.CreateTopicsResponseTopic {
	f.t.Helper()
	return handle[*kmsg.CreateTopicsResponse](f, req).Topics[0]
}

func TestBootstrapIsOneTransactionAndHappensOnce(t *testing.T) {
	f := newFixture(t)
	var kinds []string
	for _, r := range f.log {
		decoded, _, err := schema.DecodeMetadata(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, decoded.RecordName())
	}
	if len(kinds) != 3 || kinds[0] != "BeginTransactionRecord" || kinds[2] != "EndTransactionRecord" {
		t.Fatalf("bootstrap wrote %v", kinds)
	}
	f.c.Resign()
	if result, err := f.c.Activate(f.turn(), 2); err != nil || len(result.Records) != 0 {
		t.Fatalf("the second activation wrote %d records, %v", len(result.Records), err)
	}
}

func TestActivationAbortsAnOpenTransaction(t *testing.T) {
	f := newFixture(t)
	begin := schema.NewBeginTransactionRecord()
	f.apply(f.c.result(nil, begin))
	f.c.Resign()
	result, err := f.c.Activate(f.turn(), 2)
	if err != nil || len(result.Records) != 1 {
		t.Fatalf("%d records, %v", len(result.Records), err)
	}
	f.apply(result)
	f.join(1, 1)
}

func TestRegistration(t *testing.T) {
	f := newFixture(t)
	want := int64(f.next)
	if got := f.join(1, 1); got != want {
		t.Fatalf("broker epoch %d, want the record's offset %d", got, want)
	}
	for name, c := range map[string]struct {
		change func(*kmsg.BrokerRegistrationRequest)
		code   protocol.ErrorCode
	}{
		"other cluster":   {func(r *kmsg.BrokerRegistrationRequest) { r.ClusterID = "x" }, protocol.InconsistentClusterID},
		"no directories":  {func(r *kmsg.BrokerRegistrationRequest) { r.LogDirs = nil }, protocol.InvalidRegistration},
		"reserved":        {func(r *kmsg.BrokerRegistrationRequest) { r.LogDirs = [][16]byte{{15: 2}} }, protocol.InvalidRegistration},
		"twice":           {func(r *kmsg.BrokerRegistrationRequest) { r.LogDirs = append(r.LogDirs, r.LogDirs[0]) }, protocol.InvalidRegistration},
		"no metadata":     {func(r *kmsg.BrokerRegistrationRequest) { r.Features = nil }, protocol.InvalidRegistration},
		"older features":  {func(r *kmsg.BrokerRegistrationRequest) { r.Features[0].MaxSupportedVersion = 30 }, protocol.UnsupportedVersion},
		"alive elsewhere": {func(*kmsg.BrokerRegistrationRequest) {}, protocol.None}, // 1 is this process: never a rival
	} {
		req := registration(1, 2)
		c.change(req)
		result, err := f.c.Handle(f.turn(), Request{req})
		if err != nil {
			t.Fatal(err)
		}
		if got := protocol.ErrorCode(result.Reply.(*kmsg.BrokerRegistrationResponse).ErrorCode); got != c.code {
			t.Errorf("%s: %v, want %v", name, got, c.code)
		}
	}
	f.join(2, 1)
	if again := handle[*kmsg.BrokerRegistrationResponse](f, registration(2, 9)); protocol.ErrorCode(again.ErrorCode) != protocol.DuplicateBrokerRegistration {
		t.Errorf("a second live broker 2: %v", protocol.ErrorCode(again.ErrorCode))
	}
	f.now = f.now.Add(9 * time.Second)
	f.join(2, 9)
}

func TestRestartMovesTheLeaderEpochAndKeepsTheISR(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	f.create(createTopic("a", 3, 1))
	f.join(1, 2) // another process, without a word of the first
	for n, partition := range f.c.Image().Topic("a").Partitions() {
		if partition.Leader != 1 || partition.LeaderEpoch != 2 || len(partition.ISR) != 1 {
			t.Errorf("partition %d: %+v", n, partition)
		}
	}
}

func TestControlledShutdownAndSession(t *testing.T) {
	f := newFixture(t)
	epoch := f.join(1, 1)
	f.create(createTopic("a", 1, 1))
	if first := f.beat(1, epoch, true); first.ShouldShutdown {
		t.Error("told to stop while it led")
	}
	if second := f.beat(1, epoch, true); !second.ShouldShutdown {
		t.Error("not told to stop though it leads nothing")
	}
	if got := f.beat(1, epoch+1, false).ErrorCode; protocol.ErrorCode(got) != protocol.StaleBrokerEpoch {
		t.Errorf("another epoch: %v", protocol.ErrorCode(got))
	}
	epoch = f.join(2, 1)
	joined := f.now
	f.pass(8 * time.Second)
	if f.c.Image().Broker(2).Fenced {
		t.Fatalf("fenced after %v", f.now.Sub(joined))
	}
	f.pass(time.Second)
	if !f.c.Image().Broker(2).Fenced {
		t.Fatal("a silent broker was not fenced")
	}
	if !f.c.NextDeadline().IsZero() {
		t.Fatal("a deadline without a session")
	}
	if beat := f.beat(2, epoch, false); beat.IsFenced {
		t.Fatal("it did not come back")
	}
}

// pass lets time go by as a shell does: a Tick at each deadline on the way.
func (f *fixture) pass(wait time.Duration) {
	f.t.Helper()
	end := f.now.Add(wait)
	for {
		due := f.c.NextDeadline()
		if due.IsZero() || due.After(end) {
			break
		}
		if due.After(f.now) {
			f.now = due
		}
		result, err := f.c.Tick(f.turn())
		if err != nil {
			f.t.Fatal(err)
		}
		f.apply(result)
	}
	f.now = end
}

// TestHeldUpControllerBlamesNobody: while it could not listen, nobody was silent.
func TestHeldUpControllerBlamesNobody(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	f.join(2, 1)
	f.pass(5 * time.Second)
	f.now = f.now.Add(time.Minute) // a decision took so long
	result, err := f.c.Tick(f.turn())
	if err != nil {
		t.Fatal(err)
	}
	f.apply(result)
	if f.c.Image().Broker(1).Fenced || f.c.Image().Broker(2).Fenced {
		t.Fatal("fenced for the controller's own absence")
	}
	f.pass(9 * time.Second)
	if !f.c.Image().Broker(2).Fenced {
		t.Fatal("a broker that stays silent was not fenced")
	}
}

// TestHeldUpAgainAndAgain: nor if it is held up time after time, each time for less than two looks.
func TestHeldUpAgainAndAgain(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	for range 3 {
		f.now = f.now.Add(4 * time.Second)
		result, err := f.c.Tick(f.turn())
		if err != nil {
			t.Fatal(err)
		}
		f.apply(result)
	}
	if f.c.Image().Broker(1).Fenced {
		t.Fatal("fenced for the controller's own absences")
	}
	f.pass(9 * time.Second)
	if !f.c.Image().Broker(1).Fenced {
		t.Fatal("a broker that stays silent was not fenced")
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func TestCreateTopics(t *testing.T) {
	f := newFixture(t, "num.partitions=4")
	f.join(1, 1)
	req := createTopic("a", -1, -1)
	req.Topics[0].Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: kmsg.StringPtr("1000")}}
	req.ValidateOnly = true
	if answer := f.create(req); answer.ErrorCode != 0 || answer.NumPartitions != 4 || f.c.Image().TopicCount() != 0 {
		t.Fatalf("validate only: %d %d", answer.ErrorCode, answer.NumPartitions)
	}
	req.ValidateOnly = false
	answer := f.create(req)
	if answer.ErrorCode != 0 || answer.NumPartitions != 4 || answer.ReplicationFactor != 1 || len(answer.Configs) != 37 {
		t.Fatalf("%+v with %d configs", answer, len(answer.Configs))
	}
	topic := f.c.Image().Topic("a")
	if topic == nil || topic.ID != answer.TopicID || topic.PartitionCount() != 4 {
		t.Fatalf("topic %+v", topic)
	}
	for n, partition := range topic.Partitions() {
		if partition.Leader != 1 || partition.LeaderEpoch != 0 || partition.Directories[0] != (protocol.DirectoryID{0xd0, 1}) {
			t.Errorf("partition %d: %+v", n, partition)
		}
	}
	if got := f.c.Image().Config(2, "a")["retention.ms"]; got != "1000" {
		t.Errorf("retention.ms %q", got)
	}
}

func TestPlacementSpreadsOverRacks(t *testing.T) {
	f := newFixture(t)
	for id := int32(1); id <= 4; id++ {
		req := registration(id, 1)
		req.Rack = kmsg.StringPtr([]string{"x", "y"}[id%2])
		registered := handle[*kmsg.BrokerRegistrationResponse](f, req)
		f.beat(id, registered.BrokerEpoch, false)
	}
	if answer := f.create(createTopic("a", 8, 2)); answer.ErrorCode != 0 {
		t.Fatal(deref(answer.ErrorMessage))
	}
	led := map[protocol.NodeID]int{}
	for n, partition := range f.c.Image().Topic("a").Partitions() {
		if partition.Replicas[0]%2 == partition.Replicas[1]%2 {
			t.Errorf("partition %d lies in one rack: %v", n, partition.Replicas)
		}
		led[partition.Leader]++
	}
	for id := protocol.NodeID(1); id <= 4; id++ {
		if led[id] != 2 {
			t.Errorf("leaders %v", led)
		}
	}
}

func TestATopicMadeAnewHasAnotherID(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	first := f.create(createTopic("a", 1, 1))
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames = 1, []string{"a"}
	if answer := handle[*kmsg.DeleteTopicsResponse](f, req); answer.Topics[0].ErrorCode != 0 || f.c.Image().TopicCount() != 0 {
		t.Fatalf("%+v", answer)
	}
	if again := f.create(createTopic("a", 1, 1)); again.TopicID == first.TopicID {
		t.Error("the same id")
	}
}

func TestCreatePartitions(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	f.create(createTopic("a", 2, 1))
	widen := func(name string, count int32) kmsg.CreatePartitionsResponseTopic {
		req := kmsg.NewPtrCreatePartitionsRequest()
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, count
		req.Topics = append(req.Topics, topic)
		return handle[*kmsg.CreatePartitionsResponse](f, req).Topics[0]
	}
	for _, c := range []struct {
		name  string
		count int32
		code  protocol.ErrorCode
	}{
		{"no", 3, protocol.UnknownTopicOrPartition},
		{"a", 2, protocol.InvalidPartitions},
		{"a", 1, protocol.InvalidPartitions},
		{"a", 20_000, protocol.PolicyViolation},
		{"a", 5, protocol.None},
	} {
		if answer := widen(c.name, c.count); protocol.ErrorCode(answer.ErrorCode) != c.code {
			t.Errorf("%s to %d: %v %s", c.name, c.count, protocol.ErrorCode(answer.ErrorCode), deref(answer.ErrorMessage))
		}
	}
	if got := f.c.Image().Topic("a").PartitionCount(); got != 5 {
		t.Errorf("%d partitions", got)
	}
}

func TestProducerIDsAndDirectories(t *testing.T) {
	f := newFixture(t)
	epoch := f.join(1, 1)
	req := kmsg.NewPtrAllocateProducerIDsRequest()
	req.BrokerID, req.BrokerEpoch = 1, epoch
	for _, start := range []int64{0, 1000, 2000} {
		if got := handle[*kmsg.AllocateProducerIDsResponse](f, req); got.ProducerIDStart != start || got.ProducerIDLen != 1000 {
			t.Errorf("block %+v, want from %d", got, start)
		}
	}
	req.BrokerEpoch++
	if got := handle[*kmsg.AllocateProducerIDsResponse](f, req); protocol.ErrorCode(got.ErrorCode) != protocol.StaleBrokerEpoch {
		t.Errorf("stale epoch: %v", protocol.ErrorCode(got.ErrorCode))
	}
	topic := f.create(createTopic("a", 1, 1))
	assign := kmsg.NewPtrAssignReplicasToDirsRequest()
	assign.BrokerID, assign.BrokerEpoch = 1, epoch
	assign.Directories = []kmsg.AssignReplicasToDirsRequestDirectory{{
		ID: [16]byte{7},
		Topics: []kmsg.AssignReplicasToDirsRequestDirectoryTopic{{
			TopicID: topic.TopicID, Partitions: []kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{{Partition: 0}, {Partition: 5}},
		}},
	}}
	answer := handle[*kmsg.AssignReplicasToDirsResponse](f, assign).Directories[0].Topics[0].Partitions
	if answer[0].ErrorCode != 0 || protocol.ErrorCode(answer[1].ErrorCode) != protocol.UnknownTopicOrPartition {
		t.Errorf("%+v", answer)
	}
	if got := f.c.Image().Topic("a").Partition(0).Directory(1); got != (protocol.DirectoryID{7}) {
		t.Errorf("directory %v", got)
	}
}

// TestReplayGivesTheSameImage is the law of the machine: what Apply made is what
// the log makes.
func TestReplayGivesTheSameImage(t *testing.T) {
	f := newFixture(t)
	f.join(1, 1)
	f.create(createTopic("a", 3, 1))
	f.join(1, 2)
	again := New(f.c.options)
	if err := again.Apply(1, 1, f.now.UnixMilli(), f.log); err != nil {
		t.Fatal(err)
	}
	if !again.Image().Equal(f.c.Image()) {
		t.Fatal("replay made another Image")
	}
}
