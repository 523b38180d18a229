package replica

import (
	"slices"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// inTransaction makes a batch of a transaction.
func inTransaction(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, epoch, sequence, true
	b := record.NewBuilder(o)
	b.Append(start.UnixMilli(), []byte("key"), []byte("value"), nil)
	return b.Build(nil)
}

// verifying is a fixture whose transactions are verified, as the default is.
func verifying(t *testing.T) *fixture {
	f := newFixture(t)
	f.options.VerifyTransactions = true
	return f
}

func (f *fixture) begin(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32, bumps bool) log.Guard {
	f.t.Helper()
	guard, err := f.manager.BeginVerification(f.now, orders, VerificationRequest{ProducerID: id, Epoch: epoch, FirstSequence: sequence, BumpsEpochs: bumps})
	f.must(err)
	return guard
}

func (f *fixture) appendGuarded(batch record.Batch, guard log.Guard) AppendResult {
	f.t.Helper()
	req := request(orders, batch, AcksAll)
	req.Guard = guard
	return f.append(req)
}

func (f *fixture) marker(marker Marker) AppendResult {
	f.t.Helper()
	p := newPending[AppendResult](f.t)
	f.manager.WriteMarker(f.now, orders, marker, time.Second, p.done)
	return p.get()
}

// TestVerification takes a partition through the transactions of a producer, as the Produce API drives it.
func TestVerification(t *testing.T) {
	f := verifying(t)
	if _, err := f.manager.BeginVerification(f.now, orders, VerificationRequest{ProducerID: 7}); code(err) != protocol.UnknownTopicOrPartition {
		t.Errorf("a partition that is not here: %v", err)
	}
	f.lead(orders, alone(ordersID, 0))
	if _, err := f.manager.BeginVerification(f.now, orders, VerificationRequest{TopicID: billsID, ProducerID: 7}); code(err) != protocol.InconsistentTopicID {
		t.Errorf("another topic's id: %v", err)
	}
	if r := f.appendGuarded(inTransaction(7, 0, 0), log.NoGuard); code(r.Err) != protocol.InvalidTxnState || r.BaseOffset != -1 {
		t.Errorf("without a guard: %+v", r)
	}
	guard := f.begin(7, 0, 0, false)
	f.must(f.appendGuarded(inTransaction(7, 0, 0), guard).Err)
	if f.begin(7, 0, 1, false) != log.NoGuard {
		t.Error("an open transaction is verified again")
	}
	if open, err := f.manager.OpenTransaction(orders, 7, 0); !open || err != nil {
		t.Errorf("open: %v %v", open, err)
	}
	f.must(f.appendGuarded(inTransaction(7, 0, 1), log.NoGuard).Err)
	if r := f.marker(Marker{ProducerID: 7, Commit: true, CoordinatorEpoch: 5}); r.Err != nil || r.BaseOffset != 2 {
		t.Errorf("commit: %+v", r)
	}
	if r := f.appendGuarded(inTransaction(7, 0, 1), log.NoGuard); r.Err != nil || r.BaseOffset != 1 {
		t.Errorf("a duplicate of the former transaction: %+v", r)
	}
	// The answer of the coordinator comes after the abort of what was to be added.
	stale := f.begin(7, 0, 2, false)
	f.must(f.marker(Marker{ProducerID: 7, CoordinatorEpoch: 5}).Err)
	if r := f.appendGuarded(inTransaction(7, 0, 2), stale); code(r.Err) != protocol.InvalidTxnState {
		t.Errorf("a late answer opened a transaction: %+v", r)
	}
	for what, c := range map[string]struct {
		marker Marker
		want   protocol.ErrorCode
	}{
		"an older coordinator":                  {Marker{ProducerID: 7, CoordinatorEpoch: 4}, protocol.TransactionCoordinatorFenced},
		"the same again":                        {Marker{ProducerID: 7, CoordinatorEpoch: 5}, protocol.None},
		"version 2, nothing open, the same":     {Marker{ProducerID: 7, CoordinatorEpoch: 5, TransactionVersion: 2}, protocol.None},
		"a producer that was never here":        {Marker{ProducerID: 99, Epoch: 3, CoordinatorEpoch: 1}, protocol.None},
		"a coordinator older only for another":  {Marker{ProducerID: 98, Epoch: 3, CoordinatorEpoch: 0}, protocol.None},
		"version 2 and an older producer epoch": {Marker{ProducerID: 7, Epoch: -1, CoordinatorEpoch: 5, TransactionVersion: 2}, protocol.InvalidProducerEpoch},
	} {
		if r := f.marker(c.marker); code(r.Err) != c.want {
			t.Errorf("%s: %+v", what, r)
		}
	}
	// Transactions of version 2: every end bumps the epoch.
	guard = f.begin(7, 1, 0, true)
	f.must(f.appendGuarded(inTransaction(7, 1, 0), guard).Err)
	if r := f.marker(Marker{ProducerID: 7, Epoch: 1, CoordinatorEpoch: 5, TransactionVersion: 2}); code(r.Err) != protocol.InvalidProducerEpoch {
		t.Errorf("a marker of the transaction's own epoch: %+v", r)
	}
	f.must(f.marker(Marker{ProducerID: 7, Epoch: 2, Commit: true, CoordinatorEpoch: 5, TransactionVersion: 2}).Err)
	if r := f.appendGuarded(inTransaction(7, 1, 1), log.NoGuard); code(r.Err) != protocol.InvalidProducerEpoch {
		t.Errorf("a late batch of the transaction that has ended: %+v", r)
	}
	if _, err := f.manager.BeginVerification(f.now, orders, VerificationRequest{ProducerID: 7, Epoch: 1}); code(err) != protocol.InvalidProducerEpoch {
		t.Errorf("the verification of an old epoch: %v", err)
	}
	guard = f.begin(7, 2, 4, true)
	if r := f.appendGuarded(inTransaction(7, 2, 4), guard); code(r.Err) != protocol.OutOfOrderSequenceNumber {
		t.Errorf("a transaction of version 2 that does not begin at 0: %+v", r)
	}
}

func TestVerificationSwitchedOff(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	if f.begin(7, 0, 0, false) != log.NoGuard {
		t.Error("a producer of version 1 is verified though that is switched off")
	}
	if f.begin(7, 0, 0, true) == log.NoGuard {
		t.Error("a partition is not added for a producer of version 2")
	}
	f.must(f.appendGuarded(inTransaction(7, 0, 0), log.NoGuard).Err)
}

// TestGuardsSurviveAMove: a verification that began before a replica changed its directory is good after it.
func TestGuardsSurviveAMove(t *testing.T) {
	f := newMover(t, 2)
	f.options.VerifyTransactions = true
	f.applied(orders, ordersID)
	f.fill(orders, batch(3, 10))
	guard := f.begin(7, 0, 0, false)
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.ticks(3, orders)
	if f.directory(orders) != dirB {
		t.Fatal("it has not moved")
	}
	f.must(f.appendGuarded(inTransaction(7, 0, 0), guard).Err)
}

// TestReadCommittedWaits: a read_committed consumer that waits at an open transaction is woken by its marker, and told of
// the abort, whichever comes first.
func TestReadCommittedWaits(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(1, 10), inTransaction(7, 0, 0), inTransaction(8, 0, 0), batch(1, 10))
	req := consumer(at(orders, 1))
	req.ReadCommitted = true
	waiting, _ := f.poll(req)
	if waiting.isDone() {
		t.Fatalf("records of an open transaction were given: %+v", waiting.get())
	}
	f.must(f.marker(Marker{ProducerID: 8, Commit: true}).Err)
	if waiting.isDone() {
		t.Fatalf("the oldest transaction is open still: %+v", waiting.get())
	}
	f.must(f.marker(Marker{ProducerID: 7}).Err)
	result := waiting.get()[0]
	if want := []wire.AbortedTransaction{{ProducerID: 7, FirstOffset: 1}}; !slices.Equal(result.Aborted, want) || result.LastStableOffset != 6 {
		t.Errorf("%+v", result)
	}
	if got := batchesOf(t, &result); len(got) != 5 {
		t.Errorf("%d batches", len(got))
	}
	// The same at once; and nothing is told of what lies before.
	for from, count := range map[protocol.Offset]int{0: 1, 1: 1, 4: 1, 5: 1} {
		req.Partitions[0].Offset = from
		again := f.fetch(req)[0]
		if len(again.Aborted) != count {
			t.Errorf("from %d: %+v", from, again.Aborted)
		}
		again.Records.Release()
	}
}

