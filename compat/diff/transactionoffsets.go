package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// addOffsets asks for a group's offsets to be part of the transaction.
func (p *producer) addOffsets(group string) *kmsg.AddOffsetsToTxnRequest {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.txid, p.id, p.epoch, group
	return req
}

// commits commits offsets of partitions 0 and so on of a topic in the transaction.
func (p *producer) commits(version int16, group, topic string, offsets ...int64) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = p.txid, p.id, p.epoch, group, -1
	t := kmsg.TxnOffsetCommitRequestTopic{Topic: topic}
	if version >= 6 {
		t.Topic, t.TopicID = "", p.idOf(topic)
	}
	for n, offset := range offsets {
		t.Partitions = append(t.Partitions, kmsg.TxnOffsetCommitRequestTopicPartition{Partition: int32(n), Offset: offset, LeaderEpoch: 0, Metadata: kmsg.StringPtr(fmt.Sprintf("note %d", n))})
	}
	req.Topics = append(req.Topics, t)
	return req
}

// committed asks for what a group has committed.
func committed(t *Teller, version int16, stable bool, group string, all bool, topics ...string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	for _, name := range topics {
		in := kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: []int32{0, 1}}
		if version >= 10 {
			in.Topic, in.TopicID = "", t.idOf(name)
		}
		asked.Topics = append(asked.Topics, in)
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: []int32{0, 1}})
	}
	if all {
		asked.Topics, req.Topics = nil, nil
	}
	req.Group = group
	if version >= 8 {
		req.Groups = append(req.Groups, asked)
	}
	return req
}

// offsetsInTransactions: 77.
func offsetsInTransactions(t *Teller) {
	t.setUp(2, "x-offsets", "x-offsets-2")
	for version := int16(0); version <= 6; version++ {
		group := fmt.Sprintf("x-group-%d", version)
		coordinated(t, group)
		p := t.transactor(fmt.Sprintf("offsets-%d", version))
		p.ends = 4
		if version >= 5 {
			p.ends = 5
		}
		name := func(what string) string { return fmt.Sprintf("%d: %s", version, what) }
		look := func(what string) {
			for _, v := range []int16{1, 6, 7, 8, 9, 10} {
				for _, stable := range []bool{false, true} {
					if v < 7 && stable {
						continue
					}
					say[*kmsg.OffsetFetchResponse](t, name(fmt.Sprintf("%s, stable %v", what, stable)), v, committed(t, v, stable, group, false, "x-offsets", "x-offsets-2"))
					if v > 1 {
						say[*kmsg.OffsetFetchResponse](t, name(fmt.Sprintf("%s, stable %v, all", what, stable)), v, committed(t, v, stable, group, true))
					}
				}
			}
		}
		plain := func(what string, offset int64) {
			say[*kmsg.OffsetCommitResponse](t, name(what), 9, committing(nil, 9, group, "", -1, "x-offsets", offset))
		}
		look("nothing")
		plain("plainly", 5)
		say[*kmsg.TxnOffsetCommitResponse](t, "before the group is added", version, p.commits(version, group, "x-offsets", 9, 8))
		if version < 5 {
			p.quiet(func() []int16 {
				return codesOf(secret[*kmsg.AddOffsetsToTxnResponse](t, "setup", 3, p.addOffsets(group)))
			})
			say[*kmsg.TxnOffsetCommitResponse](t, "in a transaction", version, p.commits(version, group, "x-offsets", 10, 11))
		}
		look("pending")
		say[*kmsg.DescribeTransactionsResponse](t, name("the transaction"), 0, t.described(p.txid))
		several := p.commits(version, group, "x-offsets-2", 20, 21)
		several.Topics[0].Partitions[1].Metadata = kmsg.StringPtr(strings.Repeat("x", 4097))
		several.Topics = append(several.Topics, p.commits(version, group, "x-none", 1).Topics...)
		several.Topics = append(several.Topics, p.commits(version, group, "x-offsets", 12, 13, 14).Topics...)
		say[*kmsg.TxnOffsetCommitResponse](t, "several, some of them wrong", version, several)
		nothing := p.commits(version, group, "x-offsets")
		nothing.Topics = nil
		say[*kmsg.TxnOffsetCommitResponse](t, "none", version, nothing)
		p.finish(true)
		look("committed")
		// aborted, with a plain commit in between
		if version < 5 {
			p.quiet(func() []int16 {
				return codesOf(secret[*kmsg.AddOffsetsToTxnResponse](t, "setup", 3, p.addOffsets(group)))
			})
		}
		say[*kmsg.TxnOffsetCommitResponse](t, "the next", version, p.commits(version, group, "x-offsets", 30, 31))
		plain("plainly, in between", 25)
		look("pending again")
		old := *p
		p.finish(false)
		look("aborted")
		say[*kmsg.TxnOffsetCommitResponse](t, "after the end, the old epoch", version, old.commits(version, group, "x-offsets", 40))
		strange := *p
		strange.id = 5_000_000
		say[*kmsg.TxnOffsetCommitResponse](t, "of another producer", version, strange.commits(version, group, "x-offsets", 41))
		strange = *p
		strange.txid = "offsets-nobody"
		say[*kmsg.TxnOffsetCommitResponse](t, "of nobody's transactional id", version, strange.commits(version, group, "x-offsets", 42))
		say[*kmsg.TxnOffsetCommitResponse](t, "to no group", version, p.commits(version, "", "x-offsets", 43))
		p.finish(false)
		t.hangUp("setup")
	}
	groupsWithPending(t)
}

