package groupcommit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ottla/storage/vfs"
)

// disk counts what is synced, and makes its own time pass.
type disk struct {
	vfs.FS
	now         atomic.Int64
	apart       atomic.Int64
	together    atomic.Int64
	costApart   time.Duration
	costWhole   time.Duration
	fails       error
	unsupported bool
	opened      atomic.Int64
}

type whole struct {
	vfs.File
	d *disk
}

func (w whole) SyncWhole() error {
	w.d.together.Add(1)
	w.d.now.Add(int64(w.d.costWhole))
	if w.d.unsupported {
		return errors.ErrUnsupported
	}
	return w.d.fails
}

func (d *disk) OpenFile(name string, flag int) (vfs.File, error) {
	d.opened.Add(1)
	f, err := d.FS.OpenFile(name, flag)
	return whole{f, d}, err
}

func (d *disk) clock() time.Time { return time.Unix(0, d.now.Load()) }

func (d *disk) alone() error {
	d.apart.Add(1)
	d.now.Add(int64(d.costApart))
	return nil
}

func newDisk(t *testing.T) (*disk, *Directory) {
	t.Helper()
	m := vfs.NewMem(func() uint64 { return 1 })
	if err := errors.Join(m.MkdirAll("log"), vfs.WriteFile(m, "log/meta.properties", []byte("x"), true)); err != nil {
		t.Fatal(err)
	}
	d := &disk{FS: m, costApart: 10 * time.Millisecond, costWhole: time.Millisecond}
	return d, New(d, "log/meta.properties", d.clock)
}

// crowd has so many at once sync, each so often; what they get is returned.
func crowd(c *Directory, d *disk, count, each int) (failed int64) {
	var group sync.WaitGroup
	var failures atomic.Int64
	for range count {
		group.Go(func() {
			for range each {
				if c.Sync(d.alone) != nil {
					failures.Add(1)
				}
			}
		})
	}
	group.Wait()
	return failures.Load()
}

// waiting keeps so many waiting, so that whoever comes finds a crowd whatever the scheduler does.
func waiting(c *Directory, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy += count
	c.crowd = float64(count)
}

func TestFewAreSyncedApart(t *testing.T) {
	for name, c := range map[string]*Directory{"without a clock": New(nil, "", nil), "two": nil} {
		d, other := newDisk(t)
		if name == "two" {
			c = other
		}
		if failed := crowd(c, d, 2, 100); failed > 0 || d.together.Load() > 0 || d.apart.Load() != 200 {
			t.Errorf("%s: %d apart, %d together, %d failed", name, d.apart.Load(), d.together.Load(), failed)
		}
	}
}

// TestTheQuickerWay: whatever the disk is quicker at is what nearly all get, also when that changes; the other way is tried so
// seldom that it costs little.
func TestTheQuickerWay(t *testing.T) {
	d, c := newDisk(t)
	waiting(c, 16)
	run := func(count int) (apart, together int64) {
		a, w := d.apart.Load(), d.together.Load()
		for range count {
			if err := c.Sync(d.alone); err != nil {
				t.Fatal(err)
			}
		}
		return d.apart.Load() - a, d.together.Load() - w
	}
	if apart, together := run(20_000); together < 19_000 || apart == 0 {
		t.Errorf("where together is quicker: %d apart, %d together", apart, together)
	}
	d.costWhole = 300 * time.Millisecond // somebody else writes much
	begun := d.now.Load()
	apart, together := run(20_000)
	if spent := time.Duration(d.now.Load() - begun); together > 200 || spent > 230*time.Second {
		t.Errorf("where apart is quicker: %d apart, %d together, in %v", apart, together, spent)
	}
	d.costWhole = time.Millisecond
	if apart, together := run(60_000); together < 30_000 {
		t.Errorf("when together is quicker again: %d apart, %d together", apart, together)
	}
	if d.opened.Load() != 1 {
		t.Errorf("the file was opened %d times", d.opened.Load())
	}
}

// TestFailedTogether: all whom the sync would have answered are told, and nobody goes on to sync his own file.
func TestFailedTogether(t *testing.T) {
	d, c := newDisk(t)
	waiting(c, 16)
	c.cost = [2]time.Duration{time.Hour, 1}
	d.fails = syscall.EIO
	if err := c.Sync(d.alone); !errors.Is(err, syscall.EIO) || d.apart.Load() != 0 {
		t.Errorf("%v, and %d files were synced", err, d.apart.Load())
	}
}

func TestWhereTheFileSystemCannotBeSynced(t *testing.T) {
	for name, change := range map[string]func(*disk){
		"unsupported": func(d *disk) { d.unsupported = true },
		"no file":     func(d *disk) { _ = d.Remove("log/meta.properties") },
	} {
		d, c := newDisk(t)
		waiting(c, 16)
		change(d)
		for range 100 {
			if err := c.Sync(d.alone); err != nil {
				t.Fatal(name, err)
			}
		}
		if d.apart.Load() != 100 || d.together.Load() > 1 {
			t.Errorf("%s: %d apart, %d together", name, d.apart.Load(), d.together.Load())
		}
		if err := c.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

// TestPowerCut: what was acknowledged is there, whichever way it went; each writer has its own file.
func TestPowerCut(t *testing.T) {
	const writers, each = 8, 200
	d, _ := newDisk(t)
	mem := d.FS.(*vfs.Mem)
	c := New(mem, "log/meta.properties", d.clock)
	waiting(c, 8)
	var group sync.WaitGroup
	var acknowledged [writers]atomic.Int64
	for w := range writers {
		file, err := mem.OpenFile(fmt.Sprintf("log/%d", w), os.O_RDWR|os.O_CREATE)
		if err == nil {
			err = mem.SyncDir("log")
		}
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for i := range int64(each) {
				if _, err := file.WriteAt([]byte{1}, i); err != nil {
					t.Error(err)
				}
				if err := c.Sync(file.SyncData); err != nil {
					t.Error(err)
				}
				acknowledged[w].Store(i + 1)
			}
		})
	}
	for range 50 {
		var least [writers]int64
		for w := range writers {
			least[w] = acknowledged[w].Load()
		}
		after := mem.Crash()
		for w := range writers {
			if e, err := after.Stat(fmt.Sprintf("log/%d", w)); err != nil || e.Size < least[w] {
				t.Fatalf("writer %d: %d bytes were acknowledged, %d are there: %v", w, least[w], e.Size, err)
			}
		}
	}
	group.Wait()
}
