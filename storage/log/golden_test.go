package log

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// goldenOptions are those of the topics in the golden directory.
func goldenOptions(topic string) Options {
	o := DefaultOptions()
	o.IndexIntervalBytes, o.SegmentAge, o.RetentionAge = 300, 1000*time.Second, -1
	if topic == "txns" {
		o.SegmentAge = 100 * time.Second
	}
	return o
}

var goldenPartitions = []string{"apptime-0", "codecs-0", "empty-0", "idem-0", "trimmed-0", "txns-0"}

func openGolden(t *testing.T, disk vfs.FS, name string, trust Trust, recoveryPoint protocol.Offset) (*Log, Recovery) {
	t.Helper()
	tp, err := protocol.ParseTopicPartition(name)
	check(t, err)
	starts, err := checkpoint.ReadOffsets(disk, "data/log-start-offset-checkpoint")
	check(t, err)
	l, report, err := Open(testEnv(disk), "data/"+name, tp, goldenOptions(tp.Topic),
		OpenState{RecoveryPoint: recoveryPoint, LogStartOffset: starts[tp], Trust: trust, Now: testTime})
	check(t, err)
	return l, report
}

func goldenEnds(t *testing.T, disk vfs.FS) map[string]protocol.Offset {
	t.Helper()
	points, err := checkpoint.ReadOffsets(disk, "data/recovery-point-offset-checkpoint")
	check(t, err)
	ends := map[string]protocol.Offset{}
	for tp, offset := range points {
		ends[tp.String()] = offset
	}
	return ends
}

func compareFiles(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: there is also %s", what, name)
		}
	}
	for _, name := range names {
		if have, there := got[name]; !there {
			t.Errorf("%s: %s is missing", what, name)
		} else if have != want[name] {
			t.Errorf("%s: %s differs\n got %x\nwant %x", what, name, have, want[name])
		}
	}
}

// TestGoldenClean opens what Apache Kafka closed: nothing needs repair, and closing it again leaves every byte.
func TestGoldenClean(t *testing.T) {
	disk := newDisk(1)
	loadTree(t, disk, goldenRoot, "data", nil)
	ends := goldenEnds(t, disk)
	for _, name := range goldenPartitions {
		before := readDir(t, disk, "data/"+name)
		l, report := openGolden(t, disk, name, Clean, ends[name])
		if report.NoteWorthy() && name != "apptime-0" {
			t.Errorf("%s: %+v", name, report)
		}
		if v := l.View(); v.LogEndOffset != ends[name] || v.DurableEnd != ends[name] {
			t.Errorf("%s: %+v, should end at %d", name, v, ends[name])
		}
		if l.TopicID().IsZero() {
			t.Errorf("%s has no topic id", name)
		}
		if _, err := l.Close(testTime, true); err != nil {
			t.Fatal(err)
		}
		// The restart within apptime-0 left a snapshot that Kafka, too, removes at the next start.
		if name == "apptime-0" {
			delete(before, "00000000000000000024.snapshot")
		}
		compareFiles(t, name, readDir(t, disk, "data/"+name), before)
	}
}

// TestGoldenRebuild throws away all but the .log files: what recovery makes of them is what Apache Kafka wrote.
func TestGoldenRebuild(t *testing.T) {
	golden := newDisk(1)
	loadTree(t, golden, goldenRoot, "data", nil)
	ends := goldenEnds(t, golden)
	for _, name := range goldenPartitions {
		disk := newDisk(2)
		loadTree(t, disk, goldenRoot, "data", func(file string) bool {
			return strings.HasSuffix(file, ".log") || strings.HasSuffix(file, "log-start-offset-checkpoint") ||
				strings.HasSuffix(file, "partition.metadata")
		})
		l, report := openGolden(t, disk, name, OtherBoot, 0)
		if name != "empty-0" && (report.SegmentsScanned != len(l.Segments()) || !report.EpochsRebuilt) {
			t.Errorf("%s: %+v", name, report)
		}
		if end := l.View().LogEndOffset; end != ends[name] {
			t.Errorf("%s ends at %d, not %d", name, end, ends[name])
		}
		_, err := l.Close(testTime, true)
		check(t, err)
		got := comparable(name, readDir(t, disk, "data/"+name))
		want := comparable(name, readDir(t, golden, "data/"+name))
		for file := range want {
			// Only the snapshots of the last two segments, and of the end, are made anew.
			if _, there := got[file]; !there && strings.HasSuffix(file, snapshotSuffix) {
				delete(want, file)
			}
		}
		compareFiles(t, name, got, want)
	}
}

