package api

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

func metadataRequest(version int16, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = version, []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	return req
}

func metadataByID(version int16, ids ...protocol.TopicID) *kmsg.MetadataRequest {
	req := metadataRequest(version)
	for _, id := range ids {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{TopicID: id})
	}
	return req
}

func topicNames(resp *kmsg.MetadataResponse) []string {
	var names []string
	for _, t := range resp.Topics {
		names = append(names, deref(t.Topic))
	}
	return names
}

func topicCodes(resp *kmsg.MetadataResponse) []codeOf {
	var codes []codeOf
	for _, t := range resp.Topics {
		codes = append(codes, codeOf(t.ErrorCode))
	}
	return codes
}

// Item 18: version 0 says "all" by an empty list, later ones by null, and an empty
// list is then none.
func TestMetadataAllAndNone(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("zz", 2, 1), newTopic("aa", 1, 1), newTopic("a.b", 1, 1))
	for version := int16(0); version <= 13; version++ {
		empty, all := metadataRequest(version), metadataRequest(version)
		all.Topics = nil
		allNames := []string{"a.b", "aa", "zz"}
		want := map[*kmsg.MetadataRequest][]string{all: allNames, empty: nil}
		if version == 0 {
			want = map[*kmsg.MetadataRequest][]string{empty: allNames}
		}
		for req, names := range want {
			resp := ask[*kmsg.MetadataResponse](f, req)
			if got := topicNames(resp); !slices.Equal(got, names) || resp.ErrorCode != 0 {
				t.Errorf("version %d: topics %v, want %v", version, got, names)
			}
			wantController := int32(1)
			if version == 0 {
				wantController = -1
			}
			if resp.ControllerID != wantController || len(resp.Brokers) != 1 || version >= 2 && deref(resp.ClusterID) != "cluster" {
				t.Errorf("version %d: %+v", version, resp)
			}
		}
	}
}

func TestMetadataOfATopicInEveryVersion(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	id := f.create(newTopic("a", 2, 1))["a"]
	for version := int16(0); version <= 13; version++ {
		resp := ask[*kmsg.MetadataResponse](f, metadataRequest(version, "a", "a"))
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		topic := resp.Topics[0]
		if version >= 10 != (topic.TopicID == id) || topic.AuthorizedOperations != -1<<31 || topic.IsInternal {
			t.Errorf("version %d: %+v", version, topic)
		}
		for n, p := range topic.Partitions {
			wantEpoch := int32(0)
			if version < 7 {
				wantEpoch = -1
			}
			if int(p.Partition) != n || p.Leader != 1 || p.LeaderEpoch != wantEpoch || p.ErrorCode != 0 ||
				!slices.Equal(p.Replicas, []int32{1}) || !slices.Equal(p.ISR, []int32{1}) || len(p.OfflineReplicas) != 0 {
				t.Errorf("version %d partition %d: %+v", version, n, p)
			}
		}
	}
}

// Items 19 to 22: what is missing, misnamed, colliding or of an unknown id.
func TestMetadataOfMissingTopics(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a.b", 1, 1))
	for version := int16(4); version <= 13; version++ {
		resp := ask[*kmsg.MetadataResponse](f, metadataRequest(version, "nope", "a/b", "", "..", "a_b", "__consumer_offsets", "nope"))
		want := []codeOf{
			protocol.UnknownTopicOrPartition, protocol.InvalidTopicException, protocol.InvalidTopicException, protocol.InvalidTopicException,
			protocol.UnknownTopicOrPartition, protocol.UnknownTopicOrPartition,
		}
		if got := topicCodes(resp); !slices.Equal(got, want) {
			t.Errorf("version %d: %v, want %v", version, got, want)
		}
		if !resp.Topics[5].IsInternal {
			t.Errorf("version %d: __consumer_offsets is not internal", version)
		}
	}
	if f.countForwarded() != 1 {
		t.Error("topics were created though nobody allowed it")
	}
}

func TestMetadataByID(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	id := f.create(newTopic("a", 1, 1))["a"]
	for _, version := range []int16{12, 13} {
		req := metadataByID(version, protocol.TopicID{9}, id, id)
		req.Topics[0].Topic = kmsg.StringPtr("a") // names beside ids are not looked at
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr("b")})
		resp := ask[*kmsg.MetadataResponse](f, req)
		if len(resp.Topics) != 2 {
			t.Fatalf("version %d: %+v", version, resp.Topics)
		}
		unknown, found := resp.Topics[0], resp.Topics[1]
		if codeOf(unknown.ErrorCode) != protocol.UnknownTopicID || unknown.Topic != nil || unknown.TopicID != (protocol.TopicID{9}) {
			t.Errorf("version %d: %+v", version, unknown)
		}
		if found.ErrorCode != 0 || deref(found.Topic) != "a" || found.TopicID != id {
			t.Errorf("version %d: %+v", version, found)
		}
	}
}

