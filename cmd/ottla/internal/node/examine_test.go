package node_test

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/cmd/ottla/internal/node"
	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/protocol/compress"
	"ottla/storage/vfs"
)

// examine examines the disk, sees that it stays as it is, and gives what was printed.
func (s *stepped) examine(disk *vfs.Mem) (said string, safe bool) {
	s.Helper()
	disk.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			s.Errorf("an examination changes the disk: %+v", op)
		}
		return nil
	})
	defer disk.OnOperation(nil)
	found := node.Examine(s.now, s.config, disk, "h0")
	var out strings.Builder
	err := found.Print(&out)
	if err != nil && !errors.Is(err, offline.ErrNotSafe) {
		s.Errorf("the report: %v", err)
	}
	return out.String(), err == nil
}

// used is a node that some have used, and the disks that its two kinds of end leave.
func used(t *testing.T) (s *stepped, clean, killed *vfs.Mem) {
	t.Helper()
	s = newStepped(t)
	s.bootWithGroups()
	s.topic("orders", 2)
	s.produce("orders", compress.None, 9*time.Second, 8*time.Second)
	s.produce("orders", compress.Gzip, 6*time.Second)
	s.commit("g", "orders", 1)
	killed = s.disk.Kill()
	s.must(s.node.Release(s.now))
	s.must(s.node.Stop(s.now, true))
	return s, s.disk, killed
}