// groupsWithPending: what becomes of a group, and of its offsets, while a transaction has some of them pending.
func groupsWithPending(t *Teller) {
	const group = "x-pending"
	coordinated(t, group)
	p := t.transactor("pending")
	say[*kmsg.TxnOffsetCommitResponse](t, "pending", 5, p.commits(5, group, "x-offsets", 10, 11))
	deletion := kmsg.NewPtrOffsetDeleteRequest()
	deletion.Group = group
	deletion.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "x-offsets", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}, {Partition: 1}}}}
	say[*kmsg.OffsetDeleteResponse](t, "offsets deleted", 0, deletion)
	say[*kmsg.OffsetFetchResponse](t, "offsets deleted, stable", 9, committed(t, 9, true, group, false, "x-offsets"))
	say[*kmsg.ListGroupsResponse](t, "groups", 5, kmsg.NewPtrListGroupsRequest())
	groups := kmsg.NewPtrDeleteGroupsRequest()
	groups.Groups = []string{group}
	say[*kmsg.DeleteGroupsResponse](t, "the group deleted", 2, groups)
	say[*kmsg.OffsetFetchResponse](t, "the group deleted, stable", 9, committed(t, 9, true, group, false, "x-offsets"))
	p.finish(true)
	say[*kmsg.OffsetFetchResponse](t, "and then committed", 9, committed(t, 9, true, group, false, "x-offsets"))
}

// offsetMembers: 77, the checks of members and generations.
func offsetMembers(t *Teller) {
	t.setUp(2, "x-offsets")
	topics(t)
	for version := int16(3); version <= 6; version++ {
		classic, modern := fmt.Sprintf("x-classic-%d", version), fmt.Sprintf("x-modern-%d", version)
		coordinated(t, classic, modern, classic+"-unheard-of")
		p := t.transactor(fmt.Sprintf("members-%d", version))
		p.ends = 4
		if version >= 5 {
			p.ends = 5
		}
		member, generation := enter(t, "member", classic)
		c := &consumer{group: modern, id: "consumer", topics: []string{orders}}
		c.follow(quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, "consumer", 1, c.beat()))
		settle(t, c)
		for _, group := range []string{classic, modern, classic + "-unheard-of"} {
			if version < 5 {
				p.quiet(func() []int16 {
					return codesOf(secret[*kmsg.AddOffsetsToTxnResponse](t, "setup", 3, p.addOffsets(group)))
				})
			}
			id, epoch := member, generation
			if group == modern {
				id, epoch = c.id, c.epoch
			}
			for _, who := range []struct {
				what       string
				member     string
				instance   *string
				generation int32
			}{
				{"nobody", "", nil, -1},
				{"the member", id, nil, epoch},
				{"a generation too low", id, nil, epoch - 1},
				{"a generation too high", id, nil, epoch + 1},
				{"the member without a generation", id, nil, -1},
				{"a stranger", "stranger", nil, epoch},
				{"a stranger without a generation", "stranger", nil, -1},
				{"a generation without a member", "", nil, epoch},
				{"the member by an instance that is none", id, kmsg.StringPtr("instance"), epoch},
				{"an instance alone", "", kmsg.StringPtr("instance"), -1},
			} {
				req := p.commits(version, group, "x-offsets", 7)
				req.MemberID, req.InstanceID, req.Generation = who.member, who.instance, who.generation
				kind := strings.TrimSuffix(strings.TrimPrefix(group, "x-"), fmt.Sprintf("-%d", version))
				say[*kmsg.TxnOffsetCommitResponse](t, fmt.Sprintf("%s: %s", kind, who.what), version, req)
			}
		}
		p.finish(false)
		quietly[*kmsg.LeaveGroupResponse](t, "member", 5, leaving(5, classic, member))
		c.epoch = -1
		quietly[*kmsg.ConsumerGroupHeartbeatResponse](t, "consumer", 1, c.short())
		say[*kmsg.TxnOffsetCommitResponse](t, "the group is empty, a member", version, func() *kmsg.TxnOffsetCommitRequest {
			req := p.commits(version, classic, "x-offsets", 8)
			req.MemberID, req.Generation = member, generation
			return req
		}())
		if version >= 5 {
			p.finish(false)
		}
	}
}