// comparable leaves out what cannot be the same after a rebuild.
func comparable(name string, files map[string]string) map[string]string {
	for file := range files {
		base, suffix, ok := segment.ParseName(file)
		switch {
		case name == "empty-0" && file == epochFile:
			delete(files, file) // a leader was elected, but wrote nothing
		case (name == "apptime-0" || name == "trimmed-0") && ok && suffix == snapshotSuffix && base == 24:
			delete(files, file) // see TestGoldenClean
		case name == "apptime-0" && (suffix == segment.IndexSuffix || suffix == segment.TimeIndexSuffix):
			delete(files, file) // a restarted Apache Kafka begins to count the interval anew
		}
	}
	return files
}

// TestGoldenAppend appends the golden batches, as a follower does, to new logs: every file must come out the same.
func TestGoldenAppend(t *testing.T) {
	disk := newDisk(1)
	loadTree(t, disk, goldenRoot, "data", nil)
	ends := goldenEnds(t, disk)
	for _, name := range goldenPartitions {
		original := readDir(t, disk, "data/"+name)
		source, _ := openGolden(t, disk, name, Clean, ends[name])
		tp := source.TopicPartition()
		copied, err := Create(testEnv(disk), path.Join("copy", name), tp, source.TopicID(), goldenOptions(tp.Topic))
		check(t, err)
		appendAll(t, source, copied)
		_, err = copied.Close(testTime, true)
		check(t, err)
		got := comparable(name, readDir(t, disk, path.Join("copy", name)))
		want := comparable(name, original)
		if name == "trimmed-0" {
			// The copy begins at 0 like the original's files, but nothing was deleted from it.
			delete(got, "leader-epoch-checkpoint")
			delete(want, "leader-epoch-checkpoint")
		}
		compareFiles(t, name, got, want)
	}
}

// appendAll copies all batches of the files, those below the log's start too.
func appendAll(t *testing.T, source, copied *Log) {
	t.Helper()
	var entries []*Entry
	for _, s := range source.segments {
		check(t, s.Batches(s.Base(), s.Size(), func(b segment.Batch) error {
			batch, err := s.Load(b)
			entries = append(entries, &Entry{Batch: batch, Origin: OriginFollower})
			return err
		}))
	}
	for len(entries) > 0 { // in groups, as fetches bring them
		n := min(3, len(entries))
		check(t, copied.Append(testTime, 5, entries[:n]))
		for _, e := range entries[:n] {
			check(t, e.Err)
		}
		entries = entries[n:]
	}
}

// TestGoldenReading reads the golden logs in every size.
func TestGoldenReading(t *testing.T) {
	disk := newDisk(1)
	loadTree(t, disk, goldenRoot, "data", nil)
	ends := goldenEnds(t, disk)
	for _, name := range goldenPartitions {
		l, _ := openGolden(t, disk, name, Clean, ends[name])
		whole := allBatches(t, l, 1<<30)
		for _, size := range []int{0, 1, 100, 333, 1000, 5000} {
			if got := allBatches(t, l, size); !slices.EqualFunc(got, whole, func(a, b record.Batch) bool { return string(a) == string(b) }) {
				t.Errorf("%s in pieces of %d bytes: %d batches, not %d", name, size, len(got), len(whole))
			}
		}
		compareTimes(t, name, l, whole)
	}
}

