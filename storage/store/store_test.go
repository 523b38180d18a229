package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

const clusterID = "4L6g3nShT-eMCtK--X86sw"

var errEIO = syscall.EIO

var start = time.Unix(1_800_000_000, 0)

func seeded(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 0)).Uint64 }

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// formatted makes a disk with formatted directories; directory n has the id n+200.
func formatted(t *testing.T, dirs ...string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(seeded(1))
	m.SetClock(func() time.Time { return start })
	for i, dir := range dirs {
		must(t, m.MkdirAll(dir), logdir.WriteMetaProperties(m, dir, logdir.MetaProperties{ClusterID: clusterID, NodeID: 1, DirectoryID: directoryID(i)}))
	}
	m.SyncAll()
	return m
}

func directoryID(i int) protocol.DirectoryID { return protocol.DirectoryID{14: 1, 15: byte(200 + i)} }

func options(m *vfs.Mem, dirs ...string) Options {
	return Options{
		FS: m, Dirs: dirs, NodeID: 1, Pool: compress.NewPool(), Random: seeded(2),
		LogOptions: func(string) log.Options {
			o := log.DefaultOptions()
			o.SegmentBytes, o.IndexIntervalBytes, o.VerifyTransactions = 1000, 100, false
			return o
		},
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, _, err := Open(start, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tp(topic string, partition int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: topic, Partition: partition}
}

func topicID(topic string) (id protocol.TopicID) {
	copy(id[:], topic)
	id[15] = 1
	return id
}

func create(t *testing.T, s *Store, p protocol.TopicPartition) *log.Log {
	t.Helper()
	l, err := s.Create(p, topicID(p.Topic), protocol.DirectoryID{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// tryAppend writes one record, whose value names its offset.
func tryAppend(l *log.Log, now time.Time) error {
	options := record.PlainOptions()
	builder := record.NewBuilder(options)
	builder.Append(now.UnixMilli(), nil, []byte(fmt.Sprintf("value %d%s", l.View().LogEndOffset, strings.Repeat(".", 80))), nil)
	batch := builder.Build(nil)
	e := &log.Entry{Batch: batch, Origin: log.OriginCoordinator, Info: record.Info{MaxTimestamp: now.UnixMilli(), Count: 1}}
	if err := l.Append(now, 0, []*log.Entry{e}); err != nil {
		return err
	}
	return e.Err
}

func appendTo(t *testing.T, l *log.Log, count int) {
	t.Helper()
	for range count {
		must(t, tryAppend(l, start))
	}
}

func read(fsys vfs.FS, name string) string {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// disk lists every file with its content.
func disk(t *testing.T, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	var lines []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Dir {
			lines = append(lines, name+"/")
			lines = append(lines, disk(t, fsys, name)...)
		} else {
			lines = append(lines, name+": "+read(fsys, name))
		}
	}
	return lines
}

func names(s *Store) string {
	var list []string
	for _, l := range s.Logs() {
		list = append(list, l.TopicPartition().String())
	}
	return strings.Join(list, " ")
}

func TestCleanStopAndStart(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	if s.ClusterID() != clusterID {
		t.Errorf("the cluster id is %q", s.ClusterID())
	}
	l := create(t, s, tp("orders", 0))
	create(t, s, tp("orders", 1))
	appendTo(t, l, 30)
	l.SetHighWatermark(30)
	must(t, l.AdvanceLogStart(start, 7))
	must(t, s.CheckpointHighWatermarks(offsets{tp("orders", 0): 29}))
	must(t, s.Close(start, true, 42), s.Close(start, true, 42))
	for _, want := range [][2]string{
		{"a/.kafka_cleanshutdown", `{"version":0,"brokerEpoch":42}`},
		{"b/.kafka_cleanshutdown", `{"version":0,"brokerEpoch":42}`},
		{"a/recovery-point-offset-checkpoint", "0\n1\norders 0 30\n"},
		{"b/recovery-point-offset-checkpoint", "0\n1\norders 1 0\n"},
		{"a/log-start-offset-checkpoint", "0\n1\norders 0 7\n"},
		{"a/replication-offset-checkpoint", "0\n1\norders 0 29\n"},
		{"a/" + logdir.BootIDFile, m.BootID()},
	} {
		if got := read(m, want[0]); got != want[1] {
			t.Errorf("%s holds %q, not %q", want[0], got, want[1])
		}
	}
	p, err := Prepare(options(m, "a", "b"))
	must(t, err)
	if got := p.PreviousBrokerEpoch(); got != 42 {
		t.Errorf("the previous broker epoch is %d", got)
	}
	if got := p.MetadataTrust(); got != log.Clean {
		t.Errorf("the trust is %d", got)
	}
	if got := p.MetadataDirectory(); got.Path != "a" || got.ID != directoryID(0) {
		t.Errorf("the metadata directory is %+v", got)
	}
	s, report, err := p.Load(start, nil)
	must(t, err, p.Close())
	if got := names(s); got != "orders-0 orders-1" {
		t.Errorf("the logs are %q", got)
	}
	if v := s.Log(tp("orders", 0)).View(); v.LogEndOffset != 30 || v.LogStartOffset != 7 || v.DurableEnd != 30 {
		t.Errorf("the log is %+v", v)
	}
	if got := s.HighWatermark(tp("orders", 0)); got != 29 {
		t.Errorf("the high watermark is %d", got)
	}
	for _, d := range report.Directories {
		if d.Trust != log.Clean || d.Logs != 1 || len(d.Damaged) != 0 {
			t.Errorf("the report says %+v", d)
		}
	}
	if _, err := m.Stat("a/" + logdir.CleanShutdownFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the marker is still there: %v", err)
	}
	must(t, s.Close(start, false, -1))
}

func TestTrust(t *testing.T) {
	cases := []struct {
		name  string
		leave func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem
		want  log.Trust
	}{
		{"clean stop", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem { must(t, s.Close(start, true, 1)); return m }, log.Clean},
		{"clean stop, then a power cut", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem {
			must(t, s.Close(start, true, 1))
			return m.CrashWith(nil)
		}, log.Clean},
		{"killed", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem { return m.Kill() }, log.SameBoot},
		{"closed unclean", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem { must(t, s.Close(start, false, 1)); return m }, log.SameBoot},
		{"power cut", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem { return m.CrashWith(nil) }, log.OtherBoot},
		{"damaged marker", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem {
			must(t, s.Close(start, true, 1), vfs.WriteFileAtomic(m, "a/"+logdir.CleanShutdownFile, []byte("{")))
			return m.Crash()
		}, log.OtherBoot},
		{"empty marker of an older Kafka", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem {
			must(t, s.Close(start, true, 1), vfs.WriteFileAtomic(m, "a/"+logdir.CleanShutdownFile, nil))
			return m.Crash()
		}, log.OtherBoot},
		{"killed, then nothing but a boot id of another machine", func(t *testing.T, m *vfs.Mem, s *Store) *vfs.Mem {
			must(t, vfs.WriteFileAtomic(m, "a/"+logdir.BootIDFile, []byte("another")))
			return m.Kill()
		}, log.OtherBoot},
	}
	for _, c := range cases {
		m := formatted(t, "a")
		s := open(t, options(m, "a"))
		appendTo(t, create(t, s, tp("t", 0)), 3)
		m = c.leave(t, m, s)
		p, err := Prepare(options(m, "a"))
		must(t, err)
		if got := p.MetadataTrust(); got != c.want {
			t.Errorf("%s: the trust is %d, not %d", c.name, got, c.want)
		}
		s, _, err = p.Load(start, nil)
		must(t, err)
		if got := s.Log(tp("t", 0)); got == nil {
			t.Errorf("%s: the partition is gone: %v", c.name, s.PartitionError(tp("t", 0)))
		}
	}
}

func TestPreviousBrokerEpochNeedsAllDirectories(t *testing.T) {
	m := formatted(t, "a", "b")
	must(t, logdir.WriteMarker(m, "a", 5))
	check := func(want protocol.BrokerEpoch) {
		t.Helper()
		p, err := Prepare(options(m, "a", "b"))
		must(t, err)
		if got := p.PreviousBrokerEpoch(); got != want {
			t.Errorf("the previous broker epoch is %d, not %d", got, want)
		}
		must(t, p.Close())
	}
	check(-1)
	must(t, logdir.WriteMarker(m, "b", 6))
	check(-1)
	must(t, logdir.WriteMarker(m, "b", 5))
	check(5)
}

func TestRefusalsChangeNothing(t *testing.T) {
	good := "version=1\ncluster.id=" + clusterID + "\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAABzQ\n"
	cases := []struct{ name, text, want string }{
		{"missing", "", "b is not formatted"},
		{"other node", strings.Replace(good, "node.id=1", "node.id=2", 1), "b/meta.properties: the directory belongs to node 2"},
		{"other cluster", strings.Replace(good, clusterID, "other", 1), "b/meta.properties: the directory belongs to cluster other"},
		{"same directory id", strings.Replace(good, "AAAAAAAAAAAAAAAAAAABzQ", directoryID(0).String(), 1), "b/meta.properties: the directory id"},
		{"reserved directory id", strings.Replace(good, "AAAAAAAAAAAAAAAAAAABzQ", "AAAAAAAAAAAAAAAAAAAAAQ", 1), "b/meta.properties: the file is damaged: directory.id"},
		{"bad directory id", strings.Replace(good, "AAAAAAAAAAAAAAAAAAABzQ", "AAAA", 1), "b/meta.properties: the file is damaged: directory.id"},
		{"no version", strings.Replace(good, "version", "vorsion", 1), "b/meta.properties: the file is damaged: it has no version"},
		{"version 0", strings.Replace(good, "version=1", "version=0", 1), "b/meta.properties: the directory is of a broker that used ZooKeeper"},
		{"version 2", strings.Replace(good, "version=1", "version=2", 1), `b/meta.properties: the version is "2"`},
		{"no node", strings.Replace(good, "node.id=1", "", 1), "b/meta.properties: the file is damaged: node.id"},
		{"negative node", strings.Replace(good, "node.id=1", "node.id=-1", 1), "b/meta.properties: the file is damaged: node.id"},
		{"no cluster", strings.Replace(good, "cluster.id", "x", 1), "b/meta.properties: the file is damaged: it has no cluster.id"},
		{"zeros", strings.Repeat("\x00", 100), "b/meta.properties: the file is damaged"},
		{"bad escape", good + "x=\\u12", "b/meta.properties: the file is damaged"},
		{"empty", " ", "b/meta.properties: the file is damaged"},
	}
	for _, c := range cases {
		m := formatted(t, "a", "b")
		must(t, logdir.WriteMarker(m, "a", 5))
		if c.text == "" {
			must(t, m.Remove("b/"+logdir.MetaPropertiesFile))
		} else {
			must(t, vfs.WriteFileAtomic(m, "b/"+logdir.MetaPropertiesFile, []byte(c.text)))
		}
		before := disk(t, m, "/")
		_, _, err := Open(start, options(m, "a", "b"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, not %q", c.name, err, c.want)
		}
		if after := disk(t, m, "/"); !slices.Equal(before, after) {
			t.Errorf("%s: the disk has changed from\n%q to\n%q", c.name, before, after)
		}
	}
}

func TestOptionsOfTheNode(t *testing.T) {
	m := formatted(t, "a")
	o := options(m, "a")
	o.NodeID = 7
	if _, _, err := Open(start, o); err == nil || !strings.Contains(err.Error(), "belongs to node 1, and this is node 7") {
		t.Errorf("another node: %v", err)
	}
	o = options(m, "a")
	o.ClusterID = "other"
	if _, _, err := Open(start, o); err == nil || !strings.Contains(err.Error(), "this is cluster other") {
		t.Errorf("another cluster: %v", err)
	}
	if _, _, err := Open(start, options(m, "a", "./a")); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a directory twice: %v", err)
	}
	if _, _, err := Open(start, options(m)); err == nil {
		t.Error("no directory at all was accepted")
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a"))
	_, _, err := Open(start, options(m, "b", "a"))
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "a is in use") {
		t.Fatalf("a second opening: %v", err)
	}
	must(t, open(t, options(m, "b")).Close(start, true, 1)) // its lock was given back
	must(t, s.Close(start, true, 1))
	must(t, open(t, options(m, "a", "b")).Close(start, true, 1))
}

func TestDirectoryIDsAreGivenToOlderDirectories(t *testing.T) {
	m := formatted(t, "a")
	must(t, vfs.WriteFileAtomic(m, "a/meta.properties", []byte("version=1\ncluster.id="+clusterID+"\nnode.id=1\n")))
	s := open(t, options(m, "a"))
	id := s.Directories()[0].ID
	must(t, s.Close(start, true, 1))
	if id.IsZero() || open(t, options(m.CrashWith(nil), "a")).Directories()[0].ID != id {
		t.Fatalf("the id %s did not stay", id)
	}
}

func TestSeparateMetadataDirectory(t *testing.T) {
	m := formatted(t, "a", "m")
	must(t, m.MkdirAll("m/__cluster_metadata-0"), vfs.WriteFileAtomic(m, "m/__cluster_metadata-0/x", []byte("quorum's")))
	o := options(m, "a")
	o.MetadataDir = "m"
	p, err := Prepare(o)
	must(t, err)
	if got := p.MetadataDirectory(); got.Path != "m" || got.ID != directoryID(1) {
		t.Errorf("the metadata directory is %+v", got)
	}
	if got := p.Directories(); len(got) != 1 || got[0].Path != "a" {
		t.Errorf("the log directories are %+v", got)
	}
	if _, err := m.Lock("m/.lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the metadata directory is not locked: %v", err)
	}
	s, _, err := p.Load(start, nil)
	must(t, err, s.Close(start, true, 1))
	if got := read(m, "m/__cluster_metadata-0/x"); got != "quorum's" {
		t.Errorf("the metadata partition was touched: %q", got)
	}
	o.Dirs = nil // a controller alone
	s = open(t, o)
	if _, err := s.Create(tp("t", 0), topicID("t"), protocol.DirectoryID{}); err == nil {
		t.Error("a node without log directories has created a partition")
	}
	must(t, s.Close(start, true, 1))
}

func TestNamesInADirectory(t *testing.T) {
	hex := "0123456789abcdef0123456789abcdef"
	m := formatted(t, "a")
	for _, dir := range []string{
		"__cluster_metadata-0", "remote-log-index-cache", "lost+found", "no_dash", "t-0x", "-1", "t--1", "t-01", "sl$sh-0",
		"gone-3." + hex + "-delete", "stray-3." + hex + "-stray", "moved-3." + hex + "-future", "bad-3.xyz-delete", "__cluster_metadata-1",
	} {
		must(t, m.MkdirAll("a/"+dir+"/inside"))
	}
	must(t, vfs.WriteFileAtomic(m, "a/stranger", nil))
	s := open(t, options(m, "a"))
	create(t, s, tp("x-delete", 0))
	must(t, s.Close(start, true, 1))
	s, report, err := Open(start, options(m, "a"))
	must(t, err)
	r := report.Directories[0]
	if got := names(s); got != "moved-3 t--1 x-delete-0" {
		t.Errorf("the logs are %q", got)
	}
	if want := []string{"stray-3." + hex + "-stray"}; !slices.Equal(r.Aside, want) {
		t.Errorf("set aside: %q", r.Aside)
	}
	for _, want := range []string{"lost+found", "no_dash", "t-0x", "-1", "t-01", "sl$sh-0", "bad-3.xyz-delete", "__cluster_metadata-1"} {
		if !slices.Contains(r.Unknown, want) {
			t.Errorf("%s is not among the unknown: %q", want, r.Unknown)
		}
		if _, err := m.Stat("a/" + want + "/inside"); err != nil {
			t.Errorf("%s was touched: %v", want, err)
		}
	}
	if _, err := m.Stat("a/gone-3." + hex + "-delete"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an interrupted deletion was not finished: %v", err)
	}
}

func TestFewestPartitionsFirst(t *testing.T) {
	m := formatted(t, "a", "b", "c")
	var said bytes.Buffer
	o := options(m, "a", "b", "c")
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	s := open(t, o)
	var got []string
	for i := range int32(7) {
		create(t, s, tp("t", i))
		id, ok := s.DirectoryOf(tp("t", i))
		got = append(got, fmt.Sprint(id[15]-200, ok))
	}
	if want := []string{"0 true", "1 true", "2 true", "0 true", "1 true", "2 true", "0 true"}; !slices.Equal(got, want) {
		t.Errorf("the directories are %q", got)
	}
	if _, err := s.Create(tp("u", 0), topicID("u"), directoryID(2)); err != nil {
		t.Fatal(err)
	}
	if id, _ := s.DirectoryOf(tp("u", 0)); id != directoryID(2) {
		t.Errorf("the named directory was not used, but %s", id)
	}
	if _, err := s.Create(tp("u", 1), topicID("u"), directoryID(9)); err != nil {
		t.Errorf("a directory that is no longer there: %v", err)
	}
	if id, _ := s.DirectoryOf(tp("u", 1)); id != directoryID(1) {
		t.Errorf("instead of a directory that is no longer there %s was used", id)
	}
	if told := strings.Count(said.String(), "is made anew"); told != 1 || !strings.Contains(said.String(), "partition=u-1 was="+directoryID(9).String()) {
		t.Errorf("it was told %d times: %s", told, said.String())
	}
	for _, bad := range []string{"", "a/b", "..", strings.Repeat("x", 250)} {
		if _, err := s.Create(tp(bad, 0), topicID("x"), protocol.DirectoryID{}); err == nil && bad != ".." {
			t.Errorf("the name %q was accepted", bad)
		}
	}
}

func TestCreateTwice(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	first := create(t, s, tp("t", 0))
	again, err := s.Create(tp("t", 0), topicID("t"), protocol.DirectoryID{})
	if err != nil || again != first {
		t.Errorf("the same topic: %v, %v", again == first, err)
	}
	if _, err := s.Create(tp("t", 0), topicID("other"), protocol.DirectoryID{}); err == nil {
		t.Error("another topic of the same name got the log")
	}
}

func TestDeleteAndRemovalByDelay(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 3)
	must(t, s.CheckpointHighWatermarks(offsets{tp("t", 0): 3}), s.SetCleanerOffsets(offsets{tp("t", 0): 2}))
	s.Tick(start.Add(time.Minute)) // checkpoints
	if got := read(m, "a/recovery-point-offset-checkpoint"); got != "0\n1\nt 0 3\n" {
		t.Fatalf("the recovery points are %q", got)
	}
	now := start.Add(2 * time.Minute)
	must(t, s.Delete(now, tp("t", 0)), s.Delete(now, tp("t", 0)))
	if s.Log(tp("t", 0)) != nil || s.PartitionError(tp("t", 0)) != nil {
		t.Error("the partition is still there")
	}
	for _, file := range logdir.CheckpointFiles {
		if got := read(m, "a/"+file); strings.Contains(got, "t 0") {
			t.Errorf("%s still holds %q", file, got)
		}
	}
	deleted := func() (found []string) {
		entries, err := m.ReadDir("a")
		must(t, err)
		for _, e := range entries {
			if e.Dir {
				found = append(found, e.Name)
			}
		}
		return found
	}
	got := deleted()
	if kind, _ := logdir.Classify(strings.Join(got, " ")); len(got) != 1 || kind != logdir.KindDeleted {
		t.Fatalf("the directories are %q", got)
	}
	l := create(t, s, tp("t", 0)) // at once again, and nothing is inherited
	if v := l.View(); v.LogEndOffset != 0 || s.HighWatermark(tp("t", 0)) != 0 || s.CleanerOffset(tp("t", 0)) != 0 {
		t.Errorf("the new log is %+v", v)
	}
	s.Tick(now.Add(59 * time.Second))
	if got := deleted(); len(got) != 2 {
		t.Errorf("removed too early: %q", got)
	}
	if next := s.NextDeadline(); next.After(now.Add(time.Minute)) {
		t.Errorf("the next deadline is %v", next)
	}
	s.Tick(now.Add(time.Minute))
	if got := deleted(); !slices.Equal(got, []string{"t-0"}) {
		t.Errorf("the directories are %q", got)
	}
}

func TestStray(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 3)
	must(t, s.SetStray(start, tp("t", 0)), s.SetStray(start, tp("t", 0)), s.Close(start, true, 1))
	s, report, err := Open(start, options(m, "a"))
	must(t, err)
	if got := names(s); got != "" || len(report.Directories[0].Aside) != 1 {
		t.Errorf("the logs are %q, and the report says %+v", got, report)
	}
}

// cut shortens the last segment of a partition, whose end was durable, and takes the marker away: what an earlier
// start under another boot would have found.
func cut(t *testing.T, m *vfs.Mem, dir string) {
	t.Helper()
	entries, err := m.ReadDir(dir)
	must(t, err)
	var last vfs.Entry
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".log") && e.Size > 0 {
			last = e
		}
	}
	f, err := m.OpenFile(path.Join(dir, last.Name), os.O_RDWR)
	must(t, err, f.Truncate(last.Size-10), f.Sync(), f.Close())
	must(t, logdir.RemoveDurably(m, path.Join(path.Dir(dir), logdir.CleanShutdownFile)))
}

