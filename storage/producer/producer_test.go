package producer

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
)

func data(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32, n int, transactional bool, at protocol.Offset) record.Batch {
	o := record.PlainOptions()
	o.BaseOffset, o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = at, id, epoch, sequence, transactional
	b := record.NewBuilder(o)
	for i := range n {
		b.Append(1000+int64(at)+int64(i), nil, nil, nil)
	}
	return b.Build(nil)
}

func end(id protocol.ProducerID, epoch protocol.ProducerEpoch, commit bool, coordinator int32, at protocol.Offset) record.Batch {
	o := record.PlainOptions()
	o.BaseOffset, o.ProducerID, o.ProducerEpoch, o.Transactional, o.Control = at, id, epoch, true, true
	kind := record.ControlAbort
	if commit {
		kind = record.ControlCommit
	}
	key, value := record.EndTxnMarker{Type: kind, CoordinatorEpoch: coordinator}.Encode()
	b := record.NewBuilder(o)
	b.Append(1000+int64(at), key, value, nil)
	return b.Build(nil)
}

func apply(t *testing.T, s *State, b record.Batch) (Completed, bool) {
	t.Helper()
	var marker *Marker
	if b.IsControl() {
		m, err := ReadMarker(b)
		if err != nil {
			t.Fatal(err)
		}
		marker = &m
	}
	return s.Apply(b, marker)
}

// TestSequences judges batches after a producer wrote sequences 10 to 19 in ten batches of epoch 3.
func TestSequences(t *testing.T) {
	s := New(time.Hour)
	for i := range int32(10) {
		apply(t, s, data(1, 3, 10+i, 1, false, protocol.Offset(i)))
	}
	for _, c := range []struct {
		name     string
		epoch    protocol.ProducerEpoch
		sequence int32
		n        int
		want     protocol.ErrorCode
		original protocol.Offset // of a duplicate, else -1
	}{
		{"next", 3, 20, 4, protocol.None, -1},
		{"gap", 3, 21, 1, protocol.OutOfOrderSequenceNumber, -1},
		{"newest again", 3, 19, 1, protocol.None, 9},
		{"oldest that is remembered", 3, 15, 1, protocol.None, 5},
		{"older than that", 3, 14, 1, protocol.OutOfOrderSequenceNumber, -1},
		{"begins like a duplicate but is longer", 3, 19, 2, protocol.OutOfOrderSequenceNumber, -1},
		{"new epoch from 0", 4, 0, 1, protocol.None, -1},
		{"new epoch from elsewhere", 4, 20, 1, protocol.OutOfOrderSequenceNumber, -1},
		{"old epoch", 2, 20, 1, protocol.InvalidProducerEpoch, -1},
		{"a duplicate but for its epoch", 2, 19, 1, protocol.InvalidProducerEpoch, -1},
	} {
		b := data(1, c.epoch, c.sequence, c.n, false, 0)
		original, duplicate, err := s.Check(b, Client, false, NoGuard)
		if protocol.CodeOf(err) != c.want || duplicate != (c.original >= 0) || duplicate && original.FirstOffset() != c.original {
			t.Errorf("%s: %v %v %v", c.name, original, duplicate, err)
		}
	}
	if _, duplicate, err := s.Check(data(1, 3, 5, 1, false, 0), Coordinator, false, NoGuard); duplicate || err != nil {
		t.Errorf("a coordinator's sequence was judged: %v", err)
	}
}

func TestUnknownProducer(t *testing.T) {
	s := New(time.Hour)
	if _, _, err := s.Check(data(1, 0, 17, 1, false, 0), Client, false, NoGuard); err != nil {
		t.Errorf("an unknown producer may begin anywhere: %v", err)
	}
	guard, _ := s.BeginVerification(0, 1, 0, 17, true)
	if _, _, err := s.Check(data(1, 0, 17, 1, true, 0), Client, true, guard); protocol.CodeOf(err) != protocol.OutOfOrderSequenceNumber {
		t.Errorf("under transaction version 2 it begins at 0: %v", err)
	}
	apply(t, s, end(1, 5, true, 0, 0)) // known by a marker only
	if _, _, err := s.Check(data(1, 5, 3, 1, true, 0), Client, false, NoGuard); protocol.CodeOf(err) != protocol.OutOfOrderSequenceNumber {
		t.Errorf("after a marker of its epoch it begins at 0: %v", err)
	}
	guard, _ = s.BeginVerification(0, 1, 5, 0, true)
	if _, _, err := s.Check(data(1, 5, 0, 1, true, 0), Client, true, guard); err != nil {
		t.Error(err)
	}
}

