package store

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// TestPromoteWithoutRoom lets each operation of the swap of two directories find no room: it alone, or it and all that come after
// it. No directory goes offline; the partition works all the time, in the one or the other; what a crash leaves is opened with all
// records, without room too as soon as there is some; and in the end everything has its name.
func TestPromoteWithoutRoom(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasts %v", lasts), func(t *testing.T) {
			back, on := 0, 0
			for k := 1; ; k++ {
				f := &fullPromotion{T: t, lasts: lasts}
				if !f.run(k) {
					break
				}
				if f.moved {
					on++
				} else {
					back++
				}
			}
			if back == 0 || on == 0 {
				t.Errorf("%d times the partition stayed, %d times it had moved", back, on)
			}
		})
	}
}

type fullPromotion struct {
	*testing.T
	lasts bool
	disk  *vfs.Mem
	store *Store
	shown bool // to readers
	moved bool // without room
	when  string
}

// run lets operation k that may want room find none; false: there are not so many.
func (f *fullPromotion) run(k int) bool {
	t, p := f.T, tp("t", 0)
	f.disk = formatted(t, "a", "b")
	o := options(f.disk, "a", "b")
	offline := 0
	o.Offline = func(Directory) { offline++ }
	f.store = open(t, o)
	appendTo(t, create(t, f.store, p), 3)
	must(t, f.store.Log(p).Flush(start))
	must(t, f.store.CreateFuture(p, directoryID(1)))
	must(t, f.store.WithFuture(p, func(l *log.Log) error { appendTo(t, l, 3); return nil }))
	count, hit := 0, false
	f.disk.OnOperation(func(op vfs.Operation) error {
		switch op.Kind {
		case vfs.OpCreate, vfs.OpWrite, vfs.OpMkdir, vfs.OpRename:
			if count++; count == k || hit && f.lasts {
				if !hit {
					f.when = fmt.Sprintf("no room at %d, %s", k, op)
				}
				hit = true
				return syscall.EDQUOT
			}
		}
		return nil
	})
	err := f.promote()
	if !hit {
		must(t, err)
		return false
	}
	if (err == nil) != f.shown {
		t.Fatalf("%s: shown %v, %v", f.when, f.shown, err)
	}
	f.moved = f.shown
	f.holds(f.store)
	f.crash()
	f.store.Tick(start.Add(time.Second))
	f.store.Tick(start.Add(time.Minute)) // still no room
	f.holds(f.store)
	f.disk.OnOperation(nil)
	f.finish(offline)
	return true
}

func (f *fullPromotion) promote() error {
	p := tp("t", 0)
	present := f.store.Log(p)
	failed, err := f.store.Promote(start, p, 3, func(future *log.Log) error { return future.TakeOver(start, present) }, func(*log.Log) { f.shown = true })
	if !failed.IsZero() || err != nil && !errors.Is(err, syscall.EDQUOT) {
		f.Fatalf("%s: directory %v failed: %v", f.when, failed, err)
	}
	return err
}

// holds checks that the partition works and has its records.
func (f *fullPromotion) holds(s *Store) {
	f.Helper()
	l := s.Log(tp("t", 0))
	if l == nil || l.View().LogEndOffset != 3 || l.Failed() != nil {
		f.Fatalf("%s: the partition does not work: %v, %v", f.when, l, s.PartitionError(tp("t", 0)))
	}
	read, err := l.Read(0, 1<<20, 3, true)
	must(f.T, err)
	defer read.Region.Release()
	if bytes, err := read.Region.ReadAll(); err != nil || len(bytes) == 0 {
		f.Fatalf("%s: %d bytes are read, %v", f.when, len(bytes), err)
	}
}

// crash starts on what a crash leaves, with room and without any.
func (f *fullPromotion) crash() {
	left := []*vfs.Mem{f.disk.Kill()}
	f.disk.CrashStates(func(_ string, m *vfs.Mem) { left = append(left, m) })
	for i, m := range left {
		for _, full := range []bool{false, true} {
			m := m.Kill()
			if full {
				m.OnOperation(func(op vfs.Operation) error {
					switch op.Kind {
					case vfs.OpCreate, vfs.OpWrite, vfs.OpMkdir, vfs.OpRename:
						return syscall.ENOSPC
					}
					return nil
				})
			}
			o := options(m, "a", "b")
			o.Assigned = func(protocol.TopicPartition) protocol.DirectoryID { return directoryID(1) }
			p, err := Prepare(o)
			must(f.T, err)
			s, _, err := p.Load(start, nil)
			must(f.T, err)
			for _, d := range s.Directories() {
				if d.Offline != nil {
					f.Fatalf("%s, state %d, full %v: %s is offline: %v", f.when, i, full, d.Path, d.Offline)
				}
			}
			if s.Log(tp("t", 0)) == nil && full {
				if err := s.Reopen(start, tp("t", 0)); !errors.Is(err, syscall.ENOSPC) {
					f.Fatalf("%s, state %d: opened without room: %v", f.when, i, err)
				}
				m.OnOperation(nil)
				must(f.T, s.Reopen(start, tp("t", 0)))
			}
			f.holds(s)
			m.OnOperation(nil)
			must(f.T, s.Close(start, true, 7))
		}
	}
}

// finish finds room.
func (f *fullPromotion) finish(offline int) {
	t, p := f.T, tp("t", 0)
	if !f.shown {
		must(t, f.promote())
	} else if f.store.logs[p].misnamed.Load() {
		if err := f.store.CreateFuture(p, directoryID(0)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: it moves again: %v", f.when, err)
		}
	}
	f.store.Tick(start.Add(2 * time.Minute))
	f.store.Tick(start.Add(4 * time.Minute))
	if a, b := onDisk(t, f.disk, "a"), onDisk(t, f.disk, "b"); a != "" || b != "t-0" || offline != 0 {
		t.Fatalf("%s: a has %q, b has %q, %d directories are offline", f.when, a, b, offline)
	}
	f.holds(f.store)
	if dir, _ := f.store.DirectoryOf(p); dir != directoryID(1) {
		t.Fatalf("%s: it is in %v", f.when, dir)
	}
	appendTo(t, f.store.Log(p), 1)
	must(t, f.store.Close(start.Add(5*time.Minute), true, 1))
	s := open(t, options(f.disk.Kill(), "a", "b"))
	if l := s.Log(p); l == nil || l.View().LogEndOffset != 4 {
		t.Fatalf("%s: the next start finds %v", f.when, l)
	}
	must(t, s.Close(start, true, 7))
}
