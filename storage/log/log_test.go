package log

import (
	"errors"
	"math"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

func createLog(t testing.TB, disk vfs.FS, opts Options) *Log {
	t.Helper()
	check(t, disk.MkdirAll("log"))
	l, err := Create(testEnv(disk), "log/t-0", testTP, protocol.TopicID{1}, opts)
	check(t, err)
	return l
}

func smallOptions() Options {
	o := DefaultOptions()
	o.VerifyTransactions = false
	o.SegmentBytes, o.IndexIntervalBytes = 500, 100
	return o
}

func TestAppendGroups(t *testing.T) {
	l := createLog(t, newDisk(1), smallOptions())
	a, b, gap := batchBy(1, 0, 0, 2, false), batchBy(1, 0, 2, 1, false), batchBy(1, 0, 9, 1, false)
	again := record.Batch(slices.Clone(a))
	entries := []*Entry{{Batch: a}, {Batch: gap}, {Batch: b}, {Batch: again}, {Batch: batchOf(1, 1000, 0)}, {Batch: batchOf(1, 3, 0)}}
	check(t, l.Append(testTime, 4, entries))
	for i, want := range []struct {
		first, last protocol.Offset
		code        protocol.ErrorCode
		duplicate   bool
	}{
		{0, 1, 0, false},
		{-1, -1, protocol.OutOfOrderSequenceNumber, false},
		{2, 2, 0, false},
		{0, 1, 0, true},
		{-1, -1, protocol.RecordListTooLarge, false},
		{3, 3, 0, false},
	} {
		e := entries[i]
		if e.FirstOffset != want.first || e.LastOffset != want.last || protocol.CodeOf(e.Err) != want.code || e.Duplicate != want.duplicate {
			t.Errorf("entry %d: %+v, should be %+v", i, e, want)
		}
	}
	if v := l.View(); v.LogEndOffset != 4 || v.LatestEpoch != 4 || v.DurableEnd != 0 {
		t.Errorf("%+v", v)
	}
	for _, b := range allBatches(t, l, 100) {
		if b.PartitionLeaderEpoch() != 4 {
			t.Errorf("the batch at %d has leader epoch %d", b.BaseOffset(), b.PartitionLeaderEpoch())
		}
	}
	o := l.Options()
	o.MaxMessageBytes = 50
	l.SetOptions(o)
	if e := appendOne(t, l, OriginClient, batchOf(1, 3, 0)); protocol.CodeOf(e.Err) != protocol.MessageTooLarge {
		t.Errorf("%v", e.Err)
	}
	follower := batchOf(1, 3, 0)
	follower.SetBaseOffset(4)
	if e := appendOne(t, l, OriginFollower, follower); e.Err != nil {
		t.Errorf("what the leader took was refused: %v", e.Err)
	}
}

func TestLogAppendTime(t *testing.T) {
	o := smallOptions()
	o.LogAppendTime = true
	l := createLog(t, newDisk(1), o)
	e := appendOne(t, l, OriginClient, batchOf(2, 3, 77))
	if e.LogAppendTimeMs != testTime.UnixMilli() {
		t.Errorf("%+v", e)
	}
	b := allBatches(t, l, 100)[0]
	if !b.IsLogAppendTime() || b.MaxTimestamp() != testTime.UnixMilli() || b.BaseTimestamp() != 77 {
		t.Errorf("stamped %v %d %d", b.IsLogAppendTime(), b.MaxTimestamp(), b.BaseTimestamp())
	}
	if found, ok, err := l.OffsetForTime(78); err != nil || !ok || found.Offset != 0 || found.TimestampMs != testTime.UnixMilli() {
		t.Errorf("%+v %v %v", found, ok, err)
	}
}

func TestFollower(t *testing.T) {
	l := createLog(t, newDisk(1), smallOptions())
	at := func(base protocol.Offset, epoch protocol.LeaderEpoch) record.Batch {
		b := batchOf(2, 3, 0)
		b.SetBaseOffset(base)
		b.SetPartitionLeaderEpoch(epoch)
		return b
	}
	spoiled := at(0, 1)
	spoiled[len(spoiled)-1] ^= 1
	higher, first, gap, back := at(0, 9), at(5, 1), at(10, 2), at(10, 2)
	entries := []*Entry{
		{Batch: spoiled, Origin: OriginFollower},
		{Batch: higher, Origin: OriginFollower},
		{Batch: first, Origin: OriginFollower},
		{Batch: gap, Origin: OriginFollower},
		{Batch: back, Origin: OriginFollower},
	}
	check(t, l.Append(testTime, 2, entries))
	var unexpected *UnexpectedOffsetError
	if protocol.CodeOf(entries[0].Err) != protocol.CorruptMessage || entries[1].Err == nil || entries[2].Err != nil ||
		entries[3].Err != nil || !errors.As(entries[4].Err, &unexpected) || unexpected.End != 12 {
		t.Errorf("%v %v %v %v %v", entries[0].Err, entries[1].Err, entries[2].Err, entries[3].Err, entries[4].Err)
	}
	if got := l.Epochs(); !slices.Equal(got, []checkpoint.EpochStart{{Epoch: 1, Start: 5}, {Epoch: 2, Start: 10}}) || l.View().LogEndOffset != 12 {
		t.Errorf("%v %+v", got, l.View())
	}
	// Offsets that the leader's compaction removed are skipped.
	read, err := l.Read(7, 1000, 12, false)
	check(t, err)
	if read.FirstBatchOffset != 10 {
		t.Errorf("%+v", read)
	}
	read.Region.Release()
}

func TestReadBounds(t *testing.T) {
	l := createLog(t, newDisk(1), smallOptions())
	for range 10 {
		appendOne(t, l, OriginClient, batchOf(3, 20, 0))
	}
	for _, offset := range []protocol.Offset{-1, 31} {
		if _, err := l.Read(offset, 100, 30, true); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
			t.Errorf("at %d: %v", offset, err)
		}
	}
	for _, c := range []struct {
		from     protocol.Offset
		max      int
		bound    protocol.Offset
		atLeast  bool
		first, n int
	}{
		{0, 1, 30, true, 0, 1},
		{0, 1, 30, false, 0, 0},
		{1, 1, 30, true, 0, 1},
		{4, 1 << 20, 30, false, 3, -1},
		{0, 1 << 20, 5, true, 0, 1},
		{0, 1 << 20, 6, true, 0, 2},
		{4, 1 << 20, 5, true, 0, 0},
		{30, 100, 30, true, 0, 0},
		{7, 100, 7, true, 0, 0},
	} {
		read, err := l.Read(c.from, c.max, c.bound, c.atLeast)
		check(t, err)
		bytes, err := read.Region.ReadAll()
		check(t, err)
		read.Region.Release()
		count := 0
		for rest := bytes; len(rest) > 0; count++ {
			var b record.Batch
			b, rest, err = record.Next(rest)
			check(t, err)
			if count == 0 && b.BaseOffset() != protocol.Offset(c.first) || b.NextOffset() > c.bound || b.NextOffset() > read.NextOffset {
				t.Errorf("%+v: batch %d to %d, next %d", c, b.BaseOffset(), b.LastOffset(), read.NextOffset)
			}
		}
		if c.n >= 0 && count != c.n || c.n < 0 && count == 0 {
			t.Errorf("%+v: %d batches", c, count)
		}
	}
}

