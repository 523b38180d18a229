//go:build compat

package compat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/compat/franz"
	"ottla/compat/harness"
)

const (
	committingGroups = 1000
	committers       = 20 // connections
	commitsPerKill   = 20_000
)

// commitLoad commits ever larger offsets for a thousand groups.
type commitLoad struct {
	topic   string
	client  *kgo.Client
	tried   [committingGroups]atomic.Int64 // the largest offset that was sent
	acked   [committingGroups]atomic.Int64 // and that was acknowledged
	commits atomic.Int64
}

func groupName(n int) string { return fmt.Sprintf("committing-%d", n) }

// run commits for the groups of one committer until stop is closed. Each group has one commit under way at a time, so that what
// was acknowledged never exceeds what is committed.
func (l *commitLoad) run(ctx context.Context, which int, stop <-chan struct{}) error {
	for offset := int64(1); ; offset++ {
		for n := which; n < committingGroups; n += committers {
			select {
			case <-stop:
				return nil
			default:
			}
			l.tried[n].Store(offset)
			if l.commit(ctx, groupName(n), offset) {
				l.acked[n].Store(offset)
				l.commits.Add(1)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

func (l *commitLoad) commit(ctx context.Context, group string, offset int64) (acknowledged bool) {
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Offset = offset
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = l.topic, append(topic.Partitions, part)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Topics = group, append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, l.client)
	return err == nil && len(resp.Topics) == 1 && resp.Topics[0].Partitions[0].ErrorCode == 0
}

// commitClient is before requests named topics by their ids.
func commitClient(addr string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(kversion.V4_0_0()), kgo.RetryTimeout(time.Minute), kgo.RetryBackoffFn(func(int) time.Duration {
		return 20 * time.Millisecond
	}))
}

// check fetches what all groups have committed, in one request: nothing acknowledged is lost, nothing was made up. Its client is
// new: one that has gone through the restart gives the check the end of a search for a coordinator that another request had under
// way on the connection that died.
func (l *commitLoad) check(ctx context.Context, addr string) error {
	client, err := commitClient(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrOffsetFetchRequest()
	for n := range committingGroups {
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group, group.Topics = groupName(n), []kmsg.OffsetFetchRequestGroupTopic{{Topic: l.topic, Partitions: []int32{0}}}
		req.Groups = append(req.Groups, group)
	}
	acked := make([]int64, committingGroups)
	for n := range acked {
		acked[n] = l.acked[n].Load()
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if len(resp.Groups) != committingGroups {
		return fmt.Errorf("%d groups were answered", len(resp.Groups))
	}
	byName := map[string]kmsg.OffsetFetchResponseGroup{}
	for _, g := range resp.Groups {
		byName[g.Group] = g
	}
	for n := range acked {
		g := byName[groupName(n)]
		if g.ErrorCode != 0 || len(g.Topics) != 1 {
			return fmt.Errorf("%s: %w", groupName(n), kerr.ErrorForCode(g.ErrorCode))
		}
		if got := g.Topics[0].Partitions[0].Offset; got < acked[n] || got > l.tried[n].Load() {
			return fmt.Errorf("%s: offset %d is committed, %d was acknowledged and %d sent", groupName(n), got, acked[n], l.tried[n].Load())
		}
	}
	return nil
}

// TestCrashGroups restarts the coordinator under a thousand committing groups: four times by kill -9, once by SIGTERM.
func TestCrashGroups(t *testing.T) {
	need(t)
	node := startNode(t, "crash-groups", nil)
	defer explain(t, node)
	ctx := cellContext(t)
	ref := franz.New(node.Addr())
	l := &commitLoad{topic: "committed"}
	if err := ref.CreateTopic(ctx, l.topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.client, err = commitClient(node.Addr()); err != nil {
		t.Fatal(err)
	}
	defer l.client.Close()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for which := range committers {
		all.Go(func() {
			if err := l.run(ctx, which, stop); err != nil {
				t.Errorf("committer %d: %v", which, err)
			}
		})
	}
	for round := range 5 {
		for target := l.commits.Load() + commitsPerKill; l.commits.Load() < target && ctx.Err() == nil; {
			<-time.After(10 * time.Millisecond)
		}
		var down error
		if round == 2 {
			_, down = node.Stop()
		} else {
			down = node.Kill()
		}
		if down != nil {
			t.Fatal(down)
		}
		if _, err := node.Start(ctx); err != nil {
			t.Fatal(err)
		}
		loading := time.Now()
		if err := l.check(ctx, node.Addr()); err != nil {
			t.Fatalf("after restart %d: %v", round+1, err)
		}
		harness.Progress("restart %d: %d commits acknowledged so far, none lost; all groups answered %d ms after the first answer",
			round+1, l.commits.Load(), time.Since(loading).Milliseconds())
	}
	close(stop)
	all.Wait()
	if err := l.check(ctx, node.Addr()); err != nil {
		t.Fatal(err)
	}
	stopCleanly(t, node)
}
