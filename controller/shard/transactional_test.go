package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/storage/replica"
)

// bankRig is a rig whose machines know transactions, led by this node.
func bankRig(t *testing.T) *rig {
	r := newRig(t)
	r.banks = true
	r.leadActive(0, 1)
	return r
}

// guard begins what a producer must show when it opens a transaction.
func (r *rig) guard(p int32, id protocol.ProducerID, epoch protocol.ProducerEpoch) uint64 {
	r.t.Helper()
	guard, err := r.replicas.BeginVerification(r.now, tpOf(p), replica.VerificationRequest{ProducerID: id, Epoch: epoch, BumpsEpochs: true})
	r.must(err)
	return uint64(guard)
}

func (r *rig) askWithin(p int32, id protocol.ProducerID, epoch protocol.ProducerEpoch, key, value string) *outcome {
	r.t.Helper()
	return r.ask(p, within{id, epoch, r.guard(p, id, epoch), key, value})
}

// mark writes a marker. The toys want the coordinator epoch to be 7.
func (r *rig) mark(p int32, id protocol.ProducerID, epoch protocol.ProducerEpoch, commit bool) *outcome {
	o := &outcome{t: r.t, what: fmt.Sprintf("the marker of %d/%d", id, epoch)}
	r.shards.WriteMarker(r.now, p, Marker{ProducerID: id, ProducerEpoch: epoch, Commit: commit, CoordinatorEpoch: 7, Version: 2},
		func(err error) { o.done(nil, err) })
	return o
}

// sameReplayed wants a fresh machine to make of the log what the live one has.
func (r *rig) sameReplayed(p int32, epoch protocol.LeaderEpoch) {
	r.t.Helper()
	live := r.toy(p).dump()
	fresh := newToy(p)
	m := New(Options{Topic: protocol.ConsumerOffsetsTopic, Replicas: r.replicas, Pool: r.pool, NewMachine: func(int32) machine.Machine { return bank{fresh} }})
	m.Load(r.now, p, epoch)
	for range 10_000 {
		if fresh.active {
			break
		}
		m.Tick(r.now)
	}
	if replayed := fresh.dump(); live != replayed {
		r.t.Errorf("live:\n%sreplayed:\n%s", live, replayed)
	}
	m.Close(r.now)
}

// What is written in a transaction takes effect with its marker, or never.
func TestTransaction(t *testing.T) {
	r := bankRig(t)
	r.ask(0, put{"a", "before"}).is(protocol.Offset(0))
	r.askWithin(0, 10, 0, "a", "committed").is(protocol.Offset(1))
	r.askWithin(0, 11, 0, "b", "aborted").is(protocol.Offset(2))
	r.ask(0, get{"a"}).is("before")
	r.mark(0, 11, 1, false).is(nil)
	r.mark(0, 10, 1, true).is(nil)
	r.ask(0, get{"a"}).is("committed")
	r.ask(0, get{"b"}).is("")
	r.ask(0, put{"c", "after"}).is(protocol.Offset(5))
	batches := r.batches(0)
	if got := counts(batches); got != "1 1 1 1 1 1" || !batches[1].IsTransactional() || batches[1].ProducerID() != 10 || batches[1].BaseSequence() != 0 || !batches[3].IsControl() {
		t.Errorf("batches of %s records, the second: transactional %v, producer %d", got, batches[1].IsTransactional(), batches[1].ProducerID())
	}
	r.sameReplayed(0, 1)
}

// A producer that the log does not take is told so, and nothing else happens.
func TestTransactionRefused(t *testing.T) {
	r := bankRig(t)
	r.askWithin(0, 10, 5, "a", "x").is(protocol.Offset(0))
	r.mark(0, 10, 6, true).is(nil)
	r.ask(0, within{10, 5, 0, "a", "late"}).fails(protocol.InvalidProducerEpoch)
	r.mark(0, 10, 3, false).fails(protocol.InvalidProducerEpoch)
	o := &outcome{t: t, what: "an older coordinator"}
	r.shards.WriteMarker(r.now, 0, Marker{ProducerID: 10, ProducerEpoch: 7, CoordinatorEpoch: 6}, func(err error) { o.done(nil, err) })
	o.fails(protocol.TransactionCoordinatorFenced)
	r.ask(0, get{"a"}).is("x")
	r.ask(0, put{"b", "y"}).is(protocol.Offset(2))
	if n := r.toy(0).activations; n != 1 {
		t.Errorf("the machine was activated %d times", n)
	}
	r.sameReplayed(0, 1)
	r.ask(0, within{10, 6, r.guard(0, 10, 6), "a", string(make([]byte, 2<<20))}).fails(protocol.UnknownServerError)
	r.ask(0, put{"c", "z"}).is(protocol.Offset(3))
}

