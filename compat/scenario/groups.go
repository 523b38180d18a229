package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"ottla/compat/suite"
)

// Sessions. Where a member dies the others wait until its session is over, which is short, and yet so long that a busy machine throws
// out none that lives. Where none dies it is longer: rows that want every record read once stand for nothing when a member was thrown out.
const (
	mortalSessionMs = 10_000
	sessionMs       = 30_000
)

func groups() []Scenario {
	return []Scenario{
		{"group-resume", "each member goes on where the one before has committed; another group reads everything", groupResume},
		{"group-shares", "two members share the partitions, each of which has one owner; one leaves and the other has all", groupShares},
		{"group-death", "a member dies: the other takes over from what was committed", groupDeath},
		{"group-replay", "committed offsets are set back to the start, and to a time: a member reads from there", groupReplay},
	}
}

// Member is a member of a group under way.
type Member struct {
	client       suite.GroupMember
	group, topic string

	read   atomic.Int64
	last   atomic.Int64 // when it has last read, ms since the epoch; 0: never
	stop   chan struct{}
	cancel context.CancelFunc // ends it like a test that is over
	done   chan error
	all    []suite.Record // once it is done
}

func startMember(ctx context.Context, c suite.GroupMember, o suite.MemberOptions) *Member {
	m := &Member{client: c, group: o.Group, topic: o.Topic, stop: make(chan struct{}), done: make(chan error, 1)}
	ctx, m.cancel = context.WithCancel(ctx)
	if o.SessionMs == 0 {
		o.SessionMs = sessionMs
	}
	o.OnRecord = func(n int) {
		m.read.Store(int64(n))
		m.last.Store(time.Now().UnixMilli())
	}
	go func() {
		var err error
		m.all, err = c.ReadInGroup(ctx, o, m.stop)
		m.done <- err
	}()
	return m
}

// Join starts a member of the cell's client, which lives until ctx ends or it is told to stop.
func (t *T) Join(ctx context.Context, o suite.MemberOptions) *Member {
	t.Helper()
	return startMember(ctx, as[suite.GroupMember](t), o)
}

// ReadInGroup reads as a member of the cell's client as the options say.
func (t *T) ReadInGroup(o suite.MemberOptions) ([]suite.Record, error) {
	t.Helper()
	o.SessionMs = sessionMs
	return as[suite.GroupMember](t).ReadInGroup(t.Ctx, o, nil)
}

// Cancel ends a member like a test that is over: nobody waits for it.
func (m *Member) Cancel() { m.cancel() }

// End stops a member and gives what it has read.
func (m *Member) End() ([]suite.Record, error) {
	close(m.stop)
	err := <-m.done
	return m.all, err
}

// InGroup reads a number of records as a member of a group, which then leaves.
func (t *T) InGroup(group, topic string, count int) []suite.Record {
	t.Helper()
	records, err := as[suite.GroupMember](t).ReadInGroup(t.Ctx, suite.MemberOptions{Group: group, Topic: topic, Count: count, SessionMs: sessionMs}, nil)
	t.Must(err, "read in group "+group)
	if len(records) != count {
		t.Fatalf("read %d records in group %s, want %d", len(records), group, count)
	}
	return records
}

// Fill writes n records to each partition, from the first-th on, one second apart.
func (t *T) Fill(topic string, partitions, first, n int) {
	t.Helper()
	t.FillFrom(0, topic, partitions, first, n)
}

