package scenario

import (
	"fmt"

	"ottla/compat/suite"
)

func churn() []Scenario {
	return []Scenario{
		{"group-churn", "members come, leave and die while records flow: every record is read, the last member commits the end", groupChurn},
		{"group-crash", "a member dies before it commits: the next reads again what lies behind the last commit, and nothing else", groupCrash},
		{"group-seek", "a member goes back by itself: to the beginning, to an offset, to a time; a committed offset that is gone resets to the earliest", groupSeek},
		{"group-admin", "the client sets what a group has committed: by offset, and by a time it asks for", groupAdmin},
		{"group-500", "500 partitions, produced to and read by the two members of a group", group500},
	}
}

// groupChurn takes a group from one member to three and back to one: the second comes and leaves, the third dies.
func groupChurn(t *T) {
	const partitions = 6
	topic := t.Topic("", partitions, "retention.ms=-1")
	c, o := as[suite.GroupMember](t), suite.MemberOptions{Group: topic, Topic: topic, SessionMs: mortalSessionMs}
	t.Fill(topic, partitions, 0, 20)
	first := startMember(t.Ctx, c, o)
	t.Reach(partitions*20, first)
	second := startMember(t.Ctx, c, o)
	t.assigned(topic, topic, 2, partitions, first, second)
	t.Fill(topic, partitions, 20, 20)
	t.Reach(partitions*40, first, second)

	dying := o
	dying.Count, dying.Die = 30, true
	third := startMember(t.Ctx, c, dying)
	t.assigned(topic, topic, 3, partitions, first, second, third)
	t.Fill(topic, partitions, 40, 40)
	t.Must(<-third.done, "the member that dies")
	t.assigned(topic, topic, 2, partitions, first, second) // once the session of the dead is over
	t.Fill(topic, partitions, 80, 20)
	t.Committed(topic, topic, partitions, 100)

	left, err := second.End()
	t.Must(err, "the member that leaves")
	t.assigned(topic, topic, 1, partitions, first)
	t.Fill(topic, partitions, 100, 20)
	t.Committed(topic, topic, partitions, 120)
	stayed, err := first.End()
	t.Must(err, "the member that stays")
	if len(left) == 0 || len(stayed) == 0 || len(third.all) < dying.Count {
		t.Fatalf("the members read %d, %d and %d records", len(stayed), len(left), len(third.all))
	}
	t.EveryRead(append(append(left, stayed...), third.all...), partitions, 120)
	t.Committed(topic, topic, partitions, 120)
}

// EveryRead checks that each record of fill is among those read, once or more often, and no other.
func (t *T) EveryRead(records []suite.Record, partitions int, end int64) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range records {
		if name := fmt.Sprintf("%d-%d", r.Partition, r.Offset); string(r.Value) != name {
			t.Fatalf("offset %d of partition %d holds %q", r.Offset, r.Partition, r.Value)
		}
		seen[string(r.Value)] = true
	}
	for p := range partitions {
		for i := range end {
			if name := fmt.Sprintf("%d-%d", p, i); !seen[name] {
				t.Fatalf("nobody has read offset %d of partition %d", i, p)
			}
		}
	}
	if want := partitions * int(end); len(seen) != want {
		t.Fatalf("%d different records were read, want %d", len(seen), want)
	}
}

func groupCrash(t *T) {
	const partitions, read, commit = 2, 40, 25
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, 30)
	c, o := as[suite.GroupMember](t), suite.MemberOptions{Group: topic, Topic: topic, SessionMs: mortalSessionMs}
	o.Count, o.Commit, o.Die = read, commit, true
	dead, err := c.ReadInGroup(t.Ctx, o, nil)
	t.Must(err, "the member that dies")
	if len(dead) != read {
		t.Fatalf("the member that dies has read %d records, want %d", len(dead), read)
	}
	committed, err := t.Ref.Committed(t.Ctx, topic, topic)
	t.Must(err, "what the dead has committed")
	want := map[int32]int64{}
	for _, r := range dead[:commit] {
		want[r.Partition] = r.Offset + 1
	}
	for p := range int32(partitions) {
		if committed[p] != want[p] {
			t.Fatalf("the dead has committed %v, want %v", committed, want)
		}
	}
	again := t.InGroup(topic, topic, partitions*30-commit)
	t.EachOnce("the next member", again, committed, partitions, 30)
	t.EveryRead(append(dead, again...), partitions, 30)
	t.Committed(topic, topic, partitions, 30)
}

