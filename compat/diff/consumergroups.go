package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumer is a member of a consumer group (KIP-848), as the teller plays it.
type consumer struct {
	group, id string
	epoch     int32
	instance  *string
	topics    []string
	regex     *string
	assignor  *string
	owned     []kmsg.ConsumerGroupHeartbeatRequestTopic
}

// beat is a whole heartbeat: all that the member is and has.
func (c *consumer) beat() *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = c.group, c.id, c.epoch, c.instance
	req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.SubscribedTopicRegex, req.ServerAssignor = 60_000, c.topics, c.regex, c.assignor
	req.Topics = append([]kmsg.ConsumerGroupHeartbeatRequestTopic{}, c.owned...)
	if c.epoch == 0 {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return req
}

// short is a heartbeat that says nothing new.
func (c *consumer) short() *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = c.group, c.id, c.epoch, c.instance
	req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.Topics = -1, nil, nil
	return req
}

// follow does what the coordinator says, and tells whether that is something new.
func (c *consumer) follow(resp *kmsg.ConsumerGroupHeartbeatResponse) (news bool) {
	if resp == nil || resp.ErrorCode != 0 {
		return true
	}
	news = c.epoch != resp.MemberEpoch
	c.epoch = resp.MemberEpoch
	if resp.MemberID != nil {
		c.id = *resp.MemberID
	}
	if resp.Assignment != nil { // also the answer to a heartbeat that tells everything
		before := fmt.Sprint(c.owned)
		c.owned = nil
		for _, of := range resp.Assignment.Topics {
			c.owned = append(c.owned, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: of.TopicID, Partitions: of.Partitions})
		}
		slices.SortFunc(c.owned, func(a, b kmsg.ConsumerGroupHeartbeatRequestTopic) int {
			return slices.Compare(a.TopicID[:], b.TopicID[:])
		})
		news = news || fmt.Sprint(c.owned) != before
	}
	return news
}

// settle lets members beat, without writing down, until the group is Stable and nobody is told anything new.
func settle(t *Teller, members ...*consumer) {
	var last []string
	for range 600 {
		last = nil
		news := false
		for _, c := range members {
			resp := quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, c.id, 1, c.beat())
			if t.err != nil {
				return
			}
			news = c.follow(resp) || news
			last = append(last, t.show(resp))
		}
		if described := quietly[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(members[0].group)); t.err != nil || !news && described.Groups[0].State == "Stable" {
			return
		}
		pause()
	}
	described := ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(members[0].group))
	t.fail(fmt.Errorf("group %s does not become stable: %s %s", members[0].group, t.show(described), last))
}

func describingConsumers(groups ...string) *kmsg.ConsumerGroupDescribeRequest {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups, req.IncludeAuthorizedOperations = groups, true
	return req
}

// show writes down how a group stands and what its members are told.
func showConsumers(t *Teller, group string, members ...*consumer) {
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
	for _, c := range members {
		c.follow(ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c.id, 1, c.short()))
		c.follow(ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c.id, 1, c.beat()))
	}
}

// heartbeats: every kind that is refused, without a group and in one. BEHAVIOUR 111.
func heartbeats(t *Teller) {
	topics(t)
	for version := int16(0); version <= 1; version++ {
		group := fmt.Sprintf("heartbeats-%d", version)
		coordinated(t, group, "", "unheard-of")
		imaged(t, group)
		refusedHeartbeats(t, version, &consumer{group: group, id: "first member", topics: []string{orders}})
		first := &consumer{group: group, id: "first member", topics: []string{orders}}
		if version == 0 {
			first.id = ""
			first.follow(quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, "a", 0, first.beat()))
			t.name("member", first.id)
		}
		settle(t, first)
		showConsumers(t, group, first)
		refusedHeartbeats(t, version, first)
		for _, epoch := range []int32{0, first.epoch - 1, first.epoch + 1, 1, -1} {
			req := first.short()
			req.MemberEpoch = epoch
			if epoch == 0 {
				req = first.beat()
				req.MemberEpoch, req.Topics = 0, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			}
			resp := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "a", version, req)
			if epoch == 0 {
				first.follow(resp)
			}
		}
		ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "a", version, first.short()) // has left
		ask[*kmsg.ConsumerGroupDescribeResponse](t, "a", version, describingConsumers(group, "unheard-of", "", group))
	}
}

