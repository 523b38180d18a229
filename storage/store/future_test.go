package store

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// onDisk lists the directories below a log directory, ids left out.
func onDisk(t *testing.T, m *vfs.Mem, dir string) string {
	t.Helper()
	entries, err := m.ReadDir(dir)
	must(t, err)
	var list []string
	for _, e := range entries {
		if name, kind, cut := strings.Cut(e.Name, "."); e.Dir && cut {
			list = append(list, name+kind[strings.LastIndex(kind, "-"):])
		} else if e.Dir {
			list = append(list, e.Name)
		}
	}
	return strings.Join(list, " ")
}

func moveTo(t *testing.T, s *Store, p protocol.TopicPartition) {
	t.Helper()
	present := s.Log(p)
	failed, err := s.Promote(start, p, 3, func(future *log.Log) error {
		for future.View().LogEndOffset < present.View().LogEndOffset {
			must(t, tryAppend(future, start))
		}
		return future.TakeOver(start, present)
	}, func(*log.Log) {})
	if err != nil || !failed.IsZero() {
		t.Fatalf("%v, failed %v", err, failed)
	}
}

func TestFutureTakesItsPlace(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	p := tp("t", 0)
	appendTo(t, create(t, s, p), 3)
	must(t, s.CheckpointHighWatermarks(offsets{p: 2}))
	if err := s.CreateFuture(p, directoryID(0)); err == nil {
		t.Error("a future log beside the present one")
	}
	must(t, s.CreateFuture(p, directoryID(1)))
	if err := s.CreateFuture(p, directoryID(1)); err == nil {
		t.Error("two future logs")
	}
	moveTo(t, s, p)
	if a, b := onDisk(t, m, "a"), onDisk(t, m, "b"); a != "t-0-delete" || b != "t-0" {
		t.Errorf("a has %q, b has %q", a, b)
	}
	if dir, _ := s.DirectoryOf(p); dir != directoryID(1) || s.HighWatermark(p) != 3 {
		t.Errorf("it is in %v, high watermark %d", dir, s.HighWatermark(p))
	}
	if text := read(m, "a/replication-offset-checkpoint"); strings.Contains(text, "t 0") {
		t.Errorf("the old directory's checkpoint says %q", text)
	}
	if err := s.WithFuture(p, func(*log.Log) error { return nil }); !errors.Is(err, ErrNoFuture) {
		t.Errorf("afterwards there is a future log: %v", err)
	}
	s.Tick(start.Add(2 * time.Minute))
	if a := onDisk(t, m, "a"); a != "" {
		t.Errorf("left in a: %q", a)
	}
	must(t, s.Close(start, true, 1))
}

