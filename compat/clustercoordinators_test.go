//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// coordinatorTopics hold what coordinators know.
var coordinatorTopics = []string{"__consumer_offsets", "__transaction_state"}

// coordinators moves all coordinators from each broker to each other one by elections, and returns how often: in a
// controlled shutdown Apache Kafka 4.4.0 may complete a transaction without its markers, which is not the subject here. Groups of
// both protocols and copy loops go on; whoever asks the brokers directly is told what coordinators may say, and nothing else.
func (p *placed) coordinators(t *testing.T) (moves int) {
	ref := franz.New(p.servers())
	l := startMoveLoad(t, p.client, ref, ref, driver.NewClient(p.java, scenario.Java, p.servers()))
	l.goesOn(t)
	q := p.ask(t)
	for _, b := range p.allWays() {
		p.lead(t, b, coordinatorTopics...)
		l.goesOn(t)
		q.goesOn(t)
		moves++
	}
	q.finish(t)
	l.finish(t)
	p.noneHangs(t, l.topics())
	for n := range 5 {
		for _, topic := range coordinatorTopics {
			equalReplicas(t, topic, n, p.Brokers)
		}
	}
	return moves
}

// allWays is a way past the brokers on which each is followed once by each other one.
func (p *placed) allWays() (way []*harness.Member) {
	for n, b := range p.Brokers {
		for _, later := range p.Brokers[n+1:] {
			way = append(way, b, later)
		}
	}
	return append(way, p.Brokers[0])
}

// noneHangs waits until no transaction is open or undecided, for the coordinators and in the topics.
func (p *placed) noneHangs(t *testing.T, topics []string) {
	t.Helper()
	for _, b := range p.Brokers {
		eventually(t, "the transactions of "+b.Name()+" to be complete", func(ctx context.Context) error {
			req := kmsg.NewPtrListTransactionsRequest()
			req.StateFilters = []string{"Ongoing", "PrepareCommit", "PrepareAbort"}
			resp, err := req.RequestWith(ctx, p.at(b))
			if err == nil && len(resp.TransactionStates) > 0 {
				err = fmt.Errorf("there are %v", resp.TransactionStates)
			}
			return err
		})
	}
	ref := franz.New(p.servers())
	for _, topic := range topics {
		eventually(t, "the last stable offset of "+topic, func(ctx context.Context) error {
			stable, err := ref.LastStable(ctx, topic, 0)
			if err != nil {
				return err
			}
			if end, _, err := ref.ListOffset(ctx, topic, 0, suite.Latest); err != nil || stable != end {
				return fmt.Errorf("it is %d, the end is %d, %w", stable, end, err)
			}
			return nil
		})
	}
}

// questions are asked of every broker again and again, whether it coordinates or not.
type questions struct {
	p       *placed
	ctx     context.Context
	running sync.WaitGroup
	once    [2]sync.Mutex // for those whose answers depend on the ones before: commits, and producer ids

	mu      sync.Mutex
	answers map[string]map[string]int // by question and kind of server, how often each
	last    map[string]time.Time      // when a question was answered by a coordinator
	next    int64                     // the offset to commit
	sure    int64                     // what is committed at least
	stale   int                       // times that less was told by who was coordinator until a moment ago
}

// mayAnswer are the errors that a client may see while coordinators move.
var mayAnswer = []error{nil, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator}

// ask begins to ask.
func (p *placed) ask(t *testing.T) *questions {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	q := &questions{p: p, ctx: ctx, answers: map[string]map[string]int{}, last: map[string]time.Time{}, sure: -1}
	for _, b := range p.Brokers {
		client := clusterClient(t, []string{b.Addr()}, kgo.MaxVersions(kversion.V4_0_0())) // requests name topics
		q.running.Go(func() { q.keepAsking(t, b, client) })
	}
	t.Cleanup(func() {
		cancel()
		q.running.Wait()
	})
	return q
}

