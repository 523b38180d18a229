package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	plainTopic = "plain"
	partitions = 2
	groups     = 20
	// roundRecords bounds what one round writes, so that many fit on the disk.
	roundRecords = 2500
)

// Story is everything that was sent to a node over all its rounds, and what is known to be on its disk.
type Story struct {
	// Flush: the node flushes before it acknowledges. Then nothing acknowledged may be missing; without it what is there
	// must be a prefix of what was written, and what was once read after a cut stays.
	Flush bool
	// Seed chooses what the rounds do.
	Seed  uint64
	round int

	plain    [partitions]written
	groups   [groups]commits
	txns     []*transaction // of this round
	txnTopic string
	id       string          // transactional id of this round
	topics   map[string]bool // as acknowledged; those under way are not in it

	Acknowledged, Transactions, Commits, Topics, Lost int64 // over all rounds; Lost: unflushed tails that were cut
}

// written is one partition: what the last start has shown, then this round's records in the order of sending.
type written struct {
	durable []string
	sent    []string
	acked   int // of sent, from the first
	gap     bool
}

type commits struct {
	tried, acked, durable atomic.Int64
}

type outcome int8

const (
	unknown outcome = iota
	committed
	aborted
)

type transaction struct {
	values  [partitions][]string
	outcome outcome
}

// NewStory begins with an empty node.
func NewStory(flush bool, seed uint64) *Story {
	return &Story{Flush: flush, Seed: seed, topics: map[string]bool{}}
}

// Load runs until stop is closed, and returns when nothing of it is under way any more.
type Load struct {
	story  *Story
	admin  *kadm.Client
	client *kgo.Client
	errs   chan error
	wg     sync.WaitGroup
	cancel context.CancelFunc
	cut    atomic.Bool // what fails from now on says nothing

	first   sync.Once
	running chan struct{}
}

// Running is closed when the first record was acknowledged.
func (l *Load) Running() <-chan struct{} { return l.running }

// PowerFails is called before the cut: what then fails is no fault, and what is then acknowledged does not count. The file
// system takes some milliseconds to stop, in which an fsync may say that it has done what it has not; where the power goes
// nobody hears the answer.
func (l *Load) PowerFails() { l.cut.Store(true) }

func clientOf(addr string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
}

// Start makes the topics of a round and begins the load on them.
func (s *Story) Start(ctx context.Context, addr string) (*Load, error) {
	s.round++
	client, err := clientOf(addr)
	if err != nil {
		return nil, err
	}
	l := &Load{story: s, client: client, admin: kadm.NewClient(client), errs: make(chan error, 8), running: make(chan struct{})}
	s.txnTopic, s.txns = fmt.Sprintf("txn-%d", s.round), nil
	s.id = "powercut"
	if !s.Flush { // a lost state of the coordinator leaves transactions behind that nobody ends
		s.id = fmt.Sprintf("powercut-%d", s.round)
	}
	for _, topic := range []string{plainTopic, s.txnTopic} {
		if err := s.create(ctx, l.admin, topic); err != nil {
			client.Close()
			return nil, err
		}
	}
	ctx, l.cancel = context.WithCancel(ctx)
	for _, part := range []func(context.Context, string) error{l.produce, l.transact, l.commit, l.administer} {
		l.wg.Go(func() {
			if err := part(ctx, addr); err != nil && ctx.Err() == nil && !l.cut.Load() {
				l.errs <- err
			}
		})
	}
	return l, nil
}

// Stop is called after the cut, when the node is dead. The error is one that came before.
func (l *Load) Stop() error {
	l.cancel()
	l.wg.Wait()
	l.client.Close()
	select {
	case err := <-l.errs:
		return err
	default:
		return nil
	}
}

func (s *Story) create(ctx context.Context, admin *kadm.Client, topic string) error {
	if s.topics[topic] {
		return nil
	}
	segment := "1048576"
	_, err := admin.CreateTopic(ctx, partitions, 1, map[string]*string{"segment.bytes": &segment}, topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		err = nil // it was under way when the power went
	}
	if err == nil {
		s.topics[topic] = true
		s.Topics++
	}
	return err
}

