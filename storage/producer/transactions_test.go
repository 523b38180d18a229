package producer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
)

// naive keeps transactions in plain lists.
type naive struct{ open, ended []transaction }

func (n *naive) clone() naive { return naive{slices.Clone(n.open), slices.Clone(n.ended)} }

func (n *naive) firstUnstable() protocol.Offset {
	first := protocol.NoOffset
	for _, t := range append(slices.Clone(n.open), n.ended...) {
		if first == protocol.NoOffset || t.first < first {
			first = t.first
		}
	}
	return first
}

// TestTransactionLists begins, ends and replicates transactions at random, within stretches some of which are taken back, and
// compares with plain lists.
func TestTransactionLists(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		s, model := New(time.Hour), naive{}
		end, highWatermark := protocol.Offset(0), protocol.Offset(0)
		for range 200 {
			before, endBefore := model.clone(), end
			s.Mark()
			for range random.IntN(4) {
				id := protocol.ProducerID(random.IntN(6))
				at := slices.IndexFunc(model.open, func(o transaction) bool { return o.producer == id })
				if at >= 0 && random.IntN(2) == 0 {
					b := mark(id, random.IntN(2) == 0, end)
					m, err := ReadMarker(b)
					if err != nil {
						t.Fatal(err)
					}
					done, ended := s.Apply(b, &m)
					one := model.open[at]
					one.last = end
					model.open = slices.Delete(model.open, at, at+1)
					model.ended = append(model.ended, one)
					stable := end + 1
					for _, o := range model.open {
						stable = min(stable, o.first)
					}
					if !ended || done.FirstOffset != one.first || done.LastOffset != end || done.LastStableOffset != stable {
						t.Fatalf("seed %d: %+v %v, not %+v with last stable offset %d", seed, done, ended, one, stable)
					}
					end++
					continue
				}
				b := record.PlainOptions()
				b.BaseOffset, b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = end, id, 0, 0, true
				builder := record.NewBuilder(b)
				builder.Append(1, nil, nil, nil)
				s.Apply(builder.Build(nil), nil)
				if at < 0 {
					model.open = append(model.open, transaction{id, end, protocol.NoOffset})
				}
				end++
			}
			if random.IntN(5) == 0 { // others may move the high watermark meanwhile
				highWatermark += protocol.Offset(random.IntN(int(endBefore-highWatermark) + 1))
				s.Replicated(highWatermark)
			}
			if random.IntN(4) == 0 {
				s.Rollback()
				model, end = before, endBefore
				s.Replicated(highWatermark)
			} else {
				s.Commit()
			}
			if random.IntN(3) == 0 {
				highWatermark += protocol.Offset(random.IntN(int(end-highWatermark) + 1))
				s.Replicated(highWatermark)
			}
			model.ended = slices.DeleteFunc(model.ended, func(o transaction) bool { return o.last < highWatermark })
			if got, want := s.FirstUnstableOffset(), model.firstUnstable(); got != want {
				t.Fatalf("seed %d: the first unstable offset is %d, not %d: %+v", seed, got, want, model)
			}
			if id, _, open := s.OldestOpen(); open != (len(model.open) > 0) || open && id != oldestOf(model.open) {
				t.Fatalf("seed %d: the oldest is of producer %d, open %v: %+v", seed, id, open, model)
			}
		}
		clone := s.Clone()
		if got, want := fmt.Sprint(clone.Producers(), clone.FirstUnstableOffset()), fmt.Sprint(s.Producers(), s.FirstUnstableOffset()); got != want {
			t.Fatalf("seed %d: a clone is %s, not %s", seed, got, want)
		}
	}
}

func oldestOf(open []transaction) protocol.ProducerID {
	return slices.MinFunc(open, func(a, b transaction) int { return int(a.first - b.first) }).producer
}

func mark(id protocol.ProducerID, commit bool, at protocol.Offset) record.Batch {
	kind := record.ControlAbort
	if commit {
		kind = record.ControlCommit
	}
	b := record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind}, 1, id, 0)
	b.SetBaseOffset(at)
	return b
}

// TestManyTransactions: a hundred thousand transactions beside one that hangs leave nothing behind that a later one would
// have to look at.
func TestManyTransactions(t *testing.T) {
	s := New(time.Hour)
	s.Apply(data(1, 0, 0, 1, true, 0), nil)
	marker := Marker{Commit: true}
	ended, began := mark(2, true, 0), data(2, 0, 0, 1, true, 0)
	for i := range protocol.Offset(100_000) {
		began.SetBaseOffset(1 + 2*i)
		ended.SetBaseOffset(2 + 2*i)
		s.Mark()
		s.Apply(began, nil)
		s.Apply(ended, &marker)
		s.Commit()
		if i%100 == 0 {
			s.Replicated(2 * i)
		}
		if open, waiting := len(s.ongoing.list), len(s.unreplicated.list); open > 4 || waiting > 110 {
			t.Fatalf("after %d transactions %d are in one list, %d in the other", i, open, waiting)
		}
	}
	if first := s.FirstUnstableOffset(); first != 0 {
		t.Errorf("the first unstable offset is %d", first)
	}
}

