package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// promise is what a partition owes after a crash.
type promise struct {
	exists   bool            // Create has returned
	gone     bool            // Delete has returned
	changing bool            // a call that creates, deletes or truncates is under way: either outcome is right
	appended protocol.Offset // end that was acknowledged: survives the death of the process
	durable  protocol.Offset // end that was flushed: survives a power cut
}

// world runs a story on a disk and knows what must survive.
type world struct {
	t        *testing.T
	disk     *vfs.Mem
	store    *Store
	dirs     []string
	now      time.Time
	promises map[protocol.TopicPartition]*promise
	crashes  int
	cut      bool // the power was cut and the store has not been opened since: what was only acknowledged may be gone
}

func newWorld(t *testing.T, dirs ...string) *world {
	w := &world{t: t, disk: formatted(t, dirs...), dirs: dirs, now: start, promises: map[protocol.TopicPartition]*promise{}}
	for i := range int32(3) {
		w.promises[tp("t", i)] = &promise{}
	}
	return w
}

func (w *world) open() {
	w.t.Helper()
	s, report, err := Open(w.now, options(w.disk, w.dirs...))
	must(w.t, err)
	for _, d := range report.Directories {
		if len(d.Damaged) > 0 || d.Offline != nil {
			w.t.Fatalf("the report says %+v", d)
		}
	}
	w.store = s
}

// changing runs a call during which a partition may be either as before or as after.
func (w *world) changing(p protocol.TopicPartition, call func(now *promise)) {
	w.promises[p].changing = true
	next := *w.promises[p]
	call(&next)
	next.changing = false
	*w.promises[p] = next
}

func (w *world) create(p protocol.TopicPartition) {
	w.changing(p, func(now *promise) {
		create(w.t, w.store, p)
		*now = promise{exists: true}
	})
}

func (w *world) delete(p protocol.TopicPartition) {
	w.changing(p, func(now *promise) {
		must(w.t, w.store.Delete(w.now, p))
		*now = promise{gone: true}
	})
}

func (w *world) append(p protocol.TopicPartition, count int) {
	l := w.store.Log(p)
	for range count {
		must(w.t, tryAppend(l, w.now))
		w.promises[p].appended = l.View().LogEndOffset
	}
	l.SetHighWatermark(l.View().LogEndOffset)
}

func (w *world) truncate(p protocol.TopicPartition, to protocol.Offset) {
	w.changing(p, func(now *promise) {
		l := w.store.Log(p)
		must(w.t, l.TruncateTo(to))
		now.appended, now.durable = l.View().LogEndOffset, min(now.durable, l.View().DurableEnd)
	})
}

// tick lets time pass and notes what is durable afterwards.
func (w *world) tick(by time.Duration) {
	w.now = w.now.Add(by)
	w.store.Tick(w.now)
	for _, l := range w.store.Logs() {
		w.promises[l.TopicPartition()].durable = l.View().DurableEnd
	}
}

func (w *world) close(clean bool) {
	must(w.t, w.store.Close(w.now, clean, 7))
	for _, p := range w.promises {
		if clean && p.exists {
			p.durable = p.appended
		}
	}
}

// watch checks what is left at every operation that can change the disk.
func (w *world) watch(seed uint64) {
	random := seeded(seed)
	w.disk.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			w.checkCrashes(op.String(), random)
		}
		return nil
	})
}

func (w *world) checkCrashes(when string, random func() uint64) {
	w.check("killed before "+when, w.disk.Kill(), true)
	w.check("power cut, all lost, before "+when, w.disk.CrashWith(nil), false)
	w.check("power cut before "+when, w.disk.CrashWith(random), false)
	w.check("killed, then power cut, before "+when, w.disk.Kill().CrashWith(random), false)
}

// check opens a clone, and holds it against the promises; then it is stopped cleanly, its power is cut, and it must
// be the same.
func (w *world) check(when string, m *vfs.Mem, killed bool) {
	w.crashes++
	s, report, err := Open(w.now, options(m, w.dirs...))
	if err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	for _, d := range report.Directories {
		if d.Offline != nil || len(d.Damaged)+len(d.Unknown)+len(d.Checkpoints) > 0 {
			w.t.Fatalf("%s: the report says %+v", when, d)
		}
	}
	for _, p := range sortedKeys(w.promises) {
		w.checkPartition(when, p, s.Log(p), killed)
	}
	before := contents(w.t, when, s)
	must(w.t, s.Close(w.now, true, 8))
	s, report, err = Open(w.now, options(m.CrashWith(nil), w.dirs...))
	if err != nil || report.Directories[0].Trust != log.Clean || len(report.Directories[0].Damaged) > 0 {
		w.t.Fatalf("%s: the second start: %v, %+v", when, err, report)
	}
	if after := contents(w.t, when, s); !slices.Equal(before, after) {
		w.t.Fatalf("%s: after a clean stop there is\n%q, not\n%q", when, after, before)
	}
}

