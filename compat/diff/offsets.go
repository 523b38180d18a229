package diff

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// committing commits offsets of partition 0 and so on of a topic. ids is needed from
// version 10 on.
func committing(ids map[string][16]byte, version int16, group, member string, generation int32, topic string, offsets ...int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	addCommit(req, ids, version, topic, offsets...)
	return req
}

func addCommit(req *kmsg.OffsetCommitRequest, ids map[string][16]byte, version int16, topic string, offsets ...int64) {
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	if version >= 10 {
		t.Topic, t.TopicID = "", ids[topic]
		if t.TopicID == ([16]byte{}) {
			t.TopicID = [16]byte{15: 9} // nobody's
		}
	}
	for n, offset := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = int32(n), offset, 0, kmsg.StringPtr(fmt.Sprintf("note %d", n))
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
}

func fetching(ids map[string][16]byte, version int16, group string, topics map[string][]int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	if version < 8 {
		req.Group = group
		for _, name := range []string{orders, refunds, "diff-missing"} {
			if partitions, asked := topics[name]; asked {
				req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: partitions})
			}
		}
		return req
	}
	req.Groups = append(req.Groups, fetchingGroup(ids, version, group, topics))
	return req
}

func fetchingGroup(ids map[string][16]byte, version int16, group string, topics map[string][]int32) kmsg.OffsetFetchRequestGroup {
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	for _, name := range []string{orders, refunds, "diff-missing"} {
		partitions, named := topics[name]
		if !named {
			continue
		}
		t := kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: partitions}
		if version >= 10 {
			t.Topic, t.TopicID = "", ids[name]
			if t.TopicID == ([16]byte{}) {
				t.TopicID = [16]byte{15: 9}
			}
		}
		asked.Topics = append(asked.Topics, t)
	}
	return asked
}

// commits: BEHAVIOUR 105 and 106.
func commits(t *Teller) {
	ids := topics(t)
	for version := int16(2); version <= 10; version++ {
		group := fmt.Sprintf("commits-%d", version)
		coordinated(t, group, group+"-b", group+"-unheard-of", "unheard-of", "")
		commit := func(group, member string, generation int32, topic string, offsets ...int64) {
			ask[*kmsg.OffsetCommitResponse](t, "a", version, committing(ids, version, group, member, generation, topic, offsets...))
		}
		commit(group, "", -1, orders, 10, 11)
		commit(group, "", -1, orders, 12, 13, 14) // there is no partition 2
		commit(group, "", -1, "diff-missing", 1)
		commit(group, "nobody", 3, orders, 1)
		commit(group, "", 3, orders, 1)
		commit(group+"-unheard-of", "nobody", 3, orders, 1)
		commit("", "", -1, orders, 5)
		several := committing(ids, version, group, "", -1, orders, 20, 21)
		addCommit(several, ids, version, "diff-missing", 1)
		addCommit(several, ids, version, refunds, 22)
		several.Topics[0].Partitions[1].Metadata = kmsg.StringPtr(strings.Repeat("x", 4097))
		ask[*kmsg.OffsetCommitResponse](t, "a", version, several)
		nothing := committing(ids, version, group, "", -1, orders)
		ask[*kmsg.OffsetCommitResponse](t, "a", version, nothing)
		nothing.Topics = nil
		ask[*kmsg.OffsetCommitResponse](t, "a", version, nothing)
		null := committing(ids, version, group, "", -1, refunds, 30)
		null.Topics[0].Partitions[0].Metadata = nil
		ask[*kmsg.OffsetCommitResponse](t, "a", version, null)
		fetches(t, ids, version, group)
		member, generation := enter(t, "member", group+"-b")
		commit(group+"-b", "", -1, orders, 1) // it is not empty
		commit(group+"-b", member, generation, orders, 1)
		commit(group+"-b", member, generation+1, orders, 1)
		commit(group+"-b", "nobody", generation, orders, 1)
		quietly[*kmsg.LeaveGroupResponse](t, "member", 5, leaving(5, group+"-b", member))
		commit(group+"-b", "", -1, orders, 2)
	}
}