func BenchmarkTransactions(b *testing.B) {
	for _, open := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			s := New(time.Hour)
			end := protocol.Offset(0)
			for i := range open {
				s.Apply(data(protocol.ProducerID(10+i), 0, 0, 1, true, end), nil)
				end++
			}
			marker := Marker{Commit: true}
			ended, began := mark(2, true, 0), data(2, 0, 0, 1, true, 0)
			for b.Loop() {
				began.SetBaseOffset(end)
				ended.SetBaseOffset(end + 1)
				end += 2
				s.Mark()
				s.Apply(began, nil)
				s.Commit()
				s.Mark()
				s.Apply(ended, &marker)
				s.Commit()
				s.Replicated(end)
				_ = s.FirstUnstableOffset()
			}
		})
	}
}

// TestGuardsTakenBack: a batch that could not be written has not used its guard, and who asks meanwhile is not told that the
// transaction is open.
func TestGuardsTakenBack(t *testing.T) {
	for _, written := range []bool{true, false} {
		s := New(time.Hour)
		begin := func() Guard {
			guard, err := s.BeginVerification(0, 1, 3, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			return guard
		}
		guard := begin()
		s.Mark()
		s.Apply(data(1, 3, 0, 1, true, 0), nil)
		if _, _, err := s.Check(data(1, 3, 1, 1, true, 1), Client, true, NoGuard); err != nil {
			t.Errorf("behind it, in the same stretch: %v", err)
		}
		if between := begin(); between != guard {
			t.Errorf("meanwhile another guard is given: %d after %d", between, guard)
		}
		if written {
			s.Commit()
		} else {
			s.Rollback()
		}
		if after := begin(); (after == NoGuard) != written {
			t.Errorf("written: %v, and then the guard %d", written, after)
		}
		if _, duplicate, err := s.Check(data(1, 3, 0, 1, true, 0), Client, true, guard); err != nil || duplicate != written {
			t.Errorf("written: %v, and then the same batch again: %v, %v", written, duplicate, err)
		}
	}
}

// TestGuards is the life of a verification.
func TestGuards(t *testing.T) {
	s := New(time.Hour)
	begin := func(epoch protocol.ProducerEpoch, sequence int32, bumps bool) Guard {
		t.Helper()
		guard, err := s.BeginVerification(0, 1, epoch, sequence, bumps)
		if err != nil {
			t.Fatal(err)
		}
		return guard
	}
	judge := func(what string, guard Guard, b record.Batch, want protocol.ErrorCode) {
		t.Helper()
		for _, who := range []Who{Client, Coordinator} {
			if who == Coordinator && want == protocol.OutOfOrderSequenceNumber {
				want = protocol.None
			}
			if _, _, err := s.Check(b, who, true, guard); protocol.CodeOf(err) != want {
				t.Errorf("%s, appender %d: %v", what, who, err)
			}
		}
	}
	first := data(1, 3, 0, 1, true, 0)
	judge("without a verification", NoGuard, first, protocol.InvalidTxnState)
	judge("with a guard that nobody gave", 7, first, protocol.InvalidTxnState)
	guard := begin(3, 0, false)
	if again := begin(3, 5, false); again != guard || guard == NoGuard {
		t.Errorf("the guards %d and %d", guard, again)
	}
	judge("verified", guard, first, protocol.None)
	judge("not transactional", NoGuard, data(1, 3, 0, 1, false, 0), protocol.None)
	judge("a later batch that has overtaken the first", guard, data(1, 3, 5, 1, true, 0), protocol.OutOfOrderSequenceNumber)
	apply(t, s, first)
	judge("the transaction is open", NoGuard, data(1, 3, 1, 1, true, 0), protocol.None)
	if again := begin(3, 2, false); again != NoGuard {
		t.Errorf("an open transaction is to be verified: %d", again)
	}
	if _, err := s.BeginVerification(0, 1, 2, 0, false); protocol.CodeOf(err) != protocol.InvalidProducerEpoch {
		t.Errorf("an old epoch begins a verification: %v", err)
	}
	judge("an old epoch", NoGuard, data(1, 2, 1, 1, true, 0), protocol.InvalidProducerEpoch)
	apply(t, s, end(1, 3, false, 0, 1))
	judge("aborted, and the guard is of before", guard, data(1, 3, 1, 1, true, 0), protocol.InvalidTxnState)
	late := begin(3, 1, false)
	apply(t, s, end(1, 3, false, 0, 2)) // another abort comes before the answer
	judge("verified, then aborted", late, data(1, 3, 1, 1, true, 0), protocol.InvalidTxnState)

	// Under transaction version 2 the marker carries the epoch of the next transaction.
	next := begin(4, 0, true)
	apply(t, s, end(1, 4, true, 0, 3))
	judge("begun before the marker of the transaction before", next, data(1, 4, 0, 1, true, 0), protocol.None)
	judge("not from 0", next, data(1, 4, 2, 1, true, 0), protocol.OutOfOrderSequenceNumber)
	s.Expire(time.Hour.Milliseconds())
	judge("expired", next, data(1, 4, 0, 1, true, 0), protocol.InvalidTxnState)
}

// TestOpenTransactionsStay: a producer whose transaction is open is not forgotten, however idle.
func TestOpenTransactionsStay(t *testing.T) {
	s := New(time.Minute)
	apply(t, s, data(1, 0, 0, 1, true, 0))
	apply(t, s, data(2, 0, 0, 1, false, 1))
	if gone := s.Expire(time.Hour.Milliseconds()); gone != 1 || s.Lookup(1) == nil {
		t.Errorf("%d expired", gone)
	}
	apply(t, s, end(1, 0, false, 0, 2))
	if gone := s.Expire(time.Hour.Milliseconds()); gone != 1 || s.Len() != 0 {
		t.Errorf("%d expired after the end", gone)
	}
}