// TestDiskFull: what does not fit is cut back, and the log goes on when there is room.
func TestDiskFull(t *testing.T) {
	disk := newDisk(1)
	l := createLog(t, disk, smallOptions())
	written, refused := 0, 0
	sequence := int32(0)
	for i := range 200 {
		disk.SetCapacity(int64(800 + i*40))
		entries := []*Entry{{Batch: batchBy(1, 0, sequence, 1, true)}, {Batch: batchBy(1, 0, sequence+1, 1, true)}}
		if i%3 == 2 {
			entries = append(entries, &Entry{Batch: markerOf(1, 0, false, 0), Origin: OriginMarker})
		}
		end := l.View().LogEndOffset
		err := l.Append(testTime, 0, entries)
		if err == nil {
			written++
			sequence += 2
			continue
		}
		refused++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Err == nil { // written before the disk was full
				end = e.LastOffset + 1
				if !e.Batch.IsControl() {
					sequence++
				}
			} else if protocol.CodeOf(e.Err) != protocol.KafkaStorageError {
				t.Fatal(e.Err)
			}
		}
		if v := l.View(); v.LogEndOffset != end {
			t.Fatalf("ends at %d, not %d", v.LogEndOffset, end)
		}
		if n := len(allBatches(t, l, 1000)); n == 0 && end > 0 {
			t.Fatal("not readable")
		}
	}
	if written < 20 || refused < 20 {
		t.Fatalf("%d written, %d refused", written, refused)
	}
	disk.SetCapacity(0)
	check(t, l.Append(testTime, 0, []*Entry{{Batch: batchBy(1, 0, sequence, 1, true)}}))
	live := l.ActiveProducers()
	aborted, err := l.AbortedIn(0, l.View().LogEndOffset)
	check(t, err)
	again, report, err := Open(testEnv(disk.Kill()), "log/t-0", testTP, smallOptions(), OpenState{Trust: SameBoot})
	check(t, err)
	if report.BytesCut > 0 || !slices.Equal(again.ActiveProducers(), live) || again.View().LogEndOffset != l.View().LogEndOffset {
		t.Errorf("%+v: %+v, then %+v", report, live, again.ActiveProducers())
	}
	same, err := again.AbortedIn(0, l.View().LogEndOffset)
	if err != nil || !slices.Equal(same, aborted) {
		t.Errorf("aborted %v, then %v, %v", aborted, same, err)
	}
}

