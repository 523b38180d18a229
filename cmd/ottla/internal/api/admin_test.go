package api

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

// increments makes an IncrementalAlterConfigs of one resource: "key=value", "key+=value", "key-".
func increments(version int16, kind kmsg.ConfigResourceType, name string, changes ...string) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = version
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	for _, change := range changes {
		one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		if key, value, ok := strings.Cut(change, "+="); ok {
			one.Name, one.Op, one.Value = key, kmsg.IncrementalAlterConfigOpAppend, &value
		} else if key, value, ok := strings.Cut(change, "="); ok {
			one.Name, one.Op, one.Value = key, kmsg.IncrementalAlterConfigOpSet, &value
		} else {
			one.Name, one.Op = strings.TrimSuffix(change, "-"), kmsg.IncrementalAlterConfigOpDelete
		}
		resource.Configs = append(resource.Configs, one)
	}
	req.Resources = append(req.Resources, resource)
	return req
}

func replacement(version int16, kind kmsg.ConfigResourceType, name string, settings ...string) *kmsg.AlterConfigsRequest {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Version = version
	resource := kmsg.NewAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		resource.Configs = append(resource.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: key, Value: &value})
	}
	req.Resources = append(req.Resources, resource)
	return req
}

func TestAlterConfigsOfATopic(t *testing.T) {
	for version := int16(0); version <= 1; version++ {
		f := newTestCluster(t, nil)
		f.join(1)
		f.create(newTopic("a", 1, 1, "retention.ms", "1000"))
		got := ask[*kmsg.IncrementalAlterConfigsResponse](f, increments(version, ofTopic, "a", "retention.ms=2000", "cleanup.policy+=compact"))
		if len(got.Resources) != 1 || got.Resources[0].ErrorCode != 0 || got.Resources[0].ErrorMessage != nil || got.Resources[0].ResourceName != "a" || got.Resources[0].ResourceType != ofTopic {
			t.Fatalf("version %d: %+v", version, got)
		}
		if set := f.image().Config(metadata.TopicConfig, "a"); set["retention.ms"] != "2000" || set["cleanup.policy"] != "delete,compact" {
			t.Errorf("version %d: %v", version, set)
		}
		dry := increments(version, ofTopic, "a", "retention.ms=3000")
		dry.ValidateOnly = true
		if got := ask[*kmsg.IncrementalAlterConfigsResponse](f, dry); got.Resources[0].ErrorCode != 0 || f.image().Config(metadata.TopicConfig, "a")["retention.ms"] != "2000" {
			t.Errorf("version %d, validate only: %+v", version, got)
		}
	}
	for version := int16(0); version <= 2; version++ {
		f := newTestCluster(t, nil)
		f.join(1)
		f.create(newTopic("a", 1, 1, "retention.ms", "1000"))
		got := ask[*kmsg.AlterConfigsResponse](f, replacement(version, ofTopic, "a", "retention.bytes=5"))
		if set := f.image().Config(metadata.TopicConfig, "a"); got.Resources[0].ErrorCode != 0 || len(set) != 1 || set["retention.bytes"] != "5" {
			t.Errorf("version %d: %+v, then %v", version, got, set)
		}
	}
}

