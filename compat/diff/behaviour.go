package diff

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// behaviourStories are named by the numbers of the project's list of behaviours that a drop-in must get right, so that a failure
// says at once what kind of thing is wrong; README.md says where each number is tested. Sequences are in sequences.go.
var behaviourStories = []story{
	{"behaviour-001 ApiVersions in a version that there is not", unsupportedApiVersions},
	{"behaviour-004 names of clients", clientNames},
	{"behaviour-008 what is not served", notServed},
	{"behaviour-009 lengths of frames", frameLengths},
	{"behaviour-010 no client id", noClientID},
	{"behaviour-014 answers in order", inOrder},
	{"behaviour-015 acks=0", acksZero},
	{"behaviour-018 which topics Metadata tells", whichTopics},
	{"behaviour-020 names of topics", topicNames},
	{"behaviour-024 topics made on the way", autoCreation},
	{"behaviour-026 refused topics", refusedTopics},
	{"behaviour-027 defaults of topics", topicDefaults},
	{"behaviour-028 only to validate", validateOnly},
	{"behaviour-029 more in-sync replicas than there are", tooFewReplicas},
	{"behaviour-030 deleted topics", deletedTopics},
	{"behaviour-032 settings", settings},
	{"behaviour-035 elections", elections},
	{"behaviour-040 pages of DescribeTopicPartitions", pages},
	{"behaviour-042 acks", acks},
	{"behaviour-043 batches", badBatches},
	{"behaviour-047 sizes", sizes},
	{"behaviour-051 null keys", nullKeys},
	{"behaviour-052 times", times},
	{"behaviour-053 append time", appendTime},
	{"behaviour-054 compression", compression},
	{"behaviour-056 who leads", unknownTopics},
	{"behaviour-058b internal topics", internalTopics},
	{"behaviour-059 several partitions", severalPartitions},
	{"behaviour-060 producer ids", producerIDs},
	{"behaviour-061 duplicates, gaps and epochs", idempotence},
	{"behaviour-078 producers described", describedProducers},
	{"behaviour-080 from the middle of a batch", middles},
	{"behaviour-082 ends of a log", ends},
	{"behaviour-085 leader epochs", leaderEpochs},
	{"behaviour-088 ids and names", idsAndNames},
	{"behaviour-089 fetch sessions", fetchSessions},
	{"behaviour-092 offsets by time", offsetsByTime},
	{"behaviour-095 deleted records", deletedRecords},
	{"behaviour-124 another cluster", anotherCluster},
	{"the life of a topic", topicLife},
	{"settings of a topic, one after the other", settingsInTurn},
	{"reassignments", reassignments},
}

func unsupportedApiVersions(t *Teller) {
	for _, version := range []int16{6, 99, -1, 32767} {
		for _, on := range []string{"a", "controller"} {
			answer, otherwise := t.raw(on, frame(18, version, 7, nil, false, nil), 7)
			t.note(fmt.Sprintf("version %d on %s", version, on), fmt.Sprintf("%x %s", answer, otherwise))
		}
	}
	tell[*kmsg.ApiVersionsResponse](t, "the connection goes on", "a", 0, nodeless())
}

func clientNames(t *Teller) {
	for version := int16(3); version <= 5; version++ {
		for _, name := range []string{"", "a", "a b", "-a", "a-", "a.b-c", "é", strings.Repeat("a", 300)} {
			req := nodeless()
			req.ClientSoftwareName = name
			tell[*kmsg.ApiVersionsResponse](t, "name "+shorten(name), "a", version, req)
			req = nodeless()
			req.ClientSoftwareVersion = name
			tell[*kmsg.ApiVersionsResponse](t, "version "+shorten(name), "a", version, req)
		}
	}
}

func notServed(t *Teller) {
	for _, what := range []struct{ key, version int16 }{{3, 77}, {999, 0}, {0, 2}, {0, 0}, {1, 3}, {4, 0}, {5, 0}, {6, 0}, {7, 3}, {-1, 0}, {67, 0}, {62, 0}, {95, 0}} {
		for _, on := range []string{"a", "controller"} {
			answer, otherwise := t.raw(on, frame(what.key, what.version, 7, nil, false, make([]byte, 40)), 7)
			t.note(fmt.Sprintf("key %d version %d on %s", what.key, what.version, on), fmt.Sprintf("%x %s", answer, otherwise))
		}
	}
}

