package node

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ottla/storage/guard"
	"ottla/storage/vfs"
)

// slow is a disk of which operations of one kind hang until they are let go.
type slow struct {
	*vfs.Mem
	entered chan vfs.Operation
	let     chan struct{}
}

func newSlow(t *testing.T, kind vfs.Kind) *slow {
	t.Helper()
	s := &slow{Mem: vfs.NewMem(nil), entered: make(chan vfs.Operation, 100), let: make(chan struct{})}
	if err := s.MkdirAll("/a"); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(s.Mem, "/a/file", []byte("0123456789"), true); err != nil {
		t.Fatal(err)
	}
	s.OnOperation(func(op vfs.Operation) error {
		if op.Kind == kind {
			s.entered <- op
			<-s.let
		}
		return nil
	})
	return s
}

// SyncFS hangs as an fsync does.
func (s *slow) SyncFS(string) error {
	s.entered <- vfs.Operation{}
	<-s.let
	return nil
}

// safe is a log that may be read while it is written.
type safe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func watched(t *testing.T, disk vfs.FS, leaves bool) (g *guard.FS, w *watch, hung *[]string, log *safe) {
	t.Helper()
	hung, log = &[]string{}, &safe{}
	w = newWatch("/a", leaves, 30*time.Second, slog.New(slog.NewTextHandler(log, nil)), func(w *watch, s *vfs.Stalled) {
		*hung = append(*hung, s.Error())
	})
	t.Cleanup(w.close)
	return guard.New(disk, map[string]guard.Runner{"/a": w}), w, hung, log
}

// await waits for something that other goroutines do.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestWatchGivesUp: everybody who waits comes back at the limit, and not before; what comes late is done all the same.
func TestWatchGivesUp(t *testing.T) {
	disk := newSlow(t, vfs.OpSync)
	g, w, hung, log := watched(t, disk, true)
	file, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	const callers = 5
	errs := make(chan error, callers)
	for range callers {
		go func() { errs <- file.Sync() }()
	}
	for range callers {
		<-disk.entered
	}
	for range w.limit {
		w.look()
	}
	if _, err := file.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatalf("before the limit: %v", err)
	}
	if len(errs) > 0 || len(*hung) > 0 {
		t.Fatalf("given up before the limit: %v", *hung)
	}
	if w.waited() != 30*time.Second || !strings.Contains(log.String(), "has not come back yet") || !strings.Contains(log.String(), "file=/a/file") {
		t.Errorf("%v; nobody is warned: %s", w.waited(), log)
	}
	w.look()
	for range callers {
		if err := <-errs; !errors.Is(err, vfs.ErrStalled) {
			t.Errorf("%v", err)
		}
	}
	if len(*hung) != 1 || !strings.Contains((*hung)[0], "a sync of /a/file has not come back for 31s") {
		t.Errorf("%v", *hung)
	}
	w.look()
	if _, err := file.WriteAt([]byte("def"), 0); !errors.Is(err, vfs.ErrStalled) {
		t.Errorf("after it: %v", err)
	}
	if err := file.Close(); !errors.Is(err, vfs.ErrStalled) {
		t.Error(err)
	}
	closed := make(chan struct{})
	w.Later(func() { close(closed) })
	close(disk.let)
	<-closed
	if got, _ := vfs.ReadFile(disk.Mem, "/a/file"); string(got) != "abc3456789" {
		t.Errorf("%q", got)
	}
	if len(*hung) != 1 {
		t.Errorf("told more than once: %v", *hung)
	}
}

