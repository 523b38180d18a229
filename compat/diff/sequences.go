package diff

import (
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var longNumbers = regexp.MustCompile(`\d{12,}`)

func settings(t *Teller) {
	t.setUp(1, "b-settings")
	set := func(kind kmsg.ConfigResourceType, name, key string, op kmsg.IncrementalAlterConfigOp, value *string) *kmsg.IncrementalAlterConfigsRequest {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Op: op, Value: value}}}}
		return req
	}
	text := kmsg.StringPtr
	for version := int16(0); version <= 1; version++ {
		for _, c := range []struct {
			key   string
			op    kmsg.IncrementalAlterConfigOp
			value *string
		}{
			{"cleanup.policy", 2, text("compact")},
			{"cleanup.policy", 2, text("compact")},
			{"cleanup.policy", 3, text("delete")},
			{"cleanup.policy", 3, text("none of it")},
			{"cleanup.policy", 1, nil},
			{"cleanup.policy", 1, nil},
			{"retention.ms", 2, text("5")},
			{"retention.ms", 3, text("5")},
			{"zork", 0, text("5")},
			{"zork", 1, nil},
			{"retention.ms", 0, text("-5")},
			{"retention.ms", 0, text("")},
			{"retention.ms", 0, nil},
			{"retention.ms", 0, text(" 7 ")},
			{"", 0, text("5")},
			{"max.message.bytes", 0, text("99999999999")},
			{"compression.type", 0, text("GZIP")},
			{"preallocate", 0, text("maybe")},
			{"min.cleanable.dirty.ratio", 0, text("1.5")},
			{"compression.gzip.level", 0, text("10")},
			{"compression.zstd.level", 0, text("-200000")},
			{"compression.lz4.level", 0, text("0")},
			{"leader.replication.throttled.replicas", 0, text("0:1,2")},
		} {
			shown := "null"
			if c.value != nil {
				shown = fmt.Sprintf("%q", *c.value)
			}
			tell[*kmsg.IncrementalAlterConfigsResponse](t, fmt.Sprintf("%s %d %s", c.key, c.op, shown), "a", version, set(2, "b-settings", c.key, c.op, c.value))
			t.barrier()
			tell[*kmsg.DescribeConfigsResponse](t, fmt.Sprintf("after %s %d %s %d", c.key, c.op, shown, version), "a", 4, describeOf(2, "b-settings", "cleanup.policy", "retention.ms", "compression.type", "leader.replication.throttled.replicas"))
		}
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "no such topic", "a", version, set(2, "b-none", "retention.ms", 0, text("5")))
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "no name", "a", version, set(2, "", "retention.ms", 0, text("5")))
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "no such broker", "a", version, set(4, "9", "log.cleaner.threads", 0, text("2")))
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "a broker that is no number", "a", version, set(4, "x", "log.cleaner.threads", 0, text("2")))
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "a static setting", "a", version, set(4, "1", "node.id", 0, text("2")))
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "no such kind", "a", version, set(77, "x", "y", 0, text("2")))
		twice := set(2, "b-settings", "retention.ms", 0, text("5"))
		twice.Resources = append(twice.Resources, twice.Resources[0])
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "a topic twice", "a", version, twice)
		twice = set(2, "b-settings", "retention.ms", 0, text("5"))
		twice.Resources[0].Configs = append(twice.Resources[0].Configs, twice.Resources[0].Configs[0])
		tell[*kmsg.IncrementalAlterConfigsResponse](t, "a key twice", "a", version, twice)
	}
	for version := int16(1); version <= 4; version++ {
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 a topic", "a", version, describeOf(2, "b-settings", "cleanup.policy", "retention.ms", "segment.bytes", "zork"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 no such topic", "a", version, describeOf(2, "b-none", "cleanup.policy"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 no name", "a", version, describeOf(2, "", "cleanup.policy"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 a broker", "a", version, describeOf(4, "1", "log.cleanup.policy", "log.retention.ms", "log.retention.hours", "process.roles", "ssl.key.password"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 all brokers", "a", version, describeOf(4, "", "log.cleanup.policy"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 no such broker", "a", version, describeOf(4, "9", "log.cleanup.policy"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 no number", "a", version, describeOf(4, "x", "log.cleanup.policy"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 no such kind", "a", version, describeOf(77, "x", "y"))
		tell[*kmsg.DescribeConfigsResponse](t, "behaviour-033 a logger", "a", version, describeOf(8, "9"))
	}
}

func settingsInTurn(t *Teller) {
	t.setUp(1, "b-turn")
	replace := func(pairs ...string) *kmsg.AlterConfigsRequest {
		req := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.AlterConfigsRequestResource{ResourceType: 2, ResourceName: "b-turn"}
		for i := 0; i < len(pairs); i += 2 {
			r.Configs = append(r.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: pairs[i], Value: &pairs[i+1]})
		}
		req.Resources = append(req.Resources, r)
		return req
	}
	for version := int16(0); version <= 2; version++ {
		for i, pairs := range [][]string{{"retention.ms", "5", "cleanup.policy", "compact"}, {"retention.bytes", "7"}, {"retention.bytes", "x"}, {"zork", "1"}, {}} {
			tell[*kmsg.AlterConfigsResponse](t, fmt.Sprintf("replaced %d", i), "a", version, replace(pairs...))
			t.barrier()
			tell[*kmsg.DescribeConfigsResponse](t, fmt.Sprintf("after %d %d", version, i), "a", 4, describeOf(2, "b-turn", "cleanup.policy", "retention.ms", "retention.bytes"))
		}
	}
}