// Versions 10 and 11 have a place for ids and do not serve them; nothing is told
// of the cluster then.
func TestMetadataRefusesWhatAVersionHasNot(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for version := int16(10); version <= 13; version++ {
		named := metadataByID(version, protocol.TopicID{1})
		named.Topics[0].Topic = kmsg.StringPtr("a")
		null := metadataByID(version, protocol.TopicID{})
		for _, req := range []*kmsg.MetadataRequest{named, null} {
			if version >= 12 && req == named {
				continue
			}
			resp := ask[*kmsg.MetadataResponse](f, req)
			if len(resp.Topics) != 1 || codeOf(resp.Topics[0].ErrorCode) != protocol.InvalidRequest || len(resp.Brokers) != 0 || resp.ControllerID != -1 {
				t.Errorf("version %d: %+v", version, resp)
			}
			if version == 13 && codeOf(resp.ErrorCode) != protocol.InvalidRequest {
				t.Errorf("version 13: code %v at the top", codeOf(resp.ErrorCode))
			}
		}
	}
}

// Item 23, and the bits that 4.4.0 gives without an authorizer.
func TestMetadataAuthorizedOperations(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a", 1, 1))
	for version := int16(8); version <= 13; version++ {
		req := metadataRequest(version, "a", "nope")
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, version <= 10
		resp := ask[*kmsg.MetadataResponse](f, req)
		if resp.Topics[0].AuthorizedOperations != 3576 || resp.Topics[1].AuthorizedOperations != 3576 {
			t.Errorf("version %d: topics %+v", version, resp.Topics)
		}
		want := int32(-1 << 31)
		if version <= 10 {
			want = 8096
		}
		if resp.AuthorizedOperations != want {
			t.Errorf("version %d: cluster %d, want %d", version, resp.AuthorizedOperations, want)
		}
	}
}

// Items 19 and 24: the first answer is 3, and the topic is there on the next. Below
// version 4 nobody could say no.
func TestMetadataCreatesTopics(t *testing.T) {
	f := newTestCluster(t, nil, "num.partitions=3")
	f.join(1)
	for _, version := range []int16{0, 3, 4, 13} {
		name := "auto" + string(rune('a'+version))
		req := metadataRequest(version, name, "a/b")
		req.AllowAutoTopicCreation = version >= 4
		first := ask[*kmsg.MetadataResponse](f, req)
		if got := topicCodes(first); !slices.Equal(got, []codeOf{protocol.UnknownTopicOrPartition, protocol.InvalidTopicException}) {
			t.Errorf("version %d: first %v", version, got)
		}
		second := ask[*kmsg.MetadataResponse](f, req)
		if second.Topics[0].ErrorCode != 0 || len(second.Topics[0].Partitions) != 3 {
			t.Errorf("version %d: then %+v", version, second.Topics[0])
		}
	}
}

func TestMetadataCreatesNothingItShouldNot(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("a.b", 1, 1))
	req := metadataRequest(12, "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "a_b")
	req.AllowAutoTopicCreation = true
	for range 2 {
		for _, got := range topicCodes(ask[*kmsg.MetadataResponse](f, req)) {
			if got != protocol.UnknownTopicOrPartition {
				t.Errorf("%v", got)
			}
		}
	}
	if count := f.image().TopicCount(); count != 1 {
		t.Errorf("%d topics", count)
	}
	off := newTestCluster(t, nil, "auto.create.topics.enable=false")
	off.join(1)
	if got := topicCodes(ask[*kmsg.MetadataResponse](off, metadataRequest(3, "a"))); got[0] != protocol.UnknownTopicOrPartition || off.countForwarded() != 0 {
		t.Errorf("switched off: %v", got)
	}
}

// While a creation is on its way nobody begins it again; when it failed, the next
// who asks does.
func TestMetadataCreatesOnce(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	held := make(chan struct{})
	f.setHeld(held)
	req := metadataRequest(12, "a")
	req.AllowAutoTopicCreation = true
	for range 3 {
		ask[*kmsg.MetadataResponse](f, req)
	}
	if f.countForwarded() != 1 {
		t.Fatalf("%d creations", f.countForwarded())
	}
	f.setHeld(nil)
	close(held)
	f.holding.Wait()
	for f.image().Topic("a") == nil {
		ask[*kmsg.MetadataResponse](f, metadataRequest(12))
	}
	f.failForwarding(protocol.NotController.Err())
	for i := range 2 {
		ask[*kmsg.MetadataResponse](f, func() *kmsg.MetadataRequest {
			req := metadataRequest(12, "b")
			req.AllowAutoTopicCreation = true
			return req
		}())
		if got := f.countForwarded(); got != 2+i {
			t.Errorf("%d creations after failure %d", got, i)
		}
	}
}

