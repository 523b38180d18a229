package nextgen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ottla/compat/franz"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// Clients are the clients that know the group protocol consumer (KIP-848).
var Clients = []string{scenario.Franz, scenario.Confluent, scenario.Java}

// List are the scenarios of groups of the protocol consumer. They want a node with Properties.
func List() []scenario.Scenario {
	return []scenario.Scenario{
		{Name: "consumer-resume", What: "each member goes on where the one before has committed; the group is listed as one of the protocol", Run: consumerResume},
		{Name: "consumer-shares", What: "two members share the partitions; one leaves and the other has all", Run: consumerShares},
		{Name: "consumer-death", What: "a member dies: the other takes over from what was committed, once its session is over", Run: consumerDeath},
		{Name: "consumer-static", What: "a static member goes away and comes back: it has what it had, and the group's epoch is the same", Run: consumerStatic},
		{Name: "consumer-pattern", What: "a member subscribes by a regular expression, which finds a topic that is made later", Run: consumerPattern},
		{Name: "consumer-assignor", What: "the members choose the assignor: range, then uniform", Run: consumerAssignor},
		{Name: "consumer-grows", What: "partitions are added to the topic while two members read", Run: consumerGrows},
		{Name: "consumer-migration", What: "members of the classic protocol are replaced by members of the other while records flow, and back: no record is lost, no partition has two owners", Run: consumerMigration},
	}
}

// Restarts are the rows in which the node is stopped, or killed, and started under two members of each client.
var Restarts = []string{"consumer-sigterm", "consumer-sigkill"}

// cannot tells, by client and row, why a client cannot express it.
var cannot = map[string]map[string]string{
	scenario.Franz: {"consumer-static": "its farewell names no instance, is refused, and its session has to end first (kgo 1.22.3, leave848)"},
	scenario.Java:  {"consumer-death": "a member that is not static says farewell whatever CloseOptions say, and cannot die alone in its JVM"},
}

// Partakes says whether a client takes part in a row.
func Partakes(client, row string) bool {
	_, cannot := cannot[client][row]
	return !cannot
}

// Properties make a session of the protocol consumer short, for those that wait until one is over, and yet so long that a busy machine
// throws out no member that lives.
func Properties() map[string]string {
	return map[string]string{
		"group.consumer.session.timeout.ms": "20000", "group.consumer.min.session.timeout.ms": "20000",
		"group.consumer.heartbeat.interval.ms": "500", "group.consumer.min.heartbeat.interval.ms": "500",
	}
}

const consumerProtocol = "consumer"

// consumerMember are the options of a member of the protocol consumer.
func consumerMember(group, topic string) suite.MemberOptions {
	return suite.MemberOptions{Group: group, Topic: topic, Protocol: consumerProtocol}
}

// shared waits until a group of the protocol consumer is Stable with so many members, each of which has partitions, and every partition one
// of them.
func shared(t *scenario.T, group, topic string, members, partitions int) (described franz.ConsumerGroup) {
	t.Helper()
	t.Must(suite.Eventually(t.Ctx, func() error {
		var err error
		if described, err = t.Ref.ConsumerGroup(t.Ctx, group); err != nil {
			return err
		}
		var all []int32
		for id, m := range described.Members {
			if len(m.Partitions[topic]) == 0 {
				return fmt.Errorf("member %s has no partition", id)
			}
			all = append(all, m.Partitions[topic]...)
		}
		slices.Sort(all)
		if !described.Consumer || described.State != "Stable" || len(described.Members) != members || len(all) != partitions || len(slices.Compact(all)) != partitions {
			return fmt.Errorf("the group is %+v", described)
		}
		return nil
	}), "members of group "+group)
	return described
}

// inConsumerGroup reads a number of records as a member, which then leaves.
func inConsumerGroup(t *scenario.T, group, topic string, count int) []suite.Record {
	t.Helper()
	o := consumerMember(group, topic)
	o.Count = count
	records, err := t.ReadInGroup(o)
	t.Must(err, "read in group "+group)
	if len(records) != count {
		t.Fatalf("read %d records in group %s, want %d", len(records), group, count)
	}
	return records
}