// TestWatchThatCannotLeave: it only tells.
func TestWatchThatCannotLeave(t *testing.T) {
	disk := newSlow(t, vfs.OpSync)
	g, w, hung, _ := watched(t, disk, false)
	file, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() { errs <- file.Sync() }()
	<-disk.entered
	for range w.limit {
		w.look()
	}
	if len(*hung) > 0 {
		t.Fatalf("before the limit: %v", *hung)
	}
	w.look()
	w.look()
	if len(*hung) != 1 || len(errs) > 0 {
		t.Fatalf("%v", *hung)
	}
	close(disk.let)
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// TestWatchOfSlowDisks: what comes back in time is told of, and has no consequence, however often it is slow. The sync of a whole file
// system has more patience.
func TestWatchOfSlowDisks(t *testing.T) {
	disk := newSlow(t, vfs.OpSync)
	g, w, hung, log := watched(t, disk, true)
	errs := make(chan error, 1)
	for range 3 {
		go func() { errs <- vfs.SyncFile(g, "/a/file") }()
		<-disk.entered
		for range w.limit / 2 {
			w.look()
		}
		disk.let <- struct{}{}
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		w.look()
		w.look()
	}
	if text := log.String(); strings.Count(text, "has not come back yet") != 3 || strings.Count(text, "come back again") != 3 {
		t.Errorf("%s", text)
	}
	go func() { errs <- vfs.SyncFS(g, "/a") }()
	<-disk.entered
	for range w.limit * wholePatience {
		w.look()
	}
	if len(*hung) > 0 {
		t.Fatalf("%v", *hung)
	}
	w.look()
	if err := <-errs; !errors.Is(err, vfs.ErrStalled) || len(*hung) != 1 {
		t.Errorf("%v, %v", err, *hung)
	}
	close(disk.let)
}

// TestWatchUnderLoad: operations of many, and the end of all in the middle of them.
func TestWatchUnderLoad(t *testing.T) {
	disk := newSlow(t, vfs.OpSync)
	g, w, _, _ := watched(t, disk, true)
	file, err := g.OpenFile("/a/file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for n := 0; ; n++ {
				p := make([]byte, 4)
				_, err := file.ReadAt(p, 3)
				if err == nil && string(p) != "3456" {
					t.Errorf("%q", p)
				}
				if _, err := file.WriteVectorAt([][]byte{[]byte("3"), []byte("456")}, 3); err != nil {
					if !errors.Is(err, vfs.ErrStalled) {
						t.Error(err)
					}
					return
				}
				if n == 1000 {
					_ = file.Sync() // hangs until all is given up
				}
			}
		})
	}
	<-disk.entered
	for range w.limit + 1 {
		w.look()
	}
	users.Wait()
	close(disk.let)
	for i := range w.stripes {
		if n := len(w.stripes[i].under); n > 0 {
			t.Errorf("%d operations are still noted", n)
		}
	}
}

// TestWatchesLook: the watchdog of a process.
func TestWatchesLook(t *testing.T) {
	disk := newSlow(t, vfs.OpSync)
	told := make(chan string, 1)
	var ws watches
	w := newWatch("/a", true, 0, slog.New(slog.DiscardHandler), func(w *watch, s *vfs.Stalled) { told <- w.dir })
	ws.add(w)
	defer ws.close()
	if w.every*time.Duration(w.limit) != leastStall {
		t.Errorf("%v", w.every*time.Duration(w.limit))
	}
	if err := vfs.SyncFile(guard.New(disk, map[string]guard.Runner{"/a": w}), "/a/file"); !errors.Is(err, vfs.ErrStalled) {
		t.Fatal(err)
	}
	if dir := <-told; dir != "/a" {
		t.Error(dir)
	}
	close(disk.let)
	await(t, "the worker comes back", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.idle) > 0
	})
}

// TestHangEnds: the process ends with what hangs.
func TestHangEnds(t *testing.T) {
	status, log := -1, &safe{}
	r := &runner{logger: slog.New(slog.NewTextHandler(log, nil)), exit: func(s int) { status = s }}
	r.hang(&watch{dir: "/a"}, &vfs.Stalled{Kind: vfs.OpSync, Name: "/a/file", After: 30 * time.Second})
	if status != 1 {
		t.Errorf("status %d", status)
	}
	await(t, "the log tells why", func() bool { // the process does not wait for it for long
		return strings.Contains(log.String(), "the log directory /a hangs: the disk hangs: a sync of /a/file has not come back for 30s")
	})
}

// BenchmarkWatchedWrite is a small write in a directory that the node needs, and in one that it can do without.
func BenchmarkWatchedWrite(b *testing.B) {
	for name, leaves := range map[string]bool{"needed": false, "can be left": true} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			w := newWatch(dir, leaves, 30*time.Second, slog.New(slog.DiscardHandler), func(*watch, *vfs.Stalled) { b.Error("it hangs") })
			defer w.close()
			file, err := guard.New(vfs.OS(), map[string]guard.Runner{dir: w}).OpenFile(dir+"/file", os.O_RDWR|os.O_CREATE)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			vector := [][]byte{make([]byte, 100)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := file.WriteVectorAt(vector, int64(i%1000)*100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