// What the broker refuses by itself, in the words of 4.4.0, and the order of answers.
func TestAlterConfigsRefusedHere(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	null := increments(1, ofTopic, "a", "retention.ms=1", "retention.bytes=1")
	null.Resources[0].Configs[0].Value, null.Resources[0].Configs[1].Value = nil, nil
	odd := increments(1, ofBroker, "1", "log.retention.ms=1")
	odd.Resources[0].Configs[0].Op = 7
	oddTopic := increments(1, ofTopic, "a", "retention.ms=1")
	oddTopic.Resources[0].Configs[0].Op = 9
	for name, c := range map[string]struct {
		req  *kmsg.IncrementalAlterConfigsRequest
		code protocol.ErrorCode
		text string
	}{
		"null":             {null, protocol.InvalidRequest, "Null value not supported for : retention.ms, retention.bytes"},
		"a key twice":      {increments(1, ofTopic, "a", "retention.ms=1", "retention.ms=2"), protocol.InvalidRequest, "Error due to duplicate config keys"},
		"kind 3":           {increments(1, 3, "a", "x=1"), protocol.InvalidRequest, "Unknown resource type 3"},
		"operation":        {odd, protocol.InvalidRequest, "Unknown operations type 7"},
		"operation, topic": {oddTopic, protocol.UnknownServerError, ""},
		"another broker":   {increments(1, ofBroker, "2", "log.retention.ms=1"), protocol.InvalidRequest, "Unexpected broker id, expected 1, but received 2"},
		"no broker":        {increments(1, ofBroker, "x", "log.retention.ms=1"), protocol.InvalidRequest, "Node id must be an integer, but it is: x"},
		"read-only":        {increments(1, ofBroker, "1", "log.dirs=/x"), protocol.InvalidRequest, "Cannot update these configs dynamically: [log.dirs]"},
		"no list":          {increments(1, ofBroker, "1", "log.retention.ms+=1"), protocol.InvalidConfig, "Config value append is not allowed for config key: log.retention.ms"},
		"missing topic":    {increments(1, ofTopic, "none", "retention.ms=1"), protocol.UnknownTopicOrPartition, "The topic 'none' does not exist."},
	} {
		got := ask[*kmsg.IncrementalAlterConfigsResponse](f, c.req)
		if len(got.Resources) != 1 || protocol.ErrorCode(got.Resources[0].ErrorCode) != c.code || deref(got.Resources[0].ErrorMessage) != c.text {
			t.Errorf("%s: %+v %q", name, got, deref(got.Resources[0].ErrorMessage))
		}
	}
	mixed := increments(1, ofTopic, "a", "retention.ms=1")
	for _, more := range []*kmsg.IncrementalAlterConfigsRequest{
		increments(1, ofBroker, "7", "x=1"), increments(1, ofTopic, "none", "retention.ms=1"), increments(1, ofTopic, "twice"), increments(1, ofTopic, "twice"),
		increments(1, ofBroker, "1", "log.retention.ms=9"),
	} {
		mixed.Resources = append(mixed.Resources, more.Resources[0])
	}
	var codes []protocol.ErrorCode
	for _, r := range ask[*kmsg.IncrementalAlterConfigsResponse](f, mixed).Resources {
		codes = append(codes, protocol.ErrorCode(r.ErrorCode))
	}
	want := []protocol.ErrorCode{0, protocol.InvalidRequest, protocol.UnknownTopicOrPartition, protocol.InvalidRequest, protocol.InvalidRequest, 0}
	if len(codes) != len(want) {
		t.Fatal(codes)
	}
	for i := range want {
		if codes[i] != want[i] {
			t.Errorf("mixed: %v, want %v", codes, want)
			break
		}
	}
	if f.image().Config(metadata.BrokerConfig, "1")["log.retention.ms"] != "9" {
		t.Error("the broker's setting is not there")
	}
}

// What a controller's listener refuses, it refuses with words of its own.
func TestAlterConfigsOnTheController(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	twice := increments(1, ofTopic, "a", "retention.ms=1")
	twice.Resources = append(twice.Resources, twice.Resources[0])
	for _, c := range []struct {
		req  *kmsg.IncrementalAlterConfigsRequest
		code protocol.ErrorCode
		text string
	}{
		{twice, protocol.InvalidRequest, "Duplicate resource."},
		{increments(1, ofLogger, "a", "root=DEBUG"), protocol.InvalidRequest, "Node id must be an integer, but it is: a"},
		{increments(1, ofLogger, "1", "zork=DEBUG"), protocol.InvalidConfig, "Logger zork does not exist!"},
		{increments(1, 99, "a", "cleanup.policy+=delete"), protocol.UnsupportedVersion, "Unknown resource type 99."},
		{increments(1, ofTopic, "a", "retention.ms=5"), 0, ""},
	} {
		got := askOn[*kmsg.IncrementalAlterConfigsResponse](f, controller, c.req).Resources
		if len(got) != 1 || protocol.ErrorCode(got[0].ErrorCode) != c.code || deref(got[0].ErrorMessage) != c.text {
			t.Errorf("%+v: %+v", c.req.Resources, got)
		}
	}
	all := replacement(2, ofTopic, "a", "retention.ms=1")
	all.Resources = append(all.Resources, all.Resources[0])
	if got := askOn[*kmsg.AlterConfigsResponse](f, controller, all).Resources; len(got) != 1 || deref(got[0].ErrorMessage) != "Duplicate resource." {
		t.Errorf("%+v", got)
	}
	if got := askOn[*kmsg.AlterConfigsResponse](f, controller, replacement(2, ofLogger, "1")).Resources; protocol.ErrorCode(got[0].ErrorCode) != protocol.InvalidRequest || deref(got[0].ErrorMessage) != "Unexpected resource type BROKER_LOGGER." {
		t.Errorf("%+v", got)
	}
}