func frameLengths(t *Teller) {
	for _, length := range []uint32{0, 1, 7, 8, 0x7fffffff, 0xffffffff, 0x80000000, 104857601} {
		answer, otherwise := t.raw("a", append(binary.BigEndian.AppendUint32(nil, length), make([]byte, 12)...), 0)
		t.note(fmt.Sprintf("length %d", length), fmt.Sprintf("%x %s", answer, otherwise))
		t.hangUp("a")
	}
}

func noClientID(t *Teller) {
	for _, version := range []int16{0, 3} {
		req := nodeless()
		req.SetVersion(version)
		answer, otherwise := t.raw("a", frameOf(req, 7, nil), 7)
		resp, bad := decode(req, answer)
		t.note(fmt.Sprintf("ApiVersions %d", version), otherwise+t.told(resp, bad))
	}
	t.setUp(1, "b-topic")
	for _, version := range []int16{0, 9, 13} {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("b-topic")}}
		req.SetVersion(version)
		answer, otherwise := t.raw("a", frameOf(req, 7, nil), 7)
		resp, bad := decode(req, answer)
		t.note(fmt.Sprintf("Metadata %d", version), otherwise+t.told(resp, bad))
	}
}

// inOrder sends a fetch that waits and other requests behind it.
func inOrder(t *Teller) {
	t.setUp(1, "b-order")
	waiting := fetchOf(t, 11, "b-order", 0, 0)
	waiting.MaxWaitMillis = 400
	client, c := "teller", t.dialed("a")
	if c == nil {
		return
	}
	behind := kmsg.NewPtrMetadataRequest()
	behind.SetVersion(9)
	behind.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("b-order")}}
	list := []kmsg.Request{waiting, behind, waiting, nodeless(), behind}
	var all []byte
	for i, req := range list {
		all = append(all, frameOf(req, int32(100+i), &client)...)
	}
	if _, err := c.Write(all); err != nil {
		t.fail(err)
		return
	}
	for i, req := range list {
		body, otherwise := t.rawAnswer("a", int32(100+i))
		if otherwise != "" {
			t.note(fmt.Sprint(i), otherwise)
			return
		}
		resp, bad := decode(req, body)
		t.note(fmt.Sprint(i), t.told(resp, bad))
	}
}

func acksZero(t *Teller) {
	t.setUp(1, "b-acks")
	for _, version := range []int16{3, 9, 12, 13} {
		for _, c := range []struct {
			what  string
			topic string
			bytes []byte
		}{{"right", "b-acks", of("a").bytes()}, {"to an unknown topic", "b-none", of("a").bytes()}, {"a wrong checksum", "b-acks", of("a").with(func(b *batch) { b.wrongChecksum = true }).bytes()}} {
			req := t.producing(version, c.topic, 0, c.bytes)
			req.Acks = 0
			t.note(fmt.Sprintf("%s: Produce %d", c.what, version), t.unanswered("zero", req))
		}
	}
	tell[*kmsg.ListOffsetsResponse](t, "what arrived", "a", 7, listOf(t, "b-acks", -1))
}

func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	return req
}

func whichTopics(t *Teller) {
	t.setUp(2, "b-topic", "b-which")
	for version := int16(0); version <= 13; version++ {
		ask := func(what string, req *kmsg.MetadataRequest) {
			if version == 0 && req.Topics == nil {
				return
			}
			req.AllowAutoTopicCreation = version < 4
			tell[*kmsg.MetadataResponse](t, what, "a", version, req)
		}
		ask("two, one of them twice", metadataOf("b-which", "b-topic", "b-which"))
		if version > 0 {
			ask("none", metadataOf())
		}
		if version >= 4 { // before, it would be made
			ask("an unknown one", metadataOf("b-none", "b-which"))
		}
		with := metadataOf("b-which")
		with.IncludeTopicAuthorizedOperations, with.IncludeClusterAuthorizedOperations = true, true
		ask("with operations", with)
		if version >= 10 {
			byID := metadataOf()
			byID.Topics = []kmsg.MetadataRequestTopic{{TopicID: t.idOf("b-which")}, {TopicID: strangeID}}
			ask("ids", byID)
			both := metadataOf("b-which")
			both.Topics[0].TopicID = t.idOf("b-which")
			ask("id and name", both)
			ask("neither", &kmsg.MetadataRequest{Topics: []kmsg.MetadataRequestTopic{{}}})
		}
	}
}