func groupSeek(t *T) {
	const partitions, n = 2, 30
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, n)
	c := as[suite.GroupMember](t)
	t.EachOnce("the first time", t.InGroup(topic, topic, partitions*n), nil, partitions, n)
	for _, to := range []struct {
		seek   string
		at     int64
		offset int64
	}{
		{suite.SeekBeginning, 0, 0},
		{suite.SeekOffset, 12, 12},
		{suite.SeekTime, fillBase + 20_500, 21},
	} {
		o := suite.MemberOptions{Group: topic, Topic: topic, SessionMs: sessionMs, Seek: to.seek, SeekAt: to.at, Count: partitions * int(n-to.offset)}
		records, err := c.ReadInGroup(t.Ctx, o, nil)
		t.Must(err, "go back to the "+to.seek)
		t.EachOnce("back to the "+to.seek, records, map[int32]int64{0: to.offset, 1: to.offset}, partitions, n)
		t.Committed(topic, topic, partitions, n)
	}
	if !t.Can("reset") {
		return
	}
	// Offset 5 is committed and then deleted: what is gone is not waited for.
	t.CommitAs(topic, topic, map[int32]int64{0: 5, 1: 5})
	for p := range int32(partitions) {
		_, err := t.Ref.DeleteRecords(t.Ctx, topic, p, 10)
		t.Must(err, "delete records")
	}
	t.EachOnce("after a reset to the earliest", t.InGroup(topic, topic, partitions*(n-10)), map[int32]int64{0: 10, 1: 10}, partitions, n)
	t.Committed(topic, topic, partitions, n)
}

func groupAdmin(t *T) {
	const partitions, n = 2, 20
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, n)
	admin, offsets := as[suite.GroupAdmin](t), as[suite.OffsetLister](t)
	none, err := admin.Committed(t.Ctx, topic, topic)
	t.Must(err, "what a new group has committed")
	if len(none) != 0 {
		t.Fatalf("a group that never was has committed %v", none)
	}
	set := func(what string, to map[int32]int64) {
		t.Helper() // once the last member has left
		t.Must(suite.Eventually(t.Ctx, func() error { return admin.Commit(t.Ctx, topic, topic, to) }), what)
		got, err := admin.Committed(t.Ctx, topic, topic)
		t.Must(err, what)
		for p := range int32(partitions) {
			if got[p] != to[p] {
				t.Fatalf("%s: %v is committed, want %v", what, got, to)
			}
		}
	}
	set("a new group's offsets", map[int32]int64{0: 5, 1: 7})
	t.EachOnce("from offsets", t.InGroup(topic, topic, 15+13), map[int32]int64{0: 5, 1: 7}, partitions, n)
	byTime := map[int32]int64{}
	for p := range int32(partitions) {
		byTime[p], _, err = offsets.ListOffset(t.Ctx, topic, p, fillBase+11_500)
		t.Must(err, "list offsets by time")
	}
	set("back to a time", byTime)
	t.EachOnce("from a time on", t.InGroup(topic, topic, 16), map[int32]int64{0: 12, 1: 12}, partitions, n)
	set("back to the start", map[int32]int64{0: 0, 1: 0})
	t.EachOnce("from the start", t.InGroup(topic, topic, 40), nil, partitions, n)
}

func group500(t *T) {
	const partitions, n = 500, 2
	topic := t.Topic("", partitions, "retention.ms=-1")
	by := t.Client
	if !t.Can("fill") {
		by = t.Ref
	}
	c, o := as[suite.GroupMember](t), suite.MemberOptions{Group: topic, Topic: topic}
	members := []*Member{startMember(t.Ctx, c, o), startMember(t.Ctx, c, o)}
	t.assigned(topic, topic, 2, partitions, members...)
	t.firstRecords(topic, partitions)
	for i := 1; i <= n; i++ { // one after the other: what is sent again without idempotence may change places
		var sent []suite.Record
		for p := range partitions {
			sent = append(sent, suite.Record{Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d", p, i)})
		}
		t.produceBy(by, suite.ProduceOptions{Topic: topic, LingerMs: 20}, sent)
	}
	t.Committed(topic, topic, partitions, n+1)
	var all []suite.Record
	for _, m := range members {
		close(m.stop)
	}
	for _, m := range members {
		t.Must(<-m.done, "a member")
		if len(m.all) == 0 {
			t.Fatalf("a member has read nothing")
		}
		all = append(all, m.all...)
	}
	t.eachOnceButFirst(all, partitions, n+1)
}
