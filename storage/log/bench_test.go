package log

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

func benchLog(b *testing.B) *Log {
	b.Helper()
	fsys := vfs.OS()
	env := testEnv(fsys)
	env.Files = segment.NewFileCache(fsys, 50)
	o := DefaultOptions()
	o.SegmentBytes, o.RetentionBytes, o.FileDeleteDelay = 256<<20, 512<<20, 0
	l, err := Create(env, b.TempDir()+"/t-0", testTP, protocol.TopicID{1}, o)
	check(b, err)
	return l
}

// BenchmarkAppend appends batches of about 1 KB and 1 MiB, alone and in groups, of plain and idempotent producers.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name        string
		records     int
		group       int
		idempotent  bool
		recordBytes int
	}{
		{"1KB", 1, 1, false, 1000}, {"1KB-idempotent", 1, 1, true, 1000}, {"1KB-groups-of-16", 1, 16, false, 1000}, {"1MiB", 1000, 1, false, 1024},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := benchLog(b)
			batch := batchOf(c.records, c.recordBytes, testTime.UnixMilli())
			entries := make([]*Entry, c.group)
			for i := range entries {
				entries[i] = &Entry{Batch: slices.Clone(batch)}
			}
			sequence := int32(0)
			b.SetBytes(int64(len(batch) * c.group))
			b.ReportAllocs()
			for b.Loop() {
				if c.idempotent {
					entries[0].Batch = batchBy(1, 0, sequence, 1, false)
					sequence++
				}
				if err := l.Append(testTime, 0, entries); err != nil || entries[0].Err != nil {
					b.Fatal(err, entries[0].Err)
				}
				if v := l.View(); v.LogEndOffset%100 == 0 {
					l.SetHighWatermark(v.LogEndOffset)
					l.Maintain(testTime.Add(time.Minute))
				}
			}
			_, err := l.Close(testTime, false)
			check(b, err)
		})
	}
}

// BenchmarkRead finds regions of 1 MiB: at the end, and all over, of sealed and active segments.
func BenchmarkRead(b *testing.B) {
	l := benchLog(b)
	for range 200_000 {
		check(b, l.Append(testTime, 0, []*Entry{{Batch: batchOf(1, 1000, testTime.UnixMilli())}}))
	}
	end := l.View().LogEndOffset
	for _, c := range []struct {
		name string
		at   func(i int) protocol.Offset
		max  int
	}{
		{"newest", func(int) protocol.Offset { return end - 1 }, 1 << 20},
		{"anywhere", func(i int) protocol.Offset { return protocol.Offset(i*7919) % end }, 1 << 20},
		{"anywhere-1-batch", func(i int) protocol.Offset { return protocol.Offset(i*7919) % end }, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				read, err := l.Read(c.at(i), c.max, end, true)
				if err != nil || read.Region.Len() == 0 {
					b.Fatal(err)
				}
				read.Region.Release()
			}
		})
	}
}

// BenchmarkOpen opens a log of 1 GiB after the death of the process.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []int{1000, 16 << 10} {
		l := benchLog(b)
		o := l.Options()
		o.SegmentBytes = 2 << 30
		l.SetOptions(o)
		batch := batchOf(1, size, testTime.UnixMilli())
		for range (1 << 30) / len(batch) {
			check(b, l.Append(testTime, 0, []*Entry{{Batch: batch}}))
		}
		dir := l.Dir()
		_, err := l.Close(testTime, false)
		check(b, err)
		for name, trust := range map[string]Trust{"kill": SameBoot, "power-cut": OtherBoot} {
			b.Run(fmt.Sprintf("%s-%d-byte-batches", name, size), func(b *testing.B) {
				for b.Loop() {
					check(b, removeSnapshots(dir))
					env := testEnv(vfs.OS())
					l, report, err := Open(env, dir, testTP, o, OpenState{Trust: trust})
					if err != nil || report.BytesCut > 0 {
						b.Fatal(err, report)
					}
					_, err = l.Close(testTime, false)
					check(b, err)
				}
			})
		}
	}
}

// removeSnapshots takes away what the last opening wrote to make the next one quicker.
func removeSnapshots(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, suffix, _ := segment.ParseName(e.Name()); suffix == snapshotSuffix {
			if err := os.Remove(dir + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestConcurrentReaders reads, flushes and moves the high watermark while the log is appended to, rolled, truncated and
// trimmed: what is read is always whole batches that follow each other.
func TestConcurrentReaders(t *testing.T) {
	disk := newDisk(1)
	o := smallOptions()
	o.RetentionBytes, o.FileDeleteDelay = 8000, 0
	l := createLog(t, disk, o)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for reader := range 3 {
		running.Add(1)
		go func() {
			defer running.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				readSome(t, l, protocol.Offset(n*(reader+1)))
			}
		}()
	}
	now := testTime
	for i := range 3000 {
		now = now.Add(time.Second)
		check(t, l.Append(now, protocol.LeaderEpoch(i/500), []*Entry{{Batch: batchOf(1+i%3, i%90, now.UnixMilli())}}))
		v := l.View()
		switch {
		case i%97 == 0:
			check(t, l.TruncateTo(max(v.LogStartOffset, v.LogEndOffset-5)))
		case i%31 == 0:
			l.SetHighWatermark(v.LogEndOffset)
			if m := l.Maintain(now); m.Err != nil {
				t.Error(m.Err)
			}
		case i%50 == 7:
			check(t, l.Flush(now))
		}
	}
	close(stop)
	running.Wait()
}

func readSome(t *testing.T, l *Log, n protocol.Offset) {
	v := l.View()
	from := v.LogStartOffset + n%(v.LogEndOffset-v.LogStartOffset+1)
	read, err := l.Read(from, 700, v.LogEndOffset, n%2 == 0)
	if err != nil {
		if protocol.CodeOf(err) != protocol.OffsetOutOfRange { // the log was cut meanwhile
			t.Errorf("read at %d: %v", from, err)
		}
		return
	}
	defer read.Region.Release()
	bytes, err := read.Region.ReadAll()
	if err != nil {
		return // stale
	}
	for next := protocol.Offset(-1); len(bytes) > 0; {
		var b record.Batch
		b, bytes, err = record.Next(bytes)
		if err != nil || b.CheckCRC() != nil || next >= 0 && b.BaseOffset() != next {
			t.Errorf("a region of %d: %v, batch at %d where %d should be", from, err, b.BaseOffset(), next)
			return
		}
		next = b.NextOffset()
	}
	if _, err := l.AbortedIn(from, v.LogEndOffset); err != nil {
		t.Error(err)
	}
	if _, _, err := l.OffsetForTime(testTime.UnixMilli() + int64(n)*100); err != nil {
		t.Errorf("by time: %v", err)
	}
}