// imaged waits until the coordinator of a group knows the topics as they are now, which may have been made a moment ago: Apache Kafka
// tells each partition of __consumer_offsets a little after everybody else, and a group that begins before gets one more epoch then. A
// member of another group of the same partition sees it.
func imaged(t *Teller, group string) {
	other := ""
	for n := 0; other == "" || javaHash(other)%50 != javaHash(group)%50; n++ {
		other = fmt.Sprintf("imaged-%d", n)
	}
	c := &consumer{group: other, id: "imaged", topics: []string{orders, refunds}}
	for range 600 {
		settle(t, c)
		if t.err != nil || len(c.owned) == 2 {
			break
		}
		pause()
	}
	c.epoch = -1
	quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, c.id, 1, c.short())
	deleting := kmsg.NewPtrDeleteGroupsRequest()
	deleting.Groups = []string{other}
	quietly[*kmsg.DeleteGroupsResponse](t, "setup", 2, deleting)
}

// javaHash is String.hashCode, of ASCII, without its sign.
func javaHash(s string) uint32 {
	var h uint32
	for _, c := range []byte(s) {
		h = 31*h + uint32(c)
	}
	return h & 0x7fffffff
}

// refusedHeartbeats spoils a member's heartbeats.
func refusedHeartbeats(t *Teller, version int16, c *consumer) {
	text := func(s string) *string { return &s }
	for _, spoil := range []func(*kmsg.ConsumerGroupHeartbeatRequest){
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "" },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "  " },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group, r.MemberEpoch = "unheard-of", 3 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group, r.MemberEpoch = "unheard-of", -1 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "nobody", 3 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "nobody", -1 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberID, r.MemberEpoch, r.InstanceID = "nobody", -2, text("nobody's")
		},
		func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberID, r.MemberEpoch, r.InstanceID = "nobody", 3, text("nobody's")
		},
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "", 3 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "", -1 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "", -2 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -2 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -3 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = text("") },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RackID = text("") },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch, r.RebalanceTimeoutMillis = 0, -1 },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch, r.Topics = 0, nil },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberEpoch, r.Topics = 0, []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: [16]byte{15: 9}, Partitions: []int32{0}}}
		},
		func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberEpoch, r.Topics, r.SubscribedTopicNames = 0, []kmsg.ConsumerGroupHeartbeatRequestTopic{}, nil
		},
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = text("best") },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = text("") },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = text("a(") }, // from here on version 1 only
		func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberID, r.MemberEpoch, r.SubscribedTopicRegex = "  ", 0, text("a")
		},
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = text("*") },
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = text("(?=x)") },
	} {
		req := c.beat()
		spoil(req)
		if version == 0 && req.SubscribedTopicRegex != nil {
			break
		}
		ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "wrong", version, req)
	}
}

// reconciliation: a second member joins, gets what the first gives up, changes its mind, leaves.
func reconciliation(t *Teller) {
	ids := topics(t)
	const group = "reconciliation"
	coordinated(t, group)
	first := &consumer{group: group, id: "member one", topics: []string{orders}}
	settle(t, first)
	showConsumers(t, group, first)
	second := &consumer{group: group, id: "member two", topics: []string{orders}}
	second.follow(quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, "b", 1, second.beat()))
	for range 600 { // until the first is told to give something up
		resp := quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, first.id, 1, first.short())
		if t.err != nil || resp.Assignment != nil {
			break
		}
		pause()
	}
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, first.id, 1, first.short()) // has not given it up yet
	showConsumers(t, group, second)
	settle(t, first, second)
	showConsumers(t, group, first, second)
	consumerCommits(t, ids, first, second)
	strange := second.beat() // owns what is the first's
	strange.Topics = first.owned
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, second.id, 1, strange)
	second.topics = []string{refunds, "diff-not-there"}
	settle(t, first, second)
	showConsumers(t, group, first, second)
	second.assignor = kmsg.StringPtr("range")
	settle(t, first, second)
	first.assignor = kmsg.StringPtr("range")
	settle(t, first, second)
	showConsumers(t, group, first, second)
	second.topics, second.regex = []string{}, kmsg.StringPtr("diff-(orders|ref.*)")
	settle(t, first, second)
	regexResolved(t, group, first, second)
	showConsumers(t, group, first, second)
	consumerAdministration(t, group)
	second.epoch = -1
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, second.id, 1, second.short())
	settle(t, first)
	showConsumers(t, group, first)
	first.epoch = -1
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, first.id, 1, first.short())
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 0, describingConsumers(group))
	ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(ids, 9, group, "", -1, orders, 7, 8)) // an administrator
	deleting := kmsg.NewPtrDeleteGroupsRequest()
	deleting.Groups = []string{group}
	ask[*kmsg.DeleteGroupsResponse](t, "a", 2, deleting)
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
}