func fetches(t *Teller, ids map[string][16]byte, committed int16, group string) {
	for version := int16(1); version <= 10; version++ {
		if committed < 10 && version != committed && version != 1 {
			continue // all of them once is enough
		}
		fetch := func(group string, topics map[string][]int32) {
			ask[*kmsg.OffsetFetchResponse](t, "a", version, fetching(ids, version, group, topics))
		}
		fetch(group, map[string][]int32{orders: {0, 1, 2}, refunds: {0}, "diff-missing": {0}})
		fetch("unheard-of", map[string][]int32{orders: {0}})
		fetch("", map[string][]int32{orders: {0}})
		fetch(group, map[string][]int32{orders: {}})
		if version >= 2 {
			fetch(group, nil)
			fetch("unheard-of", nil)
		}
		if version >= 7 {
			stable := fetching(ids, version, group, map[string][]int32{orders: {0}})
			stable.RequireStable = true
			ask[*kmsg.OffsetFetchResponse](t, "a", version, stable)
		}
		if version >= 8 {
			several := fetching(ids, version, group, map[string][]int32{orders: {0}})
			several.Groups = append(several.Groups, fetchingGroup(ids, version, "unheard-of", nil),
				fetchingGroup(ids, version, group, map[string][]int32{refunds: {0}}))
			ask[*kmsg.OffsetFetchResponse](t, "a", version, several)
			several.Groups = nil
			ask[*kmsg.OffsetFetchResponse](t, "a", version, several)
		}
	}
}

// administration: BEHAVIOUR 107 and 108, and OffsetDelete.
func administration(t *Teller) {
	ids := topics(t)
	coordinated(t, "admin-stable", "admin-simple", "admin-empty", "unheard-of", "")
	member, _ := enter(t, "member", "admin-stable")
	leaver, _ := enter(t, "leaver", "admin-empty")
	quietly[*kmsg.LeaveGroupResponse](t, "leaver", 5, leaving(5, "admin-empty", leaver))
	for _, group := range []string{"admin-simple", "admin-empty"} {
		quietly[*kmsg.OffsetCommitResponse](t, "a", 9, committing(ids, 9, group, "", -1, orders, 7, 8))
	}
	for version := int16(0); version <= 6; version++ {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{"admin-stable", "admin-simple", "admin-empty", "unheard-of", ""}
		ask[*kmsg.DescribeGroupsResponse](t, "a", version, req)
		req.IncludeAuthorizedOperations = true
		ask[*kmsg.DescribeGroupsResponse](t, "a", version, req)
		req.Groups = nil
		ask[*kmsg.DescribeGroupsResponse](t, "a", version, req)
	}
	for version := int16(0); version <= 5; version++ {
		req := kmsg.NewPtrListGroupsRequest()
		ask[*kmsg.ListGroupsResponse](t, "a", version, req)
		if version >= 4 {
			for _, states := range [][]string{{"Empty"}, {"stable"}, {"Empty", "Stable"}, {"Dead"}, {"nonsense"}, {""}, {" Empty "}} {
				req.StatesFilter = states
				ask[*kmsg.ListGroupsResponse](t, "a", version, req)
			}
			req.StatesFilter = nil
		}
		if version >= 5 {
			for _, types := range [][]string{{"classic"}, {"Consumer"}, {"nonsense"}, {"CLASSIC", "share"}, {""}} {
				req.TypesFilter = types
				ask[*kmsg.ListGroupsResponse](t, "a", version, req)
			}
		}
	}
	deletions(t, member)
}