func TestAlterConfigsRights(t *testing.T) {
	f := newTestCluster(t, allow("ALTER_CONFIGS a"))
	f.join(1)
	for _, c := range []struct {
		kind kmsg.ConfigResourceType
		name string
		code protocol.ErrorCode
	}{
		{ofTopic, "a", protocol.UnknownTopicOrPartition},
		{ofTopic, "b", protocol.TopicAuthorizationFailed},
		{ofBroker, "1", protocol.ClusterAuthorizationFailed},
		{ofLogger, "1", protocol.ClusterAuthorizationFailed},
		{clientMetricsResource, "m", protocol.ClusterAuthorizationFailed},
		{groupResource, "g", protocol.GroupAuthorizationFailed},
	} {
		if got := ask[*kmsg.IncrementalAlterConfigsResponse](f, increments(1, c.kind, c.name)); protocol.ErrorCode(got.Resources[0].ErrorCode) != c.code {
			t.Errorf("%v %s: %v", c.kind, c.name, protocol.ErrorCode(got.Resources[0].ErrorCode))
		}
		if c.kind == ofLogger {
			continue
		}
		if got := ask[*kmsg.AlterConfigsResponse](f, replacement(2, c.kind, c.name)); protocol.ErrorCode(got.Resources[0].ErrorCode) != c.code {
			t.Errorf("replacing, %v %s: %v", c.kind, c.name, protocol.ErrorCode(got.Resources[0].ErrorCode))
		}
	}
}

func TestAlterConfigsWithoutController(t *testing.T) {
	f := newTestCluster(t, nil)
	f.failForwarding(errors.New("gone"))
	if got := ask[*kmsg.IncrementalAlterConfigsResponse](f, increments(1, ofTopic, "a")); protocol.ErrorCode(got.Resources[0].ErrorCode) != protocol.RequestTimedOut || got.Resources[0].ResourceName != "a" {
		t.Errorf("%+v", got)
	}
	if got := ask[*kmsg.AlterConfigsResponse](f, replacement(2, ofTopic, "a")); protocol.ErrorCode(got.Resources[0].ErrorCode) != protocol.RequestTimedOut {
		t.Errorf("%+v", got)
	}
	for _, req := range []kmsg.Request{kmsg.NewPtrElectLeadersRequest(), kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewPtrListPartitionReassignmentsRequest(), kmsg.NewPtrUpdateFeaturesRequest(), kmsg.NewPtrUnregisterBrokerRequest(), kmsg.NewPtrDescribeQuorumRequest()} {
		if e, ok := req.(*kmsg.ElectLeadersRequest); ok {
			e.Version = 2
		}
		if got := topCode(f.exchange(plain, plain, req)); got != protocol.RequestTimedOut {
			t.Errorf("%T: %v", req, got)
		}
	}
}

