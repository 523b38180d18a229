package shard

import (
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// import as a follower does: batches with offsets of their own.
func (r *rig) write(p int32, batches ...record.Batch) {
	r.t.Helper()
	r.replicas.Exclusive(tpOf(p), func() {
		for _, b := range batches {
			b.SetPartitionLeaderEpoch(0)
			entry := log.Entry{Batch: b, Origin: log.OriginFollower}
			r.must(r.store.Log(tpOf(p)).Append(r.now, 0, []*log.Entry{&entry}))
			r.must(entry.Err)
		}
	})
}

func options(base protocol.Offset, codec compress.Codec) record.Options {
	o := record.PlainOptions()
	o.BaseOffset, o.Codec = base, codec
	return o
}

// TestReplayOfForeignBatches: compaction leaves gaps, empty batches and all
// codecs; records of one batch may have times of their own.
func TestReplayOfForeignBatches(t *testing.T) {
	r := newRig(t)
	r.role(0, 1, 0, 0, []protocol.NodeID{1}, 1)
	a := record.NewBuilder(options(0, compress.Zstd))
	a.AppendAt(2, 100, []byte("a"), []byte("1"), nil)
	a.AppendAt(3, 100, []byte("b"), []byte("2"), nil)
	a.AppendAt(7, 100, []byte("c"), []byte("3"), nil)
	a.AppendAt(8, 250, []byte("d"), []byte("4"), nil)
	empty := options(9, compress.None)
	empty.LastOffset, empty.ProducerID, empty.ProducerEpoch, empty.BaseSequence = 19, 5, 0, 0
	nothing := record.NewBuilder(empty)
	b := record.NewBuilder(options(30, compress.LZ4))
	b.AppendAt(30, 300, []byte("a"), nil, nil)
	b.AppendAt(33, 300, []byte("e"), []byte(""), nil)
	r.write(0, a.Build(r.pool), nothing.Build(nil), b.Build(r.pool))
	r.shards.Load(r.now, 0, 0)
	r.settle()
	want := `b="2" at 3, epoch 0, 100
c="3" at 7, epoch 0, 100
d="4" at 8, epoch 0, 250
e="" at 33, epoch 0, 300
`
	if got := r.toy(0).dump(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.ask(0, put{"f", "5"}).is(protocol.Offset(34))
}

func transactional(base protocol.Offset, id protocol.ProducerID, key, value string) record.Batch {
	o := options(base, compress.None)
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, 3, 0, true
	b := record.NewBuilder(o)
	b.Append(start.UnixMilli(), []byte(key), []byte(value), nil)
	return b.Build(nil)
}

func marker(base protocol.Offset, id protocol.ProducerID, kind record.ControlType) record.Batch {
	b := record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind, CoordinatorEpoch: 7}, start.UnixMilli(), id, 3)
	b.SetBaseOffset(base)
	return b
}

func TestReplayOfTransactions(t *testing.T) {
	for _, banks := range []bool{false, true} {
		r := newRig(t)
		r.banks = banks
		r.role(0, 1, 0, 0, []protocol.NodeID{1}, 1)
		plain := record.NewBuilder(options(2, compress.None))
		plain.Append(start.UnixMilli(), []byte("p"), []byte("plain"), nil)
		r.write(0, transactional(0, 10, "a", "committed"), transactional(1, 11, "b", "aborted"), plain.Build(nil),
			marker(3, 11, record.ControlAbort), marker(4, 10, record.ControlCommit), transactional(5, 12, "c", "open"))
		r.shards.Load(r.now, 0, 0)
		r.settle()
		want := map[string]string{"p": "plain"}
		if banks {
			want["a"] = "committed"
		}
		toy := r.toy(0)
		if len(toy.entries) != len(want) {
			t.Errorf("transactional machine %v:\n%s", banks, toy.dump())
		}
		for key, value := range want {
			if toy.entries[key].value != value {
				t.Errorf("transactional machine %v: %s is %q", banks, key, toy.entries[key].value)
			}
		}
		if _, open := toy.pending[12]; open != banks {
			t.Errorf("transactional machine %v: the open transaction is known: %v", banks, open)
		}
		r.ask(0, put{"x", "y"}).is(protocol.Offset(6))
	}
}

// TestLoadFails: what cannot be replayed leaves the partition without
// coordinator; it is tried again, ever more rarely, and heals.
func TestLoadFails(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.ask(0, put{"a", "1"}).is(protocol.Offset(0))
	toy := r.toy(0)
	toy.applyError = errApply
	r.lead(0, 2)
	r.settle()
	r.ask(0, get{"a"}).fails(protocol.NotCoordinator)
	if _, _, failed := r.shards.Counts(); failed != 1 {
		t.Errorf("%d shards failed", failed)
	}
	before := toy.restores
	for range 600 {
		r.advance(time.Second)
	}
	if tries := toy.restores - before; tries < 10 || tries > 25 {
		t.Errorf("%d tries in ten minutes", tries)
	}
	toy.applyError = nil
	r.advance(time.Minute)
	r.ask(0, get{"a"}).is("1")
}

// TestDamagedLog: a batch whose bytes were changed on the disk is not believed.
func TestDamagedLog(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.ask(0, put{"a", "good"}).is(protocol.Offset(0))
	file, err := r.disk.OpenFile("/data/__consumer_offsets-0/00000000000000000000.log", 2)
	r.must(err)
	size, err := file.Size()
	r.must(err)
	_, err = file.WriteAt([]byte("evil"), size-5)
	r.must(err)
	r.must(file.Close())
	r.lead(0, 2)
	r.settle()
	r.ask(0, get{"a"}).fails(protocol.NotCoordinator)
}

// TestLogStart: records before the log start are gone, also those of a batch
// that begins before it.
func TestLogStart(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.ask(0, one{10, 10}).is(protocol.Offset(0))
	r.replicas.Exclusive(tpOf(0), func() { r.must(r.store.Log(tpOf(0)).AdvanceLogStart(r.now, 6)) })
	r.leadActive(0, 2)
	if got := len(r.toy(0).entries); got != 4 {
		t.Errorf("%d records:\n%s", got, r.toy(0).dump())
	}
	r.ask(0, put{"a", "1"}).is(protocol.Offset(10))
}
