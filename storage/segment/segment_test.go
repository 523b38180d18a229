package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func makeSegment(t testing.TB, base protocol.Offset, interval int) (*Segment, *vfs.Mem) {
	t.Helper()
	disk := vfs.NewMem(nil)
	check(t, disk.MkdirAll("d"))
	s, err := Create(NewFileCache(disk, 10), "d", base, Options{IntervalBytes: interval, IndexBytes: 1 << 20}, 1)
	check(t, err)
	return s, disk
}

func batchAt(base protocol.Offset, n, size int, timestampMs int64) []byte {
	o := record.PlainOptions()
	o.BaseOffset = base
	b := record.NewBuilder(o)
	for range n {
		b.Append(timestampMs, nil, make([]byte, size), nil)
	}
	return b.Build(nil)
}

// naive is what a segment should hold.
type naive struct {
	batches []record.Batch
	at      []int64
	size    int64
}

func (n *naive) add(t testing.TB, s *Segment, bytes []byte) {
	t.Helper()
	if _, err := s.Append(1, [][]byte{bytes}); err != nil {
		t.Fatal(err)
	}
	n.batches, n.at = append(n.batches, bytes), append(n.at, n.size)
	n.size += int64(len(bytes))
}

// TestLookups compares lookups with a search through all batches, while entries wander from memory to the file.
func TestLookups(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, disk := makeSegment(t, 1000, 100)
	n := &naive{}
	next := protocol.Offset(1000)
	for i := range 6000 {
		b := batchAt(next, 1+random.IntN(3), random.IntN(100), int64(i+random.IntN(50)))
		n.add(t, s, b)
		next = record.Batch(b).NextOffset() + protocol.Offset(random.IntN(2))
		if i%1500 == 700 {
			check(t, s.Store())
		}
		if i%100 == 0 {
			n.lookAround(t, s, random, 20)
		}
	}
	if offsets, times := s.IndexEntries(); offsets < 3000 || times < 800 || s.offsets.first == 0 {
		t.Fatalf("%d and %d entries, from %d in memory", offsets, times, s.offsets.first)
	}
	check(t, s.Seal())
	n.lookAround(t, s, random, 500)
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} { // garbled indexes: everything is still found
		name := path.Join("d", FileName(1000, suffix))
		data, err := vfs.ReadFile(disk, name)
		check(t, err)
		for range 3 {
			for range 40 {
				data[random.IntN(len(data))] = byte(random.Uint32())
			}
			file, err := disk.OpenFile(name, 2)
			check(t, err)
			_, err = file.WriteAt(data, 0)
			check(t, err)
			if suffix == IndexSuffix {
				n.lookAround(t, s, random, 200)
			} else {
				n.lookAroundOffsets(t, s, random, 200)
			}
		}
	}
}

func (n *naive) lookAround(t *testing.T, s *Segment, random *rand.Rand, times int) {
	t.Helper()
	n.lookAroundOffsets(t, s, random, times)
	for range times {
		wanted := int64(random.IntN(len(n.batches) + 60))
		i := slices.IndexFunc(n.batches, func(b record.Batch) bool { return b.MaxTimestamp() >= wanted })
		b, err := s.FindTime(wanted, s.Base(), n.size)
		if i < 0 && !errors.Is(err, ErrBeyond) || i >= 0 && (err != nil || b.Position != n.at[i]) {
			t.Fatalf("time %d: batch %d, found %+v %v", wanted, i, b, err)
		}
	}
}

func (n *naive) lookAroundOffsets(t *testing.T, s *Segment, random *rand.Rand, times int) {
	t.Helper()
	last := n.batches[len(n.batches)-1].NextOffset()
	for range times {
		from := s.Base() + protocol.Offset(random.Int64N(int64(last-s.Base())+2))
		bound := from + protocol.Offset(random.IntN(500)) - 10
		if random.IntN(3) == 0 {
			bound = protocol.NoOffset
		}
		most := int64(random.IntN(3000))
		atLeast := random.IntN(2) == 0
		found, err := s.Read(from, most, bound, n.size, atLeast)
		first := slices.IndexFunc(n.batches, func(b record.Batch) bool { return b.LastOffset() >= from })
		if first < 0 {
			if !errors.Is(err, ErrBeyond) {
				t.Fatalf("beyond the end: %v", err)
			}
			continue
		}
		check(t, err)
		end := first
		size := int64(0)
		for end < len(n.batches) && (bound < 0 || n.batches[end].LastOffset() < bound) {
			length := int64(len(n.batches[end]))
			if size+length > most && (end > first || !atLeast) {
				break
			}
			size += length
			end++
		}
		if found.Region.Len() != size || size > 0 && (found.Region.Position != n.at[first] || found.FirstBase != n.batches[first].BaseOffset()) {
			t.Fatalf("read from %d, most %d, bound %d, at least one %v: %+v, should be %d bytes at %d", from, most, bound, atLeast, found, size, n.at[first])
		}
		if size > 0 && end < len(n.batches) && found.Next >= 0 && (found.Next > n.batches[end].BaseOffset() || found.Next < n.batches[end-1].NextOffset()) {
			t.Fatalf("next is %d, the batch after is at %d", found.Next, n.batches[end].BaseOffset())
		}
		found.Region.Release()
	}
}

