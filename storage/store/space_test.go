package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// TestFullDirectoriesAreNotChosen: a new partition goes where there is room, however many are there; a move to where there
// is none is refused; and a partition that was told where to go goes there.
func TestFullDirectoriesAreNotChosen(t *testing.T) {
	m := formatted(t, "a", "b")
	left := map[string]*space.Directory{}
	for _, dir := range []string{"a", "b"} {
		left[dir] = space.New(dir, space.Settings{Free: 400, Reserve: 100})
	}
	look := func(dir string, usable int64) { left[dir].Looked(left[dir].Begin(), 10_000, usable) }
	o := options(m, "a", "b")
	o.Space = func(dir string) *space.Directory { return left[dir] }
	s := open(t, o)
	where := func(p protocol.TopicPartition, want int) {
		t.Helper()
		if id, _ := s.DirectoryOf(p); id != directoryID(want) {
			t.Errorf("%s is in %s", p, id)
		}
	}
	look("a", 1000)
	look("b", 300)
	for n := range int32(3) {
		create(t, s, tp("t", n))
		where(tp("t", n), 0)
	}
	if err := s.CreateFuture(tp("t", 0), directoryID(1)); err == nil {
		t.Error("a partition moves to a directory without room")
	}
	if _, err := s.Create(tp("u", 0), topicID("u"), directoryID(1)); err != nil {
		t.Error(err)
	}
	where(tp("u", 0), 1)
	look("a", 50)
	create(t, s, tp("v", 0))
	where(tp("v", 0), 1)
	look("a", 300) // both are short of room: the one with fewer partitions
	create(t, s, tp("v", 1))
	where(tp("v", 1), 1)
	look("b", 600)
	must(t, s.CreateFuture(tp("t", 0), directoryID(1)))
}

// TestStartOnAFullDisk: whatever of a start after a kill finds no room, the directory works; a partition that could not be
// repaired is opened when there is room, and it has all its records.
func TestStartOnAFullDisk(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	for n := range int32(3) {
		appendTo(t, create(t, s, tp("t", n)), 3)
	}
	m = m.Kill()
	for n := range int32(3) { // what is only missing in memory a start would leave for later
		must(t, m.Remove(fmt.Sprintf("a/t-%d/%020d.index", n, 0)))
	}
	waited := 0
	for at := 0; ; at++ {
		disk := m.Kill()
		left, hit := at, false
		disk.OnOperation(func(op vfs.Operation) error {
			switch op.Kind {
			case vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir, vfs.OpRename:
				if hit = hit || left == 0; hit {
					return syscall.ENOSPC
				}
				left--
			}
			return nil
		})
		o := options(disk, "a")
		p, err := Prepare(o)
		must(t, err)
		s, _, err := p.Load(start, nil)
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("the start: %v", err)
			}
		} else {
			waited += len(s.Failed())
			for _, failed := range s.Failed() {
				if err := s.Reopen(start, failed); err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("without room %s is opened: %v", failed, err)
				}
			}
			disk.OnOperation(nil)
			for n := range int32(3) {
				must(t, s.Reopen(start, tp("t", n)))
				if l := s.Log(tp("t", n)); l == nil || l.View().LogEndOffset != 3 {
					t.Fatalf("t-%d does not work: %v, %v", n, l, s.PartitionError(tp("t", n)))
				}
			}
			must(t, s.Close(start, true, 7))
		}
		if !hit {
			break
		}
	}
	if waited == 0 {
		t.Error("no partition ever had to wait for room")
	}
}

// TestDeletionsOnAFullDisk: what is deleted makes room, so it must not need any. Where the name that says so finds none, the
// files go at once.
func TestDeletionsOnAFullDisk(t *testing.T) {
	m := formatted(t, "a")
	o := options(m, "a")
	o.LogOptions = func(string) log.Options {
		small := log.DefaultOptions()
		small.SegmentBytes = 200
		return small
	}
	s := open(t, o)
	l := create(t, s, tp("t", 0))
	appendTo(t, l, 4)
	create(t, s, tp("u", 0))
	m.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpRename, vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir}, Err: syscall.ENOSPC}))
	must(t, l.AdvanceLogStart(start, 3))
	s.Touch(tp("t", 0))
	s.Tick(start.Add(time.Second))
	if view := l.View(); view.LogStartOffset != 3 || l.Failed() != nil {
		t.Errorf("%+v, %v", view, l.Failed())
	}
	left := 0
	for _, name := range disk(t, m, "a/t-0") {
		if strings.HasSuffix(name, ".log") {
			left++
		}
		if strings.HasSuffix(name, ".deleted") {
			t.Errorf("%s is left", name)
		}
	}
	if left > 2 {
		t.Errorf("%d segments are left", left)
	}
	must(t, s.Delete(start, tp("u", 0)))
	if _, err := m.Stat("a/u-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deleted partition is there: %v", err)
	}
	m.OnOperation(nil)
	create(t, s, tp("u", 0))
	appendTo(t, l, 1)
	must(t, s.Close(start, true, 7))
}
