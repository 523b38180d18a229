package history

import (
	"slices"
	"testing"
	"time"
)

func sent(partition int32, offset, value int64) Record { return Record{partition, offset, value} }

// txn is a committed transaction of process 1.
func txn(sends ...Record) Op { return Op{Transactional: true, Process: 1, Sends: sends} }

func (o Op) as(outcome Outcome) Op { o.Outcome = outcome; return o }

func (o Op) times(begin, end int64) Op { o.Begin, o.End = begin, end; return o }

func (o Op) by(process int32, p Producer) Op { o.Process, o.Producer = process, p; return o }

func (o Op) reading(reads ...Record) Op { o.Reads, o.Committed = reads, true; return o }

// poll is a plain poll of committed data.
func poll(process int32, reads ...Record) Op {
	return Op{Process: process, Reads: reads, Committed: true}
}

func finally(partition int32, reads ...Record) Op {
	return Op{Kind: Final, Committed: true, Process: 99, Reads: reads, Mark: Mark{Partition: partition}}
}

func bound(at time.Duration, incarnation int32, stable, high int64) Op {
	return Op{Kind: Bound, End: int64(at), Bounds: Bounds{0, incarnation, stable, high}}
}

func mark(kind Kind, process, epoch int32, offset, begin, end int64) Op {
	return Op{Kind: kind, Process: process, Begin: begin, End: end, Mark: Mark{1, epoch, 0, offset}}
}

var a, b, d = sent(0, 0, 1), sent(0, 1, 2), sent(0, 2, 3)

// Each class with a history that has it, and one as near to it as can be that has not.
var histories = []struct {
	class     Class
	has, lack []Op
}{
	{InconsistentOffset, []Op{txn(a), txn(b), poll(2, sent(0, 0, 2))}, []Op{txn(a), txn(b), poll(2, a, b)}},
	{Duplicate, []Op{txn(sent(0, -1, 1)), poll(2, a), poll(3, sent(0, 1, 1))}, []Op{txn(sent(0, -1, 1)), poll(2, a), poll(3, a)}},
	{LostWrite, []Op{txn(a), txn(b), poll(2, b)}, []Op{txn(a).as(Unknown), txn(b), poll(2, b)}},
	{LostWrite, []Op{txn(a, sent(1, 5, 9)).as(Unknown), txn(b), poll(2, b, sent(1, 5, 9))}, []Op{txn(a).as(Fail), txn(b), poll(2, b)}},
	{Unseen, []Op{txn(a), txn(b), finally(0, a)}, []Op{txn(a), txn(b).as(Unknown), finally(0, a)}},
	{AbortedRead, []Op{txn(a).as(Fail), poll(2, a)}, []Op{txn(a).as(Fail), {Process: 2, Reads: []Record{a}}}},
	{NobodyWrote, []Op{txn(a), poll(2, a, sent(0, 1, 7))}, []Op{txn(a), poll(2, a)}},
	{NobodyWrote, []Op{txn(sent(1, -1, 1)), poll(2, a)}, []Op{txn(sent(0, -1, 1)), poll(2, a)}},
	{PrecommittedRead, []Op{txn(a).reading(a)}, []Op{{Transactional: true, Sends: []Record{a}, Reads: []Record{a}}}},
	{PollSkip, []Op{txn(a, b, d), poll(2, a), poll(2, d)}, []Op{txn(a, b, d), poll(2, a), {Kind: Assign, Process: 2}, poll(2, d), poll(3, b)}},
	{PollSkip, []Op{txn(a, d), txn(b).as(Fail).by(5, Producer{}), {Process: 2, Reads: []Record{a}}, {Process: 2, Reads: []Record{d}}}, []Op{txn(a, d), txn(b).as(Fail).by(5, Producer{}), poll(2, a), poll(2, d)}},
	{NonmonotonicPoll, []Op{txn(a, b), poll(2, a, b), poll(2, b)}, []Op{txn(a, b), poll(2, a, b), poll(3, b)}},
	{IntPollSkip, []Op{txn(a, b, d), poll(2, a, d)}, []Op{txn(a, d), txn(b).as(Unknown).by(5, Producer{}), poll(2, a, d)}},
	{IntNonmonotonicPoll, []Op{txn(a, b), poll(2, b, a)}, []Op{txn(a, b), poll(2, a, b)}},
	{IntNonmonotonicSend, []Op{txn(b, a)}, []Op{txn(a, b)}},
	{NonmonotonicSend, []Op{txn(b), txn(a)}, []Op{txn(b), txn(a).by(1, Producer{1, 2})}},
	{TornTransaction, []Op{txn(a, sent(1, 0, 8)).as(Unknown), finally(0, a), finally(1)}, []Op{txn(a, sent(1, 0, 8)).as(Unknown), finally(0), finally(1)}},
	{OffsetRegress, []Op{mark(Commit, 1, 1, 5, 0, 1), mark(Commit, 1, 1, 9, 2, 3), mark(Fetch, 1, 1, 5, 4, 5)}, []Op{mark(Commit, 1, 1, 9, 0, 3), mark(Commit, 1, 1, 5, 1, 2), mark(Fetch, 1, 1, 5, 4, 5)}},
	{OffsetRegress, []Op{mark(Commit, 1, 1, 5, 0, 1), mark(Fetch, 1, 1, -1, 2, 3)}, []Op{mark(Commit, 1, 1, 5, 0, 3), mark(Fetch, 1, 1, -1, 2, 4)}},
	{StuckLastStable, []Op{bound(0, 1, 3, 5), bound(9*time.Second, 1, 3, 6), bound(21*time.Second, 1, 3, 7)}, []Op{bound(0, 1, 3, 3), bound(19*time.Second, 1, 3, 6), bound(21*time.Second, 1, 3, 7)}},
	{BoundRegress, []Op{bound(0, 1, 3, 5), bound(1, 1, 2, 5)}, []Op{bound(0, 1, 3, 5), bound(1, 2, 2, 5)}},
	{Zombie, []Op{{Kind: Fence, End: 5, Producer: Producer{1, 2}}, txn(a).by(1, Producer{1, 1}).times(6, 7)}, []Op{{Kind: Fence, End: 5, Producer: Producer{1, 2}}, txn(a).by(1, Producer{1, 1}).times(4, 7)}},
	{TwoOwners, []Op{mark(Own, 1, 3, 0, 0, 0), mark(Own, 2, 3, 0, 0, 0)}, []Op{mark(Own, 1, 3, 0, 0, 0), mark(Own, 2, 4, 0, 0, 0)}},
	{Vanished, []Op{txn(a), txn(b), poll(2, a, b), finally(0, a)}, []Op{txn(a), txn(b), poll(2, a, b), finally(0, b)}},
	{Circular, []Op{txn(a).reading(sent(1, 0, 8)), txn(sent(1, 0, 8)).by(2, Producer{}).reading(a)}, []Op{txn(a), txn(sent(1, 0, 8)).by(2, Producer{}).reading(a)}},
}

