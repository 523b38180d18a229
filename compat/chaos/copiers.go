package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
	"ottla/compat/history"
	"ottla/compat/suite"
)

// Copier is a copy loop of another client, in a group of its own, with an output of its own. What it saw is not known, but its
// output must be the beginning of the input, partition by partition.
type Copier struct {
	Name string
	suite.Copier
	// Renew kills the client's process, and gives the client in another one.
	Renew func() (suite.Copier, error)
}

func (c Copier) topic() string { return "chaos-copied-" + c.Name }

// copierLimit is how long a copier may take to end once it is told to.
const copierLimit = 90 * time.Second

// copyBy lets it copy. A loop that gives up is started again, with the same transactional id.
func (r *run) copyBy(ctx context.Context, c Copier) {
	copying, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	r.workers.Go(func() {
		select {
		case <-r.stopping:
		case <-ended:
			return
		}
		select {
		case <-time.After(copierLimit):
			cancel()
		case <-ended:
		}
	})
	for !r.stopped() && ctx.Err() == nil {
		_, err := c.CopyInTransactions(copying, c.options(), r.stopping)
		switch {
		case copying.Err() != nil && ctx.Err() == nil:
			r.renew(ctx, c)
		case err != nil:
			r.wait(200 * time.Millisecond)
		}
	}
}

func (c Copier) options() suite.CopyOptions {
	return suite.CopyOptions{
		Group: c.topic(), From: topics[input].name, To: c.topic(), TransactionalID: c.topic(),
		SessionMs: 8000, TimeoutMs: int(transactionTimeout / time.Millisecond), AbortEvery: 8,
	}
}

// renew replaces a client that does not end. librdkafka waits for ever in sending offsets to a transaction, whatever limit it was given,
// once the coordinator of the group was missing in the metadata for a moment (its issues 5511 and 5456; seen in 2.16.0). It is killed, and
// another one takes its group and its transactional id. That one must work: copy something, or find nothing to copy, and end.
func (r *run) renew(ctx context.Context, c Copier) {
	r.mu.Lock()
	r.hung = append(r.hung, c.Name)
	r.mu.Unlock()
	harness.Progress("%s has not ended its copy loop %s after it was told to, and is killed", c.Name, copierLimit)
	other, err := c.Renew()
	if err != nil {
		r.odd("another process of %s: %v", c.Name, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, copierLimit)
	defer cancel()
	enough := make(chan struct{})
	late := time.AfterFunc(copierLimit/3, sync.OnceFunc(func() { close(enough) }))
	defer late.Stop()
	o := c.options()
	o.OnCopied = func(int) { late.Reset(0) }
	if _, err := other.CopyInTransactions(ctx, o, enough); err != nil {
		r.odd("%s does not copy in another process either: %v", c.Name, err)
	}
}

// judgeCopiers reads what they have written, and compares it with the input as it was read at the end. None may have copied nothing
// where the reference has copied so many.
func (r *run) judgeCopiers(ctx context.Context, client *kgo.Client, reference int) (copied map[string]int, wrong []string, err error) {
	copied = map[string]int{}
	for _, c := range r.o.Copiers {
		if err := r.settled(ctx, client, c.topic()); err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, c.topic())
		if err != nil {
			return nil, nil, fmt.Errorf("the output of %s: %w", c.Name, err)
		}
		for n := range topics[input].partitions {
			end, _ := ends.Lookup(c.topic(), n)
			var got []int64
			err := r.follow(ctx, c.topic(), n, end.Offset, func(record *kgo.Record) { got = append(got, valueOf(record)) })
			if err != nil {
				return nil, nil, err
			}
			copied[c.Name] += len(got)
			if want := r.final(partitionOf(topics[input].name, n)); len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				wrong = append(wrong, fmt.Sprintf("the output of %s in partition %d is not the beginning of the input: %s", c.Name, n, firstDifference(got, want)))
			}
		}
		if copied[c.Name] == 0 && reference > 0 {
			wrong = append(wrong, fmt.Sprintf("%s has copied nothing", c.Name))
		}
	}
	return copied, wrong, nil
}

// firstDifference tells where a copy is not its original.
func firstDifference(got, want []int64) string {
	for i, value := range got {
		if i == len(want) {
			return fmt.Sprintf("%d records, of %d", len(got), len(want))
		}
		if value != want[i] {
			return fmt.Sprintf("record %d is %d, want %d; before it are %v", i, value, want[i], got[max(0, i-5):i])
		}
	}
	return "no difference"
}

// final is what a partition was read to hold at the end.
func (r *run) final(partition int32) (values []int64) {
	for i := range r.ops {
		if op := &r.ops[i]; op.Kind == history.Final && op.Mark.Partition == partition {
			for _, read := range op.Reads {
				values = append(values, read.Value)
			}
		}
	}
	return values
}

// settled waits until nothing is undecided in a topic.
func (r *run) settled(ctx context.Context, client *kgo.Client, topic string) error {
	admin := kadm.NewClient(client)
	for began := time.Now(); ; {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		open := 0
		ends.Each(func(end kadm.ListedOffset) {
			if s, _ := stable.Lookup(topic, end.Partition); s.Offset < end.Offset {
				open++
			}
		})
		if open == 0 {
			return nil
		}
		if time.Since(began) > settleLimit {
			return fmt.Errorf("%s after the last fault %d partitions of %s hold something undecided", settleLimit, open, topic)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