// regexResolved lets members beat until a regular expression has been looked up, which Apache Kafka does in the background.
func regexResolved(t *Teller, group string, members ...*consumer) {
	for range 600 {
		described := quietly[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
		if t.err != nil {
			return
		}
		found := map[string]bool{}
		for _, m := range described.Groups[0].Members {
			if m.SubscribedTopicRegex != nil && *m.SubscribedTopicRegex != "" {
				for _, of := range m.TargetAssignment.TopicPartitions {
					found[of.Topic] = true
				}
			}
		}
		if len(found) > 0 && described.Groups[0].State == "Stable" {
			settle(t, members...)
			return
		}
		settle(t, members...)
		pause()
	}
	t.fail(fmt.Errorf("the regular expression in group %s finds nothing", group))
}

// consumerCommits: BEHAVIOUR 112, commits and fetches by members with their epochs.
func consumerCommits(t *Teller, ids map[string][16]byte, first, second *consumer) {
	for version := int16(8); version <= 10; version++ {
		for _, who := range []struct {
			id    string
			epoch int32
		}{{first.id, first.epoch}, {first.id, first.epoch + 1}, {first.id, first.epoch - 1}, {first.id, -1}, {"nobody", first.epoch}, {"", -1}, {"", first.epoch}} {
			ask[*kmsg.OffsetCommitResponse](t, "a", version, committing(ids, version, first.group, who.id, who.epoch, orders, int64(version), 3))
		}
	}
	for version := int16(8); version <= 10; version++ {
		for _, who := range []struct {
			id    *string
			epoch int32
		}{{nil, -1}, {&second.id, second.epoch}, {&second.id, second.epoch + 1}, {&second.id, second.epoch - 1}, {&second.id, -1}, {kmsg.StringPtr("nobody"), 1}, {kmsg.StringPtr(""), -1}} {
			req := fetching(ids, version, first.group, map[string][]int32{orders: {0, 1}})
			req.Groups[0].MemberID, req.Groups[0].MemberEpoch = who.id, who.epoch
			ask[*kmsg.OffsetFetchResponse](t, "a", version, req)
		}
	}
}

// consumerAdministration: what the requests for groups of any kind, and for classic ones, make of a consumer group.
func consumerAdministration(t *Teller, group string) {
	for _, version := range []int16{0, 5, 6} {
		describing := kmsg.NewPtrDescribeGroupsRequest()
		describing.Groups, describing.IncludeAuthorizedOperations = []string{group}, true
		ask[*kmsg.DescribeGroupsResponse](t, "a", version, describing)
	}
	for version := int16(0); version <= 5; version++ {
		for _, types := range [][]string{nil, {"consumer"}, {"Classic"}, {"share", "CONSUMER"}} {
			if version < 5 && types != nil {
				continue
			}
			listing := kmsg.NewPtrListGroupsRequest()
			listing.TypesFilter = types
			resp := quietly[*kmsg.ListGroupsResponse](t, "a", version, listing)
			if t.err != nil {
				return
			}
			resp.Groups = slices.DeleteFunc(resp.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return g.Group != group })
			t.lines = append(t.lines, fmt.Sprintf("ListGroups %d %s %s", version, strings.Join(types, "+"), t.show(resp)))
		}
	}
	deleting := kmsg.NewPtrDeleteGroupsRequest()
	deleting.Groups = []string{group}
	ask[*kmsg.DeleteGroupsResponse](t, "a", 2, deleting)
	offsets := kmsg.NewPtrOffsetDeleteRequest()
	offsets.Group = group
	for _, name := range []string{orders, refunds, "diff-missing"} {
		topic := kmsg.NewOffsetDeleteRequestTopic()
		topic.Topic, topic.Partitions = name, []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}
		offsets.Topics = append(offsets.Topics, topic)
	}
	ask[*kmsg.OffsetDeleteResponse](t, "a", 0, offsets)
	ask[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, "member one", 1))
	ask[*kmsg.SyncGroupResponse](t, "a", 5, syncing(group, "member one", 1))
	ask[*kmsg.LeaveGroupResponse](t, "a", 5, leaving(5, group, "nobody"))
}