func TestDamagedPartitionIsNotTrustedNextTime(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("bad", 0)), 30)
	appendTo(t, create(t, s, tp("good", 0)), 30)
	must(t, s.Close(start, true, 1))
	cut(t, m, "a/bad-0")
	m = m.CrashWith(nil) // another boot
	for round := range 3 {
		s, report, err := Open(start, options(m, "a"))
		must(t, err)
		r := report.Directories[0]
		if got := names(s); got != "good-0" {
			t.Fatalf("round %d: the logs are %q, the report %+v", round, got, r)
		}
		if len(r.Damaged) != 1 || r.Damaged[0].Partition != tp("bad", 0) || s.PartitionError(tp("bad", 0)) == nil {
			t.Fatalf("round %d: the report says %+v", round, r)
		}
		if id, ok := s.DirectoryOf(tp("bad", 0)); !ok || id != directoryID(0) {
			t.Errorf("round %d: the partition is in %v, %v", round, id, ok)
		}
		if _, err := s.Create(tp("bad", 0), topicID("bad"), protocol.DirectoryID{}); err == nil {
			t.Errorf("round %d: a damaged partition was created anew", round)
		}
		if err := s.Delete(start, tp("bad", 0)); err == nil {
			t.Errorf("round %d: a damaged partition was deleted", round)
		}
		if got := read(m, "a/"+logdir.BootIDFile); !strings.Contains(got, "no such file") {
			t.Errorf("round %d: there is a boot id %q", round, got)
		}
		must(t, s.Close(start, true, 1))
		if got := read(m, "a/"+logdir.CleanShutdownFile); !strings.Contains(got, "no such file") {
			t.Errorf("round %d: there is a marker %q", round, got)
		}
		if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n2\nbad 0 30\ngood 0 30\n" {
			t.Errorf("round %d: the recovery points are %q", round, got)
		}
	}
}