func topicNames(t *Teller) {
	t.setUp(1, "b-dot.a")
	for _, name := range []string{"", ".", "..", "a b", "a/b", "é", strings.Repeat("n", 249), strings.Repeat("n", 250), "b-dot_a", "b-dot.a", "b_dot.a", "__b", "b-\x00"} {
		req := createOf(name, 1, 1)
		req.ValidateOnly = true
		tell[*kmsg.CreateTopicsResponse](t, "create "+shorten(name), "a", 4, req)
		ask := metadataOf(name)
		ask.AllowAutoTopicCreation = false
		tell[*kmsg.MetadataResponse](t, "ask for "+shorten(name), "a", 12, ask)
	}
	for _, name := range []string{"a b", "b-dot_a", ".."} {
		tell[*kmsg.MetadataResponse](t, "make on the way "+shorten(name), "a", 12, func() *kmsg.MetadataRequest {
			r := metadataOf(name)
			r.AllowAutoTopicCreation = true
			return r
		}())
	}
}

func autoCreation(t *Teller) {
	for _, version := range []int16{0, 3, 4, 13} {
		name := fmt.Sprintf("b-auto-%d", version)
		ask := metadataOf(name)
		ask.AllowAutoTopicCreation = true
		tell[*kmsg.MetadataResponse](t, "first", "a", version, ask)
		t.learn(name)
		tell[*kmsg.MetadataResponse](t, "again", "a", version, ask)
	}
	no := metadataOf("b-auto-no")
	no.AllowAutoTopicCreation = false
	tell[*kmsg.MetadataResponse](t, "not allowed", "a", 13, no)
	for _, version := range []int16{3, 9, 12} {
		tell[*kmsg.ProduceResponse](t, "not by writing", "a", version, t.producing(version, "b-auto-no", 0, of("a").bytes()))
	}
	tell[*kmsg.MetadataResponse](t, "still not there", "a", 13, no)
	internal := metadataOf("__transaction_state")
	internal.AllowAutoTopicCreation = false
	tell[*kmsg.MetadataResponse](t, "an internal one", "a", 12, internal)
}

func createOf(name string, partitions int32, replicas int16, configs ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, replicas
	for i := 0; i+1 < len(configs); i += 2 {
		value := &configs[i+1]
		if *value == "null" {
			value = nil
		}
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: value})
	}
	req.Topics = append(req.Topics, topic)
	return req
}

func assigned(name string, partitions int32, replicas int16, assignment ...[]int32) *kmsg.CreateTopicsRequest {
	req := createOf(name, partitions, replicas)
	for i, brokers := range assignment {
		req.Topics[0].ReplicaAssignment = append(req.Topics[0].ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: brokers})
	}
	return req
}

