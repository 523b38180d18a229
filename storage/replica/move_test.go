package replica

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

var (
	dirA = protocol.DirectoryID{9, 0}
	dirB = protocol.DirectoryID{9, 1}
	dirC = protocol.DirectoryID{9, 2}
)

// mover is a fixture with several directories; it plays the controller, which notes each directory that it is told.
type mover struct {
	*fixture
	mu       sync.Mutex
	assigned map[protocol.TopicPartition]protocol.DirectoryID
	told     []string
}

// assign is the manager's Assign.
func (f *mover) assign(tp protocol.TopicPartition, _ protocol.TopicID, dir protocol.DirectoryID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assigned[tp] = dir
	f.told = append(f.told, fmt.Sprintf("%s in %d", tp, dir[1]))
}

func newMover(t testing.TB, dirs int) *mover {
	f := &mover{assigned: map[protocol.TopicPartition]protocol.DirectoryID{}}
	f.fixture = newFixture(t, func(base *fixture, o *Options) {
		base.dirs = []string{"/a", "/b", "/c"}[:dirs]
		o.Assign = f.assign
	})
	return f
}

// applied has the controller's state of the moment applied, as an Image does.
func (f *mover) applied(tp protocol.TopicPartition, id protocol.TopicID) {
	f.t.Helper()
	f.mu.Lock()
	dir, known := f.assigned[tp]
	f.mu.Unlock()
	if !known {
		dir = dirA
	}
	f.must(f.manager.Apply(f.now, tp, alone(id, 1), dir, true))
}

// ticks lets time pass in steps; after each the controller's answers arrive.
func (f *mover) ticks(count int, tps ...protocol.TopicPartition) {
	f.t.Helper()
	for range count {
		f.now = f.now.Add(250 * time.Millisecond)
		f.manager.Tick(f.now)
		for _, tp := range tps {
			f.applied(tp, ordersID)
		}
	}
}

func (f *mover) directory(tp protocol.TopicPartition) protocol.DirectoryID {
	dir, _ := f.store.DirectoryOf(tp)
	return dir
}

// names lists the directories of partitions below a log directory, ids replaced by a dot.
func names(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if !e.Dir {
			continue
		}
		name := e.Name
		if at := strings.LastIndex(name, "."); at >= 0 {
			name = name[:at+1] + name[strings.LastIndex(name, "-"):]
		}
		list = append(list, name)
	}
	return list
}

// everything reads all bytes of a partition, up to its end.
func (f *fixture) everything(tp protocol.TopicPartition) []byte {
	f.t.Helper()
	l := f.replica(tp).log()
	return contentOf(f.t, l, l.View().LogStartOffset)
}

func contentOf(t testing.TB, l *log.Log, from protocol.Offset) []byte {
	t.Helper()
	var all []byte
	for end := l.View().LogEndOffset; from < end; {
		read, err := l.Read(from, 1<<20, end, true)
		if err != nil {
			t.Fatal(err)
		}
		part, err := read.Region.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		read.Region.Release()
		if len(part) == 0 {
			t.Fatalf("nothing at offset %d of a log that ends at %d", from, end)
		}
		all = append(all, part...)
		for rest := part; len(rest) > 0; {
			var b record.Batch
			if b, rest, err = record.Next(rest); err != nil {
				t.Fatal(err)
			}
			from = b.NextOffset()
		}
	}
	return all
}

