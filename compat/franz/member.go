package franz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// ReadInGroup reads as a member of a group and commits what it has read before it lets the group rebalance.
func (c *Client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	connections := &suite.Lines{}
	session := time.Duration(o.SessionMs) * time.Millisecond
	opts := []kgo.Opt{
		kgo.Dialer(connections.DialContext), kgo.ConsumerGroup(o.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(session / 10),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	opts = append(opts, subscription(o)...)
	if o.Seek != "" {
		opts = append(opts, kgo.AdjustFetchOffsetsFn(seekOnce(o)))
	}
	client, err := c.connect(opts...)
	if err != nil {
		return nil, err
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
	records, err := readInGroup(ctx, polling, client, o)
	if o.Die && err == nil {
		connections.Kill()
		go client.CloseAllowingRebalance() // tries to leave, and cannot
		return records, nil
	}
	client.CloseAllowingRebalance()
	return records, err
}

// subscription is what the member subscribes to, and by which protocol.
func subscription(o suite.MemberOptions) []kgo.Opt {
	var opts []kgo.Opt
	if o.Protocol == "consumer" {
		// The library asks for the assignor of this name, and for uniform instead of sticky.
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
		if o.Assignor == "range" {
			opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
		}
	}
	if o.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(o.InstanceID))
	}
	if o.Pattern != "" {
		return append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(o.Pattern), kgo.MetadataMinAge(250*time.Millisecond), kgo.MetadataMaxAge(time.Second))
	}
	return append(opts, kgo.ConsumeTopics(o.Topic))
}

// seekOnce moves each partition to where the options say, the first time that the member is given it.
func seekOnce(o suite.MemberOptions) func(context.Context, map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	to := kgo.NewOffset().AtStart()
	switch o.Seek {
	case suite.SeekOffset:
		to = kgo.NewOffset().At(o.SeekAt)
	case suite.SeekTime:
		to = kgo.NewOffset().AfterMilli(o.SeekAt)
	}
	given := map[int32]bool{}
	return func(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
		for partition := range offsets[o.Topic] {
			if !given[partition] {
				offsets[o.Topic][partition], given[partition] = to, true
			}
		}
		return offsets, nil
	}
}

func readInGroup(ctx, polling context.Context, client *kgo.Client, o suite.MemberOptions) ([]suite.Record, error) {
	var records []suite.Record
	for o.Count == 0 || len(records) < o.Count {
		most := 0
		if o.Count > 0 {
			most = o.Count - len(records)
		}
		fetches := client.PollRecords(polling, most)
		if ctx.Err() != nil {
			return records, fmt.Errorf("after %d records: %w", len(records), ctx.Err())
		}
		read := fetches.Records()
		before := len(records)
		for _, r := range read {
			records = append(records, fromKgo(r))
		}
		if len(read) > 0 {
			if positions := toCommit(o, records, before); len(positions) > 0 {
				// One that fails is made good by the next, or the partitions are another's by then.
				client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{o.Topic: positions}, nil)
			}
			if o.OnRecord != nil {
				o.OnRecord(len(records))
			}
		}
		client.AllowRebalance()
		if polling.Err() != nil {
			return records, nil
		}
		for _, failed := range fetches.Errors() {
			var session *kgo.ErrGroupSession // the client joins again
			if !errors.As(failed.Err, &session) && !errors.Is(failed.Err, context.Canceled) && suite.ErrorName(failed.Err) != "" {
				return records, fmt.Errorf("fetch %s-%d: %w", failed.Topic, failed.Partition, failed.Err)
			}
		}
	}
	return records, nil
}

// toCommit are the positions that a member commits after a poll, before which it had read so many records.
func toCommit(o suite.MemberOptions, records []suite.Record, before int) map[int32]kgo.EpochOffset {
	from, to := before, len(records)
	if o.Commit != 0 { // once, when so many were read
		from, to = 0, o.Commit
		if to < 0 || before >= to || len(records) < to {
			return nil
		}
	}
	positions := map[int32]kgo.EpochOffset{}
	for _, r := range records[from:to] {
		positions[r.Partition] = kgo.EpochOffset{Epoch: -1, Offset: r.Offset + 1}
	}
	return positions
}

// Committed tells what a group has committed for a topic, by partition.
func (c *Client) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	committed := map[int32]int64{}
	err := c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		offsets, err := a.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			if o.Topic == topic {
				committed[o.Partition] = o.At
			}
		})
		return offsets.Error()
	})
	return committed, err
}

// Commit sets what a group without members has committed.
func (c *Client) Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	return c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		var to kadm.Offsets
		for partition, offset := range offsets {
			to.AddOffset(topic, partition, offset, -1)
		}
		return a.CommitAllOffsets(ctx, group, to)
	})
}

// Assignment tells the state of a group and the partitions of a topic that each member has.
func (c *Client) Assignment(ctx context.Context, group, topic string) (state string, members map[string][]int32, err error) {
	members = map[string][]int32{}
	err = c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		described, err := a.DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		g := described[group]
		state = g.State
		for _, m := range g.Members {
			members[m.MemberID] = nil
			if assigned, ok := m.Assigned.AsConsumer(); ok {
				for _, t := range assigned.Topics {
					if t.Topic == topic {
						members[m.MemberID] = t.Partitions
					}
				}
			}
		}
		return g.Err
	})
	return state, members, err
}