func TestLoggers(t *testing.T) {
	f := newFixture(t)
	p := f.connect()
	level := f.handler.node.Level
	alter := func(changes ...string) (protocol.ErrorCode, string) {
		t.Helper()
		got := request[*kmsg.IncrementalAlterConfigsResponse](p, increments(1, ofLogger, "1", changes...), 1).Resources[0]
		return protocol.ErrorCode(got.ErrorCode), deref(got.ErrorMessage)
	}
	if code, text := alter("root=DEBUG"); code != 0 || level.Level() != slog.LevelDebug {
		t.Errorf("%v %s, level %v", code, text, level.Level())
	}
	described := request[*kmsg.DescribeConfigsResponse](p, configsRequest(4, resource(ofLogger, "1")), 4).Resources[0].Configs
	if len(described) != 1 || described[0].Name != "root" || deref(described[0].Value) != "DEBUG" || described[0].Source != kmsg.ConfigSourceDynamicBrokerLoggerConfig {
		t.Errorf("%+v", described)
	}
	for change, want := range map[string]string{
		"zork=DEBUG": "Logger zork does not exist!", "zork-": "Logger zork does not exist!", "root-": "Removing the log level of the root logger is not allowed",
		"root+=INFO": "APPEND operation is not allowed for the BROKER_LOGGER resource",
		"root=loud":  "Cannot set the log level of root to loud as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
	} {
		if code, text := alter(change); code == 0 || text != want || level.Level() != slog.LevelDebug {
			t.Errorf("%s: %v %q, level %v", change, code, text, level.Level())
		}
	}
	for _, l := range []string{"TRACE", "FATAL", "WARN", "ERROR", "INFO"} {
		if code, _ := alter("root=" + l); code != 0 {
			t.Errorf("%s: %v", l, code)
		}
	}
}

func TestListConfigResources(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.register(registration(2)) // fenced
	f.create(newTopic("b", 1, 1), newTopic("a", 1, 1))
	ask[*kmsg.IncrementalAlterConfigsResponse](f, increments(1, clientMetricsResource, "m", "interval.ms=1000"))
	ask[*kmsg.IncrementalAlterConfigsResponse](f, increments(1, groupResource, "g", "consumer.session.timeout.ms=46000"))
	list := func(version int16, kinds ...int8) (protocol.ErrorCode, string) {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = version, kinds
		resp := ask[*kmsg.ListConfigResourcesResponse](f, req)
		var all []string
		for _, r := range resp.ConfigResources {
			all = append(all, r.Name)
		}
		return protocol.ErrorCode(resp.ErrorCode), strings.Join(all, " ")
	}
	for _, c := range []struct {
		version int16
		kinds   []int8
		want    string
	}{{0, nil, "m"}, {1, nil, "g m 1 1 a b"}, {1, []int8{2}, "a b"}, {1, []int8{16, 2}, "m a b"}, {1, []int8{4}, "1"}, {1, []int8{8}, "1"}, {1, []int8{32}, "g"}} {
		if code, got := list(c.version, c.kinds...); code != 0 || got != c.want {
			t.Errorf("version %d, %v: %v %q, want %q", c.version, c.kinds, code, got, c.want)
		}
	}
	for _, kind := range []int8{0, 3, 77} {
		if code, got := list(1, 2, kind); code != protocol.UnsupportedVersion || got != "" {
			t.Errorf("kind %d: %v %q", kind, code, got)
		}
	}
	f.handler.node.Authorize = nobody{}
	if code, _ := list(1); code != protocol.ClusterAuthorizationFailed {
		t.Error(code)
	}
}

func TestDescribeLogDirs(t *testing.T) {
	versions(t, protocol.DescribeLogDirs, func(t *testing.T, version int16) {
		f := newFixture(t, func(n *Node) {
			settings := *n.Config
			settings.LogDirs = []string{"/data"}
			n.Config = &settings
		})
		f.topic("a", topicSpec{partitions: 2})
		p := f.connect()
		request[*kmsg.ProduceResponse](p, produceTo(f, 9, 1, "a", batchOf("x", "y")), 9)
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "a", Partitions: []int32{1, 9, 0}}, {Topic: "none", Partitions: []int32{0}}}
		resp := request[*kmsg.DescribeLogDirsResponse](p, req, version)
		if len(resp.Dirs) != 1 || resp.Dirs[0].Dir != "/data" || resp.Dirs[0].ErrorCode != 0 || len(resp.Dirs[0].Topics) != 1 || len(resp.Dirs[0].Topics[0].Partitions) != 2 {
			t.Fatalf("%+v", resp)
		}
		first := resp.Dirs[0].Topics[0].Partitions[0]
		described, err := f.replicas.Describe(protocol.TopicPartition{Topic: "a"})
		if err != nil || first.Partition != 0 || first.Size != described.SizeBytes || first.Size == 0 || first.OffsetLag != 0 || first.IsFuture {
			t.Errorf("%+v beside %+v %v", first, described, err)
		}
		if known := version >= 4; known != (resp.Dirs[0].TotalBytes > 0 && resp.Dirs[0].UsableBytes > 0) {
			t.Errorf("%d and %d bytes", resp.Dirs[0].TotalBytes, resp.Dirs[0].UsableBytes)
		}
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		if none := request[*kmsg.DescribeLogDirsResponse](p, req, version); len(none.Dirs) != 1 || len(none.Dirs[0].Topics) != 0 {
			t.Errorf("of no topic: %+v", none)
		}
		req.Topics = nil
		if all := request[*kmsg.DescribeLogDirsResponse](p, req, version); len(all.Dirs[0].Topics) != 1 || len(all.Dirs[0].Topics[0].Partitions) != 2 {
			t.Errorf("of all: %+v", all)
		}
		f.store.FailDirectory(f.store.Directories()[0].ID, errors.New("disk on fire"))
		failed := request[*kmsg.DescribeLogDirsResponse](p, req, version).Dirs[0]
		if protocol.ErrorCode(failed.ErrorCode) != protocol.KafkaStorageError || len(failed.Topics) != 0 || failed.TotalBytes != -1 {
			t.Errorf("failed: %+v", failed)
		}
	})
}