func TestExamine(t *testing.T) {
	s, clean, killed := used(t)
	for _, c := range []struct {
		what   string
		disk   *vfs.Mem
		change func(disk *vfs.Mem)
		safe   bool
		says   []string
	}{
		{"clean", clean, nil, true, []string{
			"cluster ", "node 1", "52 partitions\n", "stopped cleanly", "metadata.version 4.4-IV2, kraft.version 0", "voters 1\n",
			"registered brokers 1\n", "2 topics, 52 partitions", "safe to start\n",
		}},
		{"killed", killed, nil, true, []string{"not stopped cleanly; the machine has run since"}},
		{"power cut", killed.Crash(), nil, true, []string{"everything beyond the recovery points is checked"}},
		{"nothing there", vfs.NewMem(nil), nil, false, []string{"/data\n  not formatted", "has no meta.properties"}},
		{"a stray and others", clean.Kill(), func(disk *vfs.Mem) {
			for _, name := range []string{"gone-3", "old-0.0123456789abcdef0123456789abcdef-delete", "moving-1.0123456789abcdef0123456789abcdef-stray", "what"} {
				s.must(disk.MkdirAll("/data/" + name))
			}
		}, true, []string{"53 partitions, 1 being deleted, 1 set aside", "a start sets them aside: gone-3", "no partition, left alone: what"}},
		{"meta.properties", clean.Kill(), func(disk *vfs.Mem) { s.overwrite(disk, "/data/meta.properties", 0, "version=7#") }, false, []string{"NOT safe", "meta.properties"}},
		{"another node", clean.Kill(), func(disk *vfs.Mem) {
			text, err := vfs.ReadFile(disk, "/data/meta.properties")
			s.must(err)
			s.must(vfs.WriteFileAtomic(disk, "/data/meta.properties", []byte(strings.Replace(string(text), "node.id=1", "node.id=2", 1))))
		}, false, []string{"belongs to node 2"}},
		{"quorum-state", clean.Kill(), func(disk *vfs.Mem) { s.overwrite(disk, "/data/__cluster_metadata-0/quorum-state", 3, "\x00\x00") }, false, []string{"quorum-state is damaged"}},
		{"metadata log", clean.Kill(), func(disk *vfs.Mem) {
			s.overwrite(disk, "/data/__cluster_metadata-0/00000000000000000000.log", 200, "\xff\xff\xff")
		}, false, []string{"00000000000000000000.log is damaged at byte"}},
		{"a segment", killed.Crash(), func(disk *vfs.Mem) {
			s.overwrite(disk, "/data/orders-0/00000000000000000000.log", 8, "\x00\x00\x00\x07")
		}, true, nil}, // judged by what was flushed; at any rate nothing changes
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.change != nil {
				c.change(c.disk)
			}
			s.T = t
			said, safe := s.examine(c.disk)
			if safe != c.safe && c.says != nil {
				t.Errorf("safe is %v:\n%s", safe, said)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

func (s *stepped) overwrite(disk *vfs.Mem, name string, at int64, with string) {
	s.Helper()
	file, err := disk.OpenFile(name, os.O_RDWR)
	s.must(err)
	_, err = file.WriteAt([]byte(with), at)
	s.must(err)
	s.must(file.Close())
}

// TestExamineBroker: the same directory, of a node that is no controller, is judged by its own copy of the metadata.
func TestExamineBroker(t *testing.T) {
	s, clean, killed := used(t)
	properties, err := config.FromOverrides([]string{
		"process.roles=broker", "node.id=1", "listeners=PLAINTEXT://h0:9092", "controller.listener.names=CONTROLLER",
		"controller.quorum.bootstrap.servers=h9:9093", "log.dirs=/data",
	})
	s.must(err)
	s.config, _, err = config.Broker(properties)
	s.must(err)
	for _, disk := range []*vfs.Mem{clean, killed, killed.Crash()} {
		said, safe := s.examine(disk)
		for _, want := range []string{"as this broker has last heard of it, up to offset ", "metadata.version 4.4-IV2", "2 topics, 52 partitions", "safe to start\n"} {
			if !safe || !strings.Contains(said, want) {
				t.Errorf("safe is %v, and it does not say %q:\n%s", safe, want, said)
			}
		}
	}
	never := clean.Kill()
	s.must(never.RemoveAll("/data/__cluster_metadata-0"))
	if said, safe := s.examine(never); safe || !strings.Contains(said, "has no metadata yet") {
		t.Errorf("without metadata safe is %v:\n%s", safe, said)
	}
}

// TestExamineInUse: a directory that a server has locked is not examined.
func TestExamineInUse(t *testing.T) {
	s, clean, _ := used(t)
	lock, err := clean.Lock("/data/.lock")
	s.must(err)
	if said, safe := s.examine(clean); safe || !strings.Contains(said, "in use by another server") {
		t.Errorf("safe is %v:\n%s", safe, said)
	}
	s.must(lock.Close())
	if said, safe := s.examine(clean); !safe {
		t.Errorf("after it was given back:\n%s", said)
	}
}

// TestExamineDamaged damages every file that a node has left, in several ways: whatever is said of it, it stays as it is.
func TestExamineDamaged(t *testing.T) {
	s, clean, killed := used(t)
	cases := 0
	for _, disk := range []*vfs.Mem{clean, killed} {
		seen := map[string]bool{}
		for _, name := range filesOf(t, disk, "/data") {
			if kind := path.Base(name) + string(name[6]); seen[kind] { // of fifty partitions of __consumer_offsets, one
				continue
			} else {
				seen[kind] = true
			}
			for _, damage := range []func(file vfs.File, size int64) error{
				func(file vfs.File, _ int64) error { return file.Truncate(0) },
				func(file vfs.File, size int64) error { return file.Truncate(size / 2) },
				func(file vfs.File, size int64) error { return file.Truncate(size + 100) },
				func(file vfs.File, size int64) error { _, err := file.WriteAt([]byte{0xff, 0x55}, size/2); return err },
				func(file vfs.File, _ int64) error {
					_, err := file.WriteAt([]byte("\x00\x00\x00\x00\x00garbage"), 0)
					return err
				},
			} {
				twin := disk.Kill()
				file, err := twin.OpenFile(name, os.O_RDWR)
				s.must(err)
				size, err := file.Size()
				s.must(err)
				s.must(damage(file, size))
				s.must(file.Close())
				s.examine(twin)
				cases++
			}
		}
	}
	if cases < 100 {
		t.Errorf("only %d cases", cases)
	}
}

func filesOf(t *testing.T, disk *vfs.Mem, dir string) []string {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if name := dir + "/" + e.Name; e.Dir {
			files = append(files, filesOf(t, disk, name)...)
		} else if e.Name != ".lock" {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}