// asked are the questions, each with how to ask it.
var asked = []struct {
	name string
	ask  func(*questions, context.Context, *kgo.Broker) (int16, error)
}{
	{"OffsetCommit", (*questions).commit},
	{"OffsetFetch", func(q *questions, ctx context.Context, b *kgo.Broker) (int16, error) {
		code, _, err := fetchOffset(ctx, b)
		return code, err
	}},
	{"DescribeGroups", func(_ *questions, ctx context.Context, b *kgo.Broker) (int16, error) {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{askedGroup}
		resp, err := req.RequestWith(ctx, b)
		if err != nil {
			return 0, err
		}
		code := resp.Groups[0].ErrorCode
		if errors.Is(kerr.ErrorForCode(code), kerr.GroupIDNotFound) {
			code = 0 // so far
		}
		return code, nil
	}},
	{"InitProducerId", (*questions).producer},
	{"DescribeTransactions", func(_ *questions, ctx context.Context, b *kgo.Broker) (int16, error) {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{askedTransaction}
		resp, err := req.RequestWith(ctx, b)
		if err != nil {
			return 0, err
		}
		code := resp.TransactionStates[0].ErrorCode
		if errors.Is(kerr.ErrorForCode(code), kerr.TransactionalIDNotFound) {
			code = 0 // so far
		}
		return code, nil
	}},
}

const (
	askedGroup       = "asked"
	askedTransaction = "asked-transaction"
	askedTopic       = "move-0"
)

// keepAsking asks one broker every question until it is told to end.
func (q *questions) keepAsking(t *testing.T, broker *harness.Member, client *kgo.Client) {
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	at := client.Broker(broker.ID)
	for {
		for _, one := range asked {
			code, err := one.ask(q, q.ctx, at)
			if q.ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("%s of %s: %v", one.name, broker.Name(), err)
				return
			}
			q.note(one.name, broker, kerr.ErrorForCode(code))
		}
		select {
		case <-ticks.C:
		case <-q.ctx.Done():
			return
		}
	}
}

func (q *questions) note(name string, broker *harness.Member, answer error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	by := name + " of " + string(broker.Kind)
	if q.answers[by] == nil {
		q.answers[by] = map[string]int{}
	}
	said := "NONE"
	if answer == nil {
		q.last[name] = time.Now()
	} else {
		said = suite.ErrorName(answer)
	}
	q.answers[by][said]++
}

// goesOn waits until every question was answered by a coordinator.
func (q *questions) goesOn(t *testing.T) {
	t.Helper()
	since := time.Now()
	eventually(t, "every question to be answered by a coordinator", func(context.Context) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, one := range asked {
			if q.last[one.name].Before(since) {
				return fmt.Errorf("%s: answers so far %v", one.name, q.answers)
			}
		}
		return nil
	})
}

// finish judges the answers.
func (q *questions) finish(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	var told []string
	for _, by := range slices.Sorted(maps.Keys(q.answers)) {
		told = append(told, fmt.Sprintf("%s %v", by, q.answers[by]))
		for said := range q.answers[by] {
			if !slices.ContainsFunc(mayAnswer, func(err error) bool {
				return err == nil && said == "NONE" || err != nil && suite.ErrorName(err) == said
			}) {
				t.Errorf("%s was answered %s", by, said)
			}
		}
	}
	harness.Progress("while coordinators moved (%d times a former one told of an offset that was no longer the last):\n  %s", q.stale, strings.Join(told, "\n  "))
}

// commit commits the next offset. Who then is asked and answers as the coordinator has to know of all that are committed.
func (q *questions) commit(ctx context.Context, b *kgo.Broker) (int16, error) {
	q.once[0].Lock()
	defer q.once[0].Unlock()
	if err := q.nothingLost(ctx, b); err != nil {
		return 0, err
	}
	q.next++
	req, topic, partition := kmsg.NewPtrOffsetCommitRequest(), kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	req.Group, req.Generation = askedGroup, -1
	topic.Topic, partition.Offset = askedTopic, q.next
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, b)
	if err != nil {
		return 0, err
	}
	code := resp.Topics[0].Partitions[0].ErrorCode
	if code == 0 {
		q.sure = q.next
	}
	return code, nil
}

// nothingLost asks for what is committed. A broker that has not heard yet that it coordinates no longer may tell of less, for a moment.
func (q *questions) nothingLost(ctx context.Context, b *kgo.Broker) error {
	ctx, cancel := context.WithTimeout(ctx, clusterLimit)
	defer cancel()
	first := true
	return suite.Eventually(ctx, func() error {
		code, at, err := fetchOffset(ctx, b)
		if err != nil || code != 0 || at >= q.sure {
			return err
		}
		if first {
			q.mu.Lock()
			q.stale++
			q.mu.Unlock()
		}
		first = false
		return fmt.Errorf("offset %d is committed, and %d was", at, q.sure)
	})
}

