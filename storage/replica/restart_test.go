package replica

import (
	"sync"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

// restart brings a new store and manager up on a disk.
func (f *fixture) restart(t *testing.T, disk *vfs.Mem) *fixture {
	next := &fixture{t: t, fs: disk, mem: disk, dirs: f.dirs, options: f.options, now: f.now.Add(time.Minute)}
	next.open(false)
	t.Cleanup(next.close)
	return next
}

// TestHighWatermarkSurvives: a follower that restarts begins at the checkpointed
// high watermark and never below what it had told consumers before.
func TestHighWatermarkSurvives(t *testing.T) {
	f := newFixture(t)
	isr := []protocol.NodeID{1, 2}
	f.lead(orders, among(ordersID, 0, 0, isr, 1, 2))
	f.fill(orders, batch(3, 1), batch(3, 1))
	f.poll(follower(2, at(orders, 3)))
	before := f.fs.(*vfs.Mem).Operations()
	f.manager.Tick(f.now.Add(4 * time.Second))
	if f.mem.Operations() != before {
		t.Error("the checkpoint was written too early")
	}
	f.manager.Tick(f.now.Add(5 * time.Second))
	if f.mem.Operations() == before {
		t.Error("the checkpoint was not written")
	}
	before = f.mem.Operations()
	f.manager.Tick(f.now.Add(20 * time.Second))
	if f.mem.Operations() != before {
		t.Error("an unchanged checkpoint was written again")
	}
	for name, disk := range map[string]*vfs.Mem{"killed": f.mem.Kill(), "power cut": f.mem.Crash()} {
		t.Run(name, func(t *testing.T) {
			g := f.restart(t, disk)
			g.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 1, PartitionEpoch: 1, ISR: isr, Replicas: isr})
			d, err := g.manager.Describe(orders)
			g.must(err)
			if want := min(3, d.LogEndOffset); d.HighWatermark != want {
				t.Errorf("high watermark %d, want %d of a log that ends at %d", d.HighWatermark, want, d.LogEndOffset)
			}
		})
	}
}

// TestRestartAlone: after a kill a lone replica serves all that was
// acknowledged, and duplicates of it are still known.
func TestRestartAlone(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, idempotent(3, 0, 4), idempotent(3, 4, 2))
	g := f.restart(t, f.mem.Kill())
	g.lead(orders, alone(ordersID, 1))
	if got := sizes(t, g.fetch(consumer(at(orders, 0)))); got != "2@0" {
		t.Errorf("got %s", got)
	}
	if got := g.append(request(orders, idempotent(3, 4, 2), AcksAll)); got.Err != nil || got.BaseOffset != 4 {
		t.Errorf("got %+v", got)
	}
	if got := g.append(request(orders, idempotent(3, 6, 1), AcksAll)); got.Err != nil || got.BaseOffset != 6 {
		t.Errorf("got %+v", got)
	}
}

// TestAcknowledgedSurvivesPowerCut: with flush.messages=1 what was acknowledged
// is there after any power cut.
func TestAcknowledgedSurvivesPowerCut(t *testing.T) {
	for seed := range uint64(30) {
		f := newFixture(t, func(f *fixture, _ *Options) {
			f.options.FlushMessages = 1
			f.mem = vfs.NewMem(randomWords(seed))
			f.fs = f.mem
		})
		f.lead(orders, alone(ordersID, 0))
		f.fill(orders, batch(2, 10), batch(3, 10))
		g := f.restart(t, f.mem.Crash())
		g.options.FlushMessages = 1
		g.lead(orders, alone(ordersID, 1))
		if got := sizes(t, g.fetch(consumer(at(orders, 0)))); got != "2@0" {
			t.Errorf("seed %d: got %s", seed, got)
		}
	}
}

// TestCloseWritesHighWatermark: a clean stop leaves the checkpoint.
func TestCloseWritesHighWatermark(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(3, 1))
	f.must(f.manager.Close(f.now))
	f.must(f.store.Close(f.now, true, 1))
	g := f.restart(t, f.mem.Kill())
	if got := g.store.HighWatermark(orders); got != 3 {
		t.Errorf("got %d", got)
	}
	f.manager = nil
}