// TestPoison: after an error of the disk nothing is written or flushed any more, but what is there can be read.
func TestPoison(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.OpSync, vfs.OpWrite} {
		disk := newDisk(1)
		l := createLog(t, disk, smallOptions())
		appendOne(t, l, OriginClient, batchOf(1, 3, 0))
		broken := true
		disk.OnOperation(func(op vfs.Operation) error {
			if op.Kind == kind && broken && strings.HasSuffix(op.Name, ".log") {
				return syscall.EIO
			}
			return nil
		})
		var err error
		if kind == vfs.OpWrite {
			err = l.Append(testTime, 0, []*Entry{{Batch: batchOf(1, 3, 0)}})
		} else {
			err = l.Flush(testTime)
		}
		if !errors.Is(err, syscall.EIO) || !errors.Is(l.Failed(), syscall.EIO) {
			t.Fatalf("%v: %v", kind, err)
		}
		broken = false // the disk says that all is well again: that is what must not be believed
		e := &Entry{Batch: batchOf(1, 3, 0)}
		if err := l.Append(testTime, 0, []*Entry{e}); !errors.Is(err, syscall.EIO) || protocol.CodeOf(e.Err) != protocol.KafkaStorageError {
			t.Errorf("%v: append after the error: %v, %v", kind, err, e.Err)
		}
		if err := l.Flush(testTime); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: flush after the error: %v", kind, err)
		}
		if point, err := l.Close(testTime, true); !errors.Is(err, syscall.EIO) || point != 0 {
			t.Errorf("%v: a clean close at %d: %v", kind, point, err)
		}
		if v := l.View(); v.LogEndOffset != 1 || v.DurableEnd != 0 {
			t.Errorf("%v: %+v", kind, v)
		}
	}
}