func consumerResume(t *scenario.T) {
	const partitions = 3
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, 30)
	first := inConsumerGroup(t, topic, topic, 40)
	t.Must(suite.Eventually(t.Ctx, func() error { // a client may end before its farewell is answered
		described, err := t.Ref.ConsumerGroup(t.Ctx, topic)
		if err == nil && (!described.Consumer || described.State != "Empty") {
			err = fmt.Errorf("it is %+v", described)
		}
		return err
	}), "a group that was left")
	second := inConsumerGroup(t, topic, topic, 50)
	t.EachOnce("two members", append(first, second...), nil, partitions, 30)
	t.Committed(topic, topic, partitions, 30)
	t.CommitAs(topic, topic, map[int32]int64{0: 10, 1: 10, 2: 10})
	t.EachOnce("from where an administrator has set it", inConsumerGroup(t, topic, topic, 60), map[int32]int64{0: 10, 1: 10, 2: 10}, partitions, 30)
}

func consumerShares(t *scenario.T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	o := consumerMember(t.TopicName(""), t.TopicName(""))
	first := t.Join(t.Ctx, o)
	shared(t, topic, topic, 1, partitions)
	second := t.Join(t.Ctx, o)
	shared(t, topic, topic, 2, partitions)
	t.Fill(topic, partitions, 0, 50)
	t.Reach(partitions*50, first, second)
	left, err := second.End()
	t.Must(err, "the second member")
	shared(t, topic, topic, 1, partitions)
	t.Fill(topic, partitions, 50, 50)
	t.Reach(partitions*100-len(left), first)
	stayed, err := first.End()
	t.Must(err, "the first member")
	if len(left) == 0 || len(stayed) == 0 {
		t.Fatalf("the members have read %d and %d records", len(stayed), len(left))
	}
	t.EachOnce("both members", append(left, stayed...), nil, partitions, 100)
	t.Committed(topic, topic, partitions, 100)
}

func consumerDeath(t *scenario.T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, 25)
	dying := consumerMember(topic, topic)
	dying.Count, dying.Die = partitions*25, true
	dead, err := t.ReadInGroup(dying)
	t.Must(err, "the member that dies")
	t.EachOnce("the member that dies", dead, nil, partitions, 25)
	t.Inherits(topic, partitions, consumerMember(topic, topic), func() { shared(t, topic, topic, 1, partitions) })
}

func consumerStatic(t *scenario.T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	o := consumerMember(t.TopicName(""), t.TopicName(""))
	o.InstanceID = "stays"
	other := t.Join(t.Ctx, o)
	o.InstanceID = "comes-back"
	first := t.Join(t.Ctx, o)
	before := shared(t, topic, topic, 2, partitions)
	t.Fill(topic, partitions, 0, 20)
	t.Reach(partitions*20, first, other)
	read, err := first.End()
	t.Must(err, "the member that goes away")
	again := t.Join(t.Ctx, o)
	t.Fill(topic, partitions, 20, 20)
	t.Reach(partitions*40-len(read), again, other)
	after := shared(t, topic, topic, 2, partitions)
	if after.Epoch != before.Epoch {
		t.Errorf("the group's epoch was %d and is %d", before.Epoch, after.Epoch)
	}
	if was, is := owned(before, topic), owned(after, topic); !maps.EqualFunc(was, is, slices.Equal) {
		t.Errorf("the members had %v and have %v", was, is)
	}
	second, err := again.End()
	t.Must(err, "the member that came back")
	rest, err := other.End()
	t.Must(err, "the member that stays")
	t.EachOnce("all of them", slices.Concat(read, second, rest), nil, partitions, 40)
}

// owned gives the partitions of a topic by instance.
func owned(g franz.ConsumerGroup, topic string) map[string][]int32 {
	by := map[string][]int32{}
	for _, m := range g.Members {
		by[m.InstanceID] = slices.Sorted(slices.Values(m.Partitions[topic]))
	}
	return by
}