// Items 25 and 34: the endpoints of the listener that was asked; any live broker
// stands for the controller; fenced brokers are not told.
func TestMetadataBrokers(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1, 2, 3)
	f.register(registration(4)) // fenced
	elsewhere := registration(5)
	elsewhere.Listeners = elsewhere.Listeners[:1]
	f.beat(5, f.register(elsewhere))
	for listener, want := range map[string]struct {
		port int32
		ids  []int32
	}{plain: {9092, []int32{1, 2, 3, 5}}, other: {10092, []int32{1, 2, 3}}} {
		seen := map[int32]bool{}
		for range 100 {
			resp := askOn[*kmsg.MetadataResponse](f, listener, metadataRequest(12))
			seen[resp.ControllerID] = true
			var ids []int32
			for _, b := range resp.Brokers {
				ids = append(ids, b.NodeID)
				if b.Port != want.port || b.Host != "host"+string(rune('0'+b.NodeID)) || deref(b.Rack) != "rack"+string(rune('0'+b.NodeID)) {
					t.Errorf("%s: %+v", listener, b)
				}
			}
			if !slices.Equal(ids, want.ids) {
				t.Fatalf("%s: brokers %v", listener, ids)
			}
		}
		for _, id := range want.ids {
			if !seen[id] || len(seen) != len(want.ids) {
				t.Errorf("%s: controllers %v", listener, seen)
			}
		}
	}
	if resp := ask[*kmsg.MetadataResponse](newTestCluster(t, nil), metadataRequest(12)); resp.ControllerID != -1 || len(resp.Brokers) != 0 {
		t.Errorf("without brokers: %+v", resp)
	}
}

// Where no broker lives, the one that answers lists itself: not the others, and
// not as the controller.
func TestMetadataLastBroker(t *testing.T) {
	f := newTestCluster(t, nil)
	f.register(registration(1))
	epoch := f.register(registration(2))
	resp := ask[*kmsg.MetadataResponse](f, metadataRequest(12))
	if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || resp.Brokers[0].Host != "host1" || resp.Brokers[0].Port != 9092 || resp.ControllerID != -1 {
		t.Errorf("without a live broker: %+v", resp)
	}
	f.beat(2, epoch)
	if resp := ask[*kmsg.MetadataResponse](f, metadataRequest(12)); len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 2 || resp.ControllerID != 2 {
		t.Errorf("with another that lives: %+v", resp)
	}
}

func assigned(name string, replicas ...int32) kmsg.CreateTopicsRequestTopic {
	topic := newTopic(name, -1, -1)
	topic.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: replicas}}
	return topic
}

// A leader without the listener: 72 from version 6 on, 5 before, and version 0
// leaves out who cannot be reached.
func TestMetadataListenerNotFound(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	elsewhere := registration(2)
	elsewhere.Listeners = elsewhere.Listeners[:1]
	f.beat(2, f.register(elsewhere))
	f.create(assigned("theirs", 2, 1), assigned("ours", 1, 2))
	for version := int16(0); version <= 13; version++ {
		resp := askOn[*kmsg.MetadataResponse](f, other, metadataRequest(version, "theirs", "ours"))
		theirs, ours := resp.Topics[0].Partitions[0], resp.Topics[1].Partitions[0]
		wantTheirs, wantOurs, replicas := protocol.ListenerNotFound, protocol.None, 2
		if version < 6 {
			wantTheirs = protocol.LeaderNotAvailable
		}
		if version == 0 {
			wantOurs, replicas = protocol.ReplicaNotAvailable, 1
		}
		if codeOf(theirs.ErrorCode) != wantTheirs || theirs.Leader != -1 || len(theirs.Replicas) != replicas || len(theirs.ISR) != replicas {
			t.Errorf("version %d: %+v", version, theirs)
		}
		if codeOf(ours.ErrorCode) != wantOurs || ours.Leader != 1 || len(ours.Replicas) != replicas {
			t.Errorf("version %d: %+v", version, ours)
		}
		if offline := theirs.OfflineReplicas; version >= 5 && !slices.Equal(offline, []int32{2}) {
			t.Errorf("version %d: offline %v", version, offline)
		}
	}
	if p := ask[*kmsg.MetadataResponse](f, metadataRequest(13, "theirs")).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.Leader != 2 || len(p.OfflineReplicas) != 0 {
		t.Errorf("on the other listener: %+v", p)
	}
}