// TestDamageFoundLaterTakesOnePartition: a sealed segment that is too short is met by retention, in a directory that
// was trusted. It costs the partition and not the directory; nothing of it is cut off.
func TestDamageFoundLaterTakesOnePartition(t *testing.T) {
	m := formatted(t, "a")
	var offline []protocol.TopicPartition
	o := options(m, "a")
	o.PartitionOffline = func(tp protocol.TopicPartition) { offline = append(offline, tp) }
	o.LogOptions = func(string) log.Options {
		opts := log.DefaultOptions()
		opts.SegmentBytes, opts.RetentionAge = 1000, time.Hour
		return opts
	}
	s := open(t, o)
	for _, name := range []string{"bad", "good"} {
		appendTo(t, create(t, s, tp(name, 0)), 30)
		s.Log(tp(name, 0)).SetHighWatermark(30)
	}
	must(t, s.Close(start, true, 1))
	first := "a/bad-0/00000000000000000000.log"
	f, err := m.OpenFile(first, os.O_RDWR)
	must(t, err)
	size, err := f.Size()
	must(t, err, f.Truncate(size-10), f.Sync(), f.Close())

	s, _, err = Open(start, o)
	must(t, err)
	s.Log(tp("bad", 0)).SetHighWatermark(30)
	s.Tick(start)
	s.Tick(start.Add(time.Minute))
	if got := names(s); got != "good-0" || s.PartitionError(tp("bad", 0)) == nil || !slices.Equal(offline, []protocol.TopicPartition{tp("bad", 0)}) {
		t.Errorf("the logs are %q, offline %v: %v", got, offline, s.PartitionError(tp("bad", 0)))
	}
	if d := s.Directories()[0]; d.Offline != nil {
		t.Errorf("the directory is offline: %v", d.Offline)
	}
	if got := read(m, "a/"+logdir.BootIDFile); !strings.Contains(got, "no such file") {
		t.Errorf("there is a boot id %q", got)
	}
	appendTo(t, s.Log(tp("good", 0)), 1)
	must(t, s.Close(start.Add(time.Minute), true, 1))
	if got := read(m, "a/"+logdir.CleanShutdownFile); !strings.Contains(got, "no such file") {
		t.Errorf("there is a marker %q", got)
	}
	if got := int64(len(read(m, first))); got != size-10 {
		t.Errorf("%d bytes are left of %d", got, size-10)
	}
}

