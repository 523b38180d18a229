//go:build compat

package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// moveSessionMs is the session of all members: nobody leaves, so nobody is to be missed.
const moveSessionMs = 20_000

// movePauseMs is the time from one record of a producer to the next. So few leave a machine room for the starts of Apache Kafka, and
// more than a moment without an answer still shows.
const movePauseMs = 10

// moveLoad is what clients do while a cluster is moved: each writes a topic as an idempotent producer, copies it in
// transactions, and reads it, with another client, as members of a classic group and of one of the protocol consumer.
type moveLoad struct {
	*testing.T
	ref   *franz.Client
	flows []*moveFlow
	ctx   context.Context
	// Told in this order: the producers, the copy loops, the members.
	stopped [3]chan struct{}
	work    [3]sync.WaitGroup
	acked   atomic.Int64
	copied  atomic.Int64
}

// moveClient is what takes part.
type moveClient interface {
	suite.Client
	suite.Streamer
	suite.Copier
	suite.GroupMember
}

// moveFlow is one topic.
type moveFlow struct {
	load    *moveLoad
	topic   string
	writer  moveClient
	acks    []suite.Ack
	gaveUp  atomic.Int64 // copy loops that were started again
	members []*moveMember
}

// moveMember is the only member of a group, which reads the topic.
type moveMember struct {
	flow     *moveFlow
	client   moveClient
	protocol string
	read     atomic.Int64
	records  []suite.Record

	mu      sync.Mutex
	samples []moveSample
	stale   int // looks that were told of less than one before
}

// moveSample is how much a member had read when an offset was seen committed.
type moveSample struct{ committed, read int64 }

func (f *moveFlow) output() string  { return f.topic + "-copied" }
func (m *moveMember) group() string { return m.flow.topic + "-" + m.protocol }

// startMoveLoad creates the topics, of three replicas, and begins.
func startMoveLoad(t *testing.T, admin *kgo.Client, ref *franz.Client, clients ...moveClient) *moveLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &moveLoad{T: t, ref: ref, ctx: ctx}
	t.Cleanup(cancel)
	for i := range l.stopped {
		l.stopped[i] = make(chan struct{})
	}
	for i, c := range clients {
		f := &moveFlow{load: l, topic: fmt.Sprintf("move-%d", i), writer: c}
		for _, topic := range []string{f.topic, f.output()} {
			createTopic(t, admin, topic, 1, 3)
		}
		other := clients[(i+1)%len(clients)]
		f.members = []*moveMember{{flow: f, client: other, protocol: "classic"}, {flow: f, client: c, protocol: "consumer"}}
		l.flows = append(l.flows, f)
	}
	for _, f := range l.flows {
		l.work[0].Go(f.write)
		l.work[1].Go(f.copy)
		for _, m := range f.members {
			l.work[2].Go(m.follow)
			l.work[2].Go(m.watch)
		}
	}
	return l
}

// topics are all that the load writes to.
func (l *moveLoad) topics() (all []string) {
	for _, f := range l.flows {
		all = append(all, f.topic, f.output())
	}
	return all
}

func (f *moveFlow) write() {
	l, before := f.load, 0
	acks, err := f.writer.Stream(l.ctx, suite.StreamOptions{
		ProduceOptions: suite.ProduceOptions{Topic: f.topic, Acks: "all", Idempotent: true}, Window: 50, PauseMs: movePauseMs,
		OnAck: func(n int) {
			l.acked.Add(int64(n - before))
			before = n
		},
	}, l.stopped[0])
	if f.acks = acks; err != nil && l.ctx.Err() == nil {
		l.Errorf("%s writes %s: %v", f.writer.Name(), f.topic, err)
	}
}

// copy copies until it is told to stop. A loop that gives up is followed by another of the same transactional id, as an
// application would be.
func (f *moveFlow) copy() {
	l := f.load
	for {
		before := 0
		_, err := f.writer.CopyInTransactions(l.ctx, suite.CopyOptions{
			Group: f.output(), From: f.topic, To: f.output(), TransactionalID: f.output(), SessionMs: moveSessionMs, TimeoutMs: 20_000, AbortEvery: 20,
			OnCopied: func(n int) {
				l.copied.Add(int64(n - before))
				before = n
			},
		}, l.stopped[1])
		select {
		case <-l.stopped[1]:
			return
		case <-l.ctx.Done():
			return
		case <-time.After(200 * time.Millisecond): // of rest, as whoever starts programs again gives
		}
		f.gaveUp.Add(1)
		harness.Progress("the copy loop of %s gave up and is started again: %v", f.writer.Name(), err)
	}
}