// A replica is offline if its broker is fenced or its directory failed; without a
// leader the partition is 5.
func TestMetadataOfflineReplicas(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	two := registration(2)
	two.LogDirs = append(two.LogDirs, [16]byte{0xd1, 2})
	epoch := f.register(two)
	f.beat(2, epoch)
	ids := f.create(assigned("a", 1, 2), assigned("b", 2))
	f.assign(2, epoch, two.LogDirs[0], ids["a"])
	f.assign(2, epoch, two.LogDirs[1], ids["b"])
	f.beat(2, epoch, two.LogDirs[0])
	resp := ask[*kmsg.MetadataResponse](f, metadataRequest(12, "a"))
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || !slices.Equal(p.OfflineReplicas, []int32{2}) || !slices.Equal(p.Replicas, []int32{1, 2}) {
		t.Errorf("a directory failed: %+v", p)
	}
	again := registration(2) // another process: what it led has no leader
	again.IncarnationID = [16]byte{9}
	f.mu.Lock()
	f.now = f.now.Add(10 * 1e9)
	f.mu.Unlock()
	f.register(again)
	resp = ask[*kmsg.MetadataResponse](f, metadataRequest(12, "a", "b"))
	if p := resp.Topics[0].Partitions[0]; !slices.Equal(p.OfflineReplicas, []int32{2}) {
		t.Errorf("a fenced broker: %+v", p)
	}
	old := ask[*kmsg.MetadataResponse](f, metadataRequest(0, "a", "b"))
	if p := old.Topics[0].Partitions[0]; codeOf(p.ErrorCode) != protocol.ReplicaNotAvailable || !slices.Equal(p.Replicas, []int32{1}) {
		t.Errorf("a fenced broker in version 0: %+v", p)
	}
	if p := old.Topics[1].Partitions[0]; codeOf(p.ErrorCode) != protocol.LeaderNotAvailable || len(p.Replicas) != 0 {
		t.Errorf("no leader in version 0: %+v", p)
	}
	if p := resp.Topics[1].Partitions[0]; codeOf(p.ErrorCode) != protocol.LeaderNotAvailable || p.Leader != -1 || !slices.Equal(p.OfflineReplicas, []int32{2}) {
		t.Errorf("no leader: %+v", p)
	}
}

// Item 41: what may not be seen is left out of "all" and is 29 by name, whether it
// exists or not.
func TestMetadataAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	ids := f.create(newTopic("seen", 1, 1), newTopic("hidden", 1, 1))
	f.handler.node.Authorize = allow("DESCRIBE seen", "DESCRIBE seennew", "DESCRIBE may", "CREATE may")
	all := metadataRequest(12)
	all.Topics, all.IncludeTopicAuthorizedOperations = nil, true
	if resp := ask[*kmsg.MetadataResponse](f, all); !slices.Equal(topicNames(resp), []string{"seen"}) || resp.Topics[0].AuthorizedOperations != 256 {
		t.Errorf("all: %+v", resp.Topics)
	}
	req := metadataRequest(12, "seen", "hidden", "nope", "seennew", "a/b", "may")
	req.AllowAutoTopicCreation = true
	want := []codeOf{
		protocol.None, protocol.TopicAuthorizationFailed, protocol.TopicAuthorizationFailed, protocol.TopicAuthorizationFailed,
		protocol.TopicAuthorizationFailed, protocol.UnknownTopicOrPartition,
	}
	resp := ask[*kmsg.MetadataResponse](f, req)
	if got := topicCodes(resp); !slices.Equal(got, want) {
		t.Errorf("named: %v, want %v", got, want)
	}
	hidden, nope := resp.Topics[1], resp.Topics[2]
	nope.Topic = hidden.Topic
	if hidden.TopicID != (protocol.TopicID{}) || hidden.IsInternal != nope.IsInternal || len(hidden.Partitions) != 0 {
		t.Errorf("existence leaks: %+v, %+v", hidden, nope)
	}
	if f.image().Topic("may") == nil || f.image().Topic("seennew") != nil {
		t.Error("the right to create is not what decided")
	}
	byID := ask[*kmsg.MetadataResponse](f, metadataByID(12, ids["hidden"], ids["seen"]))
	if got := byID.Topics[0]; codeOf(got.ErrorCode) != protocol.TopicAuthorizationFailed || got.Topic != nil || got.TopicID != ids["hidden"] {
		t.Errorf("by id: %+v", got)
	}
	ops := metadataRequest(10, "seen")
	ops.IncludeClusterAuthorizedOperations = true
	if got := ask[*kmsg.MetadataResponse](f, ops).AuthorizedOperations; got != 0 {
		t.Errorf("cluster operations %d", got)
	}
}