func TestDescribeProducers(t *testing.T) {
	f := newFixture(t)
	f.topic("a", topicSpec{partitions: 1})
	p := f.connect()
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence = 77, 3, 0
	request[*kmsg.ProduceResponse](p, produceTo(f, 9, 1, "a", buildBatch(options, "x", "y")), 9)
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "a", Partitions: []int32{0, 9}}, {Topic: "none", Partitions: []int32{0}}}
	resp := request[*kmsg.DescribeProducersResponse](p, req, 0)
	first := resp.Topics[0].Partitions[0]
	if first.ErrorCode != 0 || len(first.ActiveProducers) != 1 {
		t.Fatalf("%+v", resp)
	}
	if one := first.ActiveProducers[0]; one.ProducerID != 77 || one.ProducerEpoch != 3 || one.LastSequence != 1 || one.CoordinatorEpoch != -1 || one.CurrentTxnStartOffset != -1 || one.LastTimestamp <= 0 {
		t.Errorf("%+v", one)
	}
	odd := kmsg.NewPtrDescribeProducersRequest()
	odd.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "..", Partitions: []int32{0}}}
	if got := request[*kmsg.DescribeProducersResponse](p, odd, 0).Topics[0].Partitions[0]; protocol.ErrorCode(got.ErrorCode) != protocol.InvalidTopicException ||
		deref(got.ErrorMessage) != "Topic name is invalid: '..' is not allowed" {
		t.Errorf("%+v", got)
	}
	unknown, none := resp.Topics[0].Partitions[1], resp.Topics[1].Partitions[0]
	if protocol.ErrorCode(unknown.ErrorCode) != protocol.UnknownTopicOrPartition || unknown.ErrorMessage != nil {
		t.Errorf("%+v", unknown)
	}
	if protocol.ErrorCode(none.ErrorCode) != protocol.UnknownTopicOrPartition || deref(none.ErrorMessage) != "This server does not host this topic-partition." {
		t.Errorf("%+v", none)
	}
}