func TestFlush(t *testing.T) {
	o := smallOptions()
	o.FlushMessages, o.FlushAge = 3, time.Minute
	l := createLog(t, newDisk(1), o)
	now := testTime
	check(t, l.Flush(now))
	due := func(want bool) {
		t.Helper()
		if got := l.FlushDue(now); got != want {
			t.Errorf("flush due: %v", got)
		}
	}
	l.lastFlushMs.Store(now.UnixMilli())
	due(false)
	appendOne(t, l, OriginClient, batchOf(2, 3, 0))
	due(false)
	now = now.Add(time.Minute)
	due(true)
	if m := l.Maintain(now); !m.FlushWanted {
		t.Error("no flush wanted")
	}
	check(t, l.Flush(now))
	due(false)
	appendOne(t, l, OriginClient, batchOf(3, 3, 0))
	due(true)
	if v := l.View(); v.DurableEnd != 2 {
		t.Errorf("%+v", v)
	}
}

// TestFlushBesideTruncation: an fsync that was under way when the log was cut says nothing of what was written since.
func TestFlushBesideTruncation(t *testing.T) {
	disk := newDisk(1)
	l := createLog(t, disk, smallOptions())
	for range 4 {
		appendOne(t, l, OriginClient, batchOf(1, 3, 0))
	}
	disk.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
			disk.OnOperation(nil)
			check(t, l.TruncateTo(1))
			appendOne(t, l, OriginClient, batchOf(5, 3, 0))
		}
		return nil
	})
	check(t, l.Flush(testTime))
	if v := l.View(); v.DurableEnd > 1 || v.LogEndOffset != 6 {
		t.Errorf("%+v", v)
	}
	check(t, l.Flush(testTime))
	if v := l.View(); v.DurableEnd != 6 {
		t.Errorf("%+v", v)
	}
}

func TestRollByAge(t *testing.T) {
	o := smallOptions()
	o.SegmentBytes, o.SegmentAge, o.SegmentJitter = 1<<20, time.Hour, 30*time.Minute
	disk := newDisk(1)
	check(t, disk.MkdirAll("log"))
	env := testEnv(disk)
	env.Random = func() uint64 { return uint64((10 * time.Minute).Milliseconds()) }
	l, err := Create(env, "log/t-0", testTP, protocol.TopicID{}, o)
	check(t, err)
	hour := time.Hour.Milliseconds()
	for i, c := range []struct {
		timestamp int64
		segments  int
	}{
		{1000, 1}, {1000 + hour - 600_000, 1}, {1001 + hour - 600_000, 2}, {0, 2}, {-1, 2}, {math.MaxInt64, 3}, {5, 3}, {math.MaxInt64, 3}, {math.MaxInt64 - 1, 3},
	} {
		e := appendOne(t, l, OriginClient, batchOf(1, 3, c.timestamp))
		if n := len(l.Segments()); e.Err != nil || n != c.segments {
			t.Errorf("batch %d: %d segments, should be %d, %v", i, n, c.segments, e.Err)
		}
	}
}