func refusedTopics(t *Teller) {
	t.setUp(1, "b-topic")
	for _, version := range []int16{2, 4, 5, 7} {
		ask := func(what string, req *kmsg.CreateTopicsRequest) {
			req.ValidateOnly = true
			tell[*kmsg.CreateTopicsResponse](t, what, "a", version, req)
		}
		ask("exists", createOf("b-topic", 1, 1))
		ask("too many replicas", createOf("b-new", 1, 2))
		ask("no partitions", createOf("b-new", 0, 1))
		ask("-2 partitions", createOf("b-new", -2, 1))
		ask("no replicas", createOf("b-new", 1, 0))
		ask("-2 replicas", createOf("b-new", 1, -2))
		ask("two million partitions", createOf("b-new", 2_000_000, 1))
		for _, config := range [][]string{
			{"zork", "1"},
			{"retention.ms", "x"},
			{"retention.ms", "-2"},
			{"cleanup.policy", "x"},
			{"cleanup.policy", ""},
			{"retention.ms", "null"},
			{"max.message.bytes", "-1"},
			{"compression.type", "zip"},
			{"min.insync.replicas", "0"},
			{"segment.bytes", "1"},
			{"message.timestamp.type", "never"},
			{"local.retention.ms", "99999999999999"},
			{"remote.storage.enable", "true"},
			{"", "x"},
			{"retention.ms", "5", "retention.ms", "6"},
			{"leader.replication.throttled.replicas", "x"},
			{"cleanup.policy", "delete,delete"},
		} {
			ask(strings.Join(config, "="), createOf("b-new", 1, 1, config...))
		}
		twice := createOf("b-new", 1, 1)
		twice.Topics = append(twice.Topics, twice.Topics[0], createOf("b-newer", 1, 1).Topics[0])
		ask("twice", twice)
		ask("assigned and counted", assigned("b-new", 1, 1, []int32{1}))
		ask("assigned to nobody", assigned("b-new", -1, -1, []int32{}))
		ask("assigned to a stranger", assigned("b-new", -1, -1, []int32{9}))
		ask("assigned twice to one", assigned("b-new", -1, -1, []int32{1, 1}))
		ask("assigned to -1", assigned("b-new", -1, -1, []int32{-1}))
		gap := assigned("b-new", -1, -1, []int32{1}, []int32{1})
		gap.Topics[0].ReplicaAssignment[1].Partition = 2
		ask("assigned with a gap", gap)
		unequal := assigned("b-new", -1, -1, []int32{1}, []int32{1, 9})
		ask("assigned unequally", unequal)
	}
}

func topicDefaults(t *Teller) {
	for _, version := range []int16{2, 3, 4, 7} {
		name := fmt.Sprintf("b-default-%d", version)
		tell[*kmsg.CreateTopicsResponse](t, "defaults", "a", version, createOf(name, -1, -1))
	}
	tell[*kmsg.CreateTopicsResponse](t, "with settings", "a", 7, createOf("b-default-set", 3, -1, "cleanup.policy", "compact", "retention.ms", "5"))
	t.learn("b-default-7", "b-default-set")
	tell[*kmsg.MetadataResponse](t, "then", "a", 12, metadataOf("b-default-7", "b-default-set"))
}

func validateOnly(t *Teller) {
	for _, name := range []string{"b-valid", "a b"} {
		req := createOf(name, 2, 1)
		req.ValidateOnly = true
		tell[*kmsg.CreateTopicsResponse](t, "create "+name, "a", 6, req)
	}
	ask := metadataOf("b-valid")
	ask.AllowAutoTopicCreation = false
	tell[*kmsg.MetadataResponse](t, "it is not there", "a", 12, ask)
	t.setUp(2, "b-valid-parts")
	for _, c := range []struct {
		topic string
		count int32
	}{{"b-valid-parts", 3}, {"b-valid-parts", 2}, {"b-valid-parts", 1}, {"b-valid-parts", 0}, {"b-valid-parts", -1}, {"b-none", 3}} {
		for version := int16(0); version <= 3; version++ {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis, req.ValidateOnly = 10_000, true
			req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: c.topic, Count: c.count}}
			tell[*kmsg.CreatePartitionsResponse](t, fmt.Sprintf("%s: behaviour-031 partitions %d", c.topic, c.count), "a", version, req)
		}
	}
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter.ValidateOnly = true
	alter.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 2, ResourceName: "b-valid-parts", Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: kmsg.StringPtr("77")}}}}
	tell[*kmsg.IncrementalAlterConfigsResponse](t, "a setting", "a", 1, alter)
	tell[*kmsg.DescribeConfigsResponse](t, "it is not set", "a", 4, describeOf(2, "b-valid-parts", "retention.ms"))
}

func describeOf(kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms = true
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
	return req
}

func tooFewReplicas(t *Teller) {
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 4, createOf("b-min-isr", 1, 1, "min.insync.replicas", "2"))
	t.learn("b-min-isr")
	tell[*kmsg.ProduceResponse](t, "acks=all", "a", 11, t.producing(11, "b-min-isr", 0, of("a").bytes()))
}