func TestPartitionInTwoDirectories(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "b"))
	appendTo(t, create(t, s, tp("t", 0)), 3)
	must(t, s.Close(start, true, 1))
	s = open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 5)
	create(t, s, tp("u", 0))
	must(t, s.Close(start, true, 1))
	s, report, err := Open(start, options(m, "a", "b"))
	must(t, err)
	if got := names(s); got != "u-0" {
		t.Errorf("the logs are %q", got)
	}
	for _, r := range report.Directories {
		if len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0].Err.Error(), "both in a and in b") {
			t.Errorf("the report says %+v", r)
		}
	}
	must(t, s.Close(start, true, 1))
	if got := read(m, "b/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 3\n" {
		t.Errorf("the recovery points of b are %q", got)
	}
}

// A topic was deleted and made anew while one directory was offline: what that has of the former one is set aside.
func TestPartitionOfAFormerTopic(t *testing.T) {
	for _, used := range []int{0, 3} { // records of the new one
		m := formatted(t, "a", "b")
		s := open(t, options(m, "b"))
		former, err := s.Create(tp("t", 0), protocol.TopicID{1}, directoryID(1))
		must(t, err)
		appendTo(t, former, 5)
		must(t, s.Close(start, true, 1))
		s = open(t, options(m, "a"))
		l, err := s.Create(tp("t", 0), protocol.TopicID{2}, directoryID(0))
		must(t, err)
		if used > 0 {
			appendTo(t, l, used)
		}
		must(t, s.Close(start, true, 1))
		o := options(m, "a", "b")
		o.TopicID = func(string) protocol.TopicID { return protocol.TopicID{2} }
		s, report, err := Open(start, o)
		must(t, err)
		if l := s.Log(tp("t", 0)); l == nil || l.TopicID() != (protocol.TopicID{2}) || l.View().LogEndOffset != protocol.Offset(used) {
			t.Errorf("%d records: the log is %v, %v", used, l, s.PartitionError(tp("t", 0)))
		}
		if r := report.Directories[1]; len(r.Aside) != 1 || !strings.HasSuffix(r.Aside[0], "-stray") || len(r.Damaged) > 0 {
			t.Errorf("%d records: the report says %+v", used, r)
		}
		must(t, s.Close(start, true, 1))
	}
}