func TestDescribeQuorum(t *testing.T) {
	f := newTestCluster(t, nil)
	directory := protocol.DirectoryID{7}
	status := quorum.Status{Leader: 1, Epoch: 4, HighWatermark: 10, LogEnd: 12, Voters: raft.NewVoterSet(raft.Voter{
		ReplicaKey: raft.ReplicaKey{ID: 1, Directory: directory}, Endpoints: []raft.Endpoint{{Name: controller, Host: "here", Port: 9093}},
	})}
	f.handler.node.Quorum = func() quorum.Status { return status }
	question := func(topic string, partition int32) *kmsg.DescribeQuorumRequest {
		req := kmsg.NewPtrDescribeQuorumRequest()
		req.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: topic, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: partition}}}}
		return req
	}
	for _, listener := range []string{plain, controller} {
		for version := int16(0); version <= 2; version++ {
			req := question(protocol.ClusterMetadataTopic, 0)
			req.Version = version
			resp := askOn[*kmsg.DescribeQuorumResponse](f, listener, req)
			part := resp.Topics[0].Partitions[0]
			if resp.ErrorCode != 0 || part.ErrorCode != 0 || part.LeaderID != 1 || part.LeaderEpoch != 4 || part.HighWatermark != 10 || len(part.CurrentVoters) != 1 || len(part.Observers) != 0 {
				t.Fatalf("%s version %d: %+v", listener, version, resp)
			}
			voter := part.CurrentVoters[0]
			if voter.ReplicaID != 1 || voter.LogEndOffset != 12 || (voter.LastFetchTimestamp > 0) != (version >= 1) || (voter.ReplicaDirectoryID == directory) != (version >= 2) {
				t.Errorf("%s version %d: %+v", listener, version, voter)
			}
			if version >= 2 && (len(resp.Nodes) != 1 || resp.Nodes[0].Listeners[0].Host != "here" || resp.Nodes[0].Listeners[0].Port != 9093) {
				t.Errorf("nodes %+v", resp.Nodes)
			}
		}
	}
	for _, req := range []*kmsg.DescribeQuorumRequest{question("zork", 0), question(protocol.ClusterMetadataTopic, 1)} {
		req.Version = 2
		if part := ask[*kmsg.DescribeQuorumResponse](f, req).Topics[0].Partitions[0]; protocol.ErrorCode(part.ErrorCode) != protocol.UnknownTopicOrPartition {
			t.Errorf("%+v", part)
		}
	}
	status.Leader = 2
	if part := askOn[*kmsg.DescribeQuorumResponse](f, controller, question(protocol.ClusterMetadataTopic, 0)).Topics[0].Partitions[0]; protocol.ErrorCode(part.ErrorCode) != protocol.NotLeaderOrFollower {
		t.Errorf("not the leader: %+v", part)
	}
}

// writeRecords puts records into the metadata, as who serves them would.
func (f *testCluster) writeRecords(records ...schema.MetadataRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		f.apply(machine.Result{Records: []machine.Record{{Value: schema.EncodeMetadata(r, 0)}}})
	}
}

func TestDescribeUserScramCredentials(t *testing.T) {
	f := newTestCluster(t, nil)
	describe := func(users ...string) []kmsg.DescribeUserSCRAMCredentialsResponseResult {
		req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		for _, user := range users {
			req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: user})
		}
		resp := ask[*kmsg.DescribeUserSCRAMCredentialsResponse](f, req)
		if resp.ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
		return resp.Results
	}
	if got := describe(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	credential := func(user string, mechanism int8) schema.MetadataRecord {
		r := schema.NewUserScramCredentialRecord()
		r.Name, r.Mechanism, r.Iterations, r.Salt, r.StoredKey, r.ServerKey = user, mechanism, 4096, []byte{1}, []byte{2}, []byte{3}
		return r
	}
	f.writeRecords(credential("b", 2), credential("b", 1), credential("a", 1))
	got := describe()
	if len(got) != 2 || got[0].User != "a" || len(got[1].CredentialInfos) != 2 || got[1].CredentialInfos[1].Mechanism != 2 || got[1].CredentialInfos[1].Iterations != 4096 {
		t.Errorf("%+v", got)
	}
	got = describe("a", "c", "b", "b")
	if len(got) != 3 || got[0].ErrorCode != 0 ||
		protocol.ErrorCode(got[1].ErrorCode) != protocol.DuplicateResource || deref(got[1].ErrorMessage) != "Cannot describe SCRAM credentials for the same user twice in a single request: b" ||
		protocol.ErrorCode(got[2].ErrorCode) != protocol.ResourceNotFound || deref(got[2].ErrorMessage) != "Attempt to describe a user credential that does not exist: c" {
		t.Errorf("%+v", got)
	}
}