// FillFrom is Fill for the partitions from one on.
func (t *T) FillFrom(partition int, topic string, partitions, first, n int) {
	t.Helper()
	var records []suite.Record
	for i := first; i < first+n; i++ {
		for p := partition; p < partitions; p++ {
			records = append(records, suite.Record{Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d", p, i), Timestamp: fillBase + int64(i)*1000})
		}
	}
	t.produceBy(t.Ref, suite.ProduceOptions{Topic: topic, LingerMs: 5}, records)
}

const fillBase = int64(1_700_000_000_000)

// EachOnce checks that records are those of fill, from from[p] up to end in each partition, in order and each once.
func (t *T) EachOnce(what string, records []suite.Record, from map[int32]int64, partitions int, end int64) {
	t.Helper()
	next := map[int32]int64{}
	maps.Copy(next, from)
	for i, r := range records {
		if r.Offset != next[r.Partition] || string(r.Value) != fmt.Sprintf("%d-%d", r.Partition, r.Offset) {
			t.Fatalf("%s: record %d is offset %d of partition %d (%s), want offset %d", what, i, r.Offset, r.Partition, r.Value, next[r.Partition])
		}
		next[r.Partition]++
	}
	for p := range int32(partitions) {
		if next[p] != end {
			t.Fatalf("%s: partition %d was read up to %d, want %d", what, p, next[p], end)
		}
	}
}

// Committed waits until a group has committed so much in every partition.
func (t *T) Committed(group, topic string, partitions int, want int64) {
	t.Helper()
	t.Must(suite.Eventually(t.Ctx, func() error {
		got, err := t.Ref.Committed(t.Ctx, group, topic)
		for p := range int32(partitions) {
			if err == nil && got[p] != want {
				err = fmt.Errorf("partition %d: %d is committed, want %d", p, got[p], want)
			}
		}
		return err
	}), "offsets of group "+group)
}

// assigned waits until a group is Stable with so many members, of which each has partitions, and every partition one of them.
func (t *T) assigned(group, topic string, members, partitions int, known ...*Member) {
	t.Helper()
	err := suite.Eventually(t.Ctx, func() error {
		for _, m := range known {
			if err := m.failed(); err != nil {
				t.Fatalf("a member of group %s: %v", group, err)
			}
		}
		state, owners, err := t.Ref.Assignment(t.Ctx, group, topic)
		if err != nil {
			return err
		}
		var all []int32
		for id, owned := range owners {
			if len(owned) == 0 {
				return fmt.Errorf("member %s has no partition", id)
			}
			all = append(all, owned...)
		}
		slices.Sort(all)
		if state != "Stable" || len(owners) != members || len(all) != partitions || len(slices.Compact(all)) != partitions {
			return fmt.Errorf("the group is %s with %v", state, owners)
		}
		return nil
	})
	if err == nil {
		return
	}
	told := ""
	for _, m := range known {
		told += "\n" + m.told(t.Ref)
	}
	t.Fatalf("members of group %s: %v%s", group, err, told)
}

// Reach waits until members have read so many records together.
func (t *T) Reach(want int, members ...*Member) {
	t.Helper()
	read := 0
	err := waitFor(t.Ctx, func() (bool, error) {
		read = 0
		for _, m := range members {
			read += int(m.read.Load())
			if err := m.Alive(); err != nil {
				return false, err
			}
		}
		return read >= want, nil
	})
	if err != nil {
		known := ""
		for _, m := range members {
			known += "\n" + m.told(t.Ref)
		}
		t.Fatalf("%d of %d records were read: %v%s", read, want, err, known)
	}
}

// Alive gives an error if a member has ended.
func (m *Member) Alive() error {
	select {
	case err := <-m.done:
		m.done <- err
		return fmt.Errorf("a member ended after %d records: %w", m.read.Load(), err)
	default:
		return nil
	}
}

// failed gives the error of a member that has ended with one.
func (m *Member) failed() error {
	select {
	case err := <-m.done:
		m.done <- err
		if err != nil {
			return fmt.Errorf("ended after %d records: %w", m.read.Load(), err)
		}
	default:
	}
	return nil
}

// waitFor asks again until the answer is yes or an error.
func waitFor(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func groupResume(t *T) {
	const partitions = 3
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, 30)
	first := t.InGroup(topic+"-a", topic, 40)
	second := t.InGroup(topic+"-a", topic, 50)
	t.EachOnce("two members", append(first, second...), nil, partitions, 30)
	t.Committed(topic+"-a", topic, partitions, 30)
	t.EachOnce("another group", t.InGroup(topic+"-b", topic, 90), nil, partitions, 30)
	t.Fill(topic, partitions, 30, 10)
	t.EachOnce("what came later", t.InGroup(topic+"-b", topic, 30), map[int32]int64{0: 30, 1: 30, 2: 30}, partitions, 40)
	t.Committed(topic+"-a", topic, partitions, 30)
}

func groupShares(t *T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	c, o := as[suite.GroupMember](t), suite.MemberOptions{Group: topic, Topic: topic}
	first, second := startMember(t.Ctx, c, o), startMember(t.Ctx, c, o)
	t.assigned(topic, topic, 2, partitions, first, second)
	t.firstRecords(topic, partitions)
	t.Fill(topic, partitions, 1, 49)
	t.Committed(topic, topic, partitions, 50)
	left, err := second.End()
	t.Must(err, "the second member")
	t.assigned(topic, topic, 1, partitions, first)
	t.Fill(topic, partitions, 50, 50)
	t.Committed(topic, topic, partitions, 100)
	stayed, err := first.End()
	t.Must(err, "the first member")
	owners := map[int32]string{}
	for name, records := range map[string][]suite.Record{"the first": stayed, "the second": left} {
		if len(records) == 0 {
			t.Fatalf("%s member has read nothing", name)
		}
		for _, r := range records {
			if owner := owners[r.Partition]; r.Offset > 0 && r.Offset < 50 && owner != "" && owner != name {
				t.Fatalf("both members have read partition %d", r.Partition)
			} else if r.Offset > 0 && r.Offset < 50 {
				owners[r.Partition] = name
			}
		}
	}
	t.eachOnceButFirst(append(left, stayed...), partitions, 100)
	t.Committed(topic, topic, partitions, 100)
}

// firstRecords writes the first record of each partition to a group that has just shared them, and waits until they are committed. A
// client may hand on what a fetch brings that was under way when the partition became another's (@platformatic/kafka does), so these may
// be read by both; what comes after them may not.
func (t *T) firstRecords(topic string, partitions int) {
	t.Helper()
	t.Fill(topic, partitions, 0, 1)
	t.Committed(topic, topic, partitions, 1)
}

// eachOnceButFirst checks that each record of fill was read once and in order, and the first of each partition at least once.
func (t *T) eachOnceButFirst(records []suite.Record, partitions int, end int64) {
	t.Helper()
	t.EveryRead(records, partitions, end)
	from := map[int32]int64{}
	for p := range int32(partitions) {
		from[p] = 1
	}
	later := slices.DeleteFunc(slices.Clone(records), func(r suite.Record) bool { return r.Offset == 0 })
	t.EachOnce("both members", later, from, partitions, end)
}

func groupDeath(t *T) {
	const partitions = 4
	topic := t.Topic("", partitions, "retention.ms=-1")
	c := as[suite.GroupMember](t)
	t.Fill(topic, partitions, 0, 25)
	dead, err := c.ReadInGroup(t.Ctx, suite.MemberOptions{Group: topic, Topic: topic, Count: partitions * 25, Die: true, SessionMs: mortalSessionMs}, nil)
	died := time.Now()
	t.Must(err, "the member that dies")
	t.EachOnce("the member that dies", dead, nil, partitions, 25)
	state, members, err := t.Ref.Assignment(t.Ctx, topic, topic)
	t.Must(err, "the group of the dead")
	if (state != "Stable" || len(members) != 1) && time.Since(died) < mortalSessionMs*time.Millisecond/2 { // or its session may be over
		t.Fatalf("after a death that nobody was told of, the group is %s with %v", state, members)
	}
	t.Inherits(topic, partitions, suite.MemberOptions{Group: topic, Topic: topic}, func() {})
}

// Inherits starts the heir of a member that has read 25 records of each partition and died: it reads on from what was committed, to the end.
// joined waits until the heir is there; what is written comes after that.
func (t *T) Inherits(topic string, partitions int, heir suite.MemberOptions, joined func()) {
	t.Helper()
	committed, err := t.Ref.Committed(t.Ctx, topic, topic)
	t.Must(err, "what the dead has committed")
	member := startMember(t.Ctx, as[suite.GroupMember](t), heir)
	joined()
	t.Fill(topic, partitions, 25, 25)
	missing := partitions * 50
	for p := range int32(partitions) {
		if committed[p] < 0 || committed[p] > 25 {
			t.Fatalf("the dead has committed %v", committed)
		}
		missing -= int(committed[p])
	}
	t.Reach(missing, member)
	records, err := member.End()
	t.Must(err, "the heir")
	t.EachOnce("the heir", records, committed, partitions, 50)
	t.Committed(topic, topic, partitions, 50)
}

func groupReplay(t *T) {
	const partitions = 2
	topic := t.Topic("", partitions, "retention.ms=-1")
	t.Fill(topic, partitions, 0, 20)
	t.EachOnce("the first time", t.InGroup(topic, topic, 40), nil, partitions, 20)
	t.CommitAs(topic, topic, map[int32]int64{0: 0, 1: 0})
	t.EachOnce("from the start again", t.InGroup(topic, topic, 40), nil, partitions, 20)
	byTime := map[int32]int64{}
	for p := range int32(partitions) {
		offset, _, err := t.Ref.ListOffset(t.Ctx, topic, p, fillBase+12_500)
		t.Must(err, "list offsets by time")
		byTime[p] = offset
	}
	t.CommitAs(topic, topic, byTime)
	t.EachOnce("from a time on", t.InGroup(topic, topic, 14), map[int32]int64{0: 13, 1: 13}, partitions, 20)
	t.Committed(topic, topic, partitions, 20)
}

// CommitAs sets a group's offsets once its last member has left.
func (t *T) CommitAs(group, topic string, offsets map[int32]int64) {
	t.Helper()
	t.Must(suite.Eventually(t.Ctx, func() error { return t.Ref.Commit(t.Ctx, group, topic, offsets) }), "set offsets of group "+group)
}

// judge checks what a member has read over a restart: from each rewind on every record in order, none left out, and no rewind
// behind what was seen committed before the node went down.
func (f *groupFlow) judge(records []suite.Record, before, end int64) error {
	next := int64(0)
	for i, r := range records {
		if r.Offset > next || r.Offset < next && r.Offset < before {
			return fmt.Errorf("record %d has offset %d after %d, and %d was committed", i, r.Offset, next-1, before)
		}
		if string(r.Value) != strconv.FormatInt(r.Offset, 10) {
			return fmt.Errorf("offset %d holds %q", r.Offset, r.Value)
		}
		next = r.Offset + 1
	}
	if next != end {
		return fmt.Errorf("read up to %d, the log ends at %d", next, end)
	}
	return nil
}
