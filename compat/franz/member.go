package franz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// lines are the connections of one client, which can be cut all at once.
type lines struct {
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

var errCut = errors.New("this client is dead")

func (l *lines) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errCut
	}
	if err == nil {
		l.open = append(l.open, conn)
	}
	return conn, err
}

func (l *lines) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, conn := range l.open {
		_ = conn.Close()
	}
}

// ReadInGroup reads as a member of a group and commits what it has read before it lets the group rebalance.
func (c *Client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	connections := &lines{}
	session := time.Duration(o.SessionMs) * time.Millisecond
	client, err := c.connect(
		kgo.Dialer(connections.dial), kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(session/10),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	)
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
		connections.kill()
		go client.CloseAllowingRebalance() // tries to leave, and cannot
		return records, nil
	}
	client.CloseAllowingRebalance()
	return records, err
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
		for _, r := range read {
			records = append(records, fromKgo(r))
		}
		if len(read) > 0 {
			// One that fails is made good by the next, or the partitions are another's by then.
			_ = client.CommitRecords(ctx, read...)
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
