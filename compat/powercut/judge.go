package powercut

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Judge reads everything after a restart, and says what is wrong.
func (s *Story) Judge(ctx context.Context, addr string) error {
	client, err := clientOf(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	return errors.Join(
		s.judgeTopics(ctx, admin), s.judgePlain(ctx, addr, admin),
		s.judgeTransactions(ctx, addr, admin), s.judgeGroups(ctx, client),
	)
}

func (s *Story) judgeTopics(ctx context.Context, admin *kadm.Client) error {
	list, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	for topic, made := range s.topics {
		if list.Has(topic) != made {
			return fmt.Errorf("the topic %s was acknowledged: there %v, and now %v", topic, made, list.Has(topic))
		}
		for _, p := range list[topic].Partitions {
			if p.Err != nil || p.Leader < 0 {
				return fmt.Errorf("%s-%d has leader %d, %w", topic, p.Partition, p.Leader, p.Err)
			}
		}
	}
	return nil
}

// judgePlain: what the last start has shown, then a prefix of what was sent, all of it that was acknowledged if it was
// flushed.
func (s *Story) judgePlain(ctx context.Context, addr string, admin *kadm.Client) error {
	for p := range s.plain {
		w := &s.plain[p]
		got, err := readAll(ctx, addr, admin, plainTopic, int32(p), false)
		if err != nil {
			return err
		}
		want := slices.Concat(w.durable, w.sent)
		least := len(w.durable)
		if s.Flush {
			least += w.acked
		}
		if len(got) < least || len(got) > len(want) {
			return fmt.Errorf("plain-%d has %d records; %d were there before, %d were sent and %d of these acknowledged", p, len(got), len(w.durable), len(w.sent), w.acked)
		}
		for i := range got {
			if got[i] != want[i] {
				return fmt.Errorf("plain-%d holds %.40q at %d, written was %.40q", p, got[i], i, want[i])
			}
		}
		s.Lost += int64(max(0, len(w.durable)+w.acked-len(got)))
		w.durable, w.sent, w.acked = got, nil, 0
	}
	return nil
}

// judgeTransactions: a committed one is there whole if it was flushed, else a prefix of them in each partition; an aborted one
// never is; one whose outcome nobody was told is there whole or not at all.
func (s *Story) judgeTransactions(ctx context.Context, addr string, admin *kadm.Client) error {
	if s.Flush {
		if err := s.settle(ctx, addr, admin); err != nil {
			return err
		}
	}
	visible := map[string]int{} // values that are read, and at which place
	for p := range partitions {
		got, err := readAll(ctx, addr, admin, s.txnTopic, int32(p), true)
		if err != nil {
			return err
		}
		for i, value := range got {
			visible[fmt.Sprintf("%d/%s", p, value)] = i
		}
		if err := s.inOrder(p, got); err != nil {
			return err
		}
	}
	for n, t := range s.txns {
		seen, all := 0, 0
		for p := range partitions {
			for _, value := range t.values[p] {
				all++
				if _, there := visible[fmt.Sprintf("%d/%s", p, value)]; there {
					seen++
				}
			}
		}
		switch {
		case t.outcome == aborted && seen > 0:
			return fmt.Errorf("%s: %d records of transaction %d are read, and it was aborted", s.txnTopic, seen, n)
		case s.Flush && t.outcome == committed && seen < all:
			return fmt.Errorf("%s: %d of %d records of transaction %d are read, and it was committed", s.txnTopic, seen, all, n)
		case s.Flush && t.outcome == unknown && seen != 0 && seen != all:
			return fmt.Errorf("%s: %d of %d records of transaction %d are read", s.txnTopic, seen, all, n)
		}
	}
	return nil
}

// inOrder: what is read of a partition is what was written, in order; of the transactions that were not aborted, none before
// the last that is seen is missing.
func (s *Story) inOrder(p int, got []string) error {
	var want []string
	for _, t := range s.txns {
		if t.outcome != aborted {
			want = append(want, t.values[p]...)
		}
	}
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("%s-%d holds %q, written was %q", s.txnTopic, p, got, want)
	}
	return nil
}

// settle has the transaction that was open when the power went ended, and waits for the markers.
func (s *Story) settle(ctx context.Context, addr string, admin *kadm.Client) error {
	client, err := clientOf(addr, kgo.TransactionalID(s.id))
	if err != nil {
		return err
	}
	defer client.Close()
	if _, _, err := client.ProducerID(ctx); err != nil {
		return fmt.Errorf("the transactional id cannot be taken over: %w", err)
	}
	for ctx.Err() == nil {
		ends, err := admin.ListEndOffsets(ctx, s.txnTopic)
		if err != nil {
			return err
		}
		stable, err := admin.ListCommittedOffsets(ctx, s.txnTopic)
		if err != nil {
			return err
		}
		settled := true
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := stable.Lookup(end.Topic, end.Partition)
			settled = settled && end.Err == nil && at.Err == nil && at.Offset == end.Offset
		})
		if settled {
			return nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("a transaction stays open: %w", ctx.Err())
}

func (s *Story) judgeGroups(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	for g := range s.groups {
		one := kmsg.NewOffsetFetchRequestGroup()
		one.Group = groupName(g)
		req.Groups = append(req.Groups, one) // all topics of the group
	}
	resp, err := req.RequestWith(ctx, client)
	for kerr.IsRetriable(err) && ctx.Err() == nil { // the topic of the offsets may not be there yet
		<-time.After(20 * time.Millisecond)
		resp, err = req.RequestWith(ctx, client)
	}
	if err != nil {
		return err
	}
	for _, one := range resp.Groups {
		g := slices.IndexFunc(req.Groups, func(r kmsg.OffsetFetchRequestGroup) bool { return r.Group == one.Group })
		if g < 0 || one.ErrorCode != 0 {
			return fmt.Errorf("%s answers error %d", one.Group, one.ErrorCode)
		}
		got := int64(-1)
		if len(one.Topics) > 0 {
			got = one.Topics[0].Partitions[0].Offset
		}
		c := &s.groups[g]
		least := c.durable.Load()
		if s.Flush {
			least = max(least, c.acked.Load())
		}
		if least > 0 && got < least || got > c.tried.Load() {
			return fmt.Errorf("%s has committed %d; acknowledged were %d, sent %d, and before the last start it was %d", one.Group, got, c.acked.Load(), c.tried.Load(), c.durable.Load())
		}
		if c.acked.Load() > max(got, 0) {
			s.Lost++
		}
		c.durable.Store(max(got, 0))
		c.acked.Store(max(got, 0))
	}
	return nil
}

// readAll reads a partition from its first offset to its end, or what is decided of it.
func readAll(ctx context.Context, addr string, admin *kadm.Client, topic string, partition int32, decided bool) ([]string, error) {
	list := admin.ListEndOffsets
	opts := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}), kgo.KeepControlRecords(), kgo.FetchMaxWait(100 * time.Millisecond),
	}
	if decided {
		list = admin.ListCommittedOffsets
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	ends, err := list(ctx, topic)
	if err != nil {
		return nil, err
	}
	end, found := ends.Lookup(topic, partition)
	if !found || end.Err != nil {
		return nil, fmt.Errorf("%s-%d has no end: %w", topic, partition, end.Err)
	}
	if end.Offset == 0 {
		return nil, nil
	}
	client, err := clientOf(addr, opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var values []string
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%s-%d of %d records: %w", topic, partition, end.Offset, err)
		}
		last := int64(-1)
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
			last = r.Offset
		})
		if last >= end.Offset-1 {
			return values, nil
		}
	}
}