// TestIndexBytes: entries as LogSegment.append of Apache Kafka makes them, by hand.
func TestIndexBytes(t *testing.T) {
	s, disk := makeSegment(t, 100, 80)
	n := &naive{}
	for i, timestamp := range []int64{50, 40, 60, 60, 55, 70, -1} {
		n.add(t, s, batchAt(100+protocol.Offset(2*i), 2, 0, timestamp)) // 75 bytes each
	}
	check(t, s.Seal())
	read := func(suffix string) []byte {
		data, err := vfs.ReadFile(disk, path.Join("d", FileName(100, suffix)))
		check(t, err)
		return data
	}
	size := uint32(len(n.batches[0]))
	var index, times []byte
	for _, i := range []uint32{2, 4, 6} { // 80 bytes are passed after two batches
		index = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(index, 2*i+1), i*size)
	}
	for _, e := range [][2]uint64{{60, 5}, {70, 11}} { // at the entry of batch 2; at that of batch 6
		times = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(times, e[0]), uint32(e[1]))
	}
	if got := read(IndexSuffix); string(got) != string(index) {
		t.Errorf("index %x, should be %x", got, index)
	}
	if got := read(TimeIndexSuffix); string(got) != string(times) {
		t.Errorf("time index %x, should be %x", got, times)
	}
}

// TestTruncateSealedTimes: the entry with which a time index was sealed goes when the batch goes that it tells of, also from a
// segment that was resumed since.
func TestTruncateSealedTimes(t *testing.T) {
	made, disk := makeSegment(t, 0, 80)
	n := &naive{}
	for i, timestamp := range []int64{10, 20, 30, 40, 50, 60} {
		n.add(t, made, batchAt(protocol.Offset(i), 1, 0, timestamp))
	}
	check(t, made.Seal())
	made.Close()
	sizes := map[string]int64{}
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} {
		data, err := vfs.ReadFile(disk, path.Join("d", FileName(0, suffix)))
		check(t, err)
		sizes[suffix] = int64(len(data))
	}
	present := Present{Log: n.size, Index: sizes[IndexSuffix], TimeIndex: sizes[TimeIndexSuffix], TxnIndex: -1}
	s := Open(NewFileCache(disk, 10), "d", 0, Options{IntervalBytes: 80, IndexBytes: 1 << 20}, present)
	_, err := s.Resume(present, Trusting, nil)
	check(t, err)
	next, err := s.Truncate(5, 1)
	check(t, err)
	if next != 5 {
		t.Errorf("it ends at %d", next)
	}
	times, err := vfs.ReadFile(disk, path.Join("d", FileName(0, TimeIndexSuffix)))
	check(t, err)
	for at := 0; at < len(times); at += TimeEntryBytes {
		if offset := binary.BigEndian.Uint32(times[at+8:]); offset >= 5 {
			t.Errorf("the time index tells of offset %d, which was cut off", offset)
		}
	}
}

func TestIndexesRise(t *testing.T) {
	s, _ := makeSegment(t, 0, 0)
	n := &naive{}
	n.add(t, s, batchAt(0, 1, 0, 0))
	n.add(t, s, batchAt(1, 1, 0, 0))
	defer func() {
		if recover() == nil {
			t.Error("an index entry that does not rise was taken")
		}
	}()
	n.add(t, s, batchAt(1, 1, 0, 0))
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"00000000000000000012.log": "12 .log", "00000000000000000012.log.deleted": "12 .log.deleted", "5.index": "5 .index",
		"x.log": "", "leader-epoch-checkpoint": "", "00000000000000000000-0000000000.checkpoint": "", "-1.log": "", ".log": "", "99999999999999999999.log": "",
	} {
		got := ""
		if base, suffix, ok := ParseName(name); ok {
			got = fmt.Sprint(base, " ", suffix)
		}
		if got != want {
			t.Errorf("%s: %q, should be %q", name, got, want)
		}
	}
	if name := FileName(12, LogSuffix); name != "00000000000000000012.log" {
		t.Error(name)
	}
}

// apacheFiles are small files that Apache Kafka 4.4.0 has written.
func apacheFiles(f *testing.F, suffix string) []string {
	all, err := filepath.Glob("../../testdata/logs-4.4.0/*/*" + suffix)
	check(f, err)
	if len(all) == 0 {
		f.Fatalf("there is no *%s", suffix)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		info, err := os.Stat(name)
		check(f, err)
		return info.Size() > 4<<10
	})
}

