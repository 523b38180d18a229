package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/move"
	"ottla/storage/vfs"
)

// tornDirs are two log directories and what is known about them: t-0 in a, trimmed; t-1 in b, with transactions of which
// one is open and one was aborted; t-2 in a, of which b has a future log; a directory that is to be deleted.
type tornDirs struct {
	files     map[string]string // after a clean stop, by name
	unclean   map[string]string // and after the death of the process
	contents  []string
	ends      map[protocol.TopicPartition]log.View
	producers map[protocol.TopicPartition][]log.ActiveProducer
}

func makeTornDirs(t *testing.T) *tornDirs {
	w := newWorld(t, "a", "b")
	w.open()
	for i := range int32(3) {
		w.store.Prefer(tp("t", i), directoryID(int(i)%2))
		w.create(tp("t", i))
	}
	w.append(tp("t", 0), 16)
	w.append(tp("t", 2), 9)
	for i := range int32(4) {
		w.transactional(tp("t", 1), 7, i, noMarker)
		w.append(tp("t", 1), 1)
		w.transactional(tp("t", 1), 7, i, []record.ControlType{record.ControlAbort, record.ControlCommit}[i%2])
	}
	w.transactional(tp("t", 1), 7, 4, noMarker)
	must(t, w.store.Log(tp("t", 0)).AdvanceLogStart(w.now, 3))
	must(t, w.store.CheckpointHighWatermarks(offsets{tp("t", 0): 16, tp("t", 1): 13, tp("t", 2): 9}))
	w.tick(time.Minute)
	w.append(tp("t", 0), 1)
	w.append(tp("t", 1), 1)
	must(t, w.store.CreateFuture(tp("t", 2), directoryID(1)))
	must(t, w.store.WithFuture(tp("t", 2), func(future *log.Log) error {
		_, _, err := move.Step(w.now, w.store.Log(tp("t", 2)), future, 9, 600)
		return err
	}))
	td := &tornDirs{ends: map[protocol.TopicPartition]log.View{}, producers: map[protocol.TopicPartition][]log.ActiveProducer{}}
	for _, l := range w.store.Logs() {
		td.ends[l.TopicPartition()], td.producers[l.TopicPartition()] = l.View(), l.ActiveProducers()
	}
	td.contents = contents(t, "as made", w.store)
	leave := func(m *vfs.Mem) map[string]string {
		must(t, m.MkdirAll("a/t-9."+strings.Repeat("5", 32)+"-delete"))
		must(t, vfs.WriteFileAtomic(m, "a/t-9."+strings.Repeat("5", 32)+"-delete/00000000000000000000.log", []byte(td.contents[0])))
		files := map[string]string{}
		var walk func(dir string)
		walk = func(dir string) {
			entries, err := m.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				if name := path.Join(dir, e.Name); e.Dir {
					walk(name)
				} else {
					files[name] = read(m, name)
				}
			}
		}
		walk("")
		return files
	}
	td.unclean = leave(w.disk.Kill())
	w.close(true)
	td.files = leave(w.disk)
	return td
}

// disk gives a disk with the files; trust is by the marker and the boot id that are in them.
func (td *tornDirs) disk(t *testing.T, files map[string]string, trust log.Trust) *vfs.Mem {
	m := vfs.NewMem(seeded(1))
	m.SetClock(func() time.Time { return start })
	for name, data := range files {
		must(t, m.MkdirAll(path.Dir(name)), vfs.WriteFileAtomic(m, name, []byte(data)))
	}
	m.SyncAll()
	if trust == log.OtherBoot {
		return m.CrashWith(nil)
	}
	return m
}

