package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// BEHAVIOUR 105 and 106: what is committed in one version is told in every other.
func TestCommitAndFetchOffsets(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 2})
	f.coordinate()
	p := f.connect()
	versions(t, protocol.OffsetCommit, func(t *testing.T, committed int16) {
		group := "g" + string(rune('0'+committed/10)) + string(rune('0'+committed%10))
		codes := commitCodes(request[*kmsg.OffsetCommitResponse](p, committing(committed, group, "orders", 10, 11, 12), committed))
		if !slices.Equal(codes, []codeOf{protocol.UnknownTopicOrPartition, protocol.None, protocol.None}) { // partition 2 is refused first
			t.Fatalf("commit: %v", codes)
		}
		for fetched := int16(1); fetched <= 10; fetched++ {
			resp := request[*kmsg.OffsetFetchResponse](p, askingFor(fetched, group, "orders", 0, 1, 5), fetched)
			epoch := int32(0)
			if committed < 6 || fetched < 5 {
				epoch = -1
			}
			want := []fetchedOffset{{0, 10, epoch, "note", 0}, {0, 11, epoch, "note", 1}, {0, -1, -1, "", 5}}
			if code, got := offsetsIn(resp, 0); code != protocol.None || !slices.Equal(got, want) {
				t.Errorf("fetch %d: %v %v, not %v", fetched, code, got, want)
			}
			if fetched >= 2 {
				resp = request[*kmsg.OffsetFetchResponse](p, askingFor(fetched, group, "orders"), fetched)
				if code, got := offsetsIn(resp, 0); code != protocol.None || !slices.Equal(got, want[:2]) {
					t.Errorf("fetch %d of all: %v %v", fetched, code, got)
				}
			}
			resp = request[*kmsg.OffsetFetchResponse](p, askingFor(fetched, "unheard-of", "orders", 0), fetched)
			if code, got := offsetsIn(resp, 0); code != protocol.None || !slices.Equal(got, []fetchedOffset{{0, -1, -1, "", 0}}) {
				t.Errorf("fetch %d of an unknown group: %v %v", fetched, code, got)
			}
		}
	})
}

func TestCommitOffsetsOneByOne(t *testing.T) {
	authorizer := deny("secret", "secret-group")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{})
	f.topic("secret", topicSpec{})
	f.coordinate()
	p := f.connect()
	m := f.alone("busy")
	versions(t, protocol.OffsetCommit, func(t *testing.T, version int16) {
		commit := func(req *kmsg.OffsetCommitRequest) codeOf {
			return commitCodes(request[*kmsg.OffsetCommitResponse](p, req, version))[0]
		}
		as := func(group, member string, generation int32) *kmsg.OffsetCommitRequest {
			req := committing(version, group, "orders", 1)
			req.MemberID, req.Generation = member, generation
			return req
		}
		long := committing(version, "g", "orders", 1)
		long.Topics[0].Partitions[0].Metadata = ptr(strings.Repeat("x", 4097))
		unknown := codeOf(protocol.UnknownTopicOrPartition)
		if version >= commitHasIDsFrom {
			unknown = protocol.UnknownTopicID
		}
		for _, test := range []struct {
			what string
			req  *kmsg.OffsetCommitRequest
			want codeOf
		}{
			{"nobody, to an empty group", committing(version, "g", "orders", 1), protocol.None},
			{"to the group without a name", committing(version, "", "orders", 1), protocol.None},
			{"nobody, to a group with members", committing(version, "busy", "orders", 1), protocol.UnknownMemberID},
			{"a member", as("busy", m.id, m.generation), protocol.None},
			{"a member of another generation", as("busy", m.id, m.generation+1), protocol.IllegalGeneration},
			{"somebody else", as("busy", "nobody", m.generation), protocol.UnknownMemberID},
			{"too much metadata", long, protocol.OffsetMetadataTooLarge},
			{"of a missing topic", committing(version, "g", "nope", 1), unknown},
			{"of a topic without right", committing(version, "g", "secret", 1), protocol.TopicAuthorizationFailed},
			{"of a group without right", committing(version, "secret-group", "orders", 1), protocol.GroupAuthorizationFailed},
		} {
			if got := commit(test.req); got != test.want {
				t.Errorf("%s: %v, not %v", test.what, got, test.want)
			}
		}
	})
	f.deleteTopic("secret")
	if codes := commitCodes(request[*kmsg.OffsetCommitResponse](p, committing(9, "g", "secret", 1), 9)); codes[0] != protocol.TopicAuthorizationFailed {
		t.Errorf("a name without right that is not there: %v", codes[0])
	}
	if !authorizer.wasAsked(kmsg.ACLOperationRead, kmsg.ACLResourceTypeGroup, "secret-group") || !authorizer.wasAsked(kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, "secret") {
		t.Errorf("asked: %v", authorizer.asked)
	}
}

