package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// groupRecords is how many records each member must have read before the restart.
const groupRecords = 300

// groups has a member of each client read and commit while the reference produces, and restarts the node in the middle.
func (r Restart) groups(on Restarting) {
	var flows []*groupFlow
	var names []string
	stop := make(chan struct{})
	var producers sync.WaitGroup
	for _, c := range on.Clients {
		if !Partakes(c.Name(), r.Name) {
			continue
		}
		f := &groupFlow{topic: r.Name + "-" + c.Name()}
		if err := createAndWait(on.Ctx, on.Ref, f.topic, 1, nil); err != nil {
			on.Fatal(err)
		}
		f.member = startMember(on.Ctx, c.(suite.GroupMember), suite.MemberOptions{Group: f.topic, Topic: f.topic})
		flows, names = append(flows, f), append(names, c.Name())
		producers.Go(func() {
			_, err := on.Ref.Stream(on.Ctx, suite.StreamOptions{
				ProduceOptions: suite.ProduceOptions{Topic: f.topic, Acks: "all", Idempotent: true, LingerMs: 5}, Window: 5,
			}, stop)
			if err != nil {
				on.Errorf("produce to %s: %v", f.topic, err)
			}
		})
	}
	failed := make([]error, len(flows))
	each := func(what string, step func(*groupFlow) error) {
		var all sync.WaitGroup
		for i, f := range flows {
			all.Go(func() {
				if failed[i] == nil {
					if err := step(f); err != nil {
						failed[i] = fmt.Errorf("%s: %w", what, err)
					}
				}
			})
		}
		all.Wait()
	}
	each("before the restart", func(f *groupFlow) error { return f.reach(on, groupRecords, groupRecords) })
	down := r.watchUntilDown(on, flows)
	if err := r.end(on.Node); err != nil {
		on.Fatal(err)
	}
	before := down()
	if _, err := on.Node.Start(on.Ctx); err != nil {
		on.Fatal(err)
	}
	each("after the restart", func(f *groupFlow) error { return f.reach(on, int(f.read.Load())+groupRecords, f.last+groupRecords) })
	close(stop)
	producers.Wait()
	each("at the end", func(f *groupFlow) error { return f.finish(on, before[f.topic]) })
	for i, f := range flows {
		if failed[i] != nil {
			on.Errorf("%s with %s: %v", r.Name, names[i], failed[i])
		}
		on.Result(names[i], failed[i] != nil)
		harness.Progress("%s with %s: %d records read, offset %d was committed when the node went down; error: %v",
			r.Name, names[i], f.read.Load(), before[f.topic], failed[i])
	}
}

// reach waits until a member has read so many records and committed so far, and watches.
func (f *groupFlow) reach(on Restarting, read int, committed int64) error {
	err := waitFor(on.Ctx, func() (bool, error) {
		_ = f.watch(on.Ctx, on.Ref) // what it finds it keeps; the node may be slow to come up
		return int(f.read.Load()) >= read && f.last >= committed, errors.Join(f.moved, f.alive())
	})
	if err != nil {
		return fmt.Errorf("%d of %d records read, %d of %d committed: %w", f.read.Load(), read, f.last, committed, err)
	}
	return nil
}

// watchUntilDown looks at what is committed until the node is gone, and then tells the last that was seen by topic.
func (r Restart) watchUntilDown(on Restarting, flows []*groupFlow) func() map[string]int64 {
	watching, cancel := context.WithCancel(on.Ctx)
	var all sync.WaitGroup
	for _, f := range flows {
		all.Go(func() {
			for watching.Err() == nil {
				ask, done := context.WithTimeout(watching, time.Second)
				_ = f.watch(ask, on.Ref) // fails when the node is gone; what else it finds it keeps
				done()
			}
		})
	}
	return func() map[string]int64 {
		cancel()
		all.Wait()
		last := map[string]int64{}
		for _, f := range flows {
			last[f.topic] = f.last
		}
		return last
	}
}

// finish waits until the member has committed the end of the log, stops it and judges it.
func (f *groupFlow) finish(on Restarting, before int64) error {
	end, _, err := on.Ref.ListOffset(on.Ctx, f.topic, 0, suite.Latest)
	if err != nil {
		return err
	}
	if err := f.reach(on, 0, end); err != nil {
		return err
	}
	records, err := f.end()
	if err != nil {
		return fmt.Errorf("the member: %w", err)
	}
	return f.judge(records, before, end)
}