func consumerPattern(t *scenario.T) {
	first := t.Topic("a", 2, "retention.ms=-1")
	second := t.TopicName("b")
	t.Topic("other", 2, "retention.ms=-1") // does not match
	group := t.TopicName("")
	t.Fill(first, 2, 0, 10)
	o := consumerMember(group, first)
	o.Pattern, o.Commit = t.TopicName("")+"-(a|b)", -1
	m := t.Join(t.Ctx, o)
	t.Reach(20, m)
	shared(t, group, first, 1, 2)
	t.Topic("b", 3, "retention.ms=-1")
	t.Fill(second, 3, 0, 10)
	t.Reach(50, m)
	shared(t, group, second, 1, 3)
	records, err := m.End()
	t.Must(err, "the member")
	if len(records) != 50 {
		t.Fatalf("the member has read %d records, want 50", len(records))
	}
}

func consumerAssignor(t *scenario.T) {
	const partitions = 3
	topic := t.Topic("", partitions, "retention.ms=-1")
	o := consumerMember(t.TopicName(""), t.TopicName(""))
	for _, assignor := range []string{"range", "uniform"} {
		o.Group, o.Assignor = topic+"-"+assignor, assignor
		first, second := t.Join(t.Ctx, o), t.Join(t.Ctx, o)
		described := shared(t, o.Group, topic, 2, partitions)
		if described.Assignor != assignor {
			t.Errorf("the assignor is %s, and %s was asked for", described.Assignor, assignor)
		}
		for _, m := range []*scenario.Member{first, second} {
			_, err := m.End()
			t.Must(err, "a member")
		}
	}
}

func consumerGrows(t *scenario.T) {
	topic := t.Topic("", 2, "retention.ms=-1")
	o := consumerMember(t.TopicName(""), t.TopicName(""))
	first, second := t.Join(t.Ctx, o), t.Join(t.Ctx, o)
	shared(t, topic, topic, 2, 2)
	t.Fill(topic, 2, 0, 10)
	t.Reach(20, first, second)
	t.Must(t.Ref.CreatePartitions(t.Ctx, topic, 6), "add partitions")
	shared(t, topic, topic, 2, 6)
	t.FillFrom(2, topic, 6, 0, 10)
	t.Reach(60, first, second)
	var all []suite.Record
	for _, m := range []*scenario.Member{first, second} {
		records, err := m.End()
		t.Must(err, "a member")
		all = append(all, records...)
	}
	t.EachOnce("both members", all, nil, 6, 10)
}

// consumerMigration replaces two members of the classic protocol one by one, and back, while records are written.
func consumerMigration(t *scenario.T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	fresh := consumerMember(topic, topic)
	classic := suite.MemberOptions{Group: topic, Topic: topic}
	watch := watchOwners(t, topic, topic)
	var members []*scenario.Member
	var read []suite.Record
	start := func(o suite.MemberOptions) { members = append(members, t.Join(t.Ctx, o)) }
	end := func() {
		t.Helper()
		records, err := members[0].End()
		t.Must(err, "a member that is replaced")
		read, members = append(read, records...), members[1:]
	}
	written := 0
	more := func() {
		t.Helper()
		t.Fill(topic, partitions, written, 20)
		written += 20
		t.Must(suite.Eventually(t.Ctx, func() error {
			for _, m := range members {
				if err := m.Alive(); err != nil {
					t.Fatalf("%v", err)
				}
			}
			committed, err := t.Ref.Committed(t.Ctx, topic, topic)
			for p := range int32(partitions) {
				if err == nil && committed[p] != int64(written) {
					err = fmt.Errorf("partition %d: %d is committed of %d", p, committed[p], written)
				}
			}
			return err
		}), "commit what was written")
	}
	kind := func(consumer bool, count int) {
		t.Helper()
		t.Must(suite.Eventually(t.Ctx, func() error {
			g, err := t.Ref.ConsumerGroup(t.Ctx, topic)
			if err == nil && (g.Consumer != consumer || g.State != "Stable" || len(g.Members) != count) {
				err = fmt.Errorf("the group is %+v", g)
			}
			return err
		}), "the kind of the group")
	}
	start(classic)
	start(classic)
	kind(false, 2)
	more()
	start(fresh) // the group goes over to the other protocol
	kind(true, 3)
	more()
	end()
	kind(true, 2)
	more()
	start(fresh)
	end() // the last classic one
	kind(true, 2)
	more()
	start(classic) // and back
	kind(true, 3)
	more()
	end()
	kind(true, 2)
	start(classic)
	end() // the last of the other protocol
	kind(false, 2)
	more()
	for len(members) > 0 {
		end()
	}
	t.EveryRead(read, partitions, int64(written))
	t.Committed(topic, topic, partitions, int64(written))
	looks, err := watch()
	t.Must(err, "the owners of partitions")
	if looks == 0 {
		t.Errorf("the owners were never looked at")
	}
}