// produce sends records of many sizes with idempotence and acks=all.
func (l *Load) produce(ctx context.Context, addr string) error {
	s := l.story
	for p := range s.plain {
		s.plain[p].sent, s.plain[p].acked, s.plain[p].gap = nil, 0, false
	}
	client, err := clientOf(addr, kgo.MaxBufferedRecords(50), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer client.Close()
	random := rand.New(rand.NewPCG(s.Seed, uint64(s.round)))
	var mu sync.Mutex
	for n := 0; ctx.Err() == nil && n < roundRecords; n++ {
		p := random.IntN(partitions)
		value := fmt.Sprintf("%d.%d.%s", s.round, n, strings.Repeat("x", random.IntN(2000)))
		w := &s.plain[p]
		mu.Lock()
		at := len(w.sent)
		w.sent = append(w.sent, value)
		mu.Unlock()
		client.Produce(ctx, &kgo.Record{Topic: plainTopic, Partition: int32(p), Value: []byte(value)}, func(_ *kgo.Record, err error) {
			if err == nil && !l.cut.Load() {
				mu.Lock()
				w.acked = max(w.acked, at+1)
				mu.Unlock()
				atomic.AddInt64(&s.Acknowledged, 1)
				l.first.Do(func() { close(l.running) })
			}
		})
	}
	_ = client.Flush(ctx) // it ends with the context: the node is gone
	return nil
}

// transact runs transactions over both partitions of the round's topic; every fourth is aborted.
func (l *Load) transact(ctx context.Context, addr string) error {
	s := l.story
	client, err := clientOf(addr, kgo.TransactionalID(s.id), kgo.TransactionTimeout(30*time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	for n := 0; ctx.Err() == nil; n++ {
		t := &transaction{}
		s.txns = append(s.txns, t)
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		for p := range partitions {
			for i := range 1 + n%3 {
				value := fmt.Sprintf("%d.%d.%d", s.round, n, i)
				t.values[p] = append(t.values[p], value)
				client.Produce(ctx, &kgo.Record{Topic: s.txnTopic, Partition: int32(p), Value: []byte(value)}, nil)
			}
		}
		if err := client.Flush(ctx); err != nil {
			return nil // the node is gone
		}
		end := kgo.TransactionEndTry(n%4 != 3)
		if err := client.EndTransaction(ctx, end); err != nil || l.cut.Load() {
			return nil
		}
		if t.outcome = aborted; end == kgo.TryCommit {
			t.outcome = committed
			s.Transactions++
		}
	}
	return nil
}

// commit moves the offsets of groups up, one commit of a group at a time.
func (l *Load) commit(ctx context.Context, _ string) error {
	s := l.story
	topics, err := l.admin.ListTopics(ctx, plainTopic)
	if err != nil {
		return err
	}
	for offset := int64(s.round) * 1_000_000; ctx.Err() == nil; offset++ {
		for g := range s.groups {
			s.groups[g].tried.Store(offset)
			req := kmsg.NewPtrOffsetCommitRequest()
			req.Group = groupName(g)
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Offset = offset
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic, topic.TopicID, topic.Partitions = plainTopic, topics[plainTopic].ID, append(topic.Partitions, part)
			req.Topics = append(req.Topics, topic)
			resp, err := req.RequestWith(ctx, l.client)
			if err == nil && !l.cut.Load() && resp.Topics[0].Partitions[0].ErrorCode == 0 {
				s.groups[g].acked.Store(offset)
				s.Commits++
			}
		}
	}
	return nil
}

func groupName(n int) string { return fmt.Sprintf("powercut-%d", n) }

// administer makes topics and deletes those of former rounds. Both are durable once acknowledged, with flush and without.
func (l *Load) administer(ctx context.Context, _ string) error {
	s := l.story
	for n := 0; ctx.Err() == nil && n < 8; n++ {
		name := fmt.Sprintf("made-%d-%d", s.round, n)
		if err := s.create(ctx, l.admin, name); err != nil {
			return err
		}
		if l.cut.Load() {
			delete(s.topics, name)
			return nil
		}
		gone := fmt.Sprintf("made-%d-%d", s.round-1, n)
		if n == 7 {
			gone = fmt.Sprintf("txn-%d", s.round-2)
		}
		if !s.topics[gone] {
			continue
		}
		delete(s.topics, gone)
		if _, err := l.admin.DeleteTopic(ctx, gone); err != nil || l.cut.Load() {
			return err
		}
		s.topics[gone] = false // known to be gone
		s.Topics++
	}
	return nil
}
