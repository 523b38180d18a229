package diff

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The topics of the stories, as prepare makes them.
const (
	orders  = "diff-orders"  // two partitions
	refunds = "diff-refunds" // one
)

// topics creates the topics if they are not there, and gives their ids by name.
func topics(t *Teller) map[string][16]byte {
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 10_000
	for name, partitions := range map[string]int32{orders: 2, refunds: 1} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
		create.Topics = append(create.Topics, topic)
	}
	quietly[*kmsg.CreateTopicsResponse](t, "setup", 7, create)
	ids := map[string][16]byte{}
	for range 200 {
		ask := kmsg.NewPtrMetadataRequest()
		for _, name := range []string{orders, refunds} {
			ask.Topics = append(ask.Topics, kmsg.MetadataRequestTopic{Topic: &name})
		}
		resp := quietly[*kmsg.MetadataResponse](t, "setup", 12, ask)
		if t.err != nil {
			return ids
		}
		for _, topic := range resp.Topics {
			if topic.ErrorCode == 0 {
				ids[*topic.Topic] = topic.TopicID
			}
		}
		if len(ids) == 2 {
			for _, name := range []string{orders, refunds} {
				t.name("topic id", fmt.Sprintf("%x", ids[name]))
			}
			return ids
		}
		pause()
	}
	t.fail(fmt.Errorf("the topics of the stories do not appear"))
	return ids
}

// pause is before asking again; what a server does meanwhile is its own affair.
func pause() { <-time.After(50 * time.Millisecond) }

func coordinatorOf(version int16, kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType = kind
	if version < 4 {
		req.CoordinatorKey = keys[0]
		return req
	}
	req.CoordinatorKeys = keys
	return req
}

// coordinated waits until the groups have a coordinator that is loaded. Apache Kafka
// names it a little before.
func coordinated(t *Teller, groups ...string) {
	for range 400 {
		quietly[*kmsg.FindCoordinatorResponse](t, "setup", 4, coordinatorOf(4, 0, groups...))
		req := kmsg.NewPtrOffsetFetchRequest()
		for _, group := range groups {
			req.Groups = append(req.Groups, kmsg.OffsetFetchRequestGroup{Group: group, MemberEpoch: -1})
		}
		resp := quietly[*kmsg.OffsetFetchResponse](t, "setup", 9, req)
		if t.err != nil {
			return
		}
		if !slices.ContainsFunc(resp.Groups, func(g kmsg.OffsetFetchResponseGroup) bool { return g.ErrorCode != 0 }) {
			return
		}
		pause()
	}
	t.fail(fmt.Errorf("the groups %q have no coordinator", groups))
}

// findCoordinator: BEHAVIOUR 100.
func findCoordinator(t *Teller) {
	for version := int16(0); version <= 6; version++ {
		if version == 0 { // creates __consumer_offsets
			ask[*kmsg.FindCoordinatorResponse](t, "a", 0, coordinatorOf(0, 0, "first"))
			coordinated(t, "first", "second", "")
			describeOffsetsTopic(t)
		}
		ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 0, "first"))
		ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 0, ""))
		if version == 0 {
			continue
		}
		for _, kind := range []int8{9, -1} {
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, kind, "first"))
		}
		if version < 6 { // later only brokers ask, and there is a coordinator
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 2, "first:AAAAAAAAAAAAAAAAAAAAAQ:0"))
		}
		if version >= 4 {
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 0, "first", "second", "first"))
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 0))
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 9, "x", "y"))
			ask[*kmsg.FindCoordinatorResponse](t, "a", version, coordinatorOf(version, 9))
		}
	}
}