func TestRetentionByAge(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name       string
		timestamps []int64 // one segment each
		kept       int     // of these; the new active one is not counted
	}{
		{"old ones go", []int64{ago(3 * day), ago(2 * day), ago(time.Hour)}, 1},
		{"all go", []int64{ago(3 * day), ago(2 * day)}, 0},
		{"the future stays, and what is behind it", []int64{ago(3 * day), math.MaxInt64, ago(3 * day)}, 2},
		{"year 3000", []int64{32503680000000, ago(3 * day)}, 2},
		{"zero is old", []int64{0, ago(time.Hour)}, 1},
		{"without a timestamp the file's time counts", []int64{-1, ago(time.Hour)}, 1},
	} {
		o := smallOptions()
		o.RetentionAge, o.SegmentBytes = day, 80
		disk := newDisk(1)
		l := createLog(t, disk, o)
		for _, timestamp := range c.timestamps {
			check(t, l.Append(testTime.Add(-3*day), 0, []*Entry{{Batch: batchOf(1, 0, timestamp)}}))
		}
		if m := l.Maintain(testTime); m.Err != nil || m.SegmentsDeleted != 0 {
			t.Errorf("%s: what is not replicated was deleted: %+v", c.name, m)
		}
		l.SetHighWatermark(l.View().LogEndOffset)
		m := l.Maintain(testTime)
		if m.Err != nil || m.SegmentsDeleted != len(c.timestamps)-c.kept {
			t.Errorf("%s: %+v", c.name, m)
		}
		if v := l.View(); int(v.LogEndOffset-v.LogStartOffset) != c.kept {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

func ago(d time.Duration) int64 { return testTime.Add(-d).UnixMilli() }

func TestRetentionBySizeAndDelay(t *testing.T) {
	o := smallOptions()
	o.RetentionBytes, o.RetentionAge, o.FileDeleteDelay = 1000, -1, time.Minute
	disk := newDisk(1)
	l := createLog(t, disk, o)
	for range 30 {
		appendOne(t, l, OriginClient, batchOf(1, 50, 0))
	}
	l.SetHighWatermark(30)
	read, err := l.Read(0, 1000, 30, true)
	check(t, err)
	m := l.Maintain(testTime)
	if m.Err != nil || m.SegmentsDeleted == 0 || l.Size() < 1000 || l.Size() >= 1500 || m.LogStartOffset == 0 {
		t.Errorf("%+v, %d bytes left", m, l.Size())
	}
	deleted := func() (n int) {
		for name := range readDir(t, disk, "log/t-0") {
			if strings.HasSuffix(name, segment.DeletedSuffix) {
				n++
			}
		}
		return n
	}
	if n := deleted(); n < 3*m.SegmentsDeleted {
		t.Errorf("%d files wait for their end", n)
	}
	if !m.NextDeadline.Equal(testTime.Add(time.Minute)) {
		t.Errorf("next deadline %v", m.NextDeadline)
	}
	l.Maintain(testTime.Add(time.Minute - 1))
	if deleted() == 0 {
		t.Error("the files went too early")
	}
	l.Maintain(testTime.Add(time.Minute))
	if n := deleted(); n != 0 {
		t.Errorf("%d files are still there", n)
	}
	// A reader that had found its region before reads on.
	bytes, err := read.Region.ReadAll()
	check(t, err)
	if _, _, err := record.Next(bytes); err != nil {
		t.Error(err)
	}
	read.Region.Release()
}

func TestCompactedIsKept(t *testing.T) {
	o := smallOptions()
	o.Delete, o.Compact, o.RetentionBytes, o.RetentionAge = false, true, 0, 0
	l := createLog(t, newDisk(1), o)
	for range 30 {
		appendOne(t, l, OriginClient, batchOf(1, 50, 0))
	}
	l.SetHighWatermark(30)
	if m := l.Maintain(testTime); m.SegmentsDeleted != 0 {
		t.Errorf("%+v", m)
	}
	check(t, l.AdvanceLogStart(testTime, 20))
	m := l.Maintain(testTime)
	if segments := l.Segments(); m.SegmentsDeleted == 0 || segments[0].Base > 20 || segments[1].Base <= 20 {
		t.Errorf("%+v %+v", m, segments)
	}
	if err := l.AdvanceLogStart(testTime, 31); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		t.Errorf("%v", err)
	}
	check(t, l.AdvanceLogStart(testTime, 5))
	if v := l.View(); v.LogStartOffset != 20 {
		t.Errorf("%+v", v)
	}
}

// TestLeftovers opens a directory in which compaction was interrupted in several places.
func TestLeftovers(t *testing.T) {
	disk := newDisk(1)
	l := createLog(t, disk, smallOptions())
	for range 20 {
		appendOne(t, l, OriginClient, batchOf(1, 50, 0))
	}
	bases := l.Segments()
	_, err := l.Close(testTime, true)
	check(t, err)
	files := readDir(t, disk, "log/t-0")
	name := func(i int, suffix string) string { return segment.FileName(bases[i].Base, suffix) }
	for _, c := range []struct {
		name  string
		spoil func(files map[string]string)
	}{
		{"deleted", func(f map[string]string) { f[name(0, ".log.deleted")] = "x" }},
		{"cleaned", func(f map[string]string) { f[name(1, ".log.cleaned")] = f[name(1, ".log")][:100] }},
		{"temporary", func(f map[string]string) { f[epochFile+".tmp"] = "0\n" }},
		{"swap beyond cleaned", func(f map[string]string) {
			f[name(0, ".log.cleaned")], f[name(1, ".log.swap")] = "x", "y"
		}},
		{"swap", func(f map[string]string) {
			for _, suffix := range []string{".log", ".index", ".timeindex"} {
				f[name(1, suffix+".swap")] = f[name(1, suffix)]
			}
		}},
		{"swap of two segments into one, half renamed", func(f map[string]string) {
			f[name(0, ".log.swap")] = f[name(0, ".log")] + f[name(1, ".log")]
			delete(f, name(0, ".index"))
		}},
		{"orphaned index", func(f map[string]string) { f["00000000000000000999.index"] = "12345678" }},
		{"something else", func(f map[string]string) { f["00000000000000000005-0000000001.checkpoint.deleted"] = "" }},
	} {
		spoiled := map[string]string{}
		for n, data := range files {
			spoiled[n] = data
		}
		c.spoil(spoiled)
		disk := newDisk(2)
		check(t, disk.MkdirAll("log/t-0"))
		for n, data := range spoiled {
			check(t, vfs.WriteFile(disk, path.Join("log/t-0", n), []byte(data), true))
		}
		l, report, err := Open(testEnv(disk), "log/t-0", testTP, smallOptions(), OpenState{RecoveryPoint: 20, Trust: Clean})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if n := len(allBatches(t, l, 1<<20)); n != 20 || report.StrayFiles == 0 && c.name != "something else" {
			t.Errorf("%s: %d batches, %+v", c.name, n, report)
		}
		for n := range readDir(t, disk, "log/t-0") {
			if strings.HasSuffix(n, ".swap") || strings.HasSuffix(n, ".cleaned") || strings.HasSuffix(n, ".tmp") || strings.HasSuffix(n, ".log.deleted") {
				t.Errorf("%s: %s is still there", c.name, n)
			}
		}
	}
}

// TestPreallocated opens what a killed Apache Kafka leaves: indexes of full size, zeros behind the entries.
func TestPreallocated(t *testing.T) {
	for _, trust := range []Trust{Clean, SameBoot, OtherBoot} {
		disk := newDisk(1)
		l := createLog(t, disk, smallOptions())
		o := smallOptions()
		o.SegmentBytes = 1 << 20
		l.SetOptions(o)
		for i := range 20 {
			appendOne(t, l, OriginClient, batchOf(1, 50, int64(1000+i)))
		}
		_, err := l.Close(testTime, true)
		check(t, err)
		want := readDir(t, disk, "log/t-0")
		for _, suffix := range []string{segment.IndexSuffix, segment.TimeIndexSuffix} {
			name := segment.FileName(0, suffix)
			check(t, vfs.WriteFile(disk, path.Join("log/t-0", name), append([]byte(want[name]), make([]byte, 24*100)...), true))
		}
		l, _, err = Open(testEnv(disk), "log/t-0", testTP, o, OpenState{RecoveryPoint: 20, Trust: trust})
		check(t, err)
		if n := len(allBatches(t, l, 300)); n != 20 {
			t.Errorf("%d batches", n)
		}
		_, err = l.Close(testTime, true)
		check(t, err)
		if got := readDir(t, disk, "log/t-0"); got[segment.FileName(0, ".index")] != want[segment.FileName(0, ".index")] ||
			got[segment.FileName(0, ".timeindex")] != want[segment.FileName(0, ".timeindex")] {
			t.Errorf("trust %d: the indexes are not trimmed", trust)
		}
	}
}

func TestMovingAway(t *testing.T) {
	disk := newDisk(1)
	check(t, disk.MkdirAll("log"))
	long := protocol.TopicPartition{Topic: strings.Repeat("x", 249), Partition: 12}
	l, err := Create(testEnv(disk), "log/"+long.String(), long, protocol.TopicID{}, smallOptions())
	check(t, err)
	appendOne(t, l, OriginClient, batchOf(1, 3, 0))
	read, err := l.Read(0, 100, 1, true)
	check(t, err)
	dir, err := l.MarkDeleted(func() uint64 { return 0xabcdef })
	check(t, err)
	if base := path.Base(dir); len(base) != 255 || !strings.HasSuffix(base, "-12.0000000000abcdef0000000000abcdef-delete") {
		t.Errorf("%s", base)
	}
	if _, err := disk.Stat(dir); err != nil {
		t.Error(err)
	}
	if _, err := read.Region.ReadAll(); err != nil {
		t.Errorf("a region that was out: %v", err)
	}
	read.Region.Release()
	if _, err := l.Read(0, 100, 1, true); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := l.Append(testTime, 0, []*Entry{{Batch: batchOf(1, 3, 0)}}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestFewFiles(t *testing.T) {
	disk := newDisk(1)
	env := testEnv(disk)
	env.Files = segment.NewFileCache(disk, 4)
	check(t, disk.MkdirAll("log"))
	var logs []*Log
	for i := range 10 {
		tp := protocol.TopicPartition{Topic: "t", Partition: int32(i)}
		l, err := Create(env, "log/"+tp.String(), tp, protocol.TopicID{}, smallOptions())
		check(t, err)
		logs = append(logs, l)
	}
	if n := env.Files.Open(); n != 0 {
		t.Errorf("%d files are open for partitions without traffic", n)
	}
	var reads []Read
	for range 5 {
		for _, l := range logs {
			appendOne(t, l, OriginClient, batchOf(1, 100, 0))
			read, err := l.Read(0, 1000, 1, true)
			check(t, err)
			reads = append(reads, read)
		}
	}
	if n := env.Files.Open(); n < 10 {
		t.Errorf("%d files are open for 10 pinned ones", n)
	}
	for _, r := range reads {
		if _, err := r.Region.ReadAll(); err != nil {
			t.Error(err)
		}
		r.Region.Release()
	}
	if n := env.Files.Open(); n > 4 {
		t.Errorf("%d files are open", n)
	}
	env.Files.CloseIdle()
	env.Files.CloseIdle()
	if n := env.Files.Open(); n != 0 {
		t.Errorf("%d files are open after idle rounds", n)
	}
	_, err := logs[0].Read(0, 1000, 1, true)
	check(t, err)
}

func TestStaleRegion(t *testing.T) {
	l := createLog(t, newDisk(1), smallOptions())
	appendOne(t, l, OriginClient, batchOf(1, 3, 0))
	appendOne(t, l, OriginClient, batchOf(1, 3, 0))
	read, err := l.Read(0, 1000, 2, true)
	check(t, err)
	check(t, l.TruncateTo(1))
	if !read.Region.Stale() {
		t.Error("a region is good after its file was truncated")
	}
	read.Region.Release()
	if v := l.View(); v.LogEndOffset != 1 {
		t.Errorf("%+v", v)
	}
	// Within a batch the whole batch goes.
	appendOne(t, l, OriginClient, batchOf(5, 3, 0))
	check(t, l.TruncateTo(3))
	if v := l.View(); v.LogEndOffset != 1 {
		t.Errorf("%+v", v)
	}
}