// TestMove moves a replica with an idempotent producer and an open transaction while records come in.
func TestMove(t *testing.T) {
	f := newMover(t, 2)
	f.applied(orders, ordersID)
	f.fill(orders, batch(3, 100), idempotent(7, 0, 2), transactional(8, 0, 2), idempotent(7, 2, 1))
	f.must(f.manager.Move(f.now, orders, "/b"))
	if got := names(t, f.fs, "/b"); !slices.Equal(got, []string{"orders-0.-future"}) {
		t.Errorf("in /b: %q", got)
	}
	future := f.store.Futures()
	if len(future) != 1 || future[0].Directory != dirB || future[0].Log.TopicID() != ordersID {
		t.Errorf("%+v", future)
	}
	f.manager.Tick(f.now)
	if !slices.Equal(f.told, []string{"orders-0 in 1"}) {
		t.Errorf("the controller was told %q", f.told)
	}
	f.fill(orders, idempotent(7, 3, 1), batch(1, 10))
	if at := f.directory(orders); at != dirA {
		t.Errorf("moved to %v before the controller had answered", at)
	}
	before := f.everything(orders)
	view := f.replica(orders).log().View()
	epochs := f.replica(orders).log().Epochs()
	f.ticks(2, orders)
	if at := f.directory(orders); at != dirB {
		t.Fatalf("it is in %v", at)
	}
	if _, moving := f.manager.MovingTo(orders); moving || len(f.store.Futures()) != 0 {
		t.Error("it still moves")
	}
	if a, b := names(t, f.fs, "/a"), names(t, f.fs, "/b"); !slices.Equal(a, []string{"orders-0.-delete"}) || !slices.Equal(b, []string{"orders-0"}) {
		t.Errorf("in /a %q, in /b %q", a, b)
	}
	after := f.replica(orders).log().View()
	if !bytes.Equal(before, f.everything(orders)) || after.LogEndOffset != view.LogEndOffset || after.FirstUnstableOffset != view.FirstUnstableOffset {
		t.Errorf("before %+v, after %+v", view, after)
	}
	if got := f.replica(orders).log().Epochs(); !slices.Equal(got, epochs) {
		t.Errorf("epochs %v, before %v", got, epochs)
	}
	if d := f.append(request(orders, idempotent(7, 2, 1), AcksAll)); d.Err != nil || d.BaseOffset != 7 {
		t.Errorf("a duplicate: %+v", d)
	}
	if d := f.append(request(orders, idempotent(7, 5, 1), AcksAll)); code(d.Err) != protocol.OutOfOrderSequenceNumber {
		t.Errorf("a gap: %+v", d)
	}
	f.fill(orders, idempotent(7, 4, 1), transactional(8, 2, 1))
	if r := f.fetch(consumer(at(orders, 0))); r[0].LastStableOffset != 5 {
		t.Errorf("last stable offset %d", r[0].LastStableOffset)
	} else {
		r[0].Records.Release()
	}
	for range 2 { // the old files go when their time has come
		f.now = f.now.Add(2 * time.Minute)
		f.store.Tick(f.now)
	}
	if a := names(t, f.fs, "/a"); len(a) != 0 {
		t.Errorf("left in /a: %q", a)
	}
	for name, disk := range map[string]*vfs.Mem{"killed": f.mem.Kill(), "power cut": f.mem.Crash()} {
		g := f.restart(t, disk)
		g.lead(orders, alone(ordersID, 2))
		if d := g.append(request(orders, idempotent(7, 3, 1), AcksAll)); d.Err != nil || d.BaseOffset != 8 {
			t.Errorf("%s: a duplicate: %+v", name, d)
		}
	}
}

func TestMoveRefusals(t *testing.T) {
	f := newMover(t, 3)
	f.applied(orders, ordersID)
	long := protocol.TopicPartition{Topic: strings.Repeat("x", 240)}
	for _, c := range []struct {
		tp   protocol.TopicPartition
		dir  string
		want protocol.ErrorCode
	}{
		{orders, "/d", protocol.LogDirNotFound},
		{orders, "/a/", protocol.LogDirNotFound},
		{long, "/b", protocol.InvalidTopicException},
		{bills, "/b", protocol.UnknownTopicOrPartition},
		{orders, "/a", protocol.None},
	} {
		if err := f.manager.Move(f.now, c.tp, c.dir); code(err) != c.want {
			t.Errorf("%s to %s: %v", c.tp, c.dir, err)
		}
	}
	// What is not here yet is made where it was wished, whatever the controller chose.
	f.must(f.manager.Apply(f.now, bills, alone(billsID, 0), dirA, true))
	if at := f.directory(bills); at != dirB {
		t.Errorf("the wish for a partition to come put it into %v", at)
	}
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.store.FailDirectory(dirC, vfs.ErrLocked)
	for i, want := range []protocol.ErrorCode{protocol.KafkaStorageError, protocol.None, protocol.None} {
		dir := []string{"/c", "/b", "/a"}[i]
		if err := f.manager.Move(f.now, orders, dir); code(err) != want {
			t.Errorf("to %s with one directory offline: %v", dir, err)
		}
	}
	if err := f.manager.Move(f.now, bills, "/a"); code(err) != protocol.KafkaStorageError {
		t.Errorf("a new move with one directory offline: %v", err)
	}
	f.store.FailDirectory(dirB, vfs.ErrLocked)
	if err := f.manager.Move(f.now, bills, "/a"); code(err) != protocol.KafkaStorageError {
		t.Errorf("of an offline replica: %v", err)
	}
}

