package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
)

const (
	beginners = 8
	// hang is how long no transaction of a producer may take, restarts included.
	hang = 60 * time.Second
)

// BeginCommit begins and commits transactions of one record each, over a topic of four
// partitions, and restarts the node meanwhile. A transaction that does not end, or a
// last stable offset that does not reach the end, is an error.
func BeginCommit(ctx context.Context, node *harness.Node, count, restarts int) (string, error) {
	const topic, partitions = "begin-commit", 4
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()), kgo.AlwaysRetryEOF())
	if err != nil {
		return "", err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return "", err
	}
	var done, failed atomic.Int64
	var slowest atomic.Int64
	errs := make([]error, beginners)
	var all sync.WaitGroup
	began := time.Now()
	for which := range beginners {
		all.Go(func() {
			errs[which] = beginAndCommit(ctx, node.Addr(), topic, which, int64(count), &done, &failed, &slowest)
		})
	}
	for n := range restarts {
		for done.Load() < int64(n+1)*int64(count)/int64(restarts+1) && ctx.Err() == nil {
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				break
			}
		}
		if n%3 == 2 {
			_, err = node.Stop()
		} else {
			err = node.Kill()
		}
		if err == nil {
			_, err = node.Start(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	all.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	for since := time.Now(); ; {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			return "", err
		}
		high, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return "", err
		}
		behind := ""
		high.Each(func(h kadm.ListedOffset) {
			if s, _ := stable.Lookup(h.Topic, h.Partition); s.Offset != h.Offset {
				behind = fmt.Sprintf("the last stable offset of partition %d is %d, the end %d", h.Partition, s.Offset, h.Offset)
			}
		})
		if behind == "" {
			break
		}
		if time.Since(since) > hang {
			return "", errors.New(behind)
		}
	}
	return fmt.Sprintf("%d transactions begun and committed in %.1f s over %d restarts, %d had to begin anew; the slowest took %.1f s; 0 hangs, the last stable offsets are the ends",
		done.Load(), took.Seconds(), restarts, failed.Load(), time.Duration(slowest.Load()).Seconds()), nil
}

func beginAndCommit(ctx context.Context, addr, topic string, which int, count int64, done, failed, slowest *atomic.Int64) error {
	var client *kgo.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for n := 0; done.Load() < count; n++ {
		if client == nil {
			var err error
			client, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(fmt.Sprintf("begin-commit-%d", which)), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.ProducerLinger(0), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
			if err != nil {
				return err
			}
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, hang)
		err := client.BeginTransaction()
		if err == nil {
			err = client.ProduceSync(limited, &kgo.Record{Topic: topic, Partition: int32(n % 4), Value: []byte("v")}).FirstErr()
		}
		if err == nil {
			err = client.EndTransaction(limited, kgo.TryCommit)
		}
		over := limited.Err()
		cancel()
		for took := int64(time.Since(began)); ; {
			before := slowest.Load()
			if took <= before || slowest.CompareAndSwap(before, took) {
				break
			}
		}
		switch {
		case over != nil:
			return fmt.Errorf("producer %d: transaction %d hangs: %w", which, n, errors.Join(err, over))
		case err != nil:
			failed.Add(1)
			client.Close()
			client = nil
		default:
			done.Add(1)
		}
	}
	return nil
}
