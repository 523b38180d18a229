package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
)

func TestErrorsOverALife(t *testing.T) {
	r := newRig(t)
	r.ask(3, get{"a"}).fails(protocol.NotCoordinator)
	r.lead(3, 5)
	r.ask(3, get{"a"}).fails(protocol.CoordinatorLoadInProgress)
	if loading, _, _ := r.shards.Counts(); loading != 1 {
		t.Errorf("%d shards are loading", loading)
	}
	r.settle()
	r.ask(3, get{"a"}).is("")
	r.ask(3, put{"a", "1"}).is(protocol.Offset(0))
	r.ask(3, get{"a"}).is("1")
	r.ask(3, refuse{}).fails(protocol.InvalidRequest)
	if got := r.shards.Partitions(); !slices.Equal(got, []int32{3}) {
		t.Errorf("coordinates %v", got)
	}
	parked := r.ask(3, wait{"a"})
	r.shards.Unload(r.now, 3, 4) // older: nothing
	parked.wait(t)
	r.shards.Unload(r.now, 3, 6)
	parked.fails(protocol.NotCoordinator)
	r.ask(3, get{"a"}).fails(protocol.NotCoordinator)
	r.shards.Load(r.now, 3, 5) // older: nothing
	r.settle()
	r.ask(3, get{"a"}).fails(protocol.NotCoordinator)
	if got := r.shards.Partitions(); len(got) != 0 {
		t.Errorf("coordinates %v", got)
	}
}

func TestLoadAgain(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.ask(0, put{"a", "1"}).is(protocol.Offset(0))
	r.shards.Load(r.now, 0, 1) // known
	parked := r.ask(0, wait{"a"})
	parked.wait(t)
	r.leadActive(0, 2)
	parked.fails(protocol.NotCoordinator)
	r.ask(0, get{"a"}).is("1")
	if toy := r.toy(0); toy.epoch != 2 || toy.activations != 2 {
		t.Errorf("active in epoch %d after %d activations", toy.epoch, toy.activations)
	}
	r.ask(0, put{"a", "2"}).is(protocol.Offset(1))
	if live, replayed := r.toy(0).dump(), r.replayed(0, 2); live != replayed {
		t.Errorf("live:\n%sreplayed:\n%s", live, replayed)
	}
}

func TestPartitionGone(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 9)
	parked := r.ask(0, wait{"a"})
	r.must(r.replicas.Remove(r.now, tpOf(0), true))
	r.shards.Unload(r.now, 0, protocol.NoLeaderEpoch)
	parked.fails(protocol.NotCoordinator)
	r.settle()
	r.leadActive(0, 0) // the topic was made anew
	r.ask(0, put{"a", "1"}).is(protocol.Offset(0))
}

func TestParked(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	a, b, other := r.ask(0, wait{"k"}), r.ask(0, wait{"k"}), r.ask(0, wait{"other"})
	r.ask(0, put{"k", "v"}).is(protocol.Offset(0))
	a.is("v")
	b.is("v")
	other.wait(t)
	r.ask(0, alarm{time.Second}).is("set")
	r.advance(999 * time.Millisecond)
	other.wait(t)
	r.advance(time.Millisecond)
	other.is("alarm")
	if len(r.effects) != 2 {
		t.Errorf("effects: %v", r.effects)
	}
}

func TestClose(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.lead(1, 1)
	parked := r.ask(0, wait{"k"})
	r.shards.Close(r.now)
	parked.fails(protocol.NotCoordinator)
	r.ask(0, get{"k"}).fails(protocol.NotCoordinator)
	r.shards.Load(r.now, 0, 2)
	r.shards.Load(r.now, 7, 2)
	r.settle()
	r.ask(0, get{"k"}).fails(protocol.NotCoordinator)
	r.ask(7, get{"k"}).fails(protocol.NotCoordinator)
	r.shards.Close(r.now)
}

func TestBroadcast(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.lead(1, 1) // still loading
	r.shards.Broadcast(r.now, put{"event", "1"})
	if got := r.toy(0).entries["event"].value; got != "1" {
		t.Errorf("the active shard has %q", got)
	}
	r.shards.Broadcast(r.now, refuse{})
	r.settle()
	if got := r.toy(1).entries["event"].value; got != "1" {
		t.Errorf("the shard that was loading has %q", got)
	}
	if r.logEnd(0) != 1 || r.logEnd(1) != 1 {
		t.Errorf("the logs end at %d and %d", r.logEnd(0), r.logEnd(1))
	}
	// An event whose records were refused is decided again.
	r.disk.SetCapacity(1)
	r.shards.Broadcast(r.now, add{"again"})
	r.disk.SetCapacity(0)
	r.advance(time.Second)
	r.advance(time.Minute)
	for p := range int32(2) {
		if got := r.toy(p).entries["again"].value; got != "1" {
			t.Errorf("partition %d has %q", p, got)
		}
	}
}

