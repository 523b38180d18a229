package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// Item 27: versions 5 on tell what was made, with all configs; version 7 the id.
func TestCreateTopicsInEveryVersion(t *testing.T) {
	f := newTestCluster(t, nil, "num.partitions=2")
	f.join(1)
	for _, listener := range []string{plain, controller} {
		for version := int16(2); version <= 7; version++ {
			name := strings.ToLower(listener) + string(rune('0'+version))
			resp := askOn[*kmsg.CreateTopicsResponse](f, listener, createRequest(version, newTopic(name, -1, -1, "retention.ms", "1000")))
			made := f.image().Topic(name)
			if len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != 0 || resp.Topics[0].ErrorMessage != nil || made == nil || made.PartitionCount() != 2 {
				t.Fatalf("%s version %d: %+v", listener, version, resp)
			}
			told := resp.Topics[0]
			if version >= 5 && (told.NumPartitions != 2 || told.ReplicationFactor != 1 || len(told.Configs) != 37 || told.ConfigErrorCode != 0) {
				t.Errorf("%s version %d: %d partitions, factor %d, %d configs", listener, version, told.NumPartitions, told.ReplicationFactor, len(told.Configs))
			}
			if version >= 7 != (told.TopicID == made.ID) {
				t.Errorf("%s version %d: id %v", listener, version, told.TopicID)
			}
		}
	}
}

