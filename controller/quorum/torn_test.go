package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// tear is what becomes of a file from a byte on.
type tear struct {
	name string
	at   func(content []byte, position int) []byte
}

var tears = []tear{
	{"truncate", func(content []byte, position int) []byte { return content[:position] }},
	{"zero", func(content []byte, position int) []byte {
		clear(content[position:])
		return content
	}},
	{"garbage", func(content []byte, position int) []byte {
		random := seeded(uint64(position))
		for i := position; i < len(content); i++ {
			content[i] = byte(random())
		}
		return content
	}},
	{"flip", func(content []byte, position int) []byte {
		content[position] ^= 1 << (position % 8)
		return content
	}},
	{"invert", func(content []byte, position int) []byte {
		content[position] ^= 0xff
		return content
	}},
}

// tearings goes through every byte of a file and every tear, or a sample: all of
// them with OTTLA_TORN=full.
func tearings(content []byte, stride int, visit func(tear, int, []byte)) {
	if full() {
		stride = 1
	}
	for i, kind := range tears {
		for position := i % stride; position < len(content); position += stride {
			if torn := kind.at(bytes.Clone(content), position); !bytes.Equal(torn, content) {
				visit(kind, firstDifference(content, torn), torn)
			}
		}
	}
}

func full() bool { return os.Getenv("OTTLA_TORN") == "full" }

// recoveries is how many starts the torn tests of this package have tried; the last of them prints it.
var recoveries int

// firstDifference is the first byte that a tear changed.
func firstDifference(content, torn []byte) int {
	for i := range torn {
		if torn[i] != content[i] {
			return i
		}
	}
	return len(torn)
}

// tornBase is a disk with several epochs, a snapshot and batches behind it, at
// last those of the values given. How the last process ended is what trust says;
// everything is durable.
func tornBase(t *testing.T, trust log.Trust, last ...string) *rig {
	r := newRig(t)
	r.options.Machine, r.options.SegmentAge = r.machine, 1000*time.Hour
	r.mustStart()
	r.mustSubmit("a", "b")
	r = r.restart()
	r.mustSubmit("c")
	r.tick(2 * time.Hour)
	r.mustSubmit("d")
	r = r.restart()
	r.mustSubmit(last...)
	disk := r.fs.Kill()
	switch trust {
	case log.Clean:
		must(t, r.q.Close(r.now))
		disk = r.fs
	case log.OtherBoot:
		disk = r.fs.CrashWith(nil)
	}
	disk.SyncAll()
	return r.again(disk, trust)
}

// tornStart starts on a copy of the disk in which a file was replaced. A refusal
// must name the file and leave everything as it is.
func tornStart(t *testing.T, base *rig, name string, content []byte) (*rig, error) {
	t.Helper()
	recoveries++
	disk := base.fs.Kill()
	writeFile(t, disk, name, content)
	before := files(t, disk)
	next := base.again(disk, base.options.Trust)
	err := next.start()
	if err == nil {
		return next, nil
	}
	if !strings.Contains(err.Error(), path.Base(name)) {
		t.Fatalf("refused, but not by the name of %s: %v", name, err)
	}
	var damaged *DamagedError
	if !errors.As(err, &damaged) {
		t.Fatalf("not a *DamagedError: %v", err)
	}
	if changed := sameFiles(before, files(t, disk)); changed != nil {
		t.Fatalf("refused (%v), but %v", err, changed)
	}
	return next, err
}

var allTrusts = []log.Trust{log.Clean, log.SameBoot, log.OtherBoot}

func TestTornSnapshot(t *testing.T) {
	for _, trust := range allTrusts {
		base := tornBase(t, trust, "e", "f", "g", "h")
		ids, err := listSnapshots(base.fs, partitionDir)
		must(t, err)
		name := path.Join(partitionDir, ids[len(ids)-1].file())
		content, err := vfs.ReadFile(base.fs, name)
		must(t, err)
		tearings(content, 7, func(kind tear, position int, torn []byte) {
			if _, err := tornStart(t, base, name, torn); err == nil {
				t.Fatalf("%s at %d, trust %d: a damaged snapshot was read", kind.name, position, trust)
			}
		})
	}
}

func TestTornQuorumState(t *testing.T) {
	for _, trust := range allTrusts {
		base := tornBase(t, trust, "e", "f", "g", "h")
		name := path.Join(partitionDir, stateFile)
		content, err := vfs.ReadFile(base.fs, name)
		must(t, err)
		batches := batchesOf(t, base.fs)
		led := batches[len(batches)-1].PartitionLeaderEpoch()
		tearings(content, 3, func(kind tear, position int, torn []byte) {
			next, err := tornStart(t, base, name, torn)
			if err != nil {
				return
			}
			// There is no checksum: another digit may be right, another letter case
			// means the same. That must not let an epoch be led twice.
			if kind.name != "flip" && kind.name != "invert" {
				t.Fatalf("%s at %d: a damaged file was read: %s", kind.name, position, torn)
			}
			if next.q.Status().Epoch <= led {
				t.Fatalf("%s at %d: epoch %d is led after %d, by %s", kind.name, position, next.q.Status().Epoch, led, torn)
			}
			next.holds()
		})
	}
}

// tornLog knows where the batches of a log file lie.
type tornLog struct {
	starts []int // byte of each batch
	values []int // how many values the batches before hold
	floor  int   // byte that was surely durable
}