func (m *moveMember) follow() {
	l := m.flow.load
	records, err := m.client.ReadInGroup(l.ctx, suite.MemberOptions{
		Group: m.group(), Topic: m.flow.topic, SessionMs: moveSessionMs, Protocol: m.protocol, OnRecord: func(n int) { m.read.Store(int64(n)) },
	}, l.stopped[2])
	if m.records = records; err != nil && l.ctx.Err() == nil {
		l.Errorf("%s reads in %s: %v", m.client.Name(), m.group(), err)
	}
}

// watch looks at what is committed.
func (m *moveMember) watch() {
	l := m.flow.load
	looks := time.NewTicker(300 * time.Millisecond)
	defer looks.Stop()
	for {
		select {
		case <-l.stopped[2]:
			return
		case <-l.ctx.Done():
			return
		case <-looks.C:
			m.look()
		}
	}
}

// look takes a sample. A question that is not answered is asked anew by the next, and so is one that is answered with less than was seen
// committed before: who has not heard yet that it coordinates no longer tells that for a moment, as does who has just begun and does not know
// the high watermark. That nothing was lost the log says, in the end.
func (m *moveMember) look() {
	ask, done := context.WithTimeout(m.flow.load.ctx, 10*time.Second)
	defer done()
	found, err := m.flow.load.ref.Committed(ask, m.group(), m.flow.topic)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := moveSample{found[0], m.read.Load()}
	if n := len(m.samples); n > 0 && now.committed < m.samples[n-1].committed {
		m.stale++
		return
	}
	m.samples = append(m.samples, now)
}

// committed is the offset that was seen last.
func (m *moveMember) committed() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.samples); n > 0 {
		return m.samples[n-1].committed
	}
	return 0
}

// goesOn waits until every producer's records were acknowledged, copied, read and committed for a while longer.
func (l *moveLoad) goesOn(t *testing.T) {
	t.Helper()
	acked, copied, marks := l.acked.Load(), l.copied.Load(), map[*moveMember]int64{}
	for _, f := range l.flows {
		for _, m := range f.members {
			marks[m] = m.committed()
		}
	}
	eventually(t, "all clients to go on", func(context.Context) error {
		if l.acked.Load() < acked+100 || l.copied.Load() == copied {
			return fmt.Errorf("%d records were acknowledged and %d copied since", l.acked.Load()-acked, l.copied.Load()-copied)
		}
		for m, mark := range marks {
			if m.committed() <= mark {
				return fmt.Errorf("%s (%s) has committed offset %d, as before", m.group(), m.client.Name(), mark)
			}
		}
		return nil
	})
}

// finish ends the producers, waits until the others have come to the end, ends them and judges.
func (l *moveLoad) finish(t *testing.T) {
	t.Helper()
	l.end(t, 0, "the producers")
	for _, f := range l.flows {
		eventually(t, "the copy of "+f.topic, f.judgeCopy)
		for _, m := range f.members {
			eventually(t, "the end of "+m.group(), func(context.Context) error {
				if at := m.committed(); at < int64(len(f.acks)) {
					return fmt.Errorf("%s has committed offset %d, %d records were written, %d read", m.client.Name(), at, len(f.acks), m.read.Load())
				}
				return nil
			})
		}
	}
	l.end(t, 1, "the copy loops")
	l.end(t, 2, "the members")
	commits := l.commits(t)
	for _, f := range l.flows {
		if err := f.judgeCopy(limited(t, clusterLimit)); err != nil {
			t.Error(err)
		}
		for i, ack := range f.acks {
			if ack.Err != "" || f.writer.Name() != "java" && ack.Offset != int64(i) {
				t.Fatalf("record %d of %s was acknowledged as %+v", i, f.topic, ack)
			}
		}
		told := ""
		for _, m := range f.members {
			m.judgeCommits(t, commits[m.group()])
			told += fmt.Sprintf(", read by %s (%s), %d again, %d looks stale", m.client.Name(), m.protocol, m.judge(t), m.stale)
		}
		harness.Progress("%s: %d records written and copied by %s (%d loops gave up)%s", f.topic, len(f.acks), f.writer.Name(), f.gaveUp.Load(), told)
	}
}