// Each topic is answered once, whoever refuses some of its partitions; one that nobody refuses as often as it was asked for.
func TestCommitOffsetsJoinsAnswers(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{partitions: 2})
	f.coordinate()
	for _, version := range []int16{9, 10} {
		req := committing(version, "g", "orders", 1, 2, 3)
		req.Topics = append(req.Topics, committing(version, "g", "nope", 1).Topics...)
		resp := request[*kmsg.OffsetCommitResponse](f.connect(), req, version)
		if len(resp.Topics) != 2 || len(resp.Topics[0].Partitions) != 3 || len(resp.Topics[1].Partitions) != 1 {
			t.Errorf("version %d: %+v", version, resp)
		}
		if version >= commitHasIDsFrom && resp.Topics[0].TopicID != topicID("orders") {
			t.Errorf("version %d: the topic is %v", version, resp.Topics[0].TopicID)
		}
	}
	for _, commit := range []struct {
		topics []string
		want   int // topics in the answer
	}{
		{[]string{"orders", "orders"}, 2}, // as the coordinator has it, where nothing was refused before
		{[]string{"nope", "orders", "orders", "nope"}, 2},
	} {
		req := committing(9, "g", commit.topics[0], 1)
		for _, more := range commit.topics[1:] {
			req.Topics = append(req.Topics, committing(9, "g", more, 1).Topics...)
		}
		if resp := request[*kmsg.OffsetCommitResponse](f.connect(), req, 9); len(resp.Topics) != commit.want {
			t.Errorf("%q: %+v", commit.topics, resp)
		}
	}
	if resp := request[*kmsg.OffsetCommitResponse](f.connect(), kmsg.NewPtrOffsetCommitRequest(), 9); len(resp.Topics) != 0 {
		t.Errorf("nothing committed: %+v", resp)
	}
}

// Several groups on several partitions, one of which another node coordinates.
func TestFetchOffsetsOfGroups(t *testing.T) {
	authorizer := deny("secret", "refunds")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{})
	f.topic("refunds", topicSpec{})
	f.coordinate()
	groups := groupsOnEachPartition()
	p := f.connect()
	for i, g := range groups {
		p.commit(g, "orders", int64(i+1))
	}
	authorizer.names = map[string]bool{}
	p.commit(groups[0], "refunds", 50)
	authorizer.names = map[string]bool{"secret": true, "refunds": true}
	f.lead(groups[2], 2)
	for version := int16(fetchHasGroupsFrom); version <= 10; version++ {
		req := askingFor(version, groups[3], "orders", 0)
		for _, g := range []string{groups[0], "secret", groups[2], groups[3]} {
			req.Groups = append(req.Groups, groupAsking(version, g, ""))
		}
		resp := request[*kmsg.OffsetFetchResponse](p, req, version)
		want := []struct {
			group  string
			code   codeOf
			offset int64
		}{{groups[3], 0, 4}, {groups[0], 0, 1}, {"secret", protocol.GroupAuthorizationFailed, 0}, {groups[2], protocol.NotCoordinator, 0}, {groups[3], 0, 4}}
		if len(resp.Groups) != len(want) {
			t.Fatalf("version %d: %d groups", version, len(resp.Groups))
		}
		for i, w := range want {
			code, offsets := offsetsIn(resp, i)
			if resp.Groups[i].Group != w.group || code != w.code || (w.code == 0) != (len(offsets) == 1) || w.code == 0 && offsets[0].offset != w.offset {
				t.Errorf("version %d, %s: %v %v", version, w.group, code, offsets)
			}
		}
		if version >= fetchHasIDsFrom && resp.Groups[1].Topics[0].TopicID != topicID("orders") {
			t.Errorf("the topic is %v", resp.Groups[1].Topics[0].TopicID)
		}
	}
	if !authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, "secret") || !authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, "refunds") {
		t.Errorf("asked: %v", authorizer.asked)
	}
}

// What is wrong with a whole group, in the words of the version.
func TestFetchOffsetsRefused(t *testing.T) {
	f := newFixture(t, func(n *Node) { n.Authorize = deny("secret", "hidden") })
	f.topic("orders", topicSpec{})
	f.topic("hidden", topicSpec{})
	f.createOffsetsTopic(offsetsPartitions)
	p := f.connect()
	versions(t, protocol.OffsetFetch, func(t *testing.T, version int16) {
		for group, want := range map[string]codeOf{"g": protocol.CoordinatorLoadInProgress, "secret": protocol.GroupAuthorizationFailed} {
			code, offsets := offsetsIn(request[*kmsg.OffsetFetchResponse](p, askingFor(version, group, "orders", 0), version), 0)
			if version < fetchHasErrorFrom {
				if len(offsets) != 1 || offsets[0].code != want || offsets[0].offset != -1 {
					t.Errorf("%s: %v", group, offsets)
				}
				continue
			}
			if code != want || len(offsets) > 0 {
				t.Errorf("%s: %v %v", group, code, offsets)
			}
		}
	})
	f.settle()
	versions(t, protocol.OffsetFetch, func(t *testing.T, version int16) {
		topics := askingFor(version, "g", "hidden", 0)
		missing := codeOf(protocol.None) // a name may be committed to before it exists
		if version >= fetchHasIDsFrom {
			missing = protocol.UnknownTopicID
		}
		if version < fetchHasGroupsFrom {
			topics.Topics = append(topics.Topics, kmsg.OffsetFetchRequestTopic{Topic: "nope", Partitions: []int32{1}})
		} else {
			topics.Groups[0].Topics = append(topics.Groups[0].Topics, groupAsking(version, "g", "nope", 1).Topics...)
		}
		code, offsets := offsetsIn(request[*kmsg.OffsetFetchResponse](p, topics, version), 0)
		byPartition := map[int32]codeOf{}
		for _, o := range offsets {
			byPartition[o.partition] = o.code
		}
		if code != protocol.None || len(offsets) != 2 || byPartition[0] != protocol.TopicAuthorizationFailed || byPartition[1] != missing {
			t.Errorf("%v %v", code, offsets)
		}
	})
}