// TestLoadInTurns: a large partition is loaded in steps, and small ones do not
// wait for it.
func TestLoadInTurns(t *testing.T) {
	r := newRig(t, func(o *Options) { o.LoadBytes = 10_000 })
	r.leadActive(0, 1)
	for i := range 50 {
		r.ask(0, one{1, 9_000}).is(protocol.Offset(i))
	}
	r.leadActive(1, 1)
	r.ask(1, put{"a", "1"}).is(protocol.Offset(0))
	r.lead(0, 2)
	r.lead(1, 2)
	ticks, small := 0, 0
	for ; ; ticks++ {
		_, active, _ := r.shards.Counts()
		if active == 1 && small == 0 {
			small = ticks
			r.ask(1, get{"a"}).is("1")
			r.ask(0, get{"a"}).fails(protocol.CoordinatorLoadInProgress)
		}
		if active == 2 {
			break
		}
		if due := r.shards.NextDeadline(); due.IsZero() || due.After(r.now) {
			t.Fatalf("after %d ticks nothing is due", ticks)
		}
		r.shards.Tick(r.now)
	}
	if small > 6 || ticks < 50 {
		t.Errorf("the small partition took %d steps, the large one %d", small, ticks)
	}
}

// TestLoadByWorkers: with Workers nothing but the activation is left to Tick.
func TestLoadByWorkers(t *testing.T) {
	var r *rig
	r = newRig(t, func(o *Options) {
		o.LoadBytes, o.Loaders = 10_000, 2
		o.Workers = func(task func()) { r.tasks = append(r.tasks, task) }
	})
	run := func() {
		for len(r.tasks) > 0 {
			task := r.tasks[0]
			r.tasks = r.tasks[1:]
			task()
		}
	}
	for p := range int32(5) {
		r.lead(p, 1)
	}
	if len(r.tasks) != 2 {
		t.Errorf("%d workers", len(r.tasks))
	}
	run()
	if wakes := r.wakes; wakes == 0 {
		t.Error("nobody was woken")
	}
	r.settle()
	for p := range int32(5) {
		r.ask(p, one{30, 1000}).is(protocol.Offset(0))
		r.lead(p, 2)
	}
	run()
	r.settle()
	for p := range int32(5) {
		r.ask(p, put{"a", "1"}).is(protocol.Offset(30))
	}
}

// TestActivationTime: a load that took long does not make the machine believe
// that it is still the time when it began.
func TestActivationTime(t *testing.T) {
	r := newRig(t)
	r.greets = true
	r.lead(0, 1)
	r.now = r.now.Add(time.Hour)
	r.settle()
	if got, want := r.toy(0).entries["greeting"].timestampMs, r.now.UnixMilli(); got != want {
		t.Errorf("activated at %d, want %d", got, want)
	}
	r.ask(0, put{"a", "1"}).is(protocol.Offset(1))
}

func TestQueueIsBounded(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxQueued = 10 })
	r.leadActive(0, 1)
	var asked []*outcome
	r.shards.SetMaxBatchBytes(200)
	r.replicas.Exclusive(tpOf(0), func() {
		for i := range 20 {
			asked = append(asked, r.ask(0, put{fmt.Sprint(i), "0123456789012345678901234567890123456789"}))
		}
		for _, o := range asked[14:] {
			o.fails(protocol.CoordinatorNotAvailable)
		}
		asked[0].wait(t)
		// What waits to be decided waits no longer than a reply may.
		r.now = r.now.Add(5 * time.Second)
		r.shards.Tick(r.now)
	})
	answered := 0
	for _, o := range asked {
		if !o.isDone() {
			t.Fatalf("%v was never answered", o.what)
		}
		if o.err == nil {
			answered++
		}
	}
	if int(r.logEnd(0)) < answered || answered != 0 {
		t.Errorf("%d were answered well though their time was over; the log has %d", answered, r.logEnd(0))
	}
	r.ask(0, put{"a", "1"}).is(r.logEnd(0) - 1)
}