// watchOwners looks again and again whether a partition has two owners while the group is of the protocol consumer.
func watchOwners(t *scenario.T, group, topic string) func() (looks int, err error) {
	watching, cancel := context.WithCancel(t.Ctx)
	var done sync.WaitGroup
	var found error
	looks := 0
	done.Go(func() {
		for watching.Err() == nil && found == nil {
			g, err := t.Ref.ConsumerGroup(watching, group)
			if err != nil || !g.Consumer {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-watching.Done():
				}
				continue
			}
			looks++
			owners := map[int32]string{}
			for id, m := range g.Members {
				for _, p := range m.Partitions[topic] {
					if owner, twice := owners[p]; twice {
						found = fmt.Errorf("partition %d is of %s and of %s: %+v", p, owner, id, g)
					}
					owners[p] = id
				}
			}
		}
	})
	return func() (int, error) {
		cancel()
		done.Wait()
		return looks, found
	}
}

// OverRestart are two members that read along while the node restarts.
type OverRestart struct {
	topic   string
	members []*scenario.Member
	before  franz.ConsumerGroup
}

const restartPartitions = 4

// BeforeRestart starts them and has them read and commit. They live on until ctx ends, or After does.
func BeforeRestart(ctx context.Context, t *scenario.T) *OverRestart {
	t.Helper()
	r := &OverRestart{topic: t.Topic("", restartPartitions, "retention.ms=-1")}
	for range 2 {
		r.members = append(r.members, t.Join(ctx, consumerMember(r.topic, r.topic)))
	}
	r.before = shared(t, r.topic, r.topic, 2, restartPartitions)
	t.Fill(r.topic, restartPartitions, 0, 30)
	t.Reach(restartPartitions*30, r.members...)
	t.Committed(r.topic, r.topic, restartPartitions, 30)
	return r
}

// After has them go on, and checks that nothing was lost. What a member has read while the node came up it may not have been able to commit; it
// commits what comes later.
func (r *OverRestart) After(t *scenario.T) {
	t.Helper()
	defer func() {
		for _, m := range r.members {
			m.Cancel()
		}
	}()
	t.Fill(r.topic, restartPartitions, 30, 30)
	t.Reach(restartPartitions*60, r.members...)
	r.sameMembers(t)
	t.Fill(r.topic, restartPartitions, 60, 30)
	t.Reach(restartPartitions*90, r.members...)
	t.Committed(r.topic, r.topic, restartPartitions, 90)
	var all []suite.Record
	for _, m := range r.members {
		records, err := m.End()
		t.Must(err, "a member")
		all = append(all, records...)
	}
	t.EveryRead(all, restartPartitions, 90)
}

// sameMembers checks that both members share the partitions, in the epoch of before if they are the same.
func (r *OverRestart) sameMembers(t *scenario.T) {
	t.Helper()
	after := shared(t, r.topic, r.topic, 2, restartPartitions)
	if same := strings.Join(slices.Sorted(maps.Keys(r.before.Members)), ",") == strings.Join(slices.Sorted(maps.Keys(after.Members)), ","); same && after.Epoch != r.before.Epoch {
		t.Errorf("the same members are there, and the epoch was %d and is %d", r.before.Epoch, after.Epoch)
	}
}