// additions: what adds partitions, and what only asks.
func additions(t *Teller) {
	t.setUp(3, "x-add", "x-add-2")
	for version := int16(0); version <= 3; version++ {
		p := t.transactor(fmt.Sprintf("add-%d", version))
		p.ends = 4
		say[*kmsg.AddPartitionsToTxnResponse](t, "the first", version, p.add("x-add", 0))
		say[*kmsg.AddPartitionsToTxnResponse](t, "the same", version, p.add("x-add", 0))
		say[*kmsg.AddPartitionsToTxnResponse](t, "one more", version, p.add("x-add", 0, 1))
		say[*kmsg.AddPartitionsToTxnResponse](t, "one that there is not", version, p.add("x-add", 2, 7))
		two := p.add("x-add", 2)
		two.Topics = append(two.Topics, p.add("x-none", 0).Topics...)
		say[*kmsg.AddPartitionsToTxnResponse](t, "a topic that there is not", version, two)
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: it stands", version), 0, t.described(p.txid))
		strange := *p
		strange.epoch++
		say[*kmsg.AddPartitionsToTxnResponse](t, "an epoch to come", version, strange.add("x-add", 0))
		strange = *p
		strange.id = 5_000_000
		say[*kmsg.AddPartitionsToTxnResponse](t, "another producer", version, strange.add("x-add", 0))
		strange = *p
		strange.txid = "add-nobody"
		say[*kmsg.AddPartitionsToTxnResponse](t, "nobody's transactional id", version, strange.add("x-add", 0))
		strange.txid = ""
		say[*kmsg.AddPartitionsToTxnResponse](t, "an empty transactional id", version, strange.add("x-add", 0))
		p.finish(true)
		say[*kmsg.AddPartitionsToTxnResponse](t, "after the end", version, p.add("x-add", 0))
		p.finish(false)
	}
	for version := int16(4); version <= 5; version++ {
		p, other := t.transactor(fmt.Sprintf("add-%d", version)), t.transactor(fmt.Sprintf("add-other-%d", version))
		p.ends, other.ends = 4, 4
		ask := func(what string, list ...kmsg.AddPartitionsToTxnRequestTransaction) {
			req := kmsg.NewPtrAddPartitionsToTxnRequest()
			req.Transactions = list
			say[*kmsg.AddPartitionsToTxnResponse](t, what, version, req)
		}
		ask("is it in it", p.adding(true, "x-add", 0))
		ask("added", p.adding(false, "x-add", 0))
		ask("is it in it now", p.adding(true, "x-add", 0))
		ask("are both", p.adding(true, "x-add", 0, 1))
		ask("two transactions", p.adding(false, "x-add-2", 0), other.adding(false, "x-add", 1))
		ask("one asked, one added", p.adding(true, "x-add", 0, 2), other.adding(false, "x-add", 2))
		ask("one that there is not", p.adding(false, "x-none", 0), other.adding(false, "x-add", 9))
		strange := *p
		strange.epoch++
		ask("an epoch to come", strange.adding(true, "x-add", 0), other.adding(true, "x-add", 1))
		ask("an epoch to come, added", strange.adding(false, "x-add", 0))
		strange = *p
		strange.id = 5_000_000
		ask("another producer", strange.adding(true, "x-add", 0))
		strange = *p
		strange.txid = "add-nobody"
		ask("nobody's", strange.adding(true, "x-add", 0))
		strange.txid = ""
		ask("an empty transactional id", strange.adding(true, "x-add", 0), p.adding(true, "x-add", 0))
		ask("none")
		ask("no topics", p.adding(false, "x-add"))
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: they stand", version), 0, t.described(p.txid, other.txid))
		p.finish(true)
		ask("after the end", p.adding(true, "x-add", 0))
		other.finish(false)
	}
	for version := int16(0); version <= 4; version++ {
		p := t.transactor(fmt.Sprintf("add-offsets-%d", version))
		p.ends = 4
		coordinated(t, "x-add-group")
		say[*kmsg.AddOffsetsToTxnResponse](t, "a group", version, p.addOffsets("x-add-group"))
		say[*kmsg.AddOffsetsToTxnResponse](t, "the same group", version, p.addOffsets("x-add-group"))
		say[*kmsg.AddOffsetsToTxnResponse](t, "no group", version, p.addOffsets(""))
		strange := *p
		strange.epoch++
		say[*kmsg.AddOffsetsToTxnResponse](t, "a group, an epoch to come", version, strange.addOffsets("x-add-group"))
		strange = *p
		strange.txid = "add-nobody"
		say[*kmsg.AddOffsetsToTxnResponse](t, "a group, nobody's transactional id", version, strange.addOffsets("x-add-group"))
		say[*kmsg.DescribeTransactionsResponse](t, fmt.Sprintf("%d: with offsets it stands", version), 0, t.described(p.txid))
		p.finish(false)
	}
}