// describeOffsetsTopic tells how the coordinator has created its topic.
func describeOffsetsTopic(t *Teller) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("__consumer_offsets")}}
	var topic kmsg.MetadataResponseTopic
	for range 1000 { // it is shown when all its replicas are there
		resp := quietly[*kmsg.MetadataResponse](t, "a", 12, metadata)
		if t.err != nil {
			return
		}
		if topic = resp.Topics[0]; len(topic.Partitions) > 0 {
			break
		}
		pause()
	}
	if len(topic.Partitions) == 0 {
		t.fail(fmt.Errorf("__consumer_offsets has no partitions"))
		return
	}
	t.lines = append(t.lines, fmt.Sprintf("%s: %d partitions, %d replicas, internal: %v", *topic.Topic, len(topic.Partitions), len(topic.Partitions[0].Replicas), topic.IsInternal))
	configs := kmsg.NewPtrDescribeConfigsRequest()
	configs.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: *topic.Topic, ConfigNames: []string{
		"cleanup.policy", "compression.type", "segment.bytes", "retention.ms", "unclean.leader.election.enable", "max.message.bytes",
	}}}
	described := quietly[*kmsg.DescribeConfigsResponse](t, "a", 4, configs)
	if t.err != nil {
		return
	}
	slices.SortFunc(described.Resources[0].Configs, func(a, b kmsg.DescribeConfigsResponseResourceConfig) int { return strings.Compare(a.Name, b.Name) })
	t.lines = append(t.lines, "DescribeConfigs 4 "+t.show(described))
}

func joining(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscribing(orders)}}
	return req
}

func subscribing(topics ...string) []byte {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version, meta.Topics = 1, topics
	return meta.AppendTo(nil)
}

func syncing(group, member string, generation int32, to ...string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for _, id := range to {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte("partitions of one")})
	}
	return req
}

func beating(group, member string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	return req
}

func leaving(version int16, group string, members ...string) *kmsg.LeaveGroupRequest {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	if version < 3 {
		req.MemberID = members[0]
		return req
	}
	for _, id := range members {
		req.Members = append(req.Members, kmsg.LeaveGroupRequestMember{MemberID: id})
	}
	return req
}

// enter makes a member of a group that is alone in it, without writing anything down.
func enter(t *Teller, on, group string) (member string, generation int32) {
	first := quietly[*kmsg.JoinGroupResponse](t, on, 5, joining(group, ""))
	if t.err != nil {
		return "", 0
	}
	joined := quietly[*kmsg.JoinGroupResponse](t, on, 5, joining(group, first.MemberID))
	if t.err != nil {
		return "", 0
	}
	t.name("member", joined.MemberID)
	quietly[*kmsg.SyncGroupResponse](t, on, 3, syncing(group, joined.MemberID, joined.Generation, joined.MemberID))
	return joined.MemberID, joined.Generation
}

// members: BEHAVIOUR 101, 103 and 104, with one member.
func members(t *Teller) {
	for version := int16(0); version <= 9; version++ {
		group := fmt.Sprintf("members-%d", version)
		coordinated(t, group, "unheard-of")
		ask[*kmsg.JoinGroupResponse](t, "wrong", version, joining(group, "nobody"))
		wrongJoins(t, version, group)
		joined := quietly[*kmsg.JoinGroupResponse](t, "a", version, joining(group, ""))
		if t.err != nil {
			return
		}
		t.name("member", joined.MemberID)
		t.lines = append(t.lines, fmt.Sprintf("JoinGroup %d %s", version, t.show(joined)))
		if version >= 4 {
			joined = ask[*kmsg.JoinGroupResponse](t, "a", version, joining(group, joined.MemberID))
		}
		if t.err != nil {
			return
		}
		oneGeneration(t, version, group, joined.MemberID, joined.Generation)
	}
}

func wrongJoins(t *Teller, version int16, group string) {
	for _, spoil := range []func(*kmsg.JoinGroupRequest){
		func(r *kmsg.JoinGroupRequest) { r.Group = "" },
		func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 5_999 },
		func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1_800_001 },
		func(r *kmsg.JoinGroupRequest) { r.Protocols = nil },
		func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "" },
	} {
		req := joining(group, "")
		spoil(req)
		ask[*kmsg.JoinGroupResponse](t, "wrong", version, req)
	}
}