// TestMoveCancelled gives moves up in each way: to where the replica is, to a third directory, with the topic.
func TestMoveCancelled(t *testing.T) {
	f := newMover(t, 3)
	f.applied(orders, ordersID)
	f.fill(orders, batch(3, 100))
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.must(f.manager.Move(f.now, orders, "/a"))
	if len(f.store.Futures()) != 0 || f.directory(orders) != dirA || len(f.told) != 0 {
		t.Errorf("futures %v, controller told %q", f.store.Futures(), f.told)
	}
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.manager.Tick(f.now) // asks the controller
	f.must(f.manager.Move(f.now, orders, "/c"))
	if want := []string{"orders-0 in 1", "orders-0 in 0"}; !slices.Equal(f.told, want) {
		t.Errorf("the controller was told %q", f.told)
	}
	f.ticks(3, orders)
	if at := f.directory(orders); at != dirC {
		t.Errorf("it is in %v", at)
	}
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.ticks(1)
	f.must(f.manager.Remove(f.now, orders, true))
	f.ticks(2)
	if got := names(t, f.fs, "/b"); !slices.Equal(got, []string{"orders-0.-delete", "orders-0.-delete", "orders-0.-delete"}) || len(f.store.Futures()) != 0 {
		t.Errorf("after the topic's deletion /b has %q", got)
	}
}

// TestMoveFollowsTheLog: records deleted, log cut, options changed while a replica moves.
func TestMoveFollowsTheLog(t *testing.T) {
	f := newMover(t, 2)
	f.options.SegmentBytes = 3000
	f.applied(orders, ordersID)
	for range 10 {
		f.fill(orders, batch(3, 300))
	}
	f.manager.SetMoveLimit(1500) // one batch at a time
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.ticks(4)
	futures := f.store.Futures()
	end := futures[0].Log.View().LogEndOffset
	if end == 0 || end == 30 {
		t.Fatalf("the limit lets it come to %d", end)
	}
	// Deleted beyond what was copied, in the middle of a batch.
	low := newPending[protocol.Offset](t)
	f.manager.DeleteRecords(f.now, orders, 25, time.Second, func(at protocol.Offset, err error) { f.must(err); low.done(at) })
	options := f.options
	options.MaxMessageBytes = 12345
	f.manager.SetOptions(f.now, "orders", options)
	f.ticks(6)
	view := futures[0].Log.View()
	if view.LogStartOffset != 25 || futures[0].Log.Options().MaxMessageBytes != 12345 {
		t.Errorf("the future log is %+v with %+v", view, futures[0].Log.Options())
	}
	f.manager.SetMoveLimit(-1)
	f.ticks(1)
	// Cut off, as an unclean election does it, and written anew under another epoch.
	r := f.replica(orders)
	r.appendMu.Lock()
	f.must(r.log().TruncateTo(27))
	f.must(r.log().AssignEpoch(5, 27))
	f.must(r.log().Append(f.now, 5, []*log.Entry{{Batch: batch(2, 70)}}))
	r.appendMu.Unlock()
	f.ticks(3, orders)
	if at := f.directory(orders); at != dirB {
		t.Fatalf("it is in %v", at)
	}
	got := r.log().View()
	if got.LogStartOffset != 25 || got.LogEndOffset != 29 || got.LatestEpoch != 5 {
		t.Errorf("moved: %+v", got)
	}
	if all := f.everything(orders); len(all) == 0 || record.Batch(all).BaseOffset() != 24 {
		t.Errorf("its first batch is at %d", record.Batch(all).BaseOffset())
	}
}