// staticConsumers: BEHAVIOUR 111, a member with an instance id goes and comes back.
func staticConsumers(t *Teller) {
	topics(t)
	const group = "static consumers"
	coordinated(t, group)
	instance := "instance"
	old := &consumer{group: group, id: "old member", instance: &instance, topics: []string{orders}}
	settle(t, old)
	showConsumers(t, group, old)
	fresh := &consumer{group: group, id: "fresh member", instance: &instance, topics: []string{orders}}
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "b", 1, fresh.beat()) // the old one is still there
	other := old.short()
	other.InstanceID = kmsg.StringPtr("another")
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "b", 1, other)
	other = old.short()
	other.MemberID = "impostor"
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "b", 1, other)
	for _, epoch := range []int32{-2, -1} {
		other = old.short()
		other.MemberID, other.MemberEpoch = "impostor", epoch
		ask[*kmsg.ConsumerGroupHeartbeatResponse](t, "b", 1, other)
	}
	leave := old.short()
	leave.MemberEpoch = -2
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, old.id, 1, leave)
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
	fresh.follow(ask[*kmsg.ConsumerGroupHeartbeatResponse](t, fresh.id, 1, fresh.beat()))
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, old.id, 1, old.short())
	settle(t, fresh)
	showConsumers(t, group, fresh)
	leave = fresh.short()
	leave.MemberEpoch = -1
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, fresh.id, 1, leave)
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
}

// migration: BEHAVIOUR 112, members of both protocols in one group.
func migration(t *Teller) {
	topics(t)
	const group = "migration"
	coordinated(t, group)
	classic, generation := enterAsConsumer(t, "a", group)
	if t.err != nil {
		return
	}
	fresh := &consumer{group: group, id: "fresh member", topics: []string{orders}}
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, fresh.id, 1, &kmsg.ConsumerGroupHeartbeatRequest{Group: group, MemberID: classic, MemberEpoch: generation, RebalanceTimeoutMillis: -1})
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group)) // is a classic group
	fresh.follow(ask[*kmsg.ConsumerGroupHeartbeatResponse](t, fresh.id, 1, fresh.beat()))
	ask[*kmsg.DescribeGroupsResponse](t, "setup", 6, &kmsg.DescribeGroupsRequest{Groups: []string{group}})
	for range 600 { // until the classic member is told to join again
		beat := quietly[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, classic, generation))
		if t.err != nil || beat.ErrorCode != 0 {
			break
		}
		pause()
	}
	ask[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, classic, generation))
	ask[*kmsg.HeartbeatResponse](t, "a", 4, beating(group, "nobody", generation))
	ask[*kmsg.SyncGroupResponse](t, "a", 5, syncing(group, "nobody", generation))
	wrong := joining(group, classic)
	wrong.ProtocolType = "connect"
	ask[*kmsg.JoinGroupResponse](t, "a", 9, wrong)
	ask[*kmsg.JoinGroupResponse](t, "a", 9, joining(group, "nobody"))
	leave := fresh.short()
	leave.MemberEpoch = -1
	ask[*kmsg.ConsumerGroupHeartbeatResponse](t, fresh.id, 1, leave) // the group is classic again
	ask[*kmsg.ConsumerGroupDescribeResponse](t, "setup", 1, describingConsumers(group))
	ask[*kmsg.LeaveGroupResponse](t, "a", 5, leaving(5, group, classic))
	ask[*kmsg.DescribeGroupsResponse](t, "setup", 6, &kmsg.DescribeGroupsRequest{Groups: []string{group}})
}

// enterAsConsumer is enter with a subscription and an assignment that a consumer would send.
func enterAsConsumer(t *Teller, on, group string) (member string, generation int32) {
	first := quietly[*kmsg.JoinGroupResponse](t, on, 5, joining(group, ""))
	if t.err != nil {
		return "", 0
	}
	joined := quietly[*kmsg.JoinGroupResponse](t, on, 5, joining(group, first.MemberID))
	if t.err != nil {
		return "", 0
	}
	t.name("member", joined.MemberID)
	assignment := kmsg.NewConsumerMemberAssignment()
	assignment.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: orders, Partitions: []int32{0, 1}}}
	sync := syncing(group, joined.MemberID, joined.Generation)
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: assignment.AppendTo(nil)}}
	quietly[*kmsg.SyncGroupResponse](t, on, 5, sync)
	return joined.MemberID, joined.Generation
}
