package clean

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// bench is a Cleaner with some logs, on a clock of its own.
type bench struct {
	t       *testing.T
	disk    *vfs.Mem
	now     time.Time
	logs    []*log.Log
	offsets map[protocol.TopicPartition]protocol.Offset
	cleaner *Cleaner
	failed  []error
	tasks   []func()
	later   bool // tasks wait in tasks
}

func newBench(t *testing.T, s Settings) *bench {
	b := &bench{t: t, disk: newDisk(1), now: testTime.Add(time.Hour), offsets: map[protocol.TopicPartition]protocol.Offset{}}
	b.cleaner = New(Options{
		Logs:   func() []*log.Log { return slices.Clone(b.logs) },
		Offset: func(tp protocol.TopicPartition) protocol.Offset { return b.offsets[tp] },
		SetOffset: func(l *log.Log, offset protocol.Offset) error {
			b.offsets[l.TopicPartition()] = offset
			return nil
		},
		Exclusive: func(l *log.Log, task func()) bool {
			if !slices.Contains(b.logs, l) {
				return false
			}
			task()
			return true
		},
		Failed: func(_ *log.Log, err error) { b.failed = append(b.failed, err) },
		Pool:   testPool,
		Workers: func(task func()) {
			if b.later {
				b.tasks = append(b.tasks, task)
				return
			}
			task()
		},
	}, s)
	return b
}

// add makes a log with so many batches of new keys, and so many that say the same again.
func (b *bench) add(name string, o log.Options, fresh, again int) *log.Log {
	b.t.Helper()
	tp := protocol.TopicPartition{Topic: name}
	l, err := log.Create(testEnv(b.disk), "d/"+tp.String(), tp, protocol.TopicID{}, o)
	must(b.t, err)
	b.logs = append(b.logs, l)
	b.write(l, fresh, again)
	return l
}

func (b *bench) write(l *log.Log, fresh, again int) {
	for i := range fresh {
		add(b.t, l, batch(compress.None, from{}, testTime, rec{fmt.Sprintf("%s %d", l.TopicPartition(), i), "value"}))
	}
	for range again {
		add(b.t, l, batch(compress.None, from{}, testTime, rec{"again", "value"}))
	}
}

// run ticks until so much time has passed.
func (b *bench) run(d time.Duration) (ticks int) {
	end := b.now.Add(d)
	for {
		next := b.cleaner.NextDeadline()
		if next.IsZero() || next.After(end) {
			b.now = end
			return ticks
		}
		if next.After(b.now) {
			b.now = next
		}
		b.cleaner.Tick(b.now)
		ticks++
		if ticks > 100_000 {
			b.t.Fatal("the cleaner does not rest")
		}
	}
}

func (b *bench) compactedUpTo(l *log.Log) protocol.Offset { return b.offsets[l.TopicPartition()] }

func TestTheDirtiestComesFirst(t *testing.T) {
	b := newBench(t, DefaultSettings())
	o := testOptions()
	clean, dirty, plain := b.add("clean", o, 40, 30), b.add("dirty", o, 5, 100), b.add("plain", log.Options{SegmentBytes: 1000, Delete: true, SegmentAge: time.Hour}, 5, 100)
	b.run(0)
	for _, l := range []*log.Log{clean, dirty} {
		if b.compactedUpTo(l) == 0 || b.compactedUpTo(l) != l.View().ActiveSegmentBase {
			t.Errorf("%s is compacted up to %d of %d", l.TopicPartition(), b.compactedUpTo(l), l.View().ActiveSegmentBase)
		}
	}
	if b.compactedUpTo(plain) != 0 {
		t.Error("a log that is not compacted was")
	}
	s := b.cleaner.Stats(b.now)
	if s.Rounds != 2 || s.RecopyPercent == 0 || s.RecopyPercent >= 100 || s.BytesWritten >= s.BytesRead || s.MaxDirtyPercent != 0 {
		t.Errorf("%+v", s)
	}
	// Of what comes later, half must be new.
	before := b.compactedUpTo(clean)
	b.write(clean, 0, 12)
	b.run(time.Minute)
	if b.compactedUpTo(clean) != before {
		t.Error("a log was compacted that is hardly dirty")
	}
	b.write(clean, 0, 60)
	b.run(time.Minute)
	if b.compactedUpTo(clean) == before {
		t.Error("a dirty log was not compacted")
	}
}