func (w *world) checkPartition(when string, p protocol.TopicPartition, l *log.Log, killed bool) {
	owed := w.promises[p]
	switch {
	case owed.changing:
		return
	case owed.exists && l == nil:
		w.t.Fatalf("%s: %s is gone", when, p)
	case owed.gone && l != nil:
		w.t.Fatalf("%s: %s is back", when, p)
	case l == nil:
		return
	}
	want := owed.durable
	if killed && !w.cut {
		want = owed.appended
	}
	if got := l.View().LogEndOffset; got < want || got > max(owed.appended, want) && (!killed || w.cut) {
		w.t.Fatalf("%s: %s ends at %d, owed are %d (durable) and %d (acknowledged)", when, p, got, owed.durable, owed.appended)
	}
	if owed.exists && l.TopicID() != topicID(p.Topic) {
		w.t.Fatalf("%s: %s has the topic id %s", when, p, l.TopicID())
	}
}

// contents reads every record of every log and checks that it says its offset.
func contents(t *testing.T, when string, s *Store) []string {
	t.Helper()
	var lines []string
	for _, l := range s.Logs() {
		v := l.View()
		lines = append(lines, fmt.Sprintf("%s %s %d..%d", l.TopicPartition(), l.TopicID(), v.LogStartOffset, v.LogEndOffset))
		next := v.LogStartOffset
		for next < v.LogEndOffset {
			r, err := l.Read(next, 1<<20, v.LogEndOffset, true)
			if err != nil {
				t.Fatalf("%s: %s at %d: %v", when, l.TopicPartition(), next, err)
			}
			data, err := r.Region.ReadAll()
			r.Region.Release()
			if err != nil || len(data) == 0 {
				t.Fatalf("%s: %s at %d: %d bytes, %v", when, l.TopicPartition(), next, len(data), err)
			}
			for len(data) > 0 {
				b, rest, err := record.Next(data)
				if err == nil {
					err = b.CheckCRC()
				}
				if err != nil || b.BaseOffset() > next {
					t.Fatalf("%s: %s: a batch at %d where %d is next: %v", when, l.TopicPartition(), b.BaseOffset(), next, err)
				}
				for r, err := range record.Records(b, nil, 1<<20) {
					if err == nil && b.IsControl() {
						continue
					}
					if err != nil || !strings.HasPrefix(string(r.Value), fmt.Sprintf("value %d.", r.Offset)) {
						t.Fatalf("%s: %s: the record at %d is %q, %v", when, l.TopicPartition(), r.Offset, r.Value, err)
					}
				}
				next, data = b.NextOffset(), rest
			}
		}
	}
	return lines
}

// story is everything a store does that changes a disk.
func story(w *world) {
	w.open()
	w.create(tp("t", 0))
	w.append(tp("t", 0), 12)
	w.tick(time.Minute)
	w.create(tp("t", 1))
	w.append(tp("t", 1), 3)
	w.append(tp("t", 0), 9)
	must(w.t, w.store.CheckpointHighWatermarks(offsets{tp("t", 0): 20, tp("t", 1): 3}))
	w.tick(time.Minute)
	w.truncate(tp("t", 0), 10)
	w.append(tp("t", 0), 15)
	w.delete(tp("t", 1))
	w.create(tp("t", 1))
	w.append(tp("t", 1), 2)
	w.tick(time.Minute) // removes the deleted directory, too
	must(w.t, w.store.Log(tp("t", 0)).AdvanceLogStart(w.now, 8))
	w.tick(time.Minute)
	w.append(tp("t", 1), 2)
	w.close(true)
	w.open()
	w.append(tp("t", 1), 5)
	w.create(tp("t", 2))
	w.delete(tp("t", 0))
	w.close(false)
	w.open()
	w.tick(time.Minute)
	w.close(true)
}

func TestCrashAtEveryOperation(t *testing.T) {
	for seed := range uint64(4) {
		dirs := []string{"a", "b"}[:1+seed%2]
		w := newWorld(t, dirs...)
		w.watch(seed)
		story(w)
		w.disk.OnOperation(nil)
		w.checkCrashes("nothing more", seeded(seed+1000))
		t.Logf("seed %d: %d crashes", seed, w.crashes)
		if w.crashes < 1000 {
			t.Errorf("only %d crashes were tried", w.crashes)
		}
	}
}

// TestCrashDuringTheStartAfterACrash cuts the power again at every operation of a recovery.
func TestCrashDuringTheStartAfterACrash(t *testing.T) {
	crashes := 0
	for seed := range uint64(12) {
		w := newWorld(t, "a")
		w.open()
		w.create(tp("t", 0))
		w.append(tp("t", 0), 12)
		w.tick(time.Minute)
		w.append(tp("t", 0), int(7+seed))
		w.create(tp("t", 1))
		if seed%3 == 0 {
			w.close(true)
		}
		random := seeded(seed)
		first := w.disk.Kill()
		if seed%2 == 0 {
			first = w.disk.CrashWith(random)
		}
		w.promises[tp("t", 0)].appended = 12 + protocol.Offset(7+seed)
		w.disk = first
		killedFirst := seed%2 == 1
		first.OnOperation(func(op vfs.Operation) error {
			if op.Kind.Changes() {
				w.check("killed in the start, before "+op.String(), first.Kill(), killedFirst)
				w.check("power cut in the start, before "+op.String(), first.CrashWith(random), false)
				w.check("power cut in the start, all lost, before "+op.String(), first.CrashWith(nil), false)
			}
			return nil
		})
		w.open()
		crashes += w.crashes
	}
	t.Logf("%d crashes", crashes)
	if crashes < 100 {
		t.Errorf("only %d crashes were tried", crashes)
	}
}