// TestMoveGoesOnAfterAStart: a future log that a start finds is filled up, whether the controller knows of it or not.
func TestMoveGoesOnAfterAStart(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		for _, clean := range []bool{false, true} {
			f := newMover(t, 2)
			f.applied(orders, ordersID)
			f.fill(orders, batch(3, 100), idempotent(7, 0, 2), batch(3, 100))
			if !accepted {
				f.manager.SetMoveLimit(10)
			}
			f.must(f.manager.Move(f.now, orders, "/b"))
			f.ticks(1)
			before := f.everything(orders)
			f.must(f.manager.Close(f.now))
			f.must(f.store.Close(f.now, clean, 1))
			g := &mover{assigned: f.assigned}
			g.fixture = &fixture{t: t, fs: f.mem.Kill(), dirs: f.dirs, options: f.options, now: f.now}
			g.open(false, func(_ *fixture, o *Options) { o.Assign = g.assign })
			t.Cleanup(g.close)
			g.applied(orders, ordersID)
			if target, moving := g.manager.MovingTo(orders); !moving || target != dirB {
				t.Errorf("accepted %v, clean %v: the move does not go on", accepted, clean)
			}
			g.ticks(3, orders)
			if g.directory(orders) != dirB || !bytes.Equal(before, g.everything(orders)) {
				t.Errorf("accepted %v, clean %v: it is in %v", accepted, clean, g.directory(orders))
			}
			if told := len(g.told); told != map[bool]int{false: 1, true: 0}[accepted] {
				t.Errorf("accepted %v: the controller was told %q", accepted, g.told)
			}
		}
	}
}

// TestMoveCrashes looks at every operation of a move at what a start makes of a kill and of power cuts: the partition is
// in one directory, has all that was acknowledged, or durable, and its move comes to its end.
func TestMoveCrashes(t *testing.T) {
	f := newMover(t, 2)
	f.options.SegmentBytes = 700
	f.applied(orders, ordersID)
	for i := range int32(4) {
		f.fill(orders, batch(1, 200), idempotent(7, i, 1))
	}
	f.must(f.replica(orders).log().Flush(f.now))
	durable := f.everything(orders)
	f.fill(orders, batch(1, 50))
	acknowledged := f.everything(orders)
	random := randomWords(5)
	crashes := 0
	watching := true
	f.mem.OnOperation(func(op vfs.Operation) error {
		if watching && op.Kind.Changes() {
			watching = false
			f.mu.Lock()
			assigned := map[protocol.TopicPartition]protocol.DirectoryID{}
			for tp, dir := range f.assigned {
				assigned[tp] = dir
			}
			f.mu.Unlock()
			for name, disk := range map[string]*vfs.Mem{
				"kill": f.mem.Kill(), "power cut, all lost": f.mem.CrashWith(nil), "power cut": f.mem.CrashWith(random), "kill and power cut": f.mem.Kill().CrashWith(random),
			} {
				crashes++
				want := durable
				if name == "kill" {
					want = acknowledged
				}
				f.checkCrash(t, fmt.Sprintf("%s before %s", name, op), disk, assigned, want)
			}
			watching = true
		}
		return nil
	})
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.ticks(3, orders)
	watching = false
	if f.directory(orders) != dirB || crashes < 100 {
		t.Errorf("it is in %v after %d crashes", f.directory(orders), crashes)
	}
}

