//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// placedTopic is a topic of one partition, and who writes to it.
type placedTopic struct {
	name    string
	writer  suite.Streamer // nil: compacted or transactional
	codec   string
	configs map[string]string
	count   atomic.Int64 // what was acknowledged so far

	acks      []suite.Ack       // of writer
	committed []string          // transactional: the values of transactions that were committed
	latest    map[string]string // compacted: what was acknowledged last of each key
	written   int               // compacted
}

func (p *placedTopic) compacted() bool { return p.configs["cleanup.policy"] == "compact" }

// placedLoad writes to topics of every kind until it is told to stop.
type placedLoad struct {
	ref     *franz.Client
	servers []string
	all     []*placedTopic
	ctx     context.Context
	cancel  context.CancelFunc
	stop    chan struct{}
	running sync.WaitGroup
}

// startLoad makes a topic of each kind for each set of replicas.
func (p *placed) startLoad(t *testing.T, sets [][]int32) *placedLoad {
	t.Helper()
	python, err := driver.StartPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Close() })
	ref := franz.New(p.servers())
	java, confluent := driver.NewClient(p.java, scenario.Java, p.servers()), driver.NewClient(python, scenario.Confluent, p.servers())
	l := &placedLoad{ref: ref, servers: p.Bootstrap(), stop: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.cancel()
		l.running.Wait()
	})
	for _, replicas := range sets {
		var transactional []*placedTopic
		for _, topic := range []*placedTopic{
			{name: "none", writer: ref, codec: "none"},
			{name: "gzip", writer: ref, codec: "gzip"},
			{name: "snappy", writer: java, codec: "snappy"},
			{name: "lz4", writer: java, codec: "lz4"},
			{name: "zstd", writer: confluent, codec: "zstd"},
			{name: "converted", writer: ref, codec: "lz4", configs: map[string]string{"compression.type": "zstd"}},
			{name: "append-time", writer: confluent, codec: "gzip", configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
			{name: "compacted", latest: map[string]string{}, configs: map[string]string{
				"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000",
			}},
			{name: "transactional"},
			{name: "transactional-too"},
		} {
			for _, id := range replicas {
				topic.name += "-" + p.broker(int(id)).Name()[len("broker-"):]
			}
			p.create(t, topic.name, topic.configs, replicas...)
			l.all = append(l.all, topic)
			switch {
			case topic.writer != nil:
				l.run(t, topic.name, func() error { return l.stream(topic) })
			case topic.compacted():
				l.run(t, topic.name, func() error { return l.overwrite(topic) })
			default:
				transactional = append(transactional, topic)
			}
		}
		l.run(t, transactional[0].name, func() error { return l.transact(transactional) })
	}
	return l
}

func (l *placedLoad) run(t *testing.T, topic string, write func() error) {
	l.running.Go(func() {
		if err := write(); err != nil && l.ctx.Err() == nil {
			t.Errorf("writing to %s: %v", topic, err)
		}
	})
}

func (l *placedLoad) topics() (names []string) {
	for _, topic := range l.all {
		names = append(names, topic.name)
	}
	return names
}

// stream writes numbered records, some of them in a batch.
func (l *placedLoad) stream(topic *placedTopic) (err error) {
	topic.acks, err = topic.writer.Stream(l.ctx, suite.StreamOptions{
		ProduceOptions: suite.ProduceOptions{Topic: topic.name, Acks: "all", Codec: topic.codec, Idempotent: true, LingerMs: 100},
		Prefix:         topic.name + "-", Window: 20, OnAck: func(n int) { topic.count.Store(int64(n)) },
	}, l.stop)
	return err
}

// pace ends the rests of a writer; false: it is to stop.
func (l *placedLoad) pace(ticks *time.Ticker) bool {
	select {
	case <-l.stop:
		return false
	case <-l.ctx.Done():
		return false
	case <-ticks.C:
		return true
	}
}

// overwrite writes the same keys again and again.
func (l *placedLoad) overwrite(topic *placedTopic) error {
	return l.again(func(client *kgo.Client, n int) error {
		var records []*kgo.Record
		for key := range 20 {
			records = append(records, &kgo.Record{Topic: topic.name, Key: fmt.Append(nil, key), Value: fmt.Append(nil, n)})
		}
		if err := client.ProduceSync(l.ctx, records...).FirstErr(); err != nil {
			return err
		}
		for _, r := range records {
			topic.latest[string(r.Key)] = string(r.Value)
		}
		topic.written += len(records)
		topic.count.Add(1)
		return nil
	})
}

// again has a client do something every 50 ms until the load is to end. n counts. As the writers, it leaves the brokers' JVMs room: what
// is shown is that all go on, not how fast.
func (l *placedLoad) again(do func(client *kgo.Client, n int) error, opts ...kgo.Opt) error {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(l.servers...), kgo.AlwaysRetryEOF())...)
	if err != nil {
		return err
	}
	defer client.Close()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for n := 0; l.pace(ticks); n++ {
		if err := do(client, n); err != nil {
			return err
		}
	}
	return nil
}