// Items 20, 21, 26: codes and sentences, as 4.4.0 gave them to a raw request.
func TestCreateTopicsRefusals(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a.b", 1, 1))
	nullConfig := newTopic("n", 1, 1)
	nullConfig.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms"}}
	for _, c := range []struct {
		topic kmsg.CreateTopicsRequestTopic
		code  protocol.ErrorCode
		text  string
	}{
		{newTopic("a.b", 1, 1), protocol.TopicAlreadyExists, "Topic 'a.b' already exists."},
		{newTopic("a_b", 1, 1), protocol.InvalidTopicException, "Topic 'a_b' collides with existing topic: a.b"},
		{newTopic("a/b", 1, 1), protocol.InvalidTopicException, "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{newTopic("", 1, 1), protocol.InvalidTopicException, "Topic name is invalid: the empty string is not allowed"},
		{newTopic("p", 0, 1), protocol.InvalidPartitions, "Number of partitions was set to an invalid non-positive value."},
		{newTopic("r", 1, 0), protocol.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value."},
		{newTopic("r", 1, 9), protocol.InvalidReplicationFactor, ""},
		{newTopic("h", 10_001, 1), protocol.PolicyViolation, "Excessively large number of partitions per request."},
		{newTopic("c", 1, 1, "no.such", "1"), protocol.InvalidConfig, "Unknown topic config name: no.such"},
		{newTopic("c", 1, 1, "retention.ms", "x"), protocol.InvalidConfig, "Invalid value x for configuration retention.ms: Not a number of type LONG"},
		{nullConfig, protocol.InvalidConfig, "Null value not supported for topic configs: retention.ms"},
		{newTopic("__cluster_metadata", 1, 1), protocol.InvalidRequest, "Creation of internal topic __cluster_metadata is prohibited."},
	} {
		for _, version := range []int16{2, 7} {
			resp := ask[*kmsg.CreateTopicsResponse](f, createRequest(version, c.topic))
			got := resp.Topics[0]
			if protocol.ErrorCode(got.ErrorCode) != c.code || got.ErrorMessage == nil || c.text != "" && *got.ErrorMessage != c.text {
				t.Errorf("%s: %v %q", c.topic.Topic, protocol.ErrorCode(got.ErrorCode), deref(got.ErrorMessage))
			}
			if version == 7 && (got.NumPartitions != -1 || got.ReplicationFactor != -1 || got.Configs == nil || len(got.Configs) != 0) {
				t.Errorf("%s: a refused topic is described: %+v", c.topic.Topic, got)
			}
		}
	}
	if count := f.image().TopicCount(); count != 1 {
		t.Errorf("%d topics after refusals", count)
	}
}

// Item 26: a name that stands there several times is refused once, after the others.
func TestCreateTopicsNamedTwice(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	resp := ask[*kmsg.CreateTopicsResponse](f, createRequest(7, newTopic("x", 1, 1), newTopic("ok", 1, 1), newTopic("x", 1, 1), newTopic("x", 1, 1)))
	if len(resp.Topics) != 2 || resp.Topics[0].Topic != "ok" || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%+v", resp.Topics)
	}
	if got := resp.Topics[1]; protocol.ErrorCode(got.ErrorCode) != protocol.InvalidRequest || deref(got.ErrorMessage) != "Duplicate topic name." {
		t.Errorf("%+v", got)
	}
	if f.image().Topic("x") != nil {
		t.Error("it was created")
	}
}

// Item 28, and requests that are over before they begin.
func TestCreateTopicsLeavesNothingBehind(t *testing.T) {
	f := newTestCluster(t, nil, "num.partitions=2")
	f.join(1)
	for _, listener := range []string{plain, controller} {
		validate := createRequest(7, newTopic("v", -1, -1), newTopic("bad", 0, 1))
		validate.ValidateOnly = true
		resp := askOn[*kmsg.CreateTopicsResponse](f, listener, validate)
		if ok := resp.Topics[0]; ok.ErrorCode != 0 || ok.NumPartitions != 2 || len(ok.Configs) != 37 {
			t.Errorf("%s: validated: %+v", listener, ok)
		}
		if bad := resp.Topics[1]; protocol.ErrorCode(bad.ErrorCode) != protocol.InvalidPartitions {
			t.Errorf("%s: validated: %+v", listener, bad)
		}
		for _, timeout := range []int32{0, -1} {
			late := createRequest(7, newTopic("late", 1, 1))
			late.TimeoutMillis = timeout
			if got := askOn[*kmsg.CreateTopicsResponse](f, listener, late).Topics[0]; protocol.ErrorCode(got.ErrorCode) != protocol.RequestTimedOut || got.ErrorMessage != nil {
				t.Errorf("%s timeout %d: %+v", listener, timeout, got)
			}
		}
		if resp := askOn[*kmsg.CreateTopicsResponse](f, listener, createRequest(7)); len(resp.Topics) != 0 {
			t.Errorf("%s: no topics: %+v", listener, resp)
		}
	}
	if count := f.image().TopicCount(); count != 0 {
		t.Errorf("%d topics", count)
	}
}

func TestCreateTopicsAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("hidden", 1, 1))
	f.handler.node.Authorize = allow("CREATE blind", "CREATE full", "DESCRIBE_CONFIGS full")
	resp := ask[*kmsg.CreateTopicsResponse](f, createRequest(7,
		newTopic("hidden", 1, 1), newTopic("nope", 1, 1), newTopic("a/b", 1, 1), newTopic("blind", 1, 1), newTopic("full", 1, 1), newTopic("__cluster_metadata", 1, 1)))
	byName := map[string]kmsg.CreateTopicsResponseTopic{}
	for _, topic := range resp.Topics {
		byName[topic.Topic] = topic
	}
	for _, name := range []string{"hidden", "nope", "a/b"} {
		if got := byName[name]; protocol.ErrorCode(got.ErrorCode) != protocol.TopicAuthorizationFailed || deref(got.ErrorMessage) != "Authorization failed." {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := byName["__cluster_metadata"]; protocol.ErrorCode(got.ErrorCode) != protocol.InvalidRequest {
		t.Errorf("%+v", got)
	}
	if got := byName["full"]; got.ErrorCode != 0 || len(got.Configs) != 37 || got.ConfigErrorCode != 0 {
		t.Errorf("full: %d configs, code %d", len(got.Configs), got.ConfigErrorCode)
	}
	blind := byName["blind"]
	if blind.ErrorCode != 0 || protocol.ErrorCode(blind.ConfigErrorCode) != protocol.TopicAuthorizationFailed ||
		blind.NumPartitions != -1 || blind.ReplicationFactor != -1 || len(blind.Configs) != 0 || blind.TopicID == (protocol.TopicID{}) {
		t.Errorf("blind: %+v", blind)
	}
	f.handler.node.Authorize = allow("CREATE kafka-cluster")
	if got := ask[*kmsg.CreateTopicsResponse](f, createRequest(7, newTopic("any", 1, 1))).Topics[0]; got.ErrorCode != 0 {
		t.Errorf("the right to create on the cluster: %+v", got)
	}
}

func deleteRequest(version int16, names ...string) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis = version, 1000
	for _, name := range names {
		if version < 6 {
			req.TopicNames = append(req.TopicNames, name)
			continue
		}
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	return req
}

// told gives the answer about a name, failing if there is not exactly one.
func told(t *testing.T, resp *kmsg.DeleteTopicsResponse, name string) kmsg.DeleteTopicsResponseTopic {
	t.Helper()
	var found []kmsg.DeleteTopicsResponseTopic
	for _, topic := range resp.Topics {
		if topic.Topic != nil && *topic.Topic == name {
			found = append(found, topic)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d answers about %q: %+v", len(found), name, resp.Topics)
	}
	return found[0]
}

// Item 30, by name in every version: codes, and from version 5 on sentences.
func TestDeleteTopicsByName(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for _, listener := range []string{plain, controller} {
		for version := int16(1); version <= 6; version++ {
			id := f.create(newTopic("x", 1, 1), newTopic("y", 1, 1))["x"]
			resp := askOn[*kmsg.DeleteTopicsResponse](f, listener, deleteRequest(version, "x", "nope", "y", "a/b", "y", "__cluster_metadata", ""))
			for name, want := range map[string]struct {
				code protocol.ErrorCode
				text string
			}{
				"x": {}, "y": {protocol.InvalidRequest, "Duplicate topic name."},
				"nope":               {protocol.UnknownTopicOrPartition, "This server does not host this topic-partition."},
				"a/b":                {protocol.UnknownTopicOrPartition, "This server does not host this topic-partition."},
				"":                   {protocol.UnknownTopicOrPartition, "This server does not host this topic-partition."},
				"__cluster_metadata": {protocol.UnknownTopicOrPartition, "This server does not host this topic-partition."},
			} {
				got := told(t, resp, name)
				if version < 5 {
					want.text = ""
				}
				if protocol.ErrorCode(got.ErrorCode) != want.code || deref(got.ErrorMessage) != want.text {
					t.Errorf("%s version %d %q: %v %q", listener, version, name, protocol.ErrorCode(got.ErrorCode), deref(got.ErrorMessage))
				}
			}
			if got := told(t, resp, "x"); version == 6 && got.TopicID != id {
				t.Errorf("%s: id %v, want %v", listener, got.TopicID, id)
			}
			if f.image().Topic("x") != nil || f.image().Topic("y") == nil {
				t.Fatalf("%s version %d: x is there, or y is not", listener, version)
			}
			askOn[*kmsg.DeleteTopicsResponse](f, listener, deleteRequest(version, "y"))
		}
	}
}

// Item 30 by id, and what a request can get wrong.
func TestDeleteTopicsByID(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	ids := f.create(newTopic("a", 1, 1), newTopic("b", 1, 1))
	req := deleteRequest(6)
	name := kmsg.StringPtr
	req.Topics = []kmsg.DeleteTopicsRequestTopic{
		{TopicID: ids["a"]},
		{TopicID: [16]byte{9}},
		{TopicID: [16]byte{8}},
		{TopicID: [16]byte{8}},
		{},
		{Topic: name("c"), TopicID: [16]byte{7}},
		{Topic: name("b")},
		{TopicID: ids["b"]},
	}
	type answer struct {
		name string
		id   protocol.TopicID
		code protocol.ErrorCode
		text string
	}
	want := []answer{
		{"", protocol.TopicID{8}, protocol.InvalidRequest, "Duplicate topic id."},
		{"", protocol.TopicID{}, protocol.InvalidRequest, "Neither topic name nor id were specified."},
		{"c", protocol.TopicID{7}, protocol.InvalidRequest, "You may not specify both topic name and topic id."},
		{"b", ids["b"], protocol.InvalidRequest, "The provided topic name maps to an ID that was already supplied."},
		{"a", ids["a"], protocol.None, ""},
		{"", protocol.TopicID{9}, protocol.UnknownTopicID, "This server does not host this topic ID."},
	}
	var got []answer
	for _, topic := range ask[*kmsg.DeleteTopicsResponse](f, req).Topics {
		got = append(got, answer{deref(topic.Topic), topic.TopicID, protocol.ErrorCode(topic.ErrorCode), deref(topic.ErrorMessage)})
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if f.image().Topic("b") == nil {
		t.Error("a topic named by name and id is deleted")
	}
	if again := f.create(newTopic("a", 1, 1))["a"]; again == ids["a"] {
		t.Error("a topic made again has its old id")
	}
}

// Deletion switched off is 73; versions below 3 have no word for it.
func TestDeleteTopicsSwitchedOff(t *testing.T) {
	f := newTestCluster(t, nil, "delete.topic.enable=false")
	f.join(1)
	f.create(newTopic("x", 1, 1))
	for _, listener := range []string{plain, controller} {
		for version := int16(1); version <= 6; version++ {
			want := protocol.TopicDeletionDisabled
			if version < 3 {
				want = protocol.InvalidRequest
			}
			resp := askOn[*kmsg.DeleteTopicsResponse](f, listener, deleteRequest(version, "x", "nope"))
			for _, name := range []string{"x", "nope"} {
				if got := told(t, resp, name); protocol.ErrorCode(got.ErrorCode) != want || got.ErrorMessage != nil {
					t.Errorf("%s version %d: %+v", listener, version, got)
				}
			}
		}
	}
	if f.image().Topic("x") == nil {
		t.Error("it was deleted")
	}
}

func TestDeleteTopicsAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	ids := f.create(newTopic("seen", 1, 1), newTopic("hidden", 1, 1), newTopic("del", 1, 1), newTopic("del2", 1, 1))
	f.handler.node.Authorize = allow("DESCRIBE seen", "DESCRIBE seennew", "DELETE del", "DELETE del2", "DELETE delnew")
	for _, version := range []int16{1, 5, 6} {
		resp := ask[*kmsg.DeleteTopicsResponse](f, deleteRequest(version, "seen", "hidden", "nope", "seennew", "delnew"))
		for name, want := range map[string]protocol.ErrorCode{
			"seen": protocol.TopicAuthorizationFailed, "hidden": protocol.TopicAuthorizationFailed, "nope": protocol.TopicAuthorizationFailed,
			"seennew": protocol.UnknownTopicOrPartition, "delnew": protocol.UnknownTopicOrPartition,
		} {
			got := told(t, resp, name)
			if protocol.ErrorCode(got.ErrorCode) != want || got.TopicID != (protocol.TopicID{}) {
				t.Errorf("version %d %s: %+v", version, name, got)
			}
			if version >= 5 && want == protocol.TopicAuthorizationFailed && deref(got.ErrorMessage) != "Topic authorization failed." {
				t.Errorf("version %d %s: %q", version, name, deref(got.ErrorMessage))
			}
		}
	}
	req := deleteRequest(6, "del")
	for _, name := range []string{"hidden", "seen", "del2"} {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{TopicID: ids[name]})
	}
	req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{TopicID: [16]byte{9}})
	resp := ask[*kmsg.DeleteTopicsResponse](f, req)
	for _, topic := range resp.Topics {
		want, name := protocol.None, deref(topic.Topic)
		switch topic.TopicID {
		case ids["hidden"]:
			want = protocol.TopicAuthorizationFailed
			if topic.Topic != nil {
				t.Error("the name of a hidden topic is told")
			}
		case ids["seen"]:
			want = protocol.TopicAuthorizationFailed
			if name != "seen" {
				t.Errorf("name %q", name)
			}
		case [16]byte{9}:
			want = protocol.UnknownTopicID
		}
		if protocol.ErrorCode(topic.ErrorCode) != want {
			t.Errorf("%+v", topic)
		}
	}
	if len(resp.Topics) != 5 || f.image().Topic("del") != nil || f.image().Topic("del2") != nil || f.image().TopicCount() != 2 {
		t.Errorf("%d answers, %d topics left", len(resp.Topics), f.image().TopicCount())
	}
	f.handler.node.Authorize = allow("DELETE kafka-cluster")
	if got := told(t, ask[*kmsg.DeleteTopicsResponse](f, deleteRequest(6, "hidden")), "hidden"); got.ErrorCode != 0 {
		t.Errorf("the right to delete on the cluster: %+v", got)
	}
}