func elections(t *Teller) {
	t.setUp(2, "b-elect")
	for version := int16(0); version <= 2; version++ {
		for kind := range int8(3) {
			if version == 0 && kind > 0 {
				continue
			}
			req := kmsg.NewPtrElectLeadersRequest()
			req.TimeoutMillis, req.ElectionType = 10_000, kind
			req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "b-elect", Partitions: []int32{0, 1, 7}}, {Topic: "b-none", Partitions: []int32{0}}}
			tell[*kmsg.ElectLeadersResponse](t, fmt.Sprintf("kind %d", kind), "a", version, req)
			req.Topics = []kmsg.ElectLeadersRequestTopic{}
			tell[*kmsg.ElectLeadersResponse](t, fmt.Sprintf("kind %d, none", kind), "a", version, req)
			req.Topics = nil
			if kind > 1 {
				continue
			}
			tell[*kmsg.ElectLeadersResponse](t, fmt.Sprintf("kind %d, all", kind), "a", version, req)
		}
	}
}

func pages(t *Teller) {
	t.setUp(3, "b-page-1", "b-page-2")
	for _, limit := range []int32{0, 1, 2, 4, 2000, 1 << 30, -1} {
		for _, cursor := range []*kmsg.DescribeTopicPartitionsRequestCursor{
			nil, {Topic: "b-page-1", Partition: 1}, {Topic: "b-page-1", Partition: 3}, {Topic: "b-page-2", Partition: 2}, {Topic: "b-page-2", Partition: -1}, {Topic: "b-page-9", Partition: 0}, {Topic: "b-page-15"},
		} {
			req := kmsg.NewPtrDescribeTopicPartitionsRequest()
			req.ResponsePartitionLimit, req.Cursor = limit, cursor
			req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "b-page-2"}, {Topic: "b-none"}, {Topic: "b-page-1"}, {Topic: "b-page-1"}}
			at := "the beginning"
			if cursor != nil {
				at = fmt.Sprintf("%s %d", cursor.Topic, cursor.Partition)
			}
			tell[*kmsg.DescribeTopicPartitionsResponse](t, fmt.Sprintf("%d from %s", limit, at), "a", 0, req)
		}
	}
}

