package quorum

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

func (r *rig) snapshots() []snapshotID {
	r.t.Helper()
	ids, err := listSnapshots(r.fs, partitionDir)
	must(r.t, err)
	return ids
}

func TestSnapshotsBySize(t *testing.T) {
	r := newRig(t)
	r.options.Machine, r.options.SnapshotBytes, r.options.SnapshotAge = r.machine, 1000, 0
	r.mustStart()
	taken := 0
	for i := range 40 {
		r.mustSubmit(strings.Repeat("v", 100))
		if due := r.q.NextDeadline(); !due.IsZero() {
			if due.After(r.now) {
				t.Fatalf("%d: due at %v, now %v", i, due, r.now)
			}
			r.tick(0)
			taken++
			if ids := r.snapshots(); len(ids) != taken+1 || ids[taken].End != r.q.Status().HighWatermark {
				t.Fatalf("snapshots %v, high watermark %d", ids, r.q.Status().HighWatermark)
			}
		}
	}
	if taken < 5 || taken > 10 {
		t.Fatalf("%d snapshots of 40 records of 180 bytes", taken)
	}
	r.holds()
	// The bytes since the last snapshot count across a restart.
	for r.q.snapshots.bytes > 200 {
		r.mustSubmit(strings.Repeat("v", 100))
		r.tick(0)
	}
	r.mustSubmit(strings.Repeat("v", 100), strings.Repeat("v", 100))
	before := r.q.snapshots.bytes
	if before >= 1000 {
		t.Fatalf("%d bytes since the snapshot", before)
	}
	if next := r.restart(); next.q.snapshots.bytes < before {
		t.Fatalf("%d bytes since the snapshot, %d before the restart", next.q.snapshots.bytes, before)
	}
}

func TestSnapshotsByAge(t *testing.T) {
	r := started(t)
	if due := r.q.NextDeadline(); !due.Equal(r.now.Add(time.Hour)) {
		t.Fatalf("due at %v", due) // of the records of the start
	}
	r.tick(time.Hour)
	if len(r.snapshots()) != 2 || !r.q.NextDeadline().IsZero() {
		t.Fatalf("snapshots %v, next at %v", r.snapshots(), r.q.NextDeadline())
	}
	r.tick(5 * time.Hour) // nothing happened: nothing is due
	r.mustSubmit("a")
	if due := r.q.NextDeadline(); due.After(r.now) {
		t.Fatalf("due at %v, now %v", due, r.now)
	}
	r.tick(0)
	if len(r.snapshots()) != 3 {
		t.Fatalf("snapshots %v", r.snapshots())
	}
	never := newRig(t)
	never.options.Machine, never.options.SnapshotAge = never.machine, 0
	never.mustStart()
	never.mustSubmit("a")
	if due := never.q.NextDeadline(); !due.IsZero() {
		t.Fatalf("due at %v", due)
	}
}

// TestWakeTellsOfANearerDeadline: a snapshot that is due at once does not wait
// for the next heartbeat.
func TestWakeTellsOfANearerDeadline(t *testing.T) {
	r := newRig(t)
	woken := 0
	r.options.Machine, r.options.SnapshotBytes = r.machine, 200
	r.options.Wake = func() { woken++ }
	r.mustStart()
	before := woken
	r.mustSubmit(strings.Repeat("v", 300))
	if woken != before+1 {
		t.Fatalf("woken %d times", woken-before)
	}
}

func TestRestartFromSnapshotAndLog(t *testing.T) {
	r := started(t)
	r.mustSubmit("a", "b")
	r.tick(2 * time.Hour)
	r.mustSubmit("c", "d")
	for range 2 {
		for _, trust := range []log.Trust{log.OtherBoot, log.SameBoot, log.Clean} {
			switch trust {
			case log.Clean:
				r = r.restart()
			case log.SameBoot:
				r = r.again(r.fs.Kill(), trust).mustStart()
			case log.OtherBoot:
				r = r.again(r.fs.Crash(), trust).mustStart()
			}
			r.holds()
		}
		r.tick(2 * time.Hour)
		r.mustSubmit("e")
	}
	if got := strings.Join(r.machine.(*toy).values, ""); got != "abcdee" {
		t.Fatal(got)
	}
}