func TestApply(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 3))
	f.fill(orders, batch(2, 1))
	// An older decision changes nothing.
	f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 2, ISR: []protocol.NodeID{2}, Replicas: []protocol.NodeID{1, 2}})
	f.fill(orders, batch(2, 1))
	if err := f.manager.Apply(f.now, orders, alone(billsID, 4), protocol.DirectoryUnassigned, false); code(err) != protocol.InconsistentTopicID {
		t.Errorf("got %v", err)
	}
	// Deleted and made anew: another log under the same name.
	f.must(f.manager.Remove(f.now, orders, true))
	if got := f.append(request(orders, batch(1, 1), AcksLeader)); code(got.Err) != protocol.UnknownTopicOrPartition {
		t.Errorf("got %+v", got)
	}
	f.lead(orders, alone(billsID, 0))
	if got := f.append(request(orders, batch(1, 1), AcksLeader)); got.Err != nil || got.BaseOffset != 0 {
		t.Errorf("got %+v", got)
	}
	all := f.manager.DescribeAll()
	if len(all) != 1 || all[0].LogEndOffset != 1 || all[0].View.TopicID != billsID || all[0].SizeBytes == 0 {
		t.Errorf("got %+v", all)
	}
}

// TestParallelApply: roles are taken side by side, and deleted again, and none
// after a stop.
func TestParallelApply(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	for worker := range int32(8) {
		wg.Go(func() {
			for i := range int32(10) {
				tp := protocol.TopicPartition{Topic: "orders", Partition: worker*10 + i}
				f.must(f.manager.Apply(f.now, tp, alone(ordersID, 0), protocol.DirectoryUnassigned, true))
				f.fill(tp, batch(1, 1))
				if i%2 == 0 {
					f.must(f.manager.Remove(f.now, tp, true))
				}
			}
		})
	}
	wg.Wait()
	if got := len(f.manager.DescribeAll()); got != 40 {
		t.Errorf("%d partitions", got)
	}
	f.must(f.manager.Close(f.now))
	if err := f.manager.Apply(f.now, bills, alone(billsID, 0), protocol.DirectoryUnassigned, true); err == nil {
		t.Error("a closed manager takes roles")
	}
}

func TestOfflineDirectoryIsNotReplaced(t *testing.T) {
	f := newFixture(t)
	f.dirs = []string{"/data", "/data2"}
	f.must(f.manager.Close(f.now))
	f.must(f.store.Close(f.now, true, 1))
	f.open(true)
	f.lead(orders, alone(ordersID, 0))
	id, _ := f.store.DirectoryOf(orders)
	f.store.FailDirectory(id, vfs.ErrLocked)
	if got := f.append(request(orders, batch(1, 1), AcksLeader)); code(got.Err) != protocol.KafkaStorageError {
		t.Errorf("got %+v", got)
	}
	// A partition that may lie in the failed directory is not created anew
	// elsewhere; one that is new is.
	if err := f.manager.Apply(f.now, bills, alone(billsID, 0), protocol.DirectoryUnassigned, false); code(err) != protocol.KafkaStorageError {
		t.Errorf("got %v", err)
	}
	if got := f.append(request(bills, batch(1, 1), AcksLeader)); code(got.Err) != protocol.KafkaStorageError {
		t.Errorf("got %+v", got)
	}
	f.lead(orders1, alone(ordersID, 0))
	f.fill(orders1, batch(1, 1))
}

func TestSetOptions(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	options := f.options
	options.MaxMessageBytes = 100
	f.manager.SetOptions(f.now, "orders", options)
	if got := f.append(request(orders, batch(1, 200), AcksLeader)); code(got.Err) != protocol.MessageTooLarge {
		t.Errorf("got %+v", got)
	}
	f.fill(bills, batch(1, 200))
}