func widenRequest(version int16, count int32, names ...string) *kmsg.CreatePartitionsRequest {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.TimeoutMillis = version, 1000
	for _, name := range names {
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, count
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// Item 31.
func TestCreatePartitions(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("c", 2, 1), newTopic("d", 1, 1))
	has := int32(2)
	for _, listener := range []string{plain, controller} {
		for version := int16(0); version <= 3; version++ {
			type refusal struct {
				name  string
				count int32
				code  protocol.ErrorCode
				text  string
			}
			refusals := []refusal{{"nope", 3, protocol.UnknownTopicOrPartition, ""}, {"c", 20_000, protocol.PolicyViolation, "Excessively large number of additional partitions per request."}}
			if has == 2 {
				refusals = append(refusals, refusal{"c", 2, protocol.InvalidPartitions, "Topic already has 2 partition(s)."},
					refusal{"c", 1, protocol.InvalidPartitions, "The topic c currently has 2 partition(s); 1 would not be an increase."})
			}
			for _, c := range refusals {
				got := askOn[*kmsg.CreatePartitionsResponse](f, listener, widenRequest(version, c.count, c.name)).Topics
				if len(got) != 1 || protocol.ErrorCode(got[0].ErrorCode) != c.code || deref(got[0].ErrorMessage) != c.text {
					t.Errorf("%s version %d %+v: %+v", listener, version, c, got)
				}
			}
			validate := widenRequest(version, has+1, "c")
			validate.ValidateOnly = true
			late := widenRequest(version, has+1, "c")
			late.TimeoutMillis = 0
			if got := askOn[*kmsg.CreatePartitionsResponse](f, listener, validate).Topics[0]; got.ErrorCode != 0 {
				t.Errorf("validate only: %+v", got)
			}
			if got := askOn[*kmsg.CreatePartitionsResponse](f, listener, late).Topics[0]; protocol.ErrorCode(got.ErrorCode) != protocol.RequestTimedOut {
				t.Errorf("timeout 0: %+v", got)
			}
			if got := f.image().Topic("c").PartitionCount(); got != int(has) {
				t.Fatalf("%d partitions", got)
			}
			has++
			if got := askOn[*kmsg.CreatePartitionsResponse](f, listener, widenRequest(version, has, "c")).Topics[0]; got.ErrorCode != 0 || got.ErrorMessage != nil {
				t.Errorf("%s version %d: %+v", listener, version, got)
			}
			if got := f.image().Topic("c").PartitionCount(); got != int(has) {
				t.Fatalf("%d partitions, want %d", got, has)
			}
		}
	}
	resp := ask[*kmsg.CreatePartitionsResponse](f, widenRequest(3, 30, "c", "c", "d", "c"))
	if len(resp.Topics) != 2 || deref(resp.Topics[0].ErrorMessage) != "Duplicate topic name." || resp.Topics[1].ErrorCode != 0 || resp.Topics[1].Topic != "d" {
		t.Errorf("named twice: %+v", resp.Topics)
	}
}

func TestCreatePartitionsAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("mine", 1, 1), newTopic("hidden", 1, 1))
	f.handler.node.Authorize = allow("ALTER mine", "DESCRIBE hidden")
	for _, topic := range ask[*kmsg.CreatePartitionsResponse](f, widenRequest(3, 2, "mine", "hidden", "nope")).Topics {
		want := protocol.TopicAuthorizationFailed
		if topic.Topic == "mine" {
			want = protocol.None
		}
		if protocol.ErrorCode(topic.ErrorCode) != want || topic.ErrorMessage != nil {
			t.Errorf("%+v", topic)
		}
	}
	if f.image().Topic("hidden").PartitionCount() != 1 || f.image().Topic("mine").PartitionCount() != 2 {
		t.Error("the rights are not what decided")
	}
}