func layOut(t *testing.T, content []byte, floor protocol.Offset) tornLog {
	var l tornLog
	values := 0
	for at := 0; at < len(content); {
		batch, _, err := record.Next(content[at:])
		must(t, err)
		l.starts, l.values = append(l.starts, at), append(l.values, values)
		if batch.NextOffset() <= floor {
			l.floor = at + batch.Size()
		}
		if !batch.IsControl() {
			values += int(batch.Count())
		}
		at += batch.Size()
	}
	return l
}

// mayLose tells where a loss cannot be known from a write that was torn: what a
// start may cut. Everything else is damage.
func (l tornLog) mayLose(kind string, position int, trust log.Trust) bool {
	last := l.starts[len(l.starts)-1]
	batch := l.batchAt(position)
	switch {
	case trust == log.Clean || position < l.floor:
		return false
	case kind == "truncate":
		return true // a shorter file, as a torn last write leaves it
	case trust == log.SameBoot:
		return false // the page cache was whole
	case position >= last:
		return true
	case kind == "zero" || kind == "garbage":
		// Up to the end of the file nothing is left by which the header could say
		// that something follows.
		return position-l.starts[batch] < 17
	}
	return false
}

func (l tornLog) batchAt(position int) int {
	at, found := slices.BinarySearch(l.starts, position)
	if !found {
		at--
	}
	return at
}

func TestTornLog(t *testing.T) {
	for _, trust := range allTrusts {
		for name, last := range map[string][]string{"records": {"e", "f", "g", "h"}, "election": nil} {
			t.Run(fmt.Sprint(name, trust), func(t *testing.T) { tearLog(t, tornBase(t, trust, last...), trust) })
		}
	}
}

func tearLog(t *testing.T, base *rig, trust log.Trust) {
	name := path.Join(partitionDir, "00000000000000000000.log")
	content, err := vfs.ReadFile(base.fs, name)
	must(t, err)
	producers, err := offsetsOf(base.fs, partitionDir, ".snapshot")
	must(t, err)
	layout := layOut(t, content, producers[len(producers)-1])
	last := layout.starts[len(layout.starts)-1]
	counts := map[string]int{}
	tearings(content, 11, func(kind tear, position int, torn []byte) {
		next, err := tornStart(t, base, name, torn)
		if err != nil {
			counts["refused"]++
			cut := kind.name == "truncate" || kind.name != "flip" && kind.name != "invert" && trust == log.OtherBoot
			if trust != log.Clean && position >= last && cut {
				t.Fatalf("%s at %d of the last batch (%d), trust %d: the start was refused: %v", kind.name, position, last, trust, err)
			}
			return
		}
		counts["cut"]++
		if !layout.mayLose(kind.name, position, trust) {
			t.Fatalf("%s at %d of %d (batches %v, floor %d), trust %d: durable records were cut off silently",
				kind.name, position, len(content), layout.starts, layout.floor, trust)
		}
		values := next.machine.(*toy).values
		if want := layout.values[layout.batchAt(position)]; len(values) != want {
			t.Fatalf("%s at %d, trust %d: %d values are left, want the %d before it", kind.name, position, trust, len(values), want)
		}
		next.acked = nil
		next.mustSubmit("after")
		next.holds()
	})
	t.Logf("%d bytes: %v", len(content), counts)
}

// TestTornSegments: whatever lies before the last segment was durable.
func TestTornSegments(t *testing.T) {
	for _, trust := range allTrusts {
		r := small(newRig(t))
		r.options.Machine, r.options.SnapshotBytes, r.options.SnapshotAge, r.options.SegmentBytes = r.machine, 1<<20, 0, 400
		r.mustStart()
		r.mustSubmit("a", "b", "c", "d", "e", "f", "g", "h")
		disk := r.fs.Kill()
		if trust == log.Clean {
			must(t, r.q.Close(r.now))
			disk = r.fs
		}
		disk.SyncAll()
		base := r.again(disk, trust)
		bases, err := segmentBases(disk, partitionDir)
		must(t, err)
		if len(bases) < 3 {
			t.Fatalf("segments %v", bases)
		}
		for _, segment := range bases[:len(bases)-1] { // sealed: all of it was durable
			name := path.Join(partitionDir, fmt.Sprintf("%020d.log", segment))
			content, err := vfs.ReadFile(disk, name)
			must(t, err)
			tearings(content, 13, func(kind tear, position int, torn []byte) {
				recoveries++
				disk := base.fs.Kill()
				writeFile(t, disk, name, torn)
				before := files(t, disk)
				next := base.again(disk, trust)
				var damaged *DamagedError
				if err := next.start(); !errors.As(err, &damaged) {
					t.Fatalf("%s at %d of %s, trust %d: %v", kind.name, position, name, trust, err)
				}
				must(t, sameFiles(before, files(t, disk)))
			})
		}
	}
}

// TestTornRebuildable: what can be made anew from the log never stops a start,
// and nothing is lost.
func TestTornRebuildable(t *testing.T) {
	for _, trust := range allTrusts {
		base := tornBase(t, trust, "e", "f", "g", "h")
		for name, content := range files(t, base.fs) {
			if content == "directory" || strings.HasSuffix(name, ".log") || strings.HasSuffix(name, snapshotSuffix) || strings.HasSuffix(name, stateFile) {
				continue
			}
			tearings([]byte(content), 5, func(kind tear, position int, torn []byte) {
				next, err := tornStart(t, base, name, torn)
				if err != nil {
					t.Fatalf("%s of %s at %d, trust %d: %v", kind.name, name, position, trust, err)
				}
				next.holds()
				next.mustSubmit("after")
				next.restart().holds()
			})
		}
	}
}

// TestTornTotal runs last.
func TestTornTotal(t *testing.T) {
	t.Logf("%d recoveries: files of the metadata log", recoveries)
}