// commits reads what groups have committed from the log: the offsets of the first partition of a topic, in their order.
func (l *moveLoad) commits(t *testing.T) map[string][]int64 {
	t.Helper()
	from, byGroup := map[int32]int64{}, map[string][]int64{}
	for n := range int32(5) {
		from[n] = suite.Earliest
	}
	records, err := l.ref.Consume(limited(t, clusterLimit), suite.ConsumeOptions{Topic: "__consumer_offsets", From: from, ReadCommitted: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if len(r.Key) < 2 || r.Key[1] > 1 || r.Value == nil {
			continue // another kind of record, or a group that has forgotten
		}
		var key kmsg.OffsetCommitKey
		var value kmsg.OffsetCommitValue
		if err := errors.Join(key.ReadFrom(r.Key), value.ReadFrom(r.Value)); err != nil {
			t.Fatal(err)
		}
		if key.Partition == 0 {
			byGroup[key.Group] = append(byGroup[key.Group], value.Offset)
		}
	}
	return byGroup
}

// judgeCommits finds in the log whatever was seen committed, and nothing there that moves back.
func (m *moveMember) judgeCommits(t *testing.T, logged []int64) {
	t.Helper()
	if !slices.IsSorted(logged) {
		t.Errorf("what %s has committed moves back in the log: %v", m.group(), logged)
	}
	for _, s := range m.samples {
		if _, found := slices.BinarySearch(logged, s.committed); s.committed > 0 && !found {
			t.Errorf("offset %d of %s was seen committed and is not in the log: %v", s.committed, m.group(), logged)
		}
	}
}

// end tells some to stop, and waits for them.
func (l *moveLoad) end(t *testing.T, which int, who string) {
	t.Helper()
	close(l.stopped[which])
	ended := make(chan struct{})
	go func() {
		l.work[which].Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(clusterLimit):
		t.Fatalf("%s do not end", who)
	}
}

// judgeCopy reads the input and the output: each record that was written is there once, in order, at both places.
func (f *moveFlow) judgeCopy(ctx context.Context) error {
	for _, topic := range []string{f.topic, f.output()} {
		records, err := f.load.ref.Consume(ctx, suite.ConsumeOptions{Topic: topic, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true})
		if err != nil {
			return err
		}
		for i, r := range records[:min(len(records), len(f.acks))] {
			if !bytes.Equal(r.Value, fmt.Append(nil, i)) {
				return fmt.Errorf("%s: record %d is %q", topic, i, r.Value)
			}
		}
		if len(records) != len(f.acks) {
			return fmt.Errorf("%s holds %d records, %d were acknowledged", topic, len(records), len(f.acks))
		}
	}
	return nil
}

// judge says how many records the member was given again, all of which it had not committed.
func (m *moveMember) judge(t *testing.T) (again int) {
	t.Helper()
	const late = 10 // looks
	next, mark := int64(0), 0
	for i, r := range m.records {
		// Counts are told with a delay, so what was read before a look is what had been read some looks later.
		for mark+late < len(m.samples) && m.samples[mark+late].read <= int64(i) {
			mark++
		}
		switch {
		case r.Offset > next:
			t.Fatalf("%s was given offset %d where %d was due", m.group(), r.Offset, next)
		case !bytes.Equal(r.Value, fmt.Append(nil, r.Offset)):
			t.Fatalf("%s was given %q at offset %d", m.group(), r.Value, r.Offset)
		case r.Offset < next:
			if again++; mark > 0 && r.Offset < m.samples[mark-1].committed {
				t.Errorf("%s was given offset %d again, and %d was committed", m.group(), r.Offset, m.samples[mark-1].committed)
			}
		default:
			next++
		}
	}
	if next != int64(len(m.flow.acks)) {
		t.Errorf("%s has read %d of %d records", m.group(), next, len(m.flow.acks))
	}
	return again
}