func (f *mover) checkCrash(t *testing.T, when string, disk *vfs.Mem, assigned map[protocol.TopicPartition]protocol.DirectoryID, want []byte) {
	t.Helper()
	g := &mover{assigned: assigned}
	g.fixture = &fixture{t: t, fs: disk, mem: disk, dirs: f.dirs, options: f.options, now: f.now}
	g.open(false, func(_ *fixture, o *Options) { o.Assign = g.assign })
	defer g.close()
	if failed := g.store.Failed(); len(failed) > 0 {
		t.Fatalf("%s: offline: %v", when, failed)
	}
	g.applied(orders, ordersID)
	if all := g.everything(orders); !bytes.HasPrefix(all, want) {
		t.Fatalf("%s: %d bytes are left, not %d", when, len(all), len(want))
	}
	if d := g.append(request(orders, idempotent(7, 3, 1), AcksAll)); d.Err != nil || d.BaseOffset != 7 {
		t.Fatalf("%s: a duplicate: %+v", when, d)
	}
	g.ticks(4, orders)
	if len(g.store.Futures()) > 0 {
		t.Fatalf("%s: the move does not end", when)
	}
	if all := g.everything(orders); !bytes.HasPrefix(all, want) {
		t.Fatalf("%s: %d bytes are left after the move", when, len(all))
	}
	places := 0
	for _, dir := range f.dirs {
		for _, name := range names(t, disk, dir) {
			if name == "orders-0" {
				places++
			}
		}
	}
	if places != 1 {
		t.Fatalf("%s: it is in %d directories", when, places)
	}
}

// TestMoveUnderLoad moves a replica to and fro while producers and consumers are at work on other goroutines.
func TestMoveUnderLoad(t *testing.T) {
	var workers sync.WaitGroup
	f := &mover{assigned: map[protocol.TopicPartition]protocol.DirectoryID{}}
	f.fixture = newFixture(t, func(base *fixture, o *Options) {
		base.dirs = []string{"/a", "/b"}
		base.options.SegmentBytes = 64 << 10
		o.Assign, o.Workers = f.assign, workers.Go
	})
	defer workers.Wait()
	f.applied(orders, ordersID)
	var stop atomic.Bool
	var produced atomic.Int64
	var running sync.WaitGroup
	running.Go(func() {
		for i := int32(0); !stop.Load(); i++ {
			answer := make(chan AppendResult, 1)
			f.manager.Append(start, request(orders, idempotent(7, i, 1), AcksAll), func(r AppendResult) { answer <- r })
			if r := <-answer; r.Err != nil || r.BaseOffset != protocol.Offset(i) {
				t.Errorf("record %d: %+v", i, r)
				return
			}
			produced.Add(1)
		}
	})
	running.Go(func() {
		for next := protocol.Offset(0); !stop.Load(); {
			answer := make(chan []FetchResult, 1)
			req := consumer(at(orders, next))
			req.MaxWait = 0
			f.manager.Fetch(start, req, func(r []FetchResult) { answer <- r })
			r := <-answer
			if r[0].Err != nil {
				t.Errorf("at offset %d: %v", next, r[0].Err)
				return
			}
			for _, b := range batchesOf(t, &r[0]) {
				if b.BaseOffset() != next {
					t.Errorf("a batch at %d instead of %d", b.BaseOffset(), next)
					return
				}
				next = b.NextOffset()
			}
		}
	})
	now := f.now
	for round := range 6 {
		dir := []string{"/b", "/a"}[round%2]
		want := []protocol.DirectoryID{dirB, dirA}[round%2]
		if err := f.manager.Move(now, orders, dir); err != nil {
			t.Error(err)
		}
		for f.directory(orders) != want && !t.Failed() {
			now = now.Add(time.Second)
			f.manager.Tick(now)
			f.must(f.manager.Apply(now, orders, alone(ordersID, 1), f.assignment(), false))
			f.store.Tick(now)
		}
	}
	stop.Store(true)
	running.Wait()
	for _, d := range f.store.Directories() {
		if d.Offline != nil {
			t.Errorf("%s is offline: %v", d.Path, d.Offline)
		}
	}
	if end := f.replica(orders).log().View().LogEndOffset; int64(end) != produced.Load() || end == 0 {
		t.Errorf("the log ends at %d after %d records", end, produced.Load())
	}
}

