package shard

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
)

// batches reads the log of a partition as it is.
func (r *rig) batches(p int32) (all []record.Batch) {
	r.t.Helper()
	for from := protocol.Offset(0); from < r.logEnd(p); {
		r.replicas.Fetch(r.now, replica.FetchRequest{
			Partitions: []replica.FetchPartition{{
				Partition: tpOf(p), Offset: from, MaxBytes: 64 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, FollowerLogStart: -1,
			}},
			Replica: replica.Debugging, ReplicaEpoch: -1, MaxBytes: 64 << 20, Version: 17,
		}, func(results []replica.FetchResult) {
			r.must(results[0].Err)
			content, err := results[0].Records.ReadAll()
			r.must(err)
			results[0].Records.Release()
			for len(content) > 0 {
				var b record.Batch
				b, content, err = record.Next(content)
				r.must(err)
				all = append(all, b)
				from = b.NextOffset()
			}
		})
	}
	return all
}

func recordsOf(b record.Batch, pool *compress.Pool) iter.Seq2[record.Record, error] {
	return record.Records(b, pool, maxDecompressed)
}

// counts tells how many records each batch has.
func counts(batches []record.Batch) string {
	var text []string
	for _, b := range batches {
		text = append(text, fmt.Sprint(b.Count()))
	}
	return strings.Join(text, " ")
}

// TestGroupCommit: what comes while a batch is on its way shares the next one,
// and everything is answered in order with the offsets that were promised.
func TestGroupCommit(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	var asked []*outcome
	var read *outcome
	r.replicas.Exclusive(tpOf(0), func() { // somebody else is at the log
		for i := range 100 {
			r.now = r.now.Add(time.Millisecond)
			asked = append(asked, r.ask(0, put{fmt.Sprint(i % 10), fmt.Sprint(i)}))
		}
		read = r.ask(0, get{"9"})
		asked[0].wait(t)
		read.wait(t)
	})
	for i, o := range asked {
		o.is(protocol.Offset(i))
	}
	read.is("99")
	if got := counts(r.batches(0)); got != "1 99" {
		t.Errorf("batches of %s records", got)
	}
	if live, replayed := r.toy(0).dump(), r.replayed(0, 1); live != replayed {
		t.Errorf("live:\n%sreplayed:\n%s", live, replayed)
	}
}

// TestHighWatermark: replies wait for the replicas, appends do not wait for each
// other, and a read waits for what it has seen and no longer.
func TestHighWatermark(t *testing.T) {
	r := newRig(t)
	r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 1)
	r.settle()
	early := r.ask(0, get{"a"})
	early.is("")
	var asked []*outcome
	for i := range 5 {
		asked = append(asked, r.ask(0, put{"a", fmt.Sprint(i)}), r.ask(0, get{"a"}))
	}
	if r.logEnd(0) != 5 {
		t.Fatalf("the log ends at %d: appends waited for each other", r.logEnd(0))
	}
	parked := r.ask(0, wait{"a"})
	rings := r.ask(0, alarm{time.Hour})
	answer := r.ask(0, put{"a", "5"})
	for _, o := range append(asked, parked, rings, answer) {
		o.wait(t)
	}
	r.follow(0, 2, 1, 3)
	for i, o := range asked {
		if o.isDone() != (i < 6) {
			t.Errorf("with three committed, answer %d is there: %v", i, o.isDone())
		}
	}
	asked[4].is(protocol.Offset(2))
	asked[5].is("2")
	if len(r.effects) != 0 {
		t.Errorf("effects before they are committed: %v", r.effects)
	}
	r.follow(0, 2, 1, 6)
	asked[9].is("4")
	rings.is("set")
	parked.is("5")
	answer.is(protocol.Offset(5))
	if toy := r.toy(0); toy.committed != 6 || len(r.effects) != 1 || toy.activations != 1 {
		t.Errorf("committed %d, %d effects, %d activations", toy.committed, len(r.effects), toy.activations)
	}
}