// transact writes to all of the topics in transactions, of which each fourth is aborted.
func (l *placedLoad) transact(topics []*placedTopic) error {
	return l.again(func(client *kgo.Client, n int) error {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		var records []*kgo.Record
		for i := range 10 {
			for _, topic := range topics {
				records = append(records, &kgo.Record{Topic: topic.name, Value: fmt.Appendf(nil, "%d-%d", n, i)})
			}
		}
		if err := client.ProduceSync(l.ctx, records...).FirstErr(); err != nil {
			return fmt.Errorf("transaction %d: %w", n, err)
		}
		commit := n%4 != 3
		if err := client.EndTransaction(l.ctx, kgo.TransactionEndTry(commit)); err != nil {
			return fmt.Errorf("the end of transaction %d: %w", n, err)
		}
		for _, topic := range topics {
			for i := range 10 {
				if commit {
					topic.committed = append(topic.committed, fmt.Sprintf("%d-%d", n, i))
				}
			}
			topic.count.Add(1)
		}
		return nil
	}, kgo.TransactionalID(topics[0].name), kgo.TransactionTimeout(clusterLimit))
}

// goesOn waits until something more of every topic is acknowledged.
func (l *placedLoad) goesOn(t *testing.T) {
	t.Helper()
	var before []int64
	for _, topic := range l.all {
		before = append(before, topic.count.Load())
	}
	eventually(t, "all writers to go on", func(context.Context) error {
		for i, topic := range l.all {
			if n := topic.count.Load(); n < before[i]+10 {
				return fmt.Errorf("%d acknowledgements of %s since", n-before[i], topic.name)
			}
		}
		return nil
	})
}

// finish ends the writers and judges: what was acknowledged is where it was acknowledged, and nothing else is there. It returns how
// many records can be read.
func (l *placedLoad) finish(t *testing.T) (records int) {
	t.Helper()
	close(l.stop)
	if !endsWithin(clusterLimit, l.running.Wait) {
		t.Fatal("the writers do not end")
	}
	for _, topic := range l.all {
		read, err := l.ref.Consume(limited(t, clusterLimit), suite.ConsumeOptions{
			Topic: topic.name, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		records += len(read)
		switch {
		case topic.writer != nil:
			err = topic.judgeStream(read)
		case topic.compacted():
			err = topic.judgeLatest(read)
		default:
			err = topic.judgeCommitted(read)
		}
		if err != nil {
			t.Errorf("%s: %v", topic.name, err)
		}
	}
	harness.Progress("%s: %d records in %d topics, each once", t.Name(), records, len(l.all))
	return records
}

func (p *placedTopic) judgeStream(read []suite.Record) error {
	at := map[int64]string{}
	for _, r := range read {
		at[r.Offset] = string(r.Value)
	}
	for i, ack := range p.acks {
		want := fmt.Sprintf("%s-%d", p.name, i)
		if ack.Err != "" || at[ack.Offset] != want {
			return fmt.Errorf("record %d was acknowledged as %+v, there is %q", i, ack, at[ack.Offset])
		}
	}
	if len(read) != len(p.acks) {
		return fmt.Errorf("it holds %d records, %d were acknowledged", len(read), len(p.acks))
	}
	return nil
}

func (p *placedTopic) judgeCommitted(read []suite.Record) error {
	var values []string
	for _, r := range read {
		values = append(values, string(r.Value))
	}
	if !slices.Equal(values, p.committed) {
		return fmt.Errorf("%d records of committed transactions can be read, %d were written", len(values), len(p.committed))
	}
	return nil
}

func (p *placedTopic) judgeLatest(read []suite.Record) error {
	last := map[string]string{}
	for _, r := range read {
		last[string(r.Key)] = string(r.Value)
	}
	if !maps.Equal(last, p.latest) {
		return fmt.Errorf("the latest values are %v, acknowledged were %v", last, p.latest)
	}
	return nil
}

// sameValues has each replica of a compacted topic lead, until it is compacted there, and finds the latest value of each key.
func (p *placed) sameValues(t *testing.T, topic *placedTopic) {
	t.Helper()
	for _, b := range p.Brokers {
		p.lead(t, b, topic.name)
		eventually(t, fmt.Sprintf("%s, compacted, with %s", topic.name, b.Name()), func(ctx context.Context) error {
			read, err := franz.New(p.servers()).Consume(ctx, suite.ConsumeOptions{Topic: topic.name, From: map[int32]int64{0: suite.Earliest}})
			if err != nil {
				return err
			}
			if len(read) == topic.written {
				err = errors.New("all records are there still")
			}
			return errors.Join(err, topic.judgeLatest(read))
		})
	}
}