// listedTransactions: 125.
func listedTransactions(t *Teller) {
	t.setUp(2, "x-list")
	empty, open, over := t.transactor("listed-empty"), t.transactor("listed-open"), t.transactor("listed-over")
	undone := t.transactor("listed-undone")
	over.put("x-list", 0, "a")
	over.finish(true)
	undone.put("x-list", 1, "b")
	undone.finish(false)
	open.put("x-list", 1, "c")
	open.put("x-list", 0, "d")
	list := func(what string, version int16, req *kmsg.ListTransactionsRequest) {
		req.SetVersion(version)
		resp, otherwise := t.exchange("a", req)
		if listed, ok := resp.(*kmsg.ListTransactionsResponse); ok {
			listed.TransactionStates = slices.DeleteFunc(listed.TransactionStates, func(s kmsg.ListTransactionsResponseTransactionState) bool {
				return !strings.HasPrefix(s.TransactionalID, "listed-")
			})
			for i := range listed.TransactionStates {
				listed.TransactionStates[i].ProducerID = t.alias(listed.TransactionStates[i].ProducerID)
			}
		}
		t.note(fmt.Sprintf("%s: ListTransactions %d", what, version), t.told(resp, otherwise))
	}
	for version := int16(0); version <= 2; version++ {
		for _, states := range [][]string{nil, {"Ongoing"}, {"CompleteCommit", "CompleteAbort"}, {"Empty"}, {"ongoing"}, {"Strange"}, {"Strange", "Empty"}, {""}, {"PrepareCommit", "PrepareAbort", "Dead", "PrepareEpochFence"}} {
			req := kmsg.NewPtrListTransactionsRequest()
			req.StateFilters, req.DurationFilterMillis = states, -1
			list(fmt.Sprintf("states %q", states), version, req)
		}
		for _, who := range []struct {
			what string
			ids  []int64
		}{{"of the open one", []int64{open.id}}, {"of two", []int64{open.id, empty.id}}, {"of none", []int64{5_000_000}}, {"of -1", []int64{-1}}} {
			req := kmsg.NewPtrListTransactionsRequest()
			req.ProducerIDFilters, req.DurationFilterMillis = who.ids, -1
			list(who.what, version, req)
			req.StateFilters = []string{"Ongoing"}
			list(who.what+", open", version, req)
		}
		for _, duration := range []int64{-1, 0, 1_000_000, -5} {
			if version >= 1 {
				req := kmsg.NewPtrListTransactionsRequest()
				req.DurationFilterMillis = duration
				list(fmt.Sprintf("open for %d", duration), version, req)
			}
		}
		for _, pattern := range []string{"", "listed-o.*", "listed", ".*", "listed-(open|empty)", "[", "LISTED-.*", "listed-over$"} {
			if version >= 2 {
				req := kmsg.NewPtrListTransactionsRequest()
				req.DurationFilterMillis, req.TransactionalIDPattern = -1, &pattern
				list(fmt.Sprintf("like %q", pattern), version, req)
			}
		}
	}
	say[*kmsg.DescribeTransactionsResponse](t, "some", 0, t.described("listed-open", "listed-nobody", "", "listed-over", "listed-open", "listed-empty", "listed-undone"))
	say[*kmsg.DescribeTransactionsResponse](t, "none", 0, t.described())
	say[*kmsg.DescribeProducersResponse](t, "producers", 0, &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: "x-list", Partitions: []int32{0, 1}}}})
	open.finish(true)
	say[*kmsg.DescribeProducersResponse](t, "producers, none open", 0, &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: "x-list", Partitions: []int32{0, 1}}}})
}