func TestSequenceWraps(t *testing.T) {
	s := New(time.Hour)
	b := data(1, 0, math.MaxInt32-1, 4, false, 0) // MAX-1, MAX, 0, 1
	apply(t, s, b)
	if last := s.Lookup(1).LastSequence(); last != 1 {
		t.Fatalf("last sequence %d", last)
	}
	if original, duplicate, err := s.Check(b, Client, false, NoGuard); !duplicate || err != nil || original.FirstSequence() != math.MaxInt32-1 {
		t.Errorf("the wrapped batch is no duplicate of itself: %+v %v", original, err)
	}
	if _, _, err := s.Check(data(1, 0, 2, 1, false, 0), Client, false, NoGuard); err != nil {
		t.Error(err)
	}
	apply(t, s, data(1, 0, 2, math.MaxInt16, false, 4))
	apply(t, s, data(2, 0, math.MaxInt32, 1, false, 0))
	if _, _, err := s.Check(data(2, 0, 0, 1, false, 0), Client, false, NoGuard); err != nil {
		t.Errorf("0 comes after the largest int32: %v", err)
	}
}

func TestTransactions(t *testing.T) {
	s := New(time.Hour)
	apply(t, s, data(1, 0, 0, 2, true, 10)) // 10, 11
	apply(t, s, data(2, 0, 0, 1, true, 12))
	if _, _, err := s.Check(data(1, 0, 2, 1, false, 13), Client, false, NoGuard); protocol.CodeOf(err) != protocol.InvalidTxnState {
		t.Errorf("a plain batch within a transaction: %v", err)
	}
	if first := s.FirstUnstableOffset(); first != 10 {
		t.Errorf("first unstable %d", first)
	}
	done, ok := apply(t, s, end(1, 0, false, 7, 13))
	if want := (Completed{1, 10, 13, 12, true}); !ok || done != want {
		t.Errorf("%+v, should be %+v", done, want)
	}
	if first := s.FirstUnstableOffset(); first != 10 {
		t.Errorf("what is decided is unstable until it is replicated: %d", first)
	}
	s.Replicated(13)
	if first := s.FirstUnstableOffset(); first != 10 {
		t.Errorf("the marker at 13 is not below 13: %d", first)
	}
	s.Replicated(14)
	if first := s.FirstUnstableOffset(); first != 12 {
		t.Errorf("first unstable %d", first)
	}
	done, _ = apply(t, s, end(2, 0, true, 7, 14))
	if want := (Completed{2, 12, 14, 15, false}); done != want {
		t.Errorf("%+v, should be %+v", done, want)
	}
	if _, ok := apply(t, s, end(2, 0, true, 8, 15)); ok {
		t.Error("a transaction ended twice")
	}
	s.Replicated(16)
	if first := s.FirstUnstableOffset(); first != protocol.NoOffset {
		t.Errorf("first unstable %d", first)
	}
}