// allocated runs f and gives the bytes that it allocated. Nothing is collected meanwhile: that would empty the pools, which are filled anew.
func allocated(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// pooledBytes are the buffers that all segments of a cache share: not the cost of a file.
const pooledBytes = pooledTimes * (spanBytes + 4*scratchBytes)

// FuzzIndexes puts any bytes into the index files of a sealed segment: what is read is right, or damage is named, and neither costs
// more than the files are worth.
func FuzzIndexes(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 0, 0, 0, 160}, []byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3}, make([]byte, 34))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, make([]byte, 24), []byte{1})
	for _, name := range apacheFiles(f, IndexSuffix) {
		index, err := os.ReadFile(name)
		check(f, err)
		times, err := os.ReadFile(strings.TrimSuffix(name, IndexSuffix) + TimeIndexSuffix)
		check(f, err)
		f.Add(index, times, []byte{})
	}
	for _, name := range apacheFiles(f, TxnIndexSuffix) {
		txns, err := os.ReadFile(name)
		check(f, err)
		f.Add([]byte{}, []byte{}, txns)
	}
	f.Fuzz(func(t *testing.T, index, times, txns []byte) {
		made, disk := makeSegment(t, 10, 100)
		n := &naive{}
		for i := range 10 {
			n.add(t, made, batchAt(10+protocol.Offset(i), 1, 10, int64(i*7%10)))
		}
		check(t, made.Seal())
		made.Close()
		for suffix, data := range map[string][]byte{IndexSuffix: index, TimeIndexSuffix: times, TxnIndexSuffix: txns} {
			check(t, vfs.WriteFileAtomic(disk, path.Join("d", FileName(10, suffix)), data))
		}
		present := Present{Log: n.size, Index: int64(len(index)), TimeIndex: int64(len(times)), TxnIndex: int64(len(txns))}
		s := Open(NewFileCache(disk, 10), "d", 10, Options{IntervalBytes: 100, IndexBytes: 1 << 20}, present)
		n.lookAroundOffsets(t, s, rand.New(rand.NewPCG(1, 2)), 30)
		bound := uint64(64*(int(n.size)+len(index)+len(times)+len(txns)) + 64<<10 + pooledBytes)
		affordable := func(what string, f func()) {
			if used := allocated(f); used > bound {
				t.Errorf("%s: %d bytes were allocated, %d may be", what, used, bound)
			}
		}
		affordable("the largest timestamp", func() {
			if largest, err := s.LoadLargest(); err != nil || largest.TimestampMs > 9 {
				t.Errorf("%+v %v", largest, err)
			}
		})
		affordable("the aborted transactions", func() {
			if list, err := s.ReadTxnIndex(20); err != nil && !errors.Is(err, ErrTxnIndex) || len(list) > len(txns) {
				t.Errorf("%v %v", list, err)
			}
		})
		affordable("all batches", func() {
			if next, err := s.Verify(); err == nil && next != 20 {
				t.Errorf("ends at %d", next)
			}
		})
		again := Open(NewFileCache(disk, 10), "d", 10, Options{IntervalBytes: 100, IndexBytes: 1 << 20}, present)
		affordable("where to go on", func() {
			if w, err := again.Resume(present, Doubt{}, nil); err == nil && (w.Next != 20 || w.Damage != nil) {
				t.Errorf("%+v", w)
			} else if err != nil && !errors.Is(err, ErrIndex) {
				t.Error(err)
			}
		})
	})
}

// FuzzWalk takes any bytes for a .log: the walk ends, holds nothing that is not a whole batch, and costs no more than the bytes are worth.
func FuzzWalk(f *testing.F) {
	f.Add(append(batchAt(0, 2, 5, 7), batchAt(2, 1, 5, 7)...))
	f.Add(make([]byte, 100))
	for _, name := range apacheFiles(f, LogSuffix) {
		log, err := os.ReadFile(name)
		check(f, err)
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		disk := vfs.NewMem(nil)
		check(t, disk.MkdirAll("d"))
		check(t, vfs.WriteFileAtomic(disk, path.Join("d", FileName(0, LogSuffix)), log))
		present := Present{Log: int64(len(log)), Index: -1, TimeIndex: -1, TxnIndex: -1}
		s := Open(NewFileCache(disk, 10), "d", 0, Options{IntervalBytes: 50, IndexBytes: 1 << 20}, present)
		var sum int64
		var w Walked
		var err error
		used := allocated(func() {
			w, err = s.Rebuild(Doubt{Dense: true}, func(b Batch) error {
				whole, err := s.Load(b)
				check(t, err)
				check(t, whole.CheckCRC())
				sum += b.Size
				return nil
			})
		})
		if used > uint64(64*len(log)+64<<10+pooledBytes) {
			t.Errorf("%d bytes were allocated for %d", used, len(log))
		}
		if err != nil || w.End != sum || w.End < int64(len(log)) && w.Damage == nil {
			t.Fatalf("%+v %v, %d bytes of batches in %d", w, err, sum, len(log))
		}
		check(t, s.Finish(w))
	})
}