func TestDescribeClientQuotas(t *testing.T) {
	f := newTestCluster(t, nil)
	describe := func(strict bool, parts ...kmsg.DescribeClientQuotasRequestComponent) *kmsg.DescribeClientQuotasResponse {
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.Version, req.Strict, req.Components = 1, strict, parts
		return ask[*kmsg.DescribeClientQuotasResponse](f, req)
	}
	part := func(kind string, match kmsg.QuotasMatchType, name *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: match, Match: name}
	}
	if got := describe(false); got.ErrorCode != 0 || got.Entries == nil || len(got.Entries) != 0 {
		t.Errorf("%+v", got)
	}
	quota := func(key string, value float64, entity ...string) schema.MetadataRecord {
		r := schema.NewClientQuotaRecord()
		r.Key, r.Value = key, value
		for i := 0; i < len(entity); i += 2 {
			e := schema.ClientQuotaEntity{EntityType: entity[i]}
			if entity[i+1] != "" {
				e.EntityName = &entity[i+1]
			}
			r.Entity = append(r.Entity, e)
		}
		return r
	}
	f.writeRecords(quota("producer_byte_rate", 1, "user", "bob"), quota("consumer_byte_rate", 2, "user", "bob"), quota("producer_byte_rate", 3, "user", ""),
		quota("producer_byte_rate", 4, "user", "bob", "client-id", "x"))
	bob := "bob"
	for name, c := range map[string]struct {
		got    *kmsg.DescribeClientQuotasResponse
		values []float64
	}{
		"all":           {describe(false), []float64{4, 3, 2, 1}},
		"bob":           {describe(false, part("user", matchExact, &bob)), []float64{4, 2, 1}},
		"bob, strictly": {describe(true, part("user", matchExact, &bob)), []float64{2, 1}},
		"default":       {describe(true, part("user", matchDefault, nil)), []float64{3}},
		"any":           {describe(true, part("user", matchSpecified, nil)), []float64{3, 2, 1}},
		"nobody":        {describe(false, part("ip", matchSpecified, nil)), nil},
	} {
		sum, want := 0.0, 0.0
		for _, e := range c.got.Entries {
			for _, v := range e.Values {
				sum += v.Value * v.Value
			}
		}
		for _, v := range c.values {
			want += v * v
		}
		if c.got.ErrorCode != 0 || sum != want {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
	for text, got := range map[string]*kmsg.DescribeClientQuotasResponse{
		"Invalid empty entity type.":                                        describe(false, part("", matchDefault, nil)),
		"Unsupported entity type zork":                                      describe(false, part("zork", matchDefault, nil)),
		"Unknown match type 9":                                              describe(false, part("user", 9, nil)),
		"Entity type user cannot appear more than once in the filter.":      describe(false, part("user", matchDefault, nil), part("user", matchDefault, nil)),
		"Request specified MATCH_TYPE_EXACT, but set match string to null.": describe(false, part("user", matchExact, nil)),
	} {
		if got.ErrorCode == 0 || deref(got.ErrorMessage) != text || got.Entries != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestDescribeACLs(t *testing.T) {
	f := newTestCluster(t, nil)
	for version := int16(1); version <= 3; version++ {
		req := kmsg.NewPtrDescribeACLsRequest()
		req.Version, req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType = version, 1, 1, 1, 1
		got := ask[*kmsg.DescribeACLsResponse](f, req)
		if protocol.ErrorCode(got.ErrorCode) != protocol.SecurityDisabled || deref(got.ErrorMessage) != "No Authorizer is configured on the broker" || len(got.Resources) != 0 {
			t.Errorf("version %d: %+v", version, got)
		}
		req.Operation = 99 // nobody looks
		if got = ask[*kmsg.DescribeACLsResponse](f, req); protocol.ErrorCode(got.ErrorCode) != protocol.SecurityDisabled {
			t.Errorf("version %d, an unknown operation: %+v", version, got)
		}
	}
}

// Up to version 1 the features are named again, and version 0 never goes down.
func TestUpdateFeatures(t *testing.T) {
	f := newTestCluster(t, nil)
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrUpdateFeaturesRequest()
		req.Version, req.TimeoutMillis = version, 1000
		update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		update.Feature, update.MaxVersionLevel, update.UpgradeType = metadata.MetadataVersionFeature, int16(metadata.MaxMetadataVersion), 1
		req.FeatureUpdates = append(req.FeatureUpdates, update)
		resp := ask[*kmsg.UpdateFeaturesResponse](f, req)
		if resp.ErrorCode != 0 || len(resp.Results) != max(0, min(1, 2-int(version))) {
			t.Errorf("version %d: %+v", version, resp)
		}
		req.FeatureUpdates[0].MaxVersionLevel, req.FeatureUpdates[0].UpgradeType, req.FeatureUpdates[0].AllowDowngrade = 31, 3, true
		resp = ask[*kmsg.UpdateFeaturesResponse](f, req)
		want := "Unsafe metadata downgrade is not supported"
		if version == 0 {
			want = "without setting the upgrade type"
		}
		if protocol.ErrorCode(resp.ErrorCode) != protocol.InvalidUpdateVersion || !strings.Contains(deref(resp.ErrorMessage), want) || len(resp.Results) != 0 {
			t.Errorf("version %d, down: %+v %s", version, resp, deref(resp.ErrorMessage))
		}
	}
}

// A broker takes what is the cluster's affair, and passes it on in every version.
func TestClusterWrites(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	for version := int16(0); version <= 2; version++ {
		elect := kmsg.NewPtrElectLeadersRequest()
		elect.Version, elect.TimeoutMillis = version, 1000
		elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "a", Partitions: []int32{0}}}
		resp := ask[*kmsg.ElectLeadersResponse](f, elect)
		if resp.ErrorCode != 0 || protocol.ErrorCode(resp.Topics[0].Partitions[0].ErrorCode) != protocol.ElectionNotNeeded {
			t.Errorf("version %d: %+v", version, resp)
		}
		elect.TimeoutMillis = 0
		if late := ask[*kmsg.ElectLeadersResponse](f, elect); protocol.ErrorCode(late.Topics[0].Partitions[0].ErrorCode) != protocol.RequestTimedOut {
			t.Errorf("version %d, in no time: %+v", version, late)
		}
	}
	odd := kmsg.NewPtrElectLeadersRequest()
	odd.Version, odd.TimeoutMillis, odd.ElectionType = 2, 1000, 7
	odd.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "a", Partitions: []int32{0}}}
	if resp := ask[*kmsg.ElectLeadersResponse](f, odd); protocol.ErrorCode(resp.ErrorCode) != protocol.InvalidRequest || deref(resp.Topics[0].Partitions[0].ErrorMessage) != "Unknown election type 7" {
		t.Errorf("%+v", resp)
	}
	for version := int16(0); version <= 1; version++ {
		reassign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		reassign.Version, reassign.TimeoutMillis = version, 1000
		reassign.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0, Replicas: []int32{1}}}}}
		if resp := ask[*kmsg.AlterPartitionAssignmentsResponse](f, reassign); resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Errorf("version %d: %+v", version, resp)
		}
	}
	list := kmsg.NewPtrListPartitionReassignmentsRequest()
	for _, list.TimeoutMillis = range []int32{1000, 0} { // kafka-go sends none, and Apache Kafka answers it all the same
		if resp := ask[*kmsg.ListPartitionReassignmentsResponse](f, list); resp.ErrorCode != 0 || len(resp.Topics) != 0 {
			t.Errorf("timeout %d: %+v", list.TimeoutMillis, resp)
		}
	}
	forget := kmsg.NewPtrUnregisterBrokerRequest()
	forget.BrokerID = 7
	if resp := ask[*kmsg.UnregisterBrokerResponse](f, forget); protocol.ErrorCode(resp.ErrorCode) != protocol.BrokerIDNotRegistered || deref(resp.ErrorMessage) != "Broker ID 7 is not currently registered" {
		t.Errorf("%+v", resp)
	}
	f.register(registration(7))
	if resp := ask[*kmsg.UnregisterBrokerResponse](f, forget); resp.ErrorCode != 0 || f.image().Broker(7) != nil {
		t.Errorf("%+v", resp)
	}
	f.handler.node.Authorize = nobody{}
	for _, req := range []kmsg.Request{list, forget, odd, kmsg.NewPtrUpdateFeaturesRequest(), kmsg.NewPtrAlterPartitionAssignmentsRequest()} {
		if got := topCode(f.exchange(plain, plain, req)); got != protocol.ClusterAuthorizationFailed {
			t.Errorf("%T without rights: %v", req, got)
		}
	}
}