// TestRepliesThatWaitTooLong get COORDINATOR_NOT_AVAILABLE; the records stay, and
// the machine goes on.
func TestRepliesThatWaitTooLong(t *testing.T) {
	r := newRig(t)
	r.logs.MinInSyncReplicas = 2
	r.role(0, 1, 1, 1, []protocol.NodeID{1}, 1, 2) // too few
	r.shards.Load(r.now, 0, 1)
	r.settle()
	r.ask(0, get{"a"}).is("")
	parked := r.ask(0, wait{"a"})
	first := r.ask(0, put{"a", "1"})
	r.advance(2 * time.Second)
	read := r.ask(0, get{"a"})
	r.advance(3*time.Second - 1)
	first.wait(t)
	r.advance(1)
	first.fails(protocol.CoordinatorNotAvailable)
	parked.fails(protocol.CoordinatorNotAvailable)
	read.wait(t)
	r.advance(2 * time.Second)
	read.fails(protocol.CoordinatorNotAvailable)
	r.advance(time.Minute)
	last := r.ask(0, get{"a"})
	r.role(0, 1, 1, 2, []protocol.NodeID{1, 2}, 1, 2)
	r.follow(0, 2, 1, 1)
	r.settle()
	last.is("1")
	second := r.ask(0, put{"a", "2"})
	r.follow(0, 2, 1, 2)
	second.is(protocol.Offset(1))
	if toy := r.toy(0); toy.activations != 1 || toy.committed != 2 {
		t.Errorf("%d activations, committed %d", toy.activations, toy.committed)
	}
	r.role(0, 1, 1, 3, []protocol.NodeID{1}, 1, 2) // and again
	third := r.ask(0, put{"a", "3"})
	r.advance(5 * time.Second)
	third.fails(protocol.CoordinatorNotAvailable)
}

// TestUnloadWhilePending: the end of the watch for the high watermark wakes
// nothing up.
func TestUnloadWhilePending(t *testing.T) {
	r := newRig(t)
	r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 1)
	r.settle()
	pending := r.ask(0, put{"a", "1"})
	r.shards.Unload(r.now, 0, 2)
	pending.fails(protocol.NotCoordinator)
	r.settle()
	r.ask(0, get{"a"}).fails(protocol.NotCoordinator)
	if loading, active, failed := r.shards.Counts(); loading+active+failed != 0 {
		t.Errorf("%d loading, %d active, %d failed", loading, active, failed)
	}
}

// TestLoadWaitsForBatch: a load reads the log only when the last batch of the
// life before is in it, or was refused.
func TestLoadWaitsForBatch(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.shards.SetMaxBatchBytes(5000)
	var first, large *outcome
	r.replicas.Exclusive(tpOf(0), func() {
		first = r.ask(0, put{"a", "1"})
		large = r.ask(0, one{10, 1000})
		first.fails(protocol.CoordinatorNotAvailable)
		large.fails(protocol.UnknownServerError)
		r.settle()
		r.ask(0, get{"a"}).fails(protocol.CoordinatorLoadInProgress)
	})
	r.settle()
	r.ask(0, get{"a"}).is("1") // it was refused with a code that says: perhaps
	r.ask(0, put{"a", "2"}).is(protocol.Offset(1))
	if toy := r.toy(0); toy.activations != 2 {
		t.Errorf("%d activations", toy.activations)
	}
}

func TestPendingIsBounded(t *testing.T) {
	for _, limit := range []func(*Options){func(o *Options) { o.MaxPending = 5 }, func(o *Options) { o.MaxHeld = 5 }} {
		r := newRig(t, limit)
		r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
		r.shards.Load(r.now, 0, 1)
		r.settle()
		r.ask(0, alarm{time.Second}).is("set")
		var asked []*outcome
		for i := range 5 {
			asked = append(asked, r.ask(0, put{"a", fmt.Sprint(i)}))
		}
		r.ask(0, put{"a", "too many"}).fails(protocol.CoordinatorNotAvailable)
		r.advance(time.Second) // the alarm must wait, and is not due all the time
		if at := r.shards.NextDeadline(); !at.After(r.now) {
			t.Errorf("due at %v, now %v", at, r.now)
		}
		r.follow(0, 2, 1, 5)
		asked[4].is(protocol.Offset(4))
		r.settle()
		r.follow(0, 2, 1, 6)
		if got := r.toy(0).entries["alarm"].offset; got != 5 {
			t.Errorf("the alarm is at offset %d", got)
		}
	}
}