// TestErrorAtEveryOperation lets each operation of the story fail once. Whatever the store then says, the disk it
// leaves can be opened with all that was promised.
func TestErrorAtEveryOperation(t *testing.T) {
	failed := 0
	for at := int64(1); ; at++ {
		w := newWorld(t, "a", "b")
		first := w.disk.Operations()
		reached := false
		w.disk.OnOperation(func(op vfs.Operation) error {
			if op.Number == first+at {
				reached = true
				return errEIO
			}
			return nil
		})
		unlucky(w)
		w.disk.OnOperation(nil)
		if !reached {
			break
		}
		failed++
		for _, m := range []*vfs.Mem{w.disk.Kill(), w.disk.CrashWith(nil)} {
			s, report, err := Open(w.now, options(m, "a", "b"))
			if err != nil {
				t.Fatalf("operation %d: %v", at, err)
			}
			for _, d := range report.Directories {
				if d.Offline != nil || len(d.Damaged) > 0 {
					t.Fatalf("operation %d: the report says %+v", at, d)
				}
			}
			contents(t, fmt.Sprintf("operation %d", at), s)
			for _, p := range sortedKeys(w.promises) {
				if owed := w.promises[p]; owed.durable > 0 && (s.Log(p) == nil || s.Log(p).View().LogEndOffset < owed.durable) {
					t.Fatalf("operation %d: %s owes %d", at, p, owed.durable)
				}
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d operations were tried", failed)
	}
}

// unlucky is a story in which anything may fail.
func unlucky(w *world) {
	s, _, err := Open(w.now, options(w.disk, w.dirs...))
	if err != nil {
		return
	}
	w.store = s
	for i := range int32(3) {
		p := tp("t", i)
		l, err := s.Create(p, topicID("t"), protocol.DirectoryID{})
		if err != nil {
			continue
		}
		for range 12 {
			if tryAppend(l, w.now) != nil {
				break
			}
		}
		w.now = w.now.Add(time.Minute)
		s.Tick(w.now)
		if s.Log(p) == l {
			w.promises[p].durable = l.View().DurableEnd
		}
	}
	if s.Delete(w.now, tp("t", 1)) == nil || s.Log(tp("t", 1)) == nil {
		w.promises[tp("t", 1)].durable = 0
	}
	w.now = w.now.Add(time.Hour)
	s.Tick(w.now)
	_ = s.Close(w.now, true, 3) // may fail
}

// TestRandomStories lets seeds choose what happens, crashes with a go on from what was left included.
func TestRandomStories(t *testing.T) {
	seeds := uint64(25)
	crashes := 0
	for seed := range seeds {
		w := newWorld(t, []string{"a", "b"}[:1+seed%2]...)
		random := seeded(seed + 77)
		watch := func() {
			w.disk.OnOperation(func(op vfs.Operation) error {
				if op.Kind.Changes() && random()%6 == 0 {
					w.checkCrashes(fmt.Sprintf("seed %d, %s", seed, op), random)
				}
				return nil
			})
		}
		watch()
		w.open()
		for range 25 {
			w.step(random, watch)
		}
		w.disk.OnOperation(nil)
		w.checkCrashes(fmt.Sprintf("seed %d, the end", seed), random)
		crashes += w.crashes
	}
	t.Logf("%d crashes", crashes)
	if crashes < 1000 {
		t.Errorf("only %d crashes were tried", crashes)
	}
}

func (w *world) step(random func() uint64, watch func()) {
	p := tp("t", int32(random()%3))
	exists := w.promises[p].exists
	switch kind := random() % 10; {
	case !exists:
		w.create(p)
	case kind < 4:
		w.append(p, 1+int(random()%12))
	case kind == 4:
		w.truncate(p, protocol.Offset(random()%uint64(w.promises[p].appended+1)))
	case kind == 5:
		w.delete(p)
	case kind == 6:
		w.tick(time.Minute)
	case kind == 7:
		w.close(random()%2 == 0)
		w.open()
	default:
		w.goOn(random, kind == 8)
		watch()
		w.open()
		w.cut = false
		for q, owed := range w.promises {
			if owed.exists {
				view := w.store.Log(q).View()
				owed.appended, owed.durable = view.LogEndOffset, view.DurableEnd
			}
		}
	}
}

// goOn replaces the disk by what a crash leaves.
func (w *world) goOn(random func() uint64, killed bool) {
	w.disk.OnOperation(nil)
	if killed {
		w.disk = w.disk.Kill()
		return
	}
	w.cut = true
	w.disk = w.disk.CrashWith(random)
}