// TestTornDirectories spoils every byte of every file of two log directories in every way, the .log files of partitions at
// some (storage/log has all), under each trust. A start succeeds, or meta.properties is named and nothing has changed. The
// partitions whose files are whole have all their records; those of a spoiled file are as records, or offline and named.
func TestTornDirectories(t *testing.T) {
	td := makeTornDirs(t)
	stride := 29
	if os.Getenv("OTTLA_TORN") == "full" {
		stride = 1
	}
	total, counts := 0, map[string]int{}
	random := rand.New(rand.NewPCG(8, 9))
	for _, trust := range []log.Trust{log.Clean, log.SameBoot, log.OtherBoot} {
		all := td.unclean
		if trust == log.Clean {
			all = td.files
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			data, step := all[name], stride
			if strings.HasSuffix(name, ".log") && !strings.Contains(name, "-future") {
				step = 23 * stride
			}
			for at := 0; at < len(data); at += step {
				for kind := range tornKinds {
					spoiled := spoil(kind, data, at, random)
					if spoiled == data {
						continue
					}
					c := &tornStart{t: t, td: td, trust: trust, name: name, kind: kind, at: at, files: maps.Clone(all)}
					c.files[name] = spoiled
					total++
					counts[c.run()]++
				}
			}
			c := &tornStart{t: t, td: td, trust: trust, name: name, kind: len(tornKinds) - 1, files: maps.Clone(all)}
			delete(c.files, name)
			total++
			counts[c.run()]++
		}
	}
	t.Logf("%d recoveries: files of log directories, %v", total, counts)
}

var tornKinds = []string{"cut", "zeros", "garbage", "flip", "padding", "missing"}

func spoil(kind int, text string, at int, random *rand.Rand) string {
	data := []byte(text)
	switch tornKinds[kind] {
	case "cut":
		return text[:at]
	case "zeros":
		clear(data[at:])
	case "garbage":
		for i := at; i < len(data); i++ {
			data[i] = byte(random.Uint32())
		}
	case "flip":
		data[at] ^= byte(1 + random.Uint32N(255))
	case "padding":
		data = append(data, make([]byte, at+1)...)
	case "missing":
		return text
	}
	return string(data)
}

type tornStart struct {
	t     *testing.T
	td    *tornDirs
	trust log.Trust
	name  string
	kind  int
	at    int
	files map[string]string
}

func (c *tornStart) fatal(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s of %s at %d, trust %d: %s", tornKinds[c.kind], c.name, c.at, c.trust, fmt.Sprintf(format, args...))
}

func (c *tornStart) run() string {
	m := c.td.disk(c.t, c.files, c.trust)
	s, report, err := Open(start, options(m, "a", "b"))
	base := path.Base(c.name)
	if err != nil {
		var meta *logdir.MetaError
		if base != logdir.MetaPropertiesFile || !errors.As(err, &meta) && !strings.Contains(err.Error(), "not formatted") {
			c.fatal("%v", err)
		}
		for name, data := range c.files {
			if read(m, name) != data {
				c.fatal("refused (%v), but %s was changed", err, name)
			}
		}
		return "refused"
	}
	spoiled, inPartition := c.partition()
	for i, d := range report.Directories {
		if d.Offline != nil || len(d.Unknown) > 0 {
			c.fatal("directory %d: %+v", i, d)
		}
		for _, damaged := range d.Damaged {
			if !inPartition || damaged.Partition != spoiled {
				c.fatal("%s is damaged: %v", damaged.Partition, damaged.Err)
			}
		}
	}
	outcome := "whole"
	for _, p := range sortedKeys(c.td.ends) {
		if l := s.Log(p); l == nil {
			if !inPartition || p != spoiled || !named(report, p) {
				c.fatal("%s is gone, and not named", p)
			}
			outcome = "offline"
		} else {
			outcome = c.judge(l, inPartition && p == spoiled, outcome)
		}
	}
	if c.at%16 == 0 && outcome != "offline" {
		c.again(m, s)
	}
	return outcome
}