func TestLeadershipLost(t *testing.T) {
	r := newRig(t)
	r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 1)
	r.settle()
	parked := r.ask(0, wait{"b"})
	pending := r.ask(0, put{"a", "1"})
	read := r.ask(0, get{"a"})
	r.role(0, 2, 2, 2, []protocol.NodeID{1, 2}, 1, 2)
	for _, o := range []*outcome{parked, pending, read} {
		o.fails(protocol.NotCoordinator)
	}
	r.settle()
	// Until broker says so the shard tries to load, in vain.
	if o := r.ask(0, get{"a"}); protocol.CodeOf(o.err) != protocol.NotCoordinator && protocol.CodeOf(o.err) != protocol.CoordinatorLoadInProgress {
		t.Errorf("%v", o.err)
	}
	r.advance(time.Minute)
	r.ask(0, get{"a"}).fails(protocol.NotCoordinator)
	r.shards.Unload(r.now, 0, 2)
	r.ask(0, get{"a"}).fails(protocol.NotCoordinator)
	if at := r.shards.NextDeadline(); !at.IsZero() {
		t.Errorf("an idle shard is due at %v", at)
	}
	// The record was in the log, so a later leader's replay has it; its reader
	// waits until it is committed.
	r.role(0, 1, 3, 3, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 3)
	r.settle()
	again := r.ask(0, get{"a"})
	again.wait(t)
	r.follow(0, 2, 3, 1)
	again.is("1")
}

// TestHighWatermarkOfAnotherLeader: what the high watermark passes after this
// node ceased to lead is not what it wrote.
func TestHighWatermarkOfAnotherLeader(t *testing.T) {
	r := newRig(t)
	r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 1)
	r.settle()
	var pending *outcome
	r.replicas.Exclusive(tpOf(0), func() { pending = r.ask(0, put{"a", "1"}) })
	pending.wait(t)
	s := r.shards.shards[0]
	s.stopWatching() // as if its wake-up came late
	r.role(0, 1, 2, 2, []protocol.NodeID{1}, 1, 2)
	pending.wait(t)
	if hw, _ := r.replicas.HighWatermark(tpOf(0)); hw != 1 {
		t.Fatalf("the high watermark is %d", hw)
	}
	s.post(event{now: r.now, run: s.advance})
	pending.fails(protocol.NotCoordinator)
}

func TestNoSpace(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.ask(0, put{"a", "1"}).is(protocol.Offset(0))
	parked := r.ask(0, wait{"b"})
	r.disk.SetCapacity(1)
	r.ask(0, put{"a", "2"}).fails(protocol.NotCoordinator)
	parked.fails(protocol.NotCoordinator)
	r.ask(0, get{"a"}).fails(protocol.CoordinatorLoadInProgress)
	r.settle()
	r.ask(0, get{"a"}).is("1")
	// A disk that stays full does not cost a replay for each request.
	restores := r.toy(0).restores
	for range 100 {
		o := r.ask(0, put{"a", "2"})
		if protocol.CodeOf(o.err) == protocol.None || !protocol.CodeOf(o.err).Retriable() {
			t.Fatalf("%v", o.err)
		}
		r.advance(time.Millisecond)
	}
	if more := r.toy(0).restores - restores; more > 1 {
		t.Errorf("%d replays in 100 ms", more)
	}
	r.disk.SetCapacity(0)
	r.advance(time.Minute)
	r.ask(0, put{"a", "2"}).is(protocol.Offset(1))
	if live, replayed := r.toy(0).dump(), r.replayed(0, 1); live != replayed {
		t.Errorf("live:\n%sreplayed:\n%s", live, replayed)
	}
}

// TestSomebodyElseWrites: a record that the machine does not know of is found at
// the next append, and learned.
func TestSomebodyElseWrites(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	b := record.NewBuilder(record.PlainOptions())
	b.Append(r.now.UnixMilli(), []byte("a"), []byte("theirs"), nil)
	r.replicas.Append(r.now, replica.AppendRequest{Partition: tpOf(0), Records: b.Build(nil), Origin: log.OriginCoordinator}, func(replica.AppendResult) {})
	r.ask(0, add{"b"}).fails(protocol.NotCoordinator)
	r.settle()
	r.ask(0, get{"a"}).is("theirs")
	r.ask(0, get{"b"}).is("1")
	r.ask(0, put{"a", "ours"}).is(protocol.Offset(2))
}