func (f *mover) assignment() protocol.DirectoryID {
	f.mu.Lock()
	defer f.mu.Unlock()
	if dir, known := f.assigned[orders]; known {
		return dir
	}
	return dirA
}

// TestMoveFailures: the target's disk is full, then fails; the replica stays, and is served all the time.
func TestMoveFailures(t *testing.T) {
	f := newMover(t, 3)
	f.applied(orders, ordersID)
	f.fill(orders, batch(3, 100))
	var fault error
	f.mem.OnOperation(func(op vfs.Operation) error {
		if strings.HasPrefix(op.Name, "b/orders-0.") && op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".log") {
			return fault
		}
		return nil
	})
	defer f.mem.OnOperation(nil)
	f.must(f.manager.Move(f.now, orders, "/b"))
	fault = syscall.ENOSPC
	f.ticks(2)
	if _, moving := f.manager.MovingTo(orders); !moving {
		t.Error("a full disk ended the move")
	}
	fault = syscall.EIO
	f.now = f.now.Add(time.Minute)
	f.ticks(2)
	if _, moving := f.manager.MovingTo(orders); moving || f.store.Directories()[1].Offline == nil {
		t.Errorf("a failed disk did not end the move: %+v", f.store.Directories())
	}
	f.fill(orders, batch(3, 100))
	if at := f.directory(orders); at != dirA {
		t.Errorf("it is in %v", at)
	}
}

// TestTargetFailsInTheSwap: whatever the other directory fails at, a replica that is not there yet works where it is.
func TestTargetFailsInTheSwap(t *testing.T) {
	stayed := 0
	for n := 1; ; n++ {
		f := newMover(t, 3)
		f.applied(orders, ordersID)
		f.fill(orders, batch(3, 100))
		f.must(f.manager.Move(f.now, orders, "/b"))
		f.ticks(1, orders) // filled, asked, accepted
		f.fill(orders, batch(3, 100))
		count := 0
		f.mem.OnOperation(func(op vfs.Operation) error {
			if !strings.HasPrefix(op.Name, "b/") || !op.Kind.Changes() {
				return nil
			}
			if count++; count < n {
				return nil
			}
			return syscall.EIO
		})
		f.ticks(2)
		f.mem.OnOperation(nil)
		if f.store.Directories()[1].Offline == nil {
			if n < 5 || stayed < 3 || f.directory(orders) != dirB {
				t.Errorf("after %d faults, %d of which left it where it was, it is in %v", n-1, stayed, f.directory(orders))
			}
			return
		}
		if f.directory(orders) == dirA {
			stayed++
			f.fill(orders, batch(3, 100))
			if told := f.told[len(f.told)-1]; told != "orders-0 in 0" {
				t.Errorf("fault %d: the controller was told last of %s", n, told)
			}
		}
	}
}

// TestStopEndsAMove: a move that the controller has accepted is over when the node has stopped.
func TestStopEndsAMove(t *testing.T) {
	f := newMover(t, 2)
	f.applied(orders, ordersID)
	f.fill(orders, batch(3, 100))
	f.must(f.manager.Move(f.now, orders, "/b"))
	f.ticks(1, orders) // filled, asked, accepted
	f.fill(orders, batch(3, 100))
	before := f.everything(orders)
	f.must(f.manager.Close(f.now))
	f.must(f.store.Close(f.now, true, 1))
	if a, b := names(t, f.fs, "/a"), names(t, f.fs, "/b"); !slices.Equal(a, []string{"orders-0.-delete"}) || !slices.Equal(b, []string{"orders-0"}) {
		t.Errorf("in /a %q, in /b %q", a, b)
	}
	g := f.restart(t, f.mem.Crash())
	g.lead(orders, alone(ordersID, 2))
	if !bytes.Equal(before, g.everything(orders)) {
		t.Error("records are missing")
	}
}