// TestTransactionsLast: open transactions, fences and aborts are known after a restart, after records were deleted, and
// after a truncation.
func TestTransactionsLast(t *testing.T) {
	f := verifying(t)
	f.lead(orders, alone(ordersID, 0))
	for id := range protocol.ProducerID(3) {
		f.must(f.appendGuarded(inTransaction(id, 4, 0), f.begin(id, 4, 0, false)).Err)
	}
	f.must(f.marker(Marker{ProducerID: 0, Epoch: 4, CoordinatorEpoch: 9}).Err)
	f.must(f.replica(orders).log().Flush(f.now))
	for name, disk := range map[string]*vfs.Mem{"killed": f.mem.Kill(), "power cut": f.mem.Crash()} {
		g := f.restart(t, disk)
		g.lead(orders, alone(ordersID, 1))
		if g.begin(1, 4, 1, false) != log.NoGuard {
			t.Errorf("%s: an open transaction is not known", name)
		}
		if r := g.marker(Marker{ProducerID: 0, Epoch: 4, CoordinatorEpoch: 8}); code(r.Err) != protocol.TransactionCoordinatorFenced {
			t.Errorf("%s: an older coordinator: %+v", name, r)
		}
		req := consumer(at(orders, 0))
		req.ReadCommitted = true
		if r := g.fetch(req)[0]; r.LastStableOffset != 1 || len(r.Aborted) != 1 {
			t.Errorf("%s: %+v", name, r)
		} else {
			r.Records.Release()
		}
		// Deleted beyond the first batch of an open transaction: it is open still, from the log's start on.
		done := newPending[error](t)
		g.manager.DeleteRecords(g.now, orders, 2, time.Second, func(_ protocol.Offset, err error) { done.done(err) })
		g.must(done.get())
		if d, err := g.manager.Describe(orders); err != nil || d.LastStableOffset != 2 {
			t.Errorf("%s: after the deletion %+v %v", name, d, err)
		}
		if late := g.manager.LateTransactions(g.now.Add(time.Hour)); late != 1 {
			t.Errorf("%s: %d transactions hang", name, late)
		}
		for id := protocol.ProducerID(1); id < 3; id++ {
			g.must(g.marker(Marker{ProducerID: id, Epoch: 4, Commit: true, CoordinatorEpoch: 9}).Err)
		}
		if d, err := g.manager.Describe(orders); err != nil || d.LastStableOffset != d.LogEndOffset {
			t.Errorf("%s: at the end %+v %v", name, d, err)
		}
		if late := g.manager.LateTransactions(g.now.Add(time.Hour)); late != 0 {
			t.Errorf("%s: %d transactions hang after their end", name, late)
		}
	}
	// Cut off behind the marker's back: the transaction is open again.
	r := f.replica(orders)
	r.appendMu.Lock()
	f.must(r.log().TruncateTo(3))
	r.appendMu.Unlock()
	if open, err := f.manager.OpenTransaction(orders, 0, 4); !open || err != nil {
		t.Errorf("after the truncation: %v %v", open, err)
	}
}