// fetchSessions: KIP-227.
func fetchSessions(t *Teller) {
	t.setUp(2, "b-session", "b-session-2")
	t.write("b-session", of("a"))
	for _, version := range []int16{7, 12, 13, 17} {
		session := func(id, epoch int32, add *kmsg.FetchRequest, forget ...int32) *kmsg.FetchRequest {
			req := fetchOf(t, version, "b-session", 0, 0)
			topic := req.Topics[0]
			req.Topics = nil
			if add != nil {
				req.Topics = add.Topics
			}
			req.SessionID, req.SessionEpoch = id, epoch
			if len(forget) > 0 {
				req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: topic.Topic, TopicID: topic.TopicID, Partitions: forget}}
			}
			return req
		}
		one := func(partition int32, offset int64) *kmsg.FetchRequest {
			return fetchOf(t, version, "b-session", partition, offset)
		}
		both := one(0, 0)
		both.Topics[0].Partitions = append(both.Topics[0].Partitions, one(1, 0).Topics[0].Partitions...)
		req := session(0, 0, both)
		req.SetVersion(version)
		resp, otherwise := t.exchange("a", req)
		full, _ := resp.(*kmsg.FetchResponse)
		if full == nil {
			t.note(fmt.Sprintf("made %d", version), otherwise)
			continue
		}
		id := full.SessionID
		t.note(fmt.Sprintf("made: Fetch %d", version), t.told(resp, otherwise))
		say := func(what string, req *kmsg.FetchRequest) {
			tell[*kmsg.FetchResponse](t, what, "a", version, req)
		}
		say("nothing has moved on", session(id, 1, nil))
		say("moved on", session(id, 2, one(0, full.Topics[0].Partitions[0].HighWatermark)))
		say("nothing new", session(id, 3, nil))
		t.write("b-session", of("b"))
		say("something new", session(id, 4, nil))
		say("behaviour-089 a wrong epoch", session(id, 9, nil))
		say("it goes on", session(id, 5, nil))
		say("the epoch before", session(id, 5, nil))
		say("an unknown session", session(1, 5, nil))
		say("an unknown session is closed", session(1, -1, one(0, 0)))
		say("one forgotten", session(id, 6, nil, 0))
		say("nothing of it", session(id, 7, nil))
		say("one that is not there forgotten", session(id, 8, nil, 0, 5))
		say("wrong offset", session(id, 9, one(1, 50)))
		say("still wrong", session(id, 10, nil))
		say("right again", session(id, 11, one(1, 0)))
		other := fetchOf(t, version, "b-none", 0, 0)
		say("an unknown topic", session(id, 12, other))
		say("it stays unknown", session(id, 13, nil))
		if version == 12 || version == 13 {
			mixed := session(id, 14, nil)
			tell[*kmsg.FetchResponse](t, fmt.Sprintf("behaviour-089 names and ids mixed, from %d", version), "a", 25-version, mixed)
			say("after mixing", session(id, 15, nil))
			say("after mixing, the same epoch", session(id, 14, nil))
		}
		say("closed", session(id, -1, one(0, 0)))
		say("gone", session(id, 14, nil))
		say("epoch 5 of none", session(0, 5, one(0, 0)))
		say("replaced", session(id, 0, one(0, 0)))
	}
}