func TestLags(t *testing.T) {
	b := newBench(t, DefaultSettings())
	o := testOptions()
	o.MinCompactionLag = 3 * time.Hour
	young := b.add("young", o, 0, 100)
	o.MinCompactionLag, o.MaxCompactionLag, o.MinCleanableRatio = 0, 2*time.Hour, 1
	old := b.add("old", o, 0, 100)
	b.run(30 * time.Minute)
	if b.compactedUpTo(young) != 0 || b.compactedUpTo(old) != 0 {
		t.Fatalf("compacted too early: %v", b.offsets)
	}
	b.run(time.Hour)
	if b.compactedUpTo(young) != 0 || b.compactedUpTo(old) == 0 {
		t.Fatalf("after max.compaction.lag.ms: %v", b.offsets)
	}
	b.run(time.Hour)
	if b.compactedUpTo(young) == 0 {
		t.Fatalf("after min.compaction.lag.ms: %v", b.offsets)
	}
	// The active segment is rolled by the next batch.
	before := old.View().ActiveSegmentBase
	e := &log.Entry{Batch: batch(compress.None, from{}, testTime.Add(3*time.Hour), rec{"again", "value"}), Origin: log.OriginCoordinator}
	must(t, old.Append(testTime.Add(3*time.Hour), 0, []*log.Entry{e}))
	if old.View().ActiveSegmentBase == before {
		t.Error("max.compaction.lag.ms does not roll")
	}
}

func TestFailuresAreRetried(t *testing.T) {
	b := newBench(t, DefaultSettings())
	l, other := b.add("bad", testOptions(), 0, 100), b.add("good", testOptions(), 0, 100)
	bad := true
	b.disk.OnOperation(func(op vfs.Operation) error {
		if bad && op.Kind == vfs.OpCreate && op.Name == "d/bad-0/00000000000000000000.log.cleaned" {
			return syscall.ENOSPC
		}
		return nil
	})
	b.run(time.Hour)
	s := b.cleaner.Stats(b.now)
	if b.compactedUpTo(l) != 0 || b.compactedUpTo(other) == 0 {
		t.Fatalf("compacted: %v", b.offsets)
	}
	// 15 s, 30 s, 1 min, 2, 4, 8, 16, 32.
	if len(b.failed) != 8 || !errors.Is(b.failed[0], syscall.ENOSPC) || s.Failures != 8 {
		t.Errorf("it failed %d times: %v", len(b.failed), b.failed[0])
	}
	if len(s.Uncleanable) != 1 || s.Uncleanable[0].Partitions != 1 || s.Uncleanable[0].Bytes == 0 || s.Uncleanable[0].Directory != "d" {
		t.Errorf("%+v", s.Uncleanable)
	}
	bad = false
	b.run(time.Hour)
	if s := b.cleaner.Stats(b.now); b.compactedUpTo(l) == 0 || len(s.Uncleanable) != 0 {
		t.Errorf("given up: %v %+v", b.offsets, s.Uncleanable)
	}
}

// TestBrokenBatch: what is damaged is not compacted, and stays as it is.
// TestBrokenBatch turns each bit of the first batch's header, one at a time, and one of a record: nothing of a log is removed that is not
// as it was written. The leader epoch, which the checksum does not know either, decides nothing here.
func TestBrokenBatch(t *testing.T) {
	for at := range int64(71) {
		if at >= 12 && at < 16 {
			continue // the leader epoch
		}
		for bit := range 8 {
			b := newBench(t, DefaultSettings())
			l := b.add("bad", testOptions(), 0, 100)
			file, err := b.disk.OpenFile("d/bad-0/00000000000000000000.log", 2)
			must(t, err)
			var is [1]byte
			_, err = file.ReadAt(is[:], at)
			must(t, err)
			_, err = file.WriteAt([]byte{is[0] ^ 1<<bit}, at)
			must(t, err)
			must(t, file.Close())
			before := l.Size()
			b.run(time.Minute)
			if len(b.failed) == 0 || b.compactedUpTo(l) != 0 || l.Size() != before || l.Failed() != nil {
				t.Errorf("bit %d of byte %d: failed %v, compacted up to %d", bit, at, b.failed, b.compactedUpTo(l))
			}
		}
	}
}