// TestFuturesFoundAtTheStart: what becomes of future directories beside and without their partitions.
func TestFuturesFoundAtTheStart(t *testing.T) {
	p := tp("t", 0)
	setUp := func(t *testing.T) *vfs.Mem {
		m := formatted(t, "a", "b", "c")
		s := open(t, options(m, "a", "b", "c"))
		appendTo(t, create(t, s, p), 3)
		must(t, s.CreateFuture(p, directoryID(1)))
		must(t, s.Close(start, true, 1))
		return m
	}
	only := func(t *testing.T, m *vfs.Mem) {
		must(t, m.Rename("a/t-0", "a/t-0."+strings.Repeat("0", 32)+"-delete"), m.SyncDir("a"))
	}
	for _, c := range []struct {
		name     string
		change   func(t *testing.T, m *vfs.Mem)
		assigned int // directory, -1 none
		logs     string
		in       int // where the partition is
		futures  int
		disk     [3]string
	}{
		{"beside its partition", func(*testing.T, *vfs.Mem) {}, 0, "t-0", 0, 1, [3]string{"t-0", "t-0-future", ""}},
		{"beside its partition, and assigned", func(*testing.T, *vfs.Mem) {}, 1, "t-0", 0, 1, [3]string{"t-0", "t-0-future", ""}},
		{"alone", only, 1, "t-0", 1, 0, [3]string{"", "t-0", ""}},
		{"alone, and nothing is known", only, -1, "t-0", 1, 0, [3]string{"", "t-0", ""}},
		{"alone, one directory cannot be read", func(t *testing.T, m *vfs.Mem) {
			only(t, m)
			m.OnOperation(vfs.Script(vfs.Fault{Pattern: "c/meta.properties", Err: fs.ErrInvalid}))
		}, 0, "", -1, 1, [3]string{"", "t-0-future", ""}},
		{"alone and assigned, one directory cannot be read", func(t *testing.T, m *vfs.Mem) {
			only(t, m)
			m.OnOperation(vfs.Script(vfs.Fault{Pattern: "c/meta.properties", Err: fs.ErrInvalid}))
		}, 1, "t-0", 1, 0, [3]string{"", "t-0", ""}},
		{"two of them", func(t *testing.T, m *vfs.Mem) {
			must(t, m.MkdirAll("c/t-0."+strings.Repeat("1", 32)+"-future"), m.SyncDir("c"))
		}, 2, "t-0", 0, 1, [3]string{"t-0", "", "t-0-future"}},
		{"damaged, beside its partition", func(t *testing.T, m *vfs.Mem) {
			entries, err := m.ReadDir("b")
			must(t, err)
			for _, e := range entries {
				if e.Dir {
					must(t, vfs.WriteFileAtomic(m, "b/"+e.Name+"/00000000000000000000.log", []byte("garbage that is no batch at all, but long enough for one, or nearly so...........")))
				}
			}
		}, 0, "t-0", 0, 0, [3]string{"t-0", "", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := setUp(t)
			c.change(t, m)
			o := options(m, "a", "b", "c")
			o.Assigned = func(protocol.TopicPartition) (id protocol.DirectoryID) {
				if c.assigned >= 0 {
					id = directoryID(c.assigned)
				}
				return id
			}
			s, report, err := Open(start, o)
			must(t, err)
			m.OnOperation(nil)
			if promoted := len(report.Directories[1].Promoted); promoted != max(c.in, 0) {
				t.Errorf("%d future logs were put in place", promoted)
			}
			if got := names(s); got != c.logs || len(s.Futures()) != c.futures {
				t.Errorf("logs %q, futures %v", got, s.Futures())
			}
			if dir, known := s.DirectoryOf(p); known != (c.in >= 0) || known && dir != directoryID(c.in) {
				t.Errorf("it is in %v", dir)
			}
			for i, dir := range []string{"a", "b", "c"} {
				if got := onDisk(t, m, dir); got != c.disk[i] {
					t.Errorf("%s has %q, not %q", dir, got, c.disk[i])
				}
			}
			must(t, s.Close(start, true, 1))
		})
	}
}

// TestSideBySide: partitions that are made at the same time spread over the directories as evenly as others.
func TestSideBySide(t *testing.T) {
	m := formatted(t, "a", "b", "c")
	o := options(m, "a", "b", "c")
	s := open(t, o)
	var creating sync.WaitGroup
	for i := range int32(30) {
		creating.Go(func() {
			if _, err := s.Create(tp("t", i), topicID("t"), protocol.DirectoryID{}); err != nil {
				t.Error(err)
			}
		})
	}
	creating.Wait()
	counts := map[protocol.DirectoryID]int{}
	for i := range int32(30) {
		dir, _ := s.DirectoryOf(tp("t", i))
		counts[dir]++
	}
	for i := range 3 {
		if got := counts[directoryID(i)]; got != 10 {
			t.Errorf("directory %d has %d of 30 partitions", i, got)
		}
	}
	must(t, s.Close(start, true, 1))
}

func TestPreferredDirectory(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	s.Prefer(tp("t", 0), directoryID(1))
	create(t, s, tp("t", 0))
	if dir, _ := s.DirectoryOf(tp("t", 0)); dir != directoryID(1) {
		t.Errorf("it is in %v", dir)
	}
	must(t, s.Delete(start, tp("t", 0)))
	create(t, s, tp("t", 0)) // the wish was fulfilled and is forgotten
	if dir, _ := s.DirectoryOf(tp("t", 0)); dir != directoryID(0) {
		t.Errorf("the second time it is in %v", dir)
	}
	if got := names(s); !slices.Equal(strings.Fields(got), []string{"t-0"}) {
		t.Errorf("%q", got)
	}
	must(t, s.Close(start, true, 1))
}