func TestDirectoryThatCannotBeRead(t *testing.T) {
	for _, fault := range []vfs.Fault{
		{Pattern: "b/meta.properties"},
		{Pattern: "b/.lock"},
		{Pattern: "b/" + logdir.CleanShutdownFile},
		{Pattern: "b/" + logdir.BootIDFile, Kinds: []vfs.Kind{vfs.OpOpen}},
		{Pattern: "b", Kinds: []vfs.Kind{vfs.OpReadDir}},
		{Pattern: "b/" + logdir.RecoveryPointFile, Kinds: []vfs.Kind{vfs.OpOpen}},
		{Pattern: "b/t-1/*"},
		{Pattern: "b/t-1"},
		{Pattern: "b/" + logdir.BootIDFile + ".tmp"},
		{Pattern: "b/" + logdir.CleanShutdownFile, Kinds: []vfs.Kind{vfs.OpRemove}},
	} {
		m := formatted(t, "a", "b")
		s := open(t, options(m, "a", "b"))
		appendTo(t, create(t, s, tp("t", 0)), 3)
		appendTo(t, create(t, s, tp("t", 1)), 3)
		must(t, s.Close(start, true, 1), vfs.WriteFileAtomic(m, "b/"+logdir.BootIDFile, []byte("old")))
		fault.Err = syscall.EIO
		m.OnOperation(vfs.Script(fault))
		s, report, err := Open(start, options(m, "a", "b"))
		if err != nil {
			t.Errorf("%+v: %v", fault, err)
			continue
		}
		dirs := s.Directories()
		if dirs[0].Offline != nil || dirs[1].Offline == nil || !errors.Is(dirs[1].Offline, syscall.EIO) || report.Directories[1].Offline == nil {
			t.Errorf("%+v: the directories are %+v", fault, dirs)
		}
		if got := names(s); got != "t-0" {
			t.Errorf("%+v: the logs are %q", fault, got)
		}
		if l, err := s.Create(tp("u", 0), topicID("u"), protocol.DirectoryID{}); err != nil || l == nil {
			t.Errorf("%+v: cannot create: %v", fault, err)
		}
		must(t, s.Close(start, true, 1))
	}
}

