package franz

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// Transact produces in transactions.
func (c *Client) Transact(ctx context.Context, o suite.TransactOptions, transactions []suite.Transaction, stop <-chan struct{}) ([][]suite.Ack, error) {
	opts := []kgo.Opt{kgo.TransactionalID(o.TransactionalID), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(20)}
	if o.TimeoutMs > 0 {
		opts = append(opts, kgo.TransactionTimeout(time.Duration(o.TimeoutMs)*time.Millisecond))
	}
	client, err := c.connect(opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, _, err := client.ProducerID(ctx); err != nil { // an older producer is fenced from here on
		return nil, fmt.Errorf("initialize: %w", err)
	}
	var answers [][]suite.Ack
	for _, transaction := range transactions {
		if err := client.BeginTransaction(); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
		acks := make([]suite.Ack, len(transaction.Records))
		for i, r := range transaction.Records {
			client.Produce(ctx, toKgo(o.Topic, r), func(r *kgo.Record, err error) { acks[i] = toAck(r, err) })
		}
		if err := client.Flush(ctx); err != nil {
			return nil, fmt.Errorf("flush: %w", err)
		}
		answers = append(answers, acks)
		if transaction.End == suite.Linger {
			if o.OnOpen != nil {
				o.OnOpen(len(answers))
			}
			select {
			case <-stop:
			case <-ctx.Done():
			}
		}
		if err := client.EndTransaction(ctx, transaction.End != suite.Abort); err != nil {
			return nil, fmt.Errorf("%s: %w", transaction.End, err)
		}
	}
	return answers, nil
}

// CopyInTransactions copies from topic to topic until stop is closed or it dies.
func (c *Client) CopyInTransactions(ctx context.Context, o suite.CopyOptions, stop <-chan struct{}) (suite.Copied, error) {
	connections := &suite.Lines{}
	session := time.Duration(o.SessionMs) * time.Millisecond
	opts := []kgo.Opt{
		c.servers(), kgo.Dialer(connections.DialContext), kgo.TransactionalID(o.TransactionalID), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.From), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(session / 10), kgo.MetadataMinAge(100 * time.Millisecond), kgo.AlwaysRetryEOF(),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	if o.TimeoutMs > 0 {
		opts = append(opts, kgo.TransactionTimeout(time.Duration(o.TimeoutMs)*time.Millisecond))
	}
	loop := &copyLoop{o: o}
	var err error
	if loop.session, err = kgo.NewGroupTransactSession(opts...); err != nil {
		return suite.Copied{}, err
	}
	polling, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-polling.Done():
		}
	}()
	died, err := loop.run(ctx, polling)
	if died {
		connections.Kill()
		go loop.session.Close() // tries to leave, and cannot
		return loop.done, nil
	}
	loop.session.Close()
	return loop.done, err
}

// copyLoop is a copy loop under way.
type copyLoop struct {
	o       suite.CopyOptions
	session *kgo.GroupTransactSession
	done    suite.Copied
}

func (l *copyLoop) run(ctx, polling context.Context) (died bool, err error) {
	batch := l.o.Batch
	if batch == 0 {
		batch = 100
	}
	for polling.Err() == nil {
		fetches := l.session.PollRecords(polling, batch)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := l.session.Begin(); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		var records []*kgo.Record
		fetches.EachRecord(func(r *kgo.Record) {
			records = append(records, &kgo.Record{Topic: l.o.To, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers})
		})
		failed := l.session.ProduceSync(ctx, records...).FirstErr()
		if l.o.Die > 0 && l.done.Records >= l.o.Die {
			return true, failed
		}
		all := l.done.Commits + l.done.Aborts + 1
		committed, err := l.session.End(ctx, kgo.TransactionEndTry(failed == nil && (l.o.AbortEvery == 0 || all%l.o.AbortEvery != 0)))
		switch {
		case err != nil:
			return false, fmt.Errorf("end: %w", err)
		case !committed:
			l.done.Aborts++
			continue
		}
		l.done.Commits++
		l.done.Records += len(records)
		if l.o.OnCopied != nil {
			l.o.OnCopied(l.done.Records)
		}
	}
	return false, ctx.Err()
}

// LastStable is the last stable offset of a partition: where readers of committed records end.
func (c *Client) LastStable(ctx context.Context, topic string, partition int32) (int64, error) {
	offset, _, err := c.listOffset(ctx, topic, partition, suite.Latest, true)
	return offset, err
}

// Transaction is the transaction of a transactional id, as its coordinator describes it.
func (c *Client) Transaction(ctx context.Context, id string) (state string, partitions kadm.TopicsSet, err error) {
	err = c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		described, err := a.DescribeTransactions(ctx, id)
		if err != nil {
			return err
		}
		one, err := described.On(id, nil)
		if err == nil {
			err = one.Err
		}
		state, partitions = one.State, one.Topics
		return err
	})
	return state, partitions, err
}