func TestTooLarge(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.shards.SetMaxBatchBytes(10_000)
	r.ask(0, put{"a", "1"}).is(protocol.Offset(0))
	parked := r.ask(0, wait{"b"})
	r.ask(0, one{11, 1000}).fails(protocol.UnknownServerError)
	parked.fails(protocol.CoordinatorNotAvailable)
	r.settle()
	r.ask(0, get{"a"}).is("1")
	r.ask(0, one{9, 1000}).is(protocol.Offset(1))
	r.ask(0, many{95, 1000}).is(protocol.Offset(10))
	r.ask(0, many{1, 10_000}).fails(protocol.UnknownServerError)
	if got := counts(r.batches(0)); got != "1 9"+strings.Repeat(" 9", 10)+" 5" {
		t.Errorf("batches of %s records", got)
	}
	r.advance(time.Minute)
	if live, replayed := r.toy(0).dump(), r.replayed(0, 1); live != replayed {
		t.Errorf("live:\n%sreplayed:\n%s", live, replayed)
	}
}

// TestSizeIsExact: the size that write calculates is the size that is built.
func TestSizeIsExact(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	for _, count := range []int{1, 63, 64, 65, 200, 9000} {
		for _, size := range []int{0, 1, 63, 64, 100} {
			records := filler(count, size)
			records[0].Value = nil
			for _, delta := range []int64{0, 1, 63, 64, -1, -64, -65, 100_000} {
				b := record.NewBuilder(record.PlainOptions())
				b.Append(1_000_000, nil, nil, nil)
				before := b.SizeBytes()
				for _, one := range records {
					b.Append(1_000_000+delta, one.Key, one.Value, nil)
				}
				if got, want := sizeOf(records, delta, 1), b.SizeBytes()-before; got != want {
					t.Fatalf("%d records of %d bytes, delta %d: %d, really %d", count, size, delta, got, want)
				}
			}
		}
	}
}

func TestCodecs(t *testing.T) {
	for _, codec := range []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.LZ4, compress.Zstd} {
		r := newRig(t, func(o *Options) { o.Codec = codec })
		r.logs.ProducerCompression = true
		r.leadActive(0, 1)
		r.ask(0, many{50, 100}).is(protocol.Offset(0))
		r.ask(0, remove{"filler-7"}).is(protocol.Offset(50))
		for _, b := range r.batches(0) {
			if b.Codec() != codec {
				t.Errorf("%v: a batch is compressed by %v", codec, b.Codec())
			}
		}
		if live, replayed := r.toy(0).dump(), r.replayed(0, 1); live != replayed || strings.Contains(live, "filler-7=") {
			t.Errorf("%v: live:\n%sreplayed:\n%s", codec, live, replayed)
		}
	}
}

// TestRequestsDuringReload: requests that wait to be decided when an append
// fails are told to come again, each once.
func TestRequestsDuringReload(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.shards.SetMaxBatchBytes(300)
	var asked []*outcome
	r.disk.SetCapacity(1)
	r.replicas.Exclusive(tpOf(0), func() {
		for i := range 50 {
			asked = append(asked, r.ask(0, put{fmt.Sprint(i), strings.Repeat("x", 50)}))
		}
	})
	for _, o := range asked {
		if !o.isDone() {
			t.Fatalf("%v was not answered", o.what)
		}
		if code := protocol.CodeOf(o.err); code != protocol.NotCoordinator && code != protocol.CoordinatorLoadInProgress {
			t.Errorf("%v: %v", o.what, o.err)
		}
	}
	r.disk.SetCapacity(0)
	r.advance(time.Minute)
	r.ask(0, get{"1"}).is("")
}

// TestFence: what was decided in one epoch is not written in the next.
func TestFence(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.role(0, 1, 2, 2, []protocol.NodeID{1}, 1) // the shard does not know yet
	r.ask(0, put{"a", "1"}).fails(protocol.NotCoordinator)
	if end := r.logEnd(0); end != 0 {
		t.Errorf("the log ends at %d", end)
	}
}