func deletions(t *Teller, member string) {
	forget := func(group string, topics map[string][]int32) {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, name := range []string{orders, refunds, "diff-missing"} {
			if _, named := topics[name]; !named {
				continue
			}
			topic := kmsg.OffsetDeleteRequestTopic{Topic: name}
			for _, n := range topics[name] {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: n})
			}
			req.Topics = append(req.Topics, topic)
		}
		ask[*kmsg.OffsetDeleteResponse](t, "a", 0, req)
	}
	forget("", map[string][]int32{orders: {0}})
	forget("unheard-of", map[string][]int32{orders: {0}, "diff-missing": {0}})
	forget("admin-stable", map[string][]int32{orders: {0}, refunds: {0}, "diff-missing": {0}})
	forget("admin-simple", map[string][]int32{orders: {0, 5}, refunds: {0}, "diff-missing": {0, 1}})
	forget("admin-simple", nil)
	for version := int16(0); version <= 3; version++ {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"admin-stable", "unheard-of", "", "unheard-of"}
		switch version {
		case 1:
			req.Groups = append(req.Groups, "admin-simple")
		case 3:
			req.Groups = append(req.Groups, "admin-empty", "admin-empty")
		}
		ask[*kmsg.DeleteGroupsResponse](t, "a", version, req)
	}
	quietly[*kmsg.LeaveGroupResponse](t, "member", 5, leaving(5, "admin-stable", member))
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{"admin-stable"}
	ask[*kmsg.DeleteGroupsResponse](t, "a", 2, req)
}

// deletedTopic: what was committed for a topic goes with it (BEHAVIOUR 109).
func deletedTopic(t *Teller) {
	ids := topics(t)
	coordinated(t, "deleted")
	both := committing(ids, 9, "deleted", "", -1, orders, 1, 2)
	addCommit(both, ids, 9, refunds, 3)
	ask[*kmsg.OffsetCommitResponse](t, "a", 9, both)
	ask[*kmsg.OffsetFetchResponse](t, "a", 9, fetching(ids, 9, "deleted", nil))
	deletion := kmsg.NewPtrDeleteTopicsRequest()
	deletion.TimeoutMillis = 10_000
	deletion.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr(orders)}}
	quietly[*kmsg.DeleteTopicsResponse](t, "setup", 6, deletion)
	for range 400 {
		left := quietly[*kmsg.OffsetFetchResponse](t, "setup", 9, fetching(ids, 9, "deleted", nil))
		if t.err != nil || len(left.Groups[0].Topics) < 2 {
			break
		}
		pause()
	}
	ask[*kmsg.OffsetFetchResponse](t, "a", 9, fetching(ids, 9, "deleted", nil))
	ask[*kmsg.OffsetFetchResponse](t, "a", 10, fetching(ids, 10, "deleted", map[string][]int32{orders: {0}, refunds: {0}}))
	ask[*kmsg.OffsetCommitResponse](t, "a", 9, committing(ids, 9, "deleted", "", -1, orders, 5))
	ask[*kmsg.OffsetCommitResponse](t, "a", 10, committing(ids, 10, "deleted", "", -1, orders, 5))
	anew := topics(t)
	ask[*kmsg.OffsetFetchResponse](t, "a", 9, fetching(anew, 9, "deleted", map[string][]int32{orders: {0}, refunds: {0}}))
	ask[*kmsg.OffsetFetchResponse](t, "a", 10, fetching(anew, 10, "deleted", map[string][]int32{orders: {0}}))
	ask[*kmsg.OffsetFetchResponse](t, "a", 10, fetching(ids, 10, "deleted", map[string][]int32{orders: {0}}))
	ask[*kmsg.OffsetCommitResponse](t, "a", 10, committing(ids, 10, "deleted", "", -1, orders, 5))
	ask[*kmsg.OffsetCommitResponse](t, "a", 10, committing(anew, 10, "deleted", "", -1, orders, 6))
	ask[*kmsg.OffsetFetchResponse](t, "a", 10, fetching(anew, 10, "deleted", nil))
}