// fetchOffset asks for what the group has committed.
func fetchOffset(ctx context.Context, b *kgo.Broker) (code int16, at int64, err error) {
	req, group, topic := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroupTopic()
	group.Group = askedGroup
	topic.Topic, topic.Partitions = askedTopic, []int32{0}
	group.Topics = append(group.Topics, topic)
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(ctx, b)
	if err != nil {
		return 0, 0, err
	}
	answer := resp.Groups[0]
	if answer.ErrorCode != 0 {
		return answer.ErrorCode, 0, nil
	}
	found := answer.Topics[0].Partitions[0]
	return found.ErrorCode, found.Offset, nil
}

// producer asks for the next epoch of a transactional id.
func (q *questions) producer(ctx context.Context, b *kgo.Broker) (int16, error) {
	q.once[1].Lock()
	defer q.once[1].Unlock()
	req, id := kmsg.NewPtrInitProducerIDRequest(), askedTransaction
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 60_000, -1, -1
	resp, err := req.RequestWith(ctx, b)
	if err != nil {
		return 0, err
	}
	return resp.ErrorCode, nil
}

// decided lets a coordinator of each kind write that a transaction is to be committed, when a broker that has to have a marker hangs;
// a coordinator of the other kind then takes over and completes it.
func (p *placed) decided(t *testing.T) {
	for _, kind := range []harness.Kind{harness.Kafka, harness.Ottla} {
		pair := []int32{p.of(kind)[0], p.of(other(kind))[0]}
		hangs := p.but(pair...)[0]
		if last := p.of(other(kind)); len(last) > 1 {
			hangs = last[1] // of the kind that takes over
		}
		from, to, hung := p.broker(int(pair[0])), p.broker(int(pair[1])), p.broker(int(hangs))
		p.move(t, "__transaction_state", pair...)
		p.lead(t, from, "__transaction_state")
		id := fmt.Sprintf("decided-by-%d", pair[0])
		topics := []string{id + "-hung", id + "-other"}
		alone := map[string]string{"min.insync.replicas": "1"}
		p.create(t, topics[0], alone, hangs)
		p.create(t, topics[1], alone, pair[0])
		client := clusterClient(t, []string{from.Addr(), to.Addr()}, kgo.TransactionalID(id))
		writers := p.writeTo(t, client, topics)

		if err := hung.Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hung.Resume() })
		if err := client.EndTransaction(limited(t, clusterLimit), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		p.awaitState(t, from, id, "PrepareCommit")
		p.lead(t, to, "__transaction_state")
		p.awaitState(t, to, id, "PrepareCommit")
		if err := hung.Resume(); err != nil {
			t.Fatal(err)
		}
		p.awaitState(t, to, id, "CompleteCommit")

		// The producer goes on, with its coordinator of the other kind.
		p.writeTo(t, client, topics)
		if err := client.EndTransaction(limited(t, clusterLimit), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		p.noneHangs(t, topics)
		for _, w := range writers {
			w.expect(t, p.Bootstrap())
		}
	}
	p.move(t, "__transaction_state", p.all()...)
}

// writeTo begins a transaction and writes to topics in it.
func (p *placed) writeTo(t *testing.T, client *kgo.Client, topics []string) (writers []*writer) {
	t.Helper()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		w := &writer{client: client, topic: topic}
		w.write(t, 50)
		writers = append(writers, w)
	}
	return writers
}

// awaitState waits until a coordinator says that a transaction has come to a state.
func (p *placed) awaitState(t *testing.T, coordinator *harness.Member, id, state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s of %s, by %s", state, id, coordinator.Name()), func(ctx context.Context) error {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{id}
		resp, err := req.RequestWith(ctx, p.at(coordinator))
		if err != nil {
			return err
		}
		if found := resp.TransactionStates[0]; found.ErrorCode != 0 || found.State != state {
			return fmt.Errorf("it says %q, error %d", found.State, found.ErrorCode)
		}
		return nil
	})
}