func deletedTopics(t *Teller) {
	t.setUp(1, "b-deleted")
	old := t.idOf("b-deleted")
	t.names[fmt.Sprintf("%x", old)] = "<the first id>"
	deletion := func(topics ...kmsg.DeleteTopicsRequestTopic) *kmsg.DeleteTopicsRequest {
		return &kmsg.DeleteTopicsRequest{TimeoutMillis: 10_000, Topics: topics}
	}
	name := func(n string) kmsg.DeleteTopicsRequestTopic { return kmsg.DeleteTopicsRequestTopic{Topic: &n} }
	for version := int16(1); version <= 5; version++ {
		tell[*kmsg.DeleteTopicsResponse](t, "unknown", "a", version, &kmsg.DeleteTopicsRequest{TimeoutMillis: 10_000, TopicNames: []string{"b-none"}})
	}
	tell[*kmsg.DeleteTopicsResponse](t, "unknown", "a", 6, deletion(name("b-none")))
	tell[*kmsg.DeleteTopicsResponse](t, "unknown id", "a", 6, deletion(kmsg.DeleteTopicsRequestTopic{TopicID: strangeID}))
	tell[*kmsg.DeleteTopicsResponse](t, "by name and by id", "a", 6, deletion(name("b-deleted"), kmsg.DeleteTopicsRequestTopic{TopicID: old}))
	tell[*kmsg.DeleteTopicsResponse](t, "neither", "a", 6, deletion(kmsg.DeleteTopicsRequestTopic{}))
	tell[*kmsg.DeleteTopicsResponse](t, "the known and an unknown", "a", 6, deletion(name("b-deleted"), name("b-none")))
	gone := metadataOf("b-deleted")
	gone.AllowAutoTopicCreation = false
	for range 400 {
		resp := secret[*kmsg.MetadataResponse](t, "setup", 12, gone)
		if t.err != nil || resp != nil && resp.Topics[0].ErrorCode == 3 {
			break
		}
		pause()
	}
	tell[*kmsg.MetadataResponse](t, "gone", "a", 12, gone)
	tell[*kmsg.FetchResponse](t, "fetch of the gone id", "a", 13, fetchOf(t, 13, "b-deleted", 0, 0))
	delete(t.ids, "b-deleted")
	t.setUp(1, "b-deleted")
	fresh := t.idOf("b-deleted")
	t.names[fmt.Sprintf("%x", fresh)] = "<the second id>"
	t.ids["b-deleted"] = old
	for _, version := range []int16{12, 13} {
		tell[*kmsg.ProduceResponse](t, "produce, with the old id if any", "a", version, t.producing(version, "b-deleted", 0, of("a").bytes()))
		tell[*kmsg.FetchResponse](t, "fetch, with the old id if any", "a", version, fetchOf(t, version, "b-deleted", 0, 0))
	}
	t.ids["b-deleted"] = fresh
	tell[*kmsg.ProduceResponse](t, "produce with the new id", "a", 13, t.producing(13, "b-deleted", 0, of("b").bytes()))
}

func anotherCluster(t *Teller) {
	resp := secret[*kmsg.DescribeClusterResponse](t, "a", 1, kmsg.NewPtrDescribeClusterRequest())
	if resp == nil {
		return
	}
	for _, on := range []string{"a", "controller"} {
		for _, cluster := range []*string{nil, kmsg.StringPtr(""), &resp.ClusterID, kmsg.StringPtr("AAAAAAAAAAAAAAAAAAAAAA")} {
			for _, node := range []int32{-1, 1, 2} {
				req := nodeless()
				req.ClusterID, req.NodeID = cluster, node
				shown := "none"
				if cluster != nil {
					shown = mark(*cluster)
					if *cluster != resp.ClusterID && shown != "" {
						shown = "another"
					}
				}
				tell[*kmsg.ApiVersionsResponse](t, fmt.Sprintf("cluster %q node %d on %s", shown, node, on), on, 5, req)
			}
		}
	}
}