// judge: a partition whose files were whole has everything; one with a spoiled file has what is there of it in order.
func (c *tornStart) judge(l *log.Log, spoiled bool, outcome string) string {
	p, v := l.TopicPartition(), l.View()
	want := c.td.ends[p]
	isLog := spoiled && strings.HasSuffix(c.name, ".log")
	// What says where a log starts has no checksum: another digit is another offset.
	isStart := strings.HasSuffix(c.name, logdir.LogStartFile)
	if isLog && tornKinds[c.kind] == "flip" && c.trust != log.OtherBoot {
		return outcome + ", flipped" // no checksum covers an offset, and only a power cut makes us look for gaps
	}
	if v.LogEndOffset != want.LogEndOffset && !isLog || v.LogEndOffset > want.LogEndOffset && !isStart {
		c.fatal("%s ends at %d, not at %d", p, v.LogEndOffset, want.LogEndOffset)
	}
	// A first segment that is missing may have been removed by retention just now.
	isFirst := isLog && tornKinds[c.kind] == "missing"
	if v.LogStartOffset > want.LogStartOffset && !isStart && !isFirst {
		c.fatal("%s starts at %d, not at %d", p, v.LogStartOffset, want.LogStartOffset)
	}
	if !spoiled && !slices.Equal(l.ActiveProducers(), c.td.producers[p]) {
		c.fatal("%s has the producers %+v, not %+v", p, l.ActiveProducers(), c.td.producers[p])
	}
	if isLog && v.LogEndOffset < want.LogEndOffset {
		outcome = "cut"
		if v.LogEndOffset < want.DurableEnd {
			c.fatal("%s ends at %d, and %d was durable", p, v.LogEndOffset, want.DurableEnd)
		}
	}
	next := max(v.LogStartOffset, want.LogStartOffset)
	for next < v.LogEndOffset {
		r, err := l.Read(next, 1<<20, v.LogEndOffset, true)
		if err != nil && isLog {
			return outcome + ", unreadable" // synced and damaged: nothing wrong is given out
		}
		if err != nil {
			c.fatal("%s at %d: %v", p, next, err)
		}
		data, err := r.Region.ReadAll()
		r.Region.Release()
		must(c.t, err)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			if err == nil {
				err = b.CheckCRC()
			}
			if err != nil && isLog {
				return outcome + ", unreadable"
			}
			if err != nil || b.BaseOffset() > next && !isLog {
				c.fatal("%s: a batch at %d where %d is next: %v", p, b.BaseOffset(), next, err)
			}
			next, data = b.NextOffset(), rest
		}
	}
	return outcome
}

// partition is that in whose directory the file lies, the future log's too.
func (c *tornStart) partition() (protocol.TopicPartition, bool) {
	parts := strings.Split(c.name, "/")
	if len(parts) < 3 || strings.Contains(parts[1], "-future") || strings.Contains(parts[1], "-delete") {
		return protocol.TopicPartition{}, false
	}
	p, err := protocol.ParseTopicPartition(parts[1])
	return p, err == nil
}

func named(report Report, p protocol.TopicPartition) bool {
	for _, d := range report.Directories {
		for _, damaged := range d.Damaged {
			if damaged.Partition == p && damaged.Err != nil {
				return true
			}
		}
	}
	return false
}

// again: after a clean stop a start finds the same and has nothing to repair.
func (c *tornStart) again(m *vfs.Mem, s *Store) {
	views := map[protocol.TopicPartition]log.View{}
	marks := offsets{}
	for _, l := range s.Logs() {
		views[l.TopicPartition()] = l.View()
		marks[l.TopicPartition()] = l.View().LogEndOffset
	}
	must(c.t, s.CheckpointHighWatermarks(marks)) // as the replicas do it
	must(c.t, s.Close(start, true, 4))
	s, report, err := Open(start, options(m, "a", "b"))
	if err != nil {
		c.fatal("the second time: %v", err)
	}
	for _, d := range report.Directories {
		if d.Offline != nil || len(d.Damaged)+len(d.Repaired)+len(d.Checkpoints) > 0 || d.Trust != log.Clean {
			c.fatal("the second time: %+v", d)
		}
	}
	for p, v := range views {
		if got := s.Log(p).View(); got.LogStartOffset != v.LogStartOffset || got.LogEndOffset != v.LogEndOffset {
			c.fatal("the second time %s is %+v, not %+v", p, got, v)
		}
	}
}
