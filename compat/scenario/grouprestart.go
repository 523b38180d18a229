package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ottla/compat/suite"
)

// groupRecords is how many records each member must have read before the restart.
const groupRecords = 300

// groupFlow is a member that reads along while the node restarts.
type groupFlow struct {
	*Member
	on     Restarting
	client suite.Client
	topic  string
	latest int64 // the latest offset that was seen committed
	moved  error // it was seen to move back

	stopProducer chan struct{}
	produced     chan error
}

func (f *groupFlow) name() string { return f.client.Name() }
func (f *groupFlow) told() string { return f.Member.told(f.on.Ref) }

// groups has a member of each client read and commit while the reference produces, and restarts the node in the middle.
func (r Restart) groups(on Restarting) {
	var flows []*groupFlow
	for _, c := range on.Clients {
		if Partakes(c.Name(), r.Name) {
			flows = append(flows, startGroupFlow(on, r.Name, c))
		}
	}
	all := newCourse(on, flows)
	all.each("before the restart", func(ctx context.Context, f *groupFlow) error { return f.reach(ctx, groupRecords, groupRecords) })
	down := watchUntilDown(on, flows)
	var before map[string]int64
	r.restart(on, func() { before = down() })
	all.each("after the restart", func(ctx context.Context, f *groupFlow) error {
		return f.reach(ctx, int(f.read.Load())+groupRecords, f.latest+groupRecords)
	})
	all.each("at the end", func(ctx context.Context, f *groupFlow) error { return f.finish(ctx, before[f.topic]) })
	all.results(r.Name, func(f *groupFlow) string {
		return fmt.Sprintf("%d records read, offset %d was committed when the node went down", f.read.Load(), before[f.topic])
	})
}

// startGroupFlow starts a member of a client, and a producer of the reference.
func startGroupFlow(on Restarting, row string, c suite.Client) *groupFlow {
	f := &groupFlow{on: on, client: c, topic: row + "-" + c.Name(), stopProducer: make(chan struct{}), produced: make(chan error, 1)}
	if err := createAndWait(on.Ctx, on.Ref, f.topic, 1, nil); err != nil {
		on.Fatal(err)
	}
	f.Member = startMember(on.Ctx, c.(suite.GroupMember), suite.MemberOptions{Group: f.topic, Topic: f.topic})
	go func() {
		_, err := on.Ref.Stream(on.Ctx, suite.StreamOptions{
			ProduceOptions: suite.ProduceOptions{Topic: f.topic, Acks: "all", Idempotent: true, LingerMs: 5}, Window: 5,
		}, f.stopProducer)
		f.produced <- err
	}()
	return f
}

// drop ends the member and the producer of a flow that has failed.
func (f *groupFlow) drop() {
	f.cancel()
	select {
	case <-f.stopProducer:
	default:
		close(f.stopProducer)
	}
}

// reach waits until a member has read so many records and committed so far, and watches.
func (f *groupFlow) reach(ctx context.Context, read int, committed int64) error {
	err := waitFor(ctx, func() (bool, error) {
		_ = f.watch(ctx) // what it finds it keeps; the node may be slow to come up
		return int(f.read.Load()) >= read && f.latest >= committed, errors.Join(f.moved, f.Alive())
	})
	if err != nil {
		return fmt.Errorf("%d of %d records read, %d of %d committed: %w", f.read.Load(), read, f.latest, committed, err)
	}
	return nil
}

// watch looks at what is committed: it must never move back. A question that is not answered is asked anew.
func (f *groupFlow) watch(ctx context.Context) error {
	ask, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	committed, err := f.on.Ref.Committed(ask, f.topic, f.topic)
	if err != nil || f.moved != nil {
		return errors.Join(err, f.moved)
	}
	at, known := committed[0]
	if !known && f.latest > 0 || known && at < f.latest {
		f.moved = fmt.Errorf("what was committed moved back: offset %d, and then %d (%v)", f.latest, at, known)
	}
	f.latest = max(f.latest, at)
	return f.moved
}

// watchUntilDown looks at what is committed until the node is gone, and then tells the last that was seen by topic.
func watchUntilDown(on Restarting, flows []*groupFlow) func() map[string]int64 {
	watching, cancel := context.WithCancel(on.Ctx)
	var all sync.WaitGroup
	for _, f := range flows {
		all.Go(func() {
			for watching.Err() == nil {
				ask, done := context.WithTimeout(watching, time.Second)
				_ = f.watch(ask) // fails when the node is gone; what else it finds it keeps
				done()
			}
		})
	}
	return func() map[string]int64 {
		cancel()
		all.Wait()
		last := map[string]int64{}
		for _, f := range flows {
			last[f.topic] = f.latest
		}
		return last
	}
}

// finish ends the producer, waits until the member has committed the end of the log, stops it and judges it.
func (f *groupFlow) finish(ctx context.Context, before int64) error {
	close(f.stopProducer)
	if err := within(ctx, "the producer", f.produced); err != nil {
		return err
	}
	end, _, err := f.on.Ref.ListOffset(ctx, f.topic, 0, suite.Latest)
	if err != nil {
		return err
	}
	if err := f.reach(ctx, 0, end); err != nil {
		return err
	}
	close(f.stop)
	if err := within(ctx, "the member", f.done); err != nil {
		return err
	}
	return f.judge(f.all, before, end)
}