func TestThrottle(t *testing.T) {
	s := DefaultSettings()
	s.BytesPerSecond, s.BufferBytes = 1000, 8<<10
	b := newBench(t, s)
	l := b.add("t", testOptions(), 0, 400)
	size := l.Size()
	b.run(time.Duration(size/1000) * time.Second) // it is read twice
	if b.compactedUpTo(l) != 0 {
		t.Errorf("%d bytes were compacted in half the time", size)
	}
	b.run(time.Duration(2*size/1000) * time.Second)
	if b.compactedUpTo(l) == 0 {
		t.Errorf("%d bytes were not compacted in time", size)
	}
}

func TestLanes(t *testing.T) {
	s := DefaultSettings()
	s.Threads, s.BufferBytes = 3, 1
	s.BytesPerSecond = 20000
	b := newBench(t, s)
	b.later = true
	for i := range 5 {
		b.add(fmt.Sprint("t", i), testOptions(), 0, 200)
	}
	step := func() {
		b.cleaner.Tick(b.now)
		tasks := b.tasks
		b.tasks = nil
		for _, task := range tasks {
			task()
		}
		b.now = b.now.Add(time.Second / 10)
	}
	step()
	held := map[*log.Log]int{}
	for _, l := range b.cleaner.lanes {
		held[l.round.log]++
	}
	if len(held) != 3 {
		t.Errorf("three lanes hold %d logs", len(held))
	}
	// Fewer threads: what the others have begun is removed.
	s.Threads = 1
	b.cleaner.Configure(s)
	for range 20 {
		step()
	}
	if b.cleaner.lanes[1].round != nil || b.cleaner.lanes[2].round != nil {
		t.Error("a lane goes on that is not wanted any more")
	}
	s.Threads, s.BytesPerSecond = 2, 1e9
	b.cleaner.Configure(s)
	for range 300 {
		step()
	}
	for _, l := range b.logs {
		if b.compactedUpTo(l) != l.View().ActiveSegmentBase {
			t.Errorf("%s is compacted up to %d", l.TopicPartition(), b.compactedUpTo(l))
		}
	}
	s.Enabled = false
	b.cleaner.Configure(s)
	b.write(b.logs[0], 0, 200)
	before := b.offsets[b.logs[0].TopicPartition()]
	for range 300 {
		step()
	}
	if b.compactedUpTo(b.logs[0]) != before {
		t.Error("a cleaner that is off compacts")
	}
}

func TestCheckpointsThatDoNotFit(t *testing.T) {
	b := newBench(t, DefaultSettings())
	ahead, behind, cut := b.add("ahead", testOptions(), 0, 100), b.add("behind", testOptions(), 0, 100), b.add("cut", testOptions(), 30, 70)
	b.offsets[ahead.TopicPartition()] = 1000
	must(t, behind.AdvanceLogStart(b.now, 20))
	b.run(0)
	for _, l := range b.logs {
		if b.compactedUpTo(l) != l.View().ActiveSegmentBase {
			t.Errorf("%s is compacted up to %d", l.TopicPartition(), b.compactedUpTo(l))
		}
	}
	// What was compacted and then cut off and written anew is dirty again.
	must(t, cut.TruncateTo(30))
	b.write(cut, 0, 300)
	b.run(time.Hour)
	if got := lines(t, cut); len(got) > 60 {
		t.Errorf("%d batches are left", len(got))
	}
}

// TestCloseLeavesNothing: an unfinished round leaves no file.
func TestCloseLeavesNothing(t *testing.T) {
	s := DefaultSettings()
	s.BufferBytes, s.BytesPerSecond = 8<<10, 10_000
	for n := range 60 {
		b := newBench(t, s)
		b.add("t", testOptions(), 10, 100)
		for range n {
			b.cleaner.Tick(b.now)
			b.now = b.now.Add(10 * time.Second)
		}
		b.cleaner.Close()
		entries, err := b.disk.ReadDir("d/t-0")
		must(t, err)
		for _, e := range entries {
			if suffix := path.Ext(e.Name); suffix == segment.CleanedSuffix || suffix == segment.SwapSuffix {
				t.Fatalf("after %d steps %s is left", n, e.Name)
			}
		}
	}
}