// oneGeneration goes through a member's requests, wrong ones first; version is that
// of JoinGroup, and the others have theirs as far as they go.
func oneGeneration(t *Teller, version int16, group, member string, generation int32) {
	syncs, beats, leaves := min(version, 5), min(version, 4), min(version, 5)
	ask[*kmsg.HeartbeatResponse](t, "a", beats, beating(group, member, generation)) // while the group waits for SyncGroup
	for i, spoil := range []func(*kmsg.SyncGroupRequest){
		func(r *kmsg.SyncGroupRequest) { r.Group = "" },
		func(r *kmsg.SyncGroupRequest) { r.Group = "unheard-of" },
		func(r *kmsg.SyncGroupRequest) { r.MemberID = "nobody" },
		func(r *kmsg.SyncGroupRequest) { r.Generation += 7 },
		func(r *kmsg.SyncGroupRequest) { r.ProtocolType = kmsg.StringPtr("connect") }, // from here on version 5 only
		func(r *kmsg.SyncGroupRequest) { r.Protocol = kmsg.StringPtr("sticky") },
		func(r *kmsg.SyncGroupRequest) { r.Protocol = nil },
	} {
		if i >= 4 && syncs < 5 {
			break
		}
		req := syncing(group, member, generation, member)
		spoil(req)
		ask[*kmsg.SyncGroupResponse](t, "a", syncs, req)
	}
	ask[*kmsg.SyncGroupResponse](t, "a", syncs, syncing(group, member, generation, member))
	ask[*kmsg.SyncGroupResponse](t, "a", syncs, syncing(group, member, generation)) // again: the same
	for _, spoil := range []func(*kmsg.HeartbeatRequest){
		func(*kmsg.HeartbeatRequest) {},
		func(r *kmsg.HeartbeatRequest) { r.Group = "" },
		func(r *kmsg.HeartbeatRequest) { r.Group = "unheard-of" },
		func(r *kmsg.HeartbeatRequest) { r.MemberID = "nobody" },
		func(r *kmsg.HeartbeatRequest) { r.MemberID = "" },
		func(r *kmsg.HeartbeatRequest) { r.Generation-- },
	} {
		req := beating(group, member, generation)
		spoil(req)
		ask[*kmsg.HeartbeatResponse](t, "a", beats, req)
	}
	describing := kmsg.NewPtrDescribeGroupsRequest()
	describing.Groups = []string{group}
	ask[*kmsg.DescribeGroupsResponse](t, "a", min(version, 6), describing)
	ask[*kmsg.LeaveGroupResponse](t, "a", leaves, leaving(leaves, "", member))
	ask[*kmsg.LeaveGroupResponse](t, "a", leaves, leaving(leaves, "unheard-of", member))
	ask[*kmsg.LeaveGroupResponse](t, "a", leaves, leaving(leaves, group, "nobody", "nobody else"))
	ask[*kmsg.LeaveGroupResponse](t, "a", leaves, leaving(leaves, group, member))
	ask[*kmsg.LeaveGroupResponse](t, "a", leaves, leaving(leaves, group, member))
	ask[*kmsg.DescribeGroupsResponse](t, "a", min(version, 6), describing)
	ask[*kmsg.HeartbeatResponse](t, "a", beats, beating(group, member, generation))
}