// While the log is busy everything keeps its order.
func TestTransactionOrder(t *testing.T) {
	r := bankRig(t)
	var asked []*outcome
	guard := r.guard(0, 10, 0)
	r.replicas.Exclusive(tpOf(0), func() {
		asked = append(asked, r.ask(0, put{"a", "1"}), r.ask(0, put{"a", "2"}), r.ask(0, within{10, 0, guard, "a", "3"}),
			r.ask(0, within{10, 0, 0, "b", "4"}), r.ask(0, put{"c", "5"}), r.mark(0, 10, 1, true), r.ask(0, get{"a"}), r.ask(0, put{"a", "6"}))
		for _, o := range asked {
			o.wait(t)
		}
	})
	for i, want := range []any{protocol.Offset(0), protocol.Offset(1), protocol.Offset(2), protocol.Offset(3), protocol.Offset(4), nil, "3", protocol.Offset(6)} {
		asked[i].is(want)
	}
	r.ask(0, get{"a"}).is("6")
	r.sameReplayed(0, 1)
}

// Whoever waits for the log when the partition goes is answered once.
func TestTransactionAndUnload(t *testing.T) {
	r := bankRig(t)
	guard := r.guard(0, 10, 0)
	var first, second *outcome
	r.replicas.Exclusive(tpOf(0), func() {
		first, second = r.ask(0, within{10, 0, guard, "a", "1"}), r.ask(0, put{"b", "2"})
		r.shards.Unload(r.now, 0, 2)
	})
	first.fails(protocol.NotCoordinator)
	second.fails(protocol.NotCoordinator)
	r.leadActive(0, 3)
	r.mark(0, 10, 1, true).is(nil)
	r.sameReplayed(0, 3)
}

// Replies wait for the replicas.
func TestTransactionWaitsForReplicas(t *testing.T) {
	r := newRig(t)
	r.banks = true
	r.role(0, 1, 1, 1, []protocol.NodeID{1, 2}, 1, 2)
	r.shards.Load(r.now, 0, 1)
	r.settle()
	within, marked := r.askWithin(0, 10, 0, "a", "1"), r.mark(0, 10, 1, true)
	within.wait(t)
	marked.wait(t)
	r.follow(0, 2, 1, 1)
	r.settle()
	within.is(protocol.Offset(0))
	marked.wait(t)
	r.follow(0, 2, 1, 2)
	r.settle()
	marked.is(nil)
}

// TestTransactionsAtRandom mixes everything; what is live is what the log says.
func TestTransactionsAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := bankRig(t)
		source, epoch := rand.New(rand.NewPCG(seed, 3)), protocol.LeaderEpoch(1)
		epochs := map[protocol.ProducerID]protocol.ProducerEpoch{}
		for i := range 300 {
			id, key := protocol.ProducerID(10+source.IntN(3)), fmt.Sprint(source.IntN(5))
			act := func() {
				switch n := source.IntN(20); {
				case n < 6:
					r.ask(0, put{key, fmt.Sprint(i)})
				case n < 12:
					r.askWithin(0, id, epochs[id], key, fmt.Sprint(i))
				case n < 16:
					epochs[id]++
					r.mark(0, id, epochs[id], source.IntN(2) == 0)
				case n < 17:
					r.ask(0, within{id, epochs[id] - 1, 0, key, "late"})
				case n < 19:
					r.advance(time.Duration(source.IntN(1000)) * time.Millisecond)
				default:
					epoch++
					r.leadActive(0, epoch)
				}
			}
			act()
		}
		r.settle()
		r.sameReplayed(0, epoch)
	}
}