// What the controller did not answer is answered in each response's own way.
func TestControllerOutOfReach(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	for _, c := range []struct {
		listener string
		fail     func(error)
		err      error
		want     protocol.ErrorCode
	}{
		{plain, f.failForwarding, protocol.NotController.Err(), protocol.NotController},
		{plain, f.failForwarding, errors.New("the connection was reset"), protocol.RequestTimedOut},
		{controller, f.failSubmitting, protocol.NotController.Err(), protocol.NotController},
		{controller, f.failSubmitting, errors.New("closed"), protocol.NotController},
	} {
		c.fail(c.err)
		created := askOn[*kmsg.CreateTopicsResponse](f, c.listener, createRequest(7, newTopic("x", 1, 1), newTopic("y", 1, 1)))
		if len(created.Topics) != 2 || protocol.ErrorCode(created.Topics[1].ErrorCode) != c.want || created.Topics[0].NumPartitions != -1 {
			t.Errorf("%s %v: %+v", c.listener, c.err, created)
		}
		byID := deleteRequest(6, "a")
		byID.Topics = append(byID.Topics, kmsg.DeleteTopicsRequestTopic{TopicID: [16]byte{9}})
		for _, req := range []*kmsg.DeleteTopicsRequest{deleteRequest(5, "a", "b"), byID} {
			deleted := askOn[*kmsg.DeleteTopicsResponse](f, c.listener, req)
			if len(deleted.Topics) != 2 || protocol.ErrorCode(deleted.Topics[1].ErrorCode) != c.want || deref(deleted.Topics[0].Topic) != "a" {
				t.Errorf("%s %v: %+v", c.listener, c.err, deleted)
			}
		}
		if widened := askOn[*kmsg.CreatePartitionsResponse](f, c.listener, widenRequest(3, 2, "a")); protocol.ErrorCode(widened.Topics[0].ErrorCode) != c.want {
			t.Errorf("%s %v: %+v", c.listener, c.err, widened)
		}
		c.fail(nil)
	}
	if f.image().TopicCount() != 1 {
		t.Error("something happened all the same")
	}
}