func TestAnomalies(t *testing.T) {
	o := Options{StuckAfter: int64(20 * time.Second)}
	covered := map[Class]bool{}
	for _, h := range histories {
		covered[h.class] = true
		if r := Check(h.has, o); r.Counts[h.class] == 0 {
			t.Errorf("%s is not found in %+v: %s", h.class, h.has, r)
		}
		if r := Check(h.lack, o); r.Found() != 0 {
			t.Errorf("nothing is wrong (%s) with %+v, and there was found: %s", h.class, h.lack, r)
		}
	}
	for _, class := range []Class{
		InconsistentOffset, Duplicate, LostWrite, Unseen, AbortedRead, NobodyWrote, PrecommittedRead, PollSkip, NonmonotonicPoll, IntPollSkip,
		IntNonmonotonicPoll, IntNonmonotonicSend, NonmonotonicSend, TornTransaction, OffsetRegress, StuckLastStable, BoundRegress, Zombie, TwoOwners, Vanished, Circular,
	} {
		if !covered[class] {
			t.Errorf("no history for %s", class)
		}
	}
}

func TestRepeatsAreAllowed(t *testing.T) {
	ops := []Op{txn(sent(0, -1, 1), b), poll(2, a), poll(3, sent(0, 5, 1)), txn(d), txn(sent(0, 3, 4)).by(4, Producer{})}
	if r := Check(ops, Options{Repeats: true}); r.Found() != 0 {
		t.Error(r)
	}
}

func TestCheckCopy(t *testing.T) {
	if lines := CheckCopy([]int64{1, 2, 2}, []int64{2, 1, 2}, 5); lines != nil {
		t.Error(lines)
	}
	want := []string{"value 1 is missing 1 times in the copy", "value 3 is 2 times too often in the copy"}
	if lines := CheckCopy([]int64{1, 2, 3}, []int64{2, 3, 3, 3}, 5); !slices.Equal(lines, want) {
		t.Error(lines)
	}
	if lines := CheckCopy([]int64{1, 2, 3}, nil, 1); len(lines) != 2 {
		t.Error(lines)
	}
}

// large is a sound history: transactions over two partitions, copied by others, polled by a reader.
func large(n int) []Op {
	ops := make([]Op, 0, 2*n+2)
	var offsets [4]int64
	var value int64
	var all [4][]Record
	for i := range n {
		value++
		p := int32(i % 2)
		in := Record{p, offsets[p], value}
		offsets[p] += 2
		value++
		out := Record{p + 2, offsets[p+2], value}
		offsets[p+2] += 2
		at := int64(i) * 10
		ops = append(ops, txn(in).times(at, at+1), txn(out).by(7, Producer{2, 1}).times(at+2, at+3).reading(in))
		all[p], all[p+2] = append(all[p], in), append(all[p+2], out)
	}
	for p, list := range all {
		ops = append(ops, finally(int32(p), list...))
	}
	return ops
}

// TestLarge is linear enough: a hundred thousand operations here, a million in the benchmark.
func TestLarge(t *testing.T) {
	ops := large(50_000)
	if r := Check(ops, Options{}); r.Found() != 0 || r.Committed != 100_000 {
		t.Error(r)
	}
	ops[70_000].Sends[0].Offset = NoOffset
	ops[len(ops)-1].Reads = slices.DeleteFunc(ops[len(ops)-1].Reads, func(r Record) bool { return r.Value == 70_000 })
	if r := Check(ops, Options{}); r.Counts[Unseen]+r.Counts[LostWrite]+r.Counts[Vanished] != 1 {
		t.Error(r)
	}
}

func BenchmarkMillion(b *testing.B) {
	ops := large(500_000)
	for b.Loop() {
		if r := Check(ops, Options{}); r.Found() != 0 {
			b.Fatal(r)
		}
	}
}