// topicLife: made, grown, written, configured, deleted, made again.
func topicLife(t *Teller) {
	name := "b-life"
	tell[*kmsg.CreateTopicsResponse](t, "made", "a", 4, createOf(name, 1, 1))
	t.learn(name)
	tell[*kmsg.CreateTopicsResponse](t, "made again", "a", 4, createOf(name, 1, 1))
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.TimeoutMillis = 10_000
	for _, assignment := range [][]kmsg.CreatePartitionsRequestTopicAssignment{{{Replicas: []int32{9}}}, {{Replicas: []int32{1}}}, {{Replicas: []int32{1, 1}}, {Replicas: []int32{1}}}, {{Replicas: []int32{}}, {Replicas: []int32{1}}}, {{Replicas: []int32{1}}, {Replicas: []int32{1}}}} {
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 3, Assignment: assignment}}
		tell[*kmsg.CreatePartitionsResponse](t, fmt.Sprintf("grown to 3 on %v", assignment), "a", 3, grow)
	}
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 4}, {Topic: name, Count: 5}}
	tell[*kmsg.CreatePartitionsResponse](t, "twice", "a", 3, grow)
	for range 400 {
		resp := secret[*kmsg.MetadataResponse](t, "setup", 12, metadataOf(name))
		if t.err != nil || resp != nil && len(resp.Topics[0].Partitions) == 3 {
			break
		}
		pause()
	}
	t.learn(name)
	tell[*kmsg.MetadataResponse](t, "three", "a", 12, metadataOf(name))
	for partition := range int32(4) {
		tell[*kmsg.ProduceResponse](t, fmt.Sprintf("written to %d", partition), "a", 12, t.producing(12, name, partition, of("a").bytes()))
	}
	list := kmsg.NewPtrListOffsetsRequest()
	list.ReplicaID = -1
	list.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: name}}
	for p := range int32(4) {
		list.Topics[0].Partitions = append(list.Topics[0].Partitions, kmsg.ListOffsetsRequestTopicPartition{Partition: p, CurrentLeaderEpoch: -1, Timestamp: -1})
	}
	tell[*kmsg.ListOffsetsResponse](t, "the ends", "a", 7, list)
	tell[*kmsg.DeleteTopicsResponse](t, "deleted", "a", 5, &kmsg.DeleteTopicsRequest{TimeoutMillis: 10_000, TopicNames: []string{name, name}})
	tell[*kmsg.DeleteTopicsResponse](t, "deleted once", "a", 5, &kmsg.DeleteTopicsRequest{TimeoutMillis: 10_000, TopicNames: []string{name}})
	gone := metadataOf(name)
	gone.AllowAutoTopicCreation = false
	for range 400 {
		resp := secret[*kmsg.MetadataResponse](t, "setup", 12, gone)
		if t.err != nil || resp != nil && resp.Topics[0].ErrorCode == 3 {
			break
		}
		pause()
	}
	tell[*kmsg.ProduceResponse](t, "written when gone", "a", 12, t.producing(12, name, 0, of("a").bytes()))
	tell[*kmsg.CreateTopicsResponse](t, "made anew", "a", 4, createOf(name, 2, 1))
	t.learn(name)
	tell[*kmsg.ListOffsetsResponse](t, "empty", "a", 7, listOf(t, name, -1))
}

func reassignments(t *Teller) {
	t.setUp(2, "b-assign")
	for version := int16(0); version <= 1; version++ {
		for _, c := range []struct {
			topic     string
			partition int32
			replicas  []int32
		}{
			{"b-assign", 0, []int32{1}},
			{"b-assign", 0, []int32{9}},
			{"b-assign", 0, []int32{}},
			{"b-assign", 0, nil},
			{"b-assign", 0, []int32{1, 1}},
			{"b-assign", 0, []int32{1, 9}},
			{"b-assign", 0, []int32{-1}},
			{"b-assign", 7, []int32{1}},
			{"b-none", 0, []int32{1}},
			{"b-none", 0, nil},
		} {
			for _, change := range []bool{true, false} {
				if version == 0 && !change {
					continue
				}
				req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
				req.TimeoutMillis, req.AllowReplicationFactorChange = 10_000, change
				req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: c.topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: c.partition, Replicas: c.replicas}}}}
				tell[*kmsg.AlterPartitionAssignmentsResponse](t, fmt.Sprintf("%s %d to %v null %v change %v", c.topic, c.partition, c.replicas, c.replicas == nil, change), "a", version, req)
			}
		}
	}
	list := kmsg.NewPtrListPartitionReassignmentsRequest()
	list.TimeoutMillis = 10_000
	tell[*kmsg.ListPartitionReassignmentsResponse](t, "all that move", "a", 0, list)
	list.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: "b-assign", Partitions: []int32{0, 9}}, {Topic: "b-none", Partitions: []int32{0}}}
	tell[*kmsg.ListPartitionReassignmentsResponse](t, "two", "a", 0, list)
}