// TestRetention drops the oldest snapshots and the segments that only they need.
func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64
		age   time.Duration
	}{{"size", 4000, -1}, {"age", -1, 3 * time.Hour}} {
		r := newRig(t)
		r.options.Machine, r.options.SegmentBytes = r.machine, 600
		r.options.RetentionBytes, r.options.RetentionAge = c.bytes, c.age
		r.mustStart()
		for i := range 12 {
			for j := range 4 {
				r.mustSubmit(fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("v", 40)))
			}
			r.tick(time.Hour)
		}
		r.tick(2 * time.Minute) // files go after a while
		ids := r.snapshots()
		if len(ids) < 1 || len(ids) > 6 || ids[0].End == 0 {
			t.Fatalf("%s: snapshots %v", c.name, ids)
		}
		bases, err := segmentBases(r.fs, partitionDir)
		must(t, err)
		if bases[0] == 0 || bases[0] > ids[0].End || len(bases) > 1 && bases[1] <= ids[0].End {
			t.Fatalf("%s: segments %v for snapshots %v", c.name, bases, ids)
		}
		r.holds()
		r = r.restart()
		r.holds()
		for _, id := range r.snapshots() { // each that is left can be started from
			disk := r.fs.Kill()
			for _, other := range r.snapshots() {
				if other.End > id.End {
					must(t, disk.Remove(path.Join(partitionDir, other.file())))
				}
			}
			disk.SyncAll()
			r.again(disk, log.SameBoot).mustStart().holds()
		}
	}
}

// TestLogWithoutItsSnapshot is refused: what the log no longer has is lost.
func TestLogWithoutItsSnapshot(t *testing.T) {
	r := newRig(t)
	r.options.Machine, r.options.SegmentBytes, r.options.RetentionBytes = r.machine, 600, 1
	r.mustStart()
	for range 4 {
		r.mustSubmit(strings.Repeat("v", 300), strings.Repeat("v", 300))
		r.tick(time.Hour)
	}
	r.tick(time.Hour)
	must(t, r.q.Close(r.now))
	for _, id := range r.snapshots() {
		must(t, r.fs.Remove(path.Join(partitionDir, id.file())))
	}
	before := files(t, r.fs)
	if err := r.again(r.fs, log.Clean).start(); err == nil || !strings.Contains(err.Error(), "no snapshot covers") {
		t.Fatalf("%v", err)
	}
	must(t, sameFiles(before, files(t, r.fs)))
}

// TestLeftOvers of interrupted snapshots, ours and Kafka's, are removed.
func TestLeftOvers(t *testing.T) {
	r := started(t)
	must(t, r.q.Close(r.now))
	left := []string{".checkpoint.tmp", ".checkpoint.part", ".checkpoint.deleted"}
	for _, suffix := range left {
		writeFile(t, r.fs, path.Join(partitionDir, "00000000000000000009-0000000001"+suffix), []byte("x"))
	}
	r = r.again(r.fs, log.Clean).mustStart()
	for name := range files(t, r.fs) {
		for _, suffix := range left {
			if strings.HasSuffix(name, suffix) {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// FuzzReadSnapshot: no bytes make the reader panic or take much memory.
func FuzzReadSnapshot(f *testing.F) {
	writer := snapshotFile{}
	writer.data([]byte{1, 2, 3})
	f.Add(writer.bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		r := rigOn(t, vfs.NewMem(nil))
		name := path.Join(metaDir, "x")
		must(t, r.fs.MkdirAll(metaDir))
		must(t, vfs.WriteFileAtomic(r.fs, name, content))
		q := &Quorum{options: r.options, pool: r.options.Env.Pool}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := q.readSnapshot(name, snapshotID{})
		runtime.ReadMemStats(&after)
		// A batch may be compressed; what it may expand to is bounded apart.
		if used := after.TotalAlloc - before.TotalAlloc; err == nil && used > uint64(64*len(content)+64<<10)+snapshotSlack(s.values) {
			t.Errorf("%d bytes were allocated for %d", used, len(content))
		}
		if err == nil {
			total := 0
			for _, value := range s.values {
				total += len(value)
			}
			if total > 64*len(content)+64<<10 {
				t.Fatalf("%d bytes of values out of %d", total, len(content))
			}
		}
	})
}

// snapshotSlack is what the values of a compressed batch may cost besides.
func snapshotSlack(values [][]byte) uint64 {
	total := 1 << 20
	for _, value := range values {
		total += 4 * len(value)
	}
	return uint64(total)
}

// FuzzParseState: no bytes make it panic, and what is read can be written.
func FuzzParseState(f *testing.F) {
	f.Add([]byte(`{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`))
	f.Add([]byte(`{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := parseState(content)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*len(content)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(content))
		}
		if err == nil && (*file.LeaderEpoch < 0 || protocol.NodeID(*file.LeaderID) < -1) {
			t.Fatalf("%s", content)
		}
	})
}