// staticMembers: BEHAVIOUR 102 (SkipAssignment) and 104.
func staticMembers(t *Teller) {
	for version := int16(5); version <= 9; version++ {
		group := fmt.Sprintf("static-%d", version)
		coordinated(t, group, "unheard-of")
		request := func(member string) *kmsg.JoinGroupRequest {
			req := joining(group, member)
			req.InstanceID = kmsg.StringPtr("instance")
			return req
		}
		old := quietly[*kmsg.JoinGroupResponse](t, "a", version, request(""))
		if t.err != nil {
			return
		}
		t.name("member", old.MemberID)
		t.lines = append(t.lines, fmt.Sprintf("JoinGroup %d %s", version, t.show(old)))
		sync := syncing(group, old.MemberID, old.Generation, old.MemberID)
		sync.InstanceID = kmsg.StringPtr("instance")
		ask[*kmsg.SyncGroupResponse](t, "a", 5, sync)
		fresh := quietly[*kmsg.JoinGroupResponse](t, "b", version, request("")) // comes back
		if t.err != nil {
			return
		}
		t.name("member", fresh.MemberID)
		t.lines = append(t.lines, fmt.Sprintf("JoinGroup %d %s", version, t.show(fresh)))
		beat := beating(group, old.MemberID, old.Generation)
		beat.InstanceID = kmsg.StringPtr("instance")
		ask[*kmsg.HeartbeatResponse](t, "a", 4, beat) // the old one is fenced
		ask[*kmsg.JoinGroupResponse](t, "a", version, request(old.MemberID))
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group = group
		leave.Members = []kmsg.LeaveGroupRequestMember{
			{MemberID: old.MemberID, InstanceID: kmsg.StringPtr("instance")},
			{InstanceID: kmsg.StringPtr("unknown")},
			{InstanceID: kmsg.StringPtr("instance")},
		}
		ask[*kmsg.LeaveGroupResponse](t, "a", min(version, 5), leave)
	}
}

// severalMembers: a second member joins and the first is told (BEHAVIOUR 102, 103).
func severalMembers(t *Teller) {
	topics(t)
	for _, version := range []int16{2, 5, 9} {
		group := fmt.Sprintf("several-%d", version)
		coordinated(t, group, "unheard-of")
		first, generation := enter(t, "a", group)
		if t.err != nil {
			return
		}
		second := ""
		if version >= 4 {
			second = quietly[*kmsg.JoinGroupResponse](t, "b", version, joining(group, "")).MemberID
			t.name("member", second)
		}
		t.send("b", version, joining(group, second)) // waits for the first
		for range 200 {
			beat := quietly[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, first, generation))
			if t.err != nil || beat.ErrorCode != 0 {
				break
			}
			pause()
		}
		ask[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, first, generation)) // PreparingRebalance
		ask[*kmsg.SyncGroupResponse](t, "a", 5, syncing(group, first, generation))
		ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(nil, 9, group, first, generation, orders, 1))
		again := quietly[*kmsg.JoinGroupResponse](t, "a", version, joining(group, first))
		joined := quietlyReceive[*kmsg.JoinGroupResponse](t, "b")
		if t.err != nil {
			return
		}
		t.name("member", joined.MemberID)
		t.lines = append(t.lines, "the first "+t.show(again), "the second "+t.show(joined))
		ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(nil, 9, group, first, again.Generation, orders, 1)) // CompletingRebalance
		t.send("b", 5, syncing(group, joined.MemberID, joined.Generation))                                        // waits for the leader
		ask[*kmsg.SyncGroupResponse](t, "a", 5, syncing(group, first, again.Generation, first, joined.MemberID))
		receive[*kmsg.SyncGroupResponse](t, "b")
		ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(nil, 9, group, first, again.Generation, orders, 1))
		ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(nil, 9, group, first, generation, orders, 1))
		describing := kmsg.NewPtrDescribeGroupsRequest()
		describing.Groups, describing.IncludeAuthorizedOperations = []string{group}, true
		ask[*kmsg.DescribeGroupsResponse](t, "a", 6, describing)
		ask[*kmsg.LeaveGroupResponse](t, "a", 5, leaving(5, group, first, joined.MemberID, "nobody"))
	}
}

func quietlyReceive[R kmsg.Response](t *Teller, on string) R {
	before := len(t.lines)
	resp := receive[R](t, on)
	if t.err == nil {
		t.lines = t.lines[:before]
	}
	return resp
}