func TestAllDirectoriesOffline(t *testing.T) {
	m := formatted(t, "a", "b", "m")
	m.OnOperation(vfs.Script(vfs.Fault{Pattern: "[ab]/*", Err: syscall.EIO}))
	o := options(m, "a", "b")
	o.MetadataDir = "m"
	if _, _, err := Open(start, o); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "none of the log directories works") {
		t.Errorf("the error is %v", err)
	}
	m.OnOperation(vfs.Script(vfs.Fault{Pattern: "m/*", Err: syscall.EIO}))
	if _, _, err := Open(start, o); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "the directory of the cluster metadata, m,") {
		t.Errorf("the error is %v", err)
	}
	m.OnOperation(nil)
	must(t, open(t, o).Close(start, true, 1)) // no lock was left
}

func TestDirectoryFailsWhileRunning(t *testing.T) {
	m := formatted(t, "a", "b")
	var told []Directory
	o := options(m, "a", "b")
	o.Offline = func(d Directory) { told = append(told, d) }
	s := open(t, o)
	appendTo(t, create(t, s, tp("t", 0)), 3)
	appendTo(t, create(t, s, tp("t", 1)), 3)
	m.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpSync}, Pattern: "b/t-1/*", Err: syscall.EIO}))
	s.Tick(start.Add(time.Minute))
	if len(told) != 1 || told[0].ID != directoryID(1) || !errors.Is(told[0].Offline, syscall.EIO) {
		t.Fatalf("told of %+v", told)
	}
	if got := names(s); got != "t-0" {
		t.Errorf("the logs are %q", got)
	}
	if err := s.PartitionError(tp("t", 1)); !errors.Is(err, syscall.EIO) {
		t.Errorf("the partition's error is %v", err)
	}
	if id, ok := s.DirectoryOf(tp("t", 1)); !ok || id != directoryID(1) {
		t.Errorf("the partition is in %v, %v", id, ok)
	}
	s.FailDirectory(directoryID(1), errors.New("again"))
	s.FailDirectory(directoryID(7), errors.New("not there"))
	m.OnOperation(nil)
	s.Tick(start.Add(2 * time.Minute))
	must(t, s.Close(start, true, 1))
	if len(told) != 1 {
		t.Errorf("told %d times", len(told))
	}
	if got := read(m, "a/"+logdir.CleanShutdownFile); !strings.Contains(got, "brokerEpoch") {
		t.Errorf("the directory that works has no marker: %q", got)
	}
	for _, file := range []string{logdir.CleanShutdownFile, logdir.BootIDFile} {
		if got := read(m, "b/"+file); !strings.Contains(got, "no such file") {
			t.Errorf("the directory that failed has %s: %q", file, got)
		}
	}
}