// BEHAVIOUR 109: what was committed for a topic goes with it.
func TestDeletedTopicTakesItsOffsets(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.topic("refunds", topicSpec{})
	f.coordinate()
	p := f.connect()
	for _, g := range groupsOnEachPartition() {
		p.commit(g, "orders", 1)
		p.commit(g, "refunds", 2)
	}
	f.deleteTopic("orders")
	f.settle()
	for _, g := range groupsOnEachPartition() {
		resp := request[*kmsg.OffsetFetchResponse](p, askingFor(9, g, ""), 9)
		if _, offsets := offsetsIn(resp, 0); len(offsets) != 1 || offsets[0].offset != 2 {
			t.Errorf("%s: %v", g, offsets)
		}
	}
}

func TestDeleteOffsets(t *testing.T) {
	authorizer := deny("secret", "hidden")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.topic("orders", topicSpec{})
	f.topic("hidden", topicSpec{})
	f.coordinate()
	p := f.connect()
	p.commit("g", "orders", 5)
	deletion := func(group string, partitions map[string][]int32) *kmsg.OffsetDeleteRequest {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, name := range []string{"orders", "hidden", "nope"} {
			topic := kmsg.OffsetDeleteRequestTopic{Topic: name}
			for _, n := range partitions[name] {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: n})
			}
			if topic.Partitions != nil {
				req.Topics = append(req.Topics, topic)
			}
		}
		return req
	}
	all := map[string][]int32{"orders": {0, 7}, "hidden": {0}, "nope": {0}}
	for group, want := range map[string]codeOf{"": protocol.InvalidGroupID, "secret": protocol.GroupAuthorizationFailed, "unheard-of": protocol.GroupIDNotFound} {
		if resp := request[*kmsg.OffsetDeleteResponse](p, deletion(group, all), 0); codeOf(resp.ErrorCode) != want || len(resp.Topics) > 0 {
			t.Errorf("%q: %+v", group, resp)
		}
	}
	resp := request[*kmsg.OffsetDeleteResponse](p, deletion("g", all), 0)
	got := map[string]codeOf{}
	for _, topic := range resp.Topics {
		for _, part := range topic.Partitions {
			got[topic.Topic+string(rune('0'+part.Partition))] = codeOf(part.ErrorCode)
		}
	}
	want := map[string]codeOf{
		"orders0": protocol.None, "orders7": protocol.UnknownTopicOrPartition,
		"hidden0": protocol.TopicAuthorizationFailed, "nope0": protocol.UnknownTopicOrPartition,
	}
	if resp.ErrorCode != 0 || len(resp.Topics) != 3 || !equalMaps(got, want) {
		t.Errorf("%+v", resp)
	}
	if _, offsets := offsetsIn(request[*kmsg.OffsetFetchResponse](p, askingFor(9, "g", "orders", 0), 9), 0); offsets[0].offset != -1 {
		t.Errorf("still committed: %v", offsets)
	}
	if !authorizer.wasAsked(kmsg.ACLOperationDelete, kmsg.ACLResourceTypeGroup, "g") || !authorizer.wasAsked(kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, "orders") {
		t.Errorf("asked: %v", authorizer.asked)
	}
	twice := deletion("g", map[string][]int32{"orders": {0}})
	twice.Topics = append(twice.Topics, twice.Topics[0])
	if resp = request[*kmsg.OffsetDeleteResponse](p, twice, 0); len(resp.Topics) != 2 {
		t.Errorf("a topic named twice: %+v", resp)
	}
	f.alone("busy")
	resp = request[*kmsg.OffsetDeleteResponse](p, deletion("busy", map[string][]int32{"orders": {0}}), 0)
	if codeOf(resp.Topics[0].Partitions[0].ErrorCode) != protocol.GroupSubscribedToTopic {
		t.Errorf("of a topic that is subscribed to: %+v", resp)
	}
}

func equalMaps[K, V comparable](a, b map[K]V) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return len(a) == len(b)
}