func TestMarkers(t *testing.T) {
	s := New(time.Hour)
	apply(t, s, data(1, 5, 0, 1, true, 0))
	apply(t, s, data(2, 5, 0, 1, true, 1))
	apply(t, s, end(2, 5, true, 9, 2)) // 2 has none open
	apply(t, s, data(3, math.MaxInt16, 0, 1, true, 3))
	for _, c := range []struct {
		id      protocol.ProducerID
		epoch   protocol.ProducerEpoch
		coord   int32
		version int8
		want    protocol.ErrorCode
	}{
		{1, 5, 0, 1, protocol.None},
		{1, 4, 0, 1, protocol.InvalidProducerEpoch},
		{1, 6, 0, 1, protocol.None},
		{1, 5, 0, 2, protocol.InvalidProducerEpoch}, // each transaction has an epoch of its own
		{1, 6, 0, 2, protocol.None},
		{2, 5, 9, 2, protocol.None}, // a marker repeated
		{2, 5, 8, 2, protocol.TransactionCoordinatorFenced},
		{2, 5, 8, 0, protocol.TransactionCoordinatorFenced},
		{3, math.MaxInt16, 0, 2, protocol.None}, // epochs are used up
		{4, 0, 0, 2, protocol.None},             // unknown
	} {
		err := s.CheckMarker(end(c.id, c.epoch, true, c.coord, 9), Marker{true, c.coord}, c.version)
		if protocol.CodeOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestReadMarker(t *testing.T) {
	if m, err := ReadMarker(end(1, 0, true, 7, 3)); err != nil || m != (Marker{true, 7}) {
		t.Errorf("%+v %v", m, err)
	}
	if _, err := ReadMarker(data(1, 0, 0, 1, true, 0)); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("a data batch was read as marker: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	s := New(time.Hour)
	apply(t, s, data(1, 0, 0, 1, false, 0)) // at 1000 ms
	apply(t, s, data(2, 0, 0, 1, true, 1))  // open
	hour := time.Hour.Milliseconds()
	if next := s.NextExpiry(); next != 1000+hour {
		t.Errorf("next expiry %d", next)
	}
	if n := s.Expire(1000 + hour - 1); n != 0 {
		t.Errorf("%d expired too early", n)
	}
	if n := s.Expire(1000 + hour); n != 1 || s.Lookup(1) != nil || s.Lookup(2) == nil {
		t.Errorf("%d expired", n)
	}
	if n := s.Expire(math.MaxInt64 / 2); n != 0 {
		t.Error("a producer with an open transaction expired")
	}
}

// TestRollback takes random stretches back and compares with a state that never saw them.
func TestRollback(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tried, kept := New(time.Hour), New(time.Hour)
	offset := protocol.Offset(0)
	for range 300 {
		tried.Mark()
		keep := random.IntN(2) == 0
		at := offset
		for range random.IntN(5) {
			id, epoch := protocol.ProducerID(random.IntN(3)), protocol.ProducerEpoch(random.IntN(2))
			b := data(id, epoch, int32(random.IntN(9)), 1+random.IntN(3), random.IntN(2) == 0, at)
			if random.IntN(4) == 0 {
				b = end(id, epoch, random.IntN(2) == 0, 0, at)
			}
			at = b.NextOffset()
			apply(t, tried, b)
			if keep {
				apply(t, kept, b)
			}
		}
		if keep {
			tried.Commit()
			offset = at
		} else {
			tried.Rollback()
		}
		if random.IntN(5) == 0 {
			tried.Replicated(offset - 3)
			kept.Replicated(offset - 3)
		}
		if !slices.EqualFunc(tried.Producers(), kept.Producers(), same) ||
			tried.FirstUnstableOffset() != kept.FirstUnstableOffset() || tried.End() != kept.End() {
			t.Fatalf("%+v\n%+v", tried, kept)
		}
	}
}

func same(a, b Producer) bool {
	a.order, b.order = 0, 0
	return slices.Equal(a.Batches(), b.Batches()) && a.ID == b.ID && a.Epoch == b.Epoch && a.CoordinatorEpoch == b.CoordinatorEpoch &&
		a.LastTimestampMs == b.LastTimestampMs && a.TxnFirstOffset == b.TxnFirstOffset
}

func TestSnapshot(t *testing.T) {
	s := New(time.Hour)
	apply(t, s, data(7, 2, 5, 3, false, 0))
	apply(t, s, data(1<<40, 0, 0, 1, true, 3))
	apply(t, s, end(9, 1, true, 4, 4))
	bytes := s.AppendSnapshot([]byte("x"))[1:]
	if len(bytes) != 10+3*46 {
		t.Fatalf("%d bytes", len(bytes))
	}
	producers, err := ReadSnapshot(bytes)
	if err != nil {
		t.Fatal(err)
	}
	loaded := New(time.Hour)
	loaded.Load(producers, 5, 0)
	if got := loaded.AppendSnapshot(nil); string(got) != string(bytes) {
		t.Errorf("%x, then %x", bytes, got)
	}
	if !slices.EqualFunc(loaded.Producers(), s.Producers(), same) || loaded.FirstUnstableOffset() != 3 || loaded.End() != 5 {
		t.Errorf("%+v", loaded.Producers())
	}
	for i := range bytes {
		spoiled := slices.Clone(bytes)
		spoiled[i] ^= 1
		if _, err := ReadSnapshot(spoiled); !errors.Is(err, ErrSnapshot) {
			t.Errorf("byte %d spoiled: %v", i, err)
		}
		if _, err := ReadSnapshot(bytes[:i]); !errors.Is(err, ErrSnapshot) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// TestJavaOrder: the order of java.util.HashMap<Long, …> for keys that a Java program printed: 16 buckets up to 12 entries,
// then 32; within a bucket by age.
func TestJavaOrder(t *testing.T) {
	order := func(ids ...protocol.ProducerID) (got []protocol.ProducerID) {
		s := New(time.Hour)
		for i, id := range ids {
			apply(t, s, data(id, 0, 0, 1, false, protocol.Offset(i)))
		}
		for _, p := range s.inJavaOrder() {
			got = append(got, p.ID)
		}
		return got
	}
	if got := order(33, 17, 1, 16, 1<<33+2, 5); !slices.Equal(got, []protocol.ProducerID{16, 1<<33 + 2, 33, 17, 1, 5}) {
		t.Errorf("%v", got)
	}
	if got := order(33, 17, 1, 16, 2, 3, 4, 5, 6, 7, 8, 9, 1<<33+4); !slices.Equal(got, []protocol.ProducerID{33, 1, 2, 3, 4, 5, 6, 1<<33 + 4, 7, 8, 9, 16, 17}) {
		t.Errorf("%v", got)
	}
}

func FuzzReadSnapshot(f *testing.F) {
	s := New(time.Hour)
	s.Apply(data(7, 2, 5, 3, true, 0), nil)
	f.Add(s.AppendSnapshot(nil))
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		producers, err := ReadSnapshot(bytes)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*len(bytes)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(bytes))
		}
		if err == nil {
			s := New(time.Hour)
			s.Load(producers, 0, 0)
		}
	})
}