func TestFullDiskPasses(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 3)
	m.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpWrite}, Pattern: "a/*.tmp", Err: syscall.ENOSPC}))
	s.Tick(start.Add(time.Minute))
	if err := s.CheckpointHighWatermarks(offsets{tp("t", 0): 3}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the checkpoint on a full disk: %v", err)
	}
	if s.Directories()[0].Offline != nil {
		t.Fatalf("the directory is offline: %v", s.Directories()[0].Offline)
	}
	if _, err := s.Create(tp("u", 0), topicID("u"), protocol.DirectoryID{}); err == nil {
		// Only the files of the directory itself are refused, so this may work.
		must(t, s.Delete(start, tp("u", 0)))
	}
	m.OnOperation(nil)
	s.Tick(start.Add(2 * time.Minute))
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 3\n" {
		t.Errorf("the recovery points are %q", got)
	}
}

func TestCreateOnAFullDiskLeavesNothing(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	for skip := range 20 {
		m.OnOperation(vfs.Script(vfs.Fault{
			Kinds: []vfs.Kind{vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir}, Pattern: "a/t-0*", Skip: skip, Times: 1, Err: syscall.ENOSPC,
		}, vfs.Fault{
			Kinds: []vfs.Kind{vfs.OpWrite, vfs.OpCreate}, Pattern: "a/t-0/*", Skip: skip, Times: 1, Err: syscall.ENOSPC,
		}))
		_, err := s.Create(tp("t", 0), topicID("t"), protocol.DirectoryID{})
		m.OnOperation(nil)
		if err == nil {
			must(t, s.Delete(start, tp("t", 0)))
			return
		}
		if !errors.Is(err, syscall.ENOSPC) || s.Directories()[0].Offline != nil {
			t.Fatalf("skip %d: %v", skip, err)
		}
		if _, err := m.Stat("a/t-0"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("skip %d: the directory was left: %v", skip, err)
		}
		create(t, s, tp("t", 0))
		must(t, s.Delete(start, tp("t", 0)))
	}
	t.Fatal("the faults never ended")
}

func TestCreateGoesOnInAnotherDirectory(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	m.OnOperation(vfs.Script(vfs.Fault{Pattern: "a/t-0", Kinds: []vfs.Kind{vfs.OpMkdir}, Err: syscall.EIO}))
	create(t, s, tp("t", 0))
	if id, _ := s.DirectoryOf(tp("t", 0)); id != directoryID(1) || s.Directories()[0].Offline == nil {
		t.Errorf("the partition is in %s, the directories are %+v", id, s.Directories())
	}
}

func TestLeftoverWithRecordsIsNotRemoved(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	must(t, m.MkdirAll("a/t-0"), vfs.WriteFileAtomic(m, "a/t-0/00000000000000000000.log", []byte("records")))
	if _, err := s.Create(tp("t", 0), topicID("t"), protocol.DirectoryID{}); err == nil || !strings.Contains(err.Error(), "a/t-0 holds records") {
		t.Fatalf("created over it: %v", err)
	}
	must(t, m.Remove("a/t-0/00000000000000000000.log"))
	create(t, s, tp("t", 0))
}

func TestDamagedCheckpointIsNamed(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 3)
	must(t, s.Close(start, true, 1), vfs.WriteFileAtomic(m, "a/"+logdir.LogStartFile, []byte("garbage\n")))
	s, report, err := Open(start, options(m, "a"))
	must(t, err)
	if got := report.Directories[0].Checkpoints; !slices.Equal(got, []string{logdir.LogStartFile}) || names(s) != "t-0" {
		t.Errorf("the report says %q", got)
	}
}

func TestRecoveryPointIsLoweredBeforeATruncation(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	l := create(t, s, tp("t", 0))
	appendTo(t, l, 20)
	now := start.Add(time.Minute)
	s.Tick(now)
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 20\n" {
		t.Fatalf("the recovery points are %q", got)
	}
	var seen []string
	m.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpTruncate || op.Kind == vfs.OpRename {
			seen = append(seen, op.Kind.String()+" "+path.Base(op.Name))
		}
		if op.Kind == vfs.OpTruncate && strings.HasSuffix(op.Name, ".log") {
			if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 12\n" {
				t.Errorf("at the truncation the recovery points are %q", got)
			}
		}
		return nil
	})
	must(t, l.TruncateTo(12))
	m.OnOperation(nil)
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 12\n" {
		t.Errorf("the recovery points are %q (%q)", got, seen)
	}
	appendTo(t, l, 4)
	now = now.Add(time.Minute)
	s.Tick(now)
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 16\n" {
		t.Errorf("after the next checkpoint the recovery points are %q", got)
	}
}

func TestCapHoldsWhileATruncationIsUnderWay(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	appendTo(t, create(t, s, tp("t", 0)), 20)
	s.Tick(start.Add(time.Minute))
	var waiting []func()
	s.SetExclusive(func(_ protocol.TopicPartition, task func()) { waiting = append(waiting, task) }) // somebody holds the append lock
	must(t, s.dirs[0].checkpoints.Lower(tp("t", 0), 5))
	s.Tick(start.Add(2 * time.Minute))
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 5\n" {
		t.Errorf("while the truncation is under way: %q", got)
	}
	for _, task := range waiting {
		task()
	}
	s.SetExclusive(func(_ protocol.TopicPartition, task func()) { task() })
	s.Tick(start.Add(3 * time.Minute))
	if got := read(m, "a/"+logdir.RecoveryPointFile); got != "0\n1\nt 0 20\n" {
		t.Errorf("after it: %q", got)
	}
}