// compareTimes looks up every timestamp of a log, and those beside it, and compares with a search through all records.
func compareTimes(t *testing.T, name string, l *Log, batches []record.Batch) {
	t.Helper()
	var all []record.Record
	epochs := map[protocol.Offset]protocol.LeaderEpoch{}
	most, mostAt := int64(-1), protocol.NoOffset
	for _, b := range batches {
		for r, err := range record.Records(b, l.env.Pool, 1<<20) {
			check(t, err)
			if r.Timestamp > most {
				most, mostAt = r.Timestamp, r.Offset
			}
			epochs[r.Offset] = b.PartitionLeaderEpoch()
			if r.Offset >= l.View().LogStartOffset {
				all = append(all, r)
			}
		}
	}
	if found, ok, err := l.MaxTimestamp(); err != nil || ok != (most >= 0) || ok && (found.TimestampMs != most || found.Offset != mostAt) {
		t.Errorf("%s: the largest timestamp is %+v %v %v, should be %d at %d", name, found, ok, err, most, mostAt)
	}
	for _, r := range all {
		for _, wanted := range []int64{r.Timestamp - 1, r.Timestamp, r.Timestamp + 1} {
			i := slices.IndexFunc(all, func(r record.Record) bool { return r.Timestamp >= wanted })
			found, ok, err := l.OffsetForTime(wanted)
			check(t, err)
			if ok != (i >= 0) || ok && (found.Offset != all[i].Offset || found.TimestampMs != all[i].Timestamp || found.LeaderEpoch != epochs[found.Offset]) {
				t.Fatalf("%s: at time %d found %+v %v, should be record %d", name, wanted, found, ok, i)
			}
		}
	}
}

// TestGoldenTransactions compares unstable offsets and aborted transactions with a naive reading of the batches.
func TestGoldenTransactions(t *testing.T) {
	disk := newDisk(1)
	loadTree(t, disk, goldenRoot, "data", nil)
	ends := goldenEnds(t, disk)
	l, _ := openGolden(t, disk, "txns-0", Clean, ends["txns-0"])
	l.SetHighWatermark(l.View().LogEndOffset)
	n := naiveTxns(t, l)
	if n.open == protocol.NoOffset || l.View().FirstUnstableOffset != n.open {
		t.Errorf("first unstable is %d, should be %d", l.View().FirstUnstableOffset, n.open)
	}
	if len(n.aborted) < 10 {
		t.Fatalf("only %d aborted transactions", len(n.aborted))
	}
	for from := protocol.Offset(0); from < ends["txns-0"]; from += 7 {
		for to := from; to <= ends["txns-0"]; to += 5 {
			got, err := l.AbortedIn(from, to)
			check(t, err)
			var offsets, want []protocol.Offset
			for _, a := range got {
				offsets = append(offsets, a.FirstOffset)
			}
			for _, a := range n.aborted {
				if a[0] < to && a[1] >= from && from < to {
					want = append(want, a[0])
				}
			}
			// Entries may be left out whose marker lies beyond the range and whose records are not stable.
			if !slices.IsSorted(offsets) || !slices.Equal(offsets, want) {
				t.Fatalf("aborted in [%d, %d): %v, should be %v", from, to, offsets, want)
			}
		}
	}
}

type naive struct {
	aborted [][2]protocol.Offset // first offset, marker
	open    protocol.Offset
}

func naiveTxns(t *testing.T, l *Log) naive {
	t.Helper()
	open := map[protocol.ProducerID]protocol.Offset{}
	n := naive{open: protocol.NoOffset}
	for _, b := range allBatches(t, l, 1000) {
		first, isOpen := open[b.ProducerID()]
		switch {
		case !b.IsTransactional():
		case !b.IsControl():
			if !isOpen {
				open[b.ProducerID()] = b.BaseOffset()
			}
		default:
			for r, err := range record.Records(b, nil, 1000) {
				check(t, err)
				if m, err := record.ParseEndTxnMarker(r.Key, r.Value); err == nil && m.Type == record.ControlAbort && isOpen {
					n.aborted = append(n.aborted, [2]protocol.Offset{first, b.BaseOffset()})
				}
			}
			delete(open, b.ProducerID())
		}
	}
	slices.SortFunc(n.aborted, func(a, b [2]protocol.Offset) int { return int(a[0] - b[0]) })
	for _, first := range open {
		if n.open == protocol.NoOffset || first < n.open {
			n.open = first
		}
	}
	return n
}