func TestBackgroundFlushMovesTheRecoveryPoint(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	l := create(t, s, tp("t", 0))
	idle := create(t, s, tp("t", 1))
	appendTo(t, l, 5)
	s.Tick(start.Add(59 * time.Second))
	if got := l.View().DurableEnd; got != 0 {
		t.Errorf("flushed too early, up to %d", got)
	}
	s.Tick(start.Add(time.Minute))
	if got := l.View().DurableEnd; got != 5 {
		t.Errorf("flushed up to %d", got)
	}
	writes := 0
	m.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			writes++
		}
		return nil
	})
	for i := range 20 {
		s.Tick(start.Add(time.Duration(2+i) * time.Minute))
	}
	if writes != 0 {
		t.Errorf("an idle store has written %d times", writes)
	}
	m.OnOperation(nil)
	if got := open(t, options(m.CrashWith(nil), "a", "b")).Log(tp("t", 0)).View(); got.LogEndOffset != 5 {
		t.Errorf("after a power cut the log ends at %d", got.LogEndOffset)
	}
	_ = idle
}

func TestRetentionByTick(t *testing.T) {
	m := formatted(t, "a")
	o := options(m, "a")
	o.LogOptions = func(string) log.Options {
		opts := log.DefaultOptions()
		opts.SegmentBytes, opts.RetentionAge = 1000, time.Hour
		return opts
	}
	s := open(t, o)
	l := create(t, s, tp("t", 0))
	appendTo(t, l, 30)
	l.SetHighWatermark(30)
	s.Tick(start.Add(time.Second))
	if got := s.NextDeadline(); got.After(start.Add(time.Minute)) {
		t.Errorf("the next deadline is %v", got.Sub(start))
	}
	for now := start; now.Before(start.Add(2 * time.Hour)); now = now.Add(time.Minute) {
		s.Tick(now)
	}
	if v := l.View(); v.LogStartOffset != 30 || v.LogEndOffset != 30 {
		t.Errorf("after two hours the log is %+v", v)
	}
	if entries, err := m.ReadDir("a/t-0"); err != nil || slices.ContainsFunc(entries, func(e vfs.Entry) bool { return strings.HasSuffix(e.Name, ".deleted") }) {
		t.Errorf("deleted segments were left: %v, %v", entries, err)
	}
}

func TestFlushByAge(t *testing.T) {
	m := formatted(t, "a")
	o := options(m, "a")
	o.LogOptions = func(string) log.Options {
		opts := log.DefaultOptions()
		opts.FlushAge = 3 * time.Second
		return opts
	}
	s := open(t, o)
	l := create(t, s, tp("t", 0))
	s.Tick(start)
	appendTo(t, l, 5)
	var flushedAt time.Duration
	for now := start; now.Before(start.Add(30 * time.Second)); now = now.Add(500 * time.Millisecond) {
		s.Tick(now)
		if l.View().DurableEnd == 5 && flushedAt == 0 {
			flushedAt = now.Sub(start)
		}
	}
	if flushedAt == 0 || flushedAt > 5*time.Second {
		t.Errorf("flushed after %v", flushedAt)
	}
}

func TestTouchAndWake(t *testing.T) {
	m := formatted(t, "a")
	woken := 0
	o := options(m, "a")
	o.Wake = func() { woken++ }
	s := open(t, o)
	create(t, s, tp("t", 0))
	s.Tick(start)
	woken = 0
	s.Touch(tp("t", 0))
	s.Touch(tp("t", 0))
	s.Touch(tp("unknown", 0))
	if woken == 0 || s.NextDeadline().After(start) {
		t.Errorf("woken %d times, the next deadline is in %v", woken, s.NextDeadline().Sub(start))
	}
	s.Tick(start)
	if !s.NextDeadline().After(start) {
		t.Error("after a Tick there is still something due at once")
	}
}

func TestManyWorkers(t *testing.T) {
	m := formatted(t, "a", "b")
	o := options(m, "a", "b")
	var mu sync.Mutex
	random := seeded(3)
	o.Random = func() uint64 { mu.Lock(); defer mu.Unlock(); return random() }
	o.Workers = func(task func()) { go task() }
	o.RecoveryParallelism = 4
	s := open(t, o)
	for i := range int32(40) {
		appendTo(t, create(t, s, tp("t", i)), int(i%5))
	}
	for minute := range 5 {
		s.Tick(start.Add(time.Duration(minute) * time.Minute))
		must(t, s.Delete(start, tp("t", int32(minute))))
	}
	must(t, s.Close(start, true, 1))
	s, report, err := Open(start, o)
	must(t, err)
	if got := len(s.Logs()); got != 35 || report.Directories[0].Logs+report.Directories[1].Logs != 35 {
		t.Errorf("%d logs, and the report says %+v", got, report)
	}
	must(t, s.Close(start, true, 1))
}

func TestUsage(t *testing.T) {
	m := formatted(t, "a")
	m.SetCapacity(1 << 20)
	s := open(t, options(m, "a"))
	if total, usable, err := s.Usage(directoryID(0)); total != 1<<20 || usable <= 0 || err != nil {
		t.Errorf("usage %d of %d, %v", usable, total, err)
	}
	if _, _, err := s.Usage(directoryID(1)); err == nil {
		t.Error("the usage of an unknown directory is known")
	}
}
