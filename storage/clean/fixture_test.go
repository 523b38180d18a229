package clean

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

var (
	testTP   = protocol.TopicPartition{Topic: "t", Partition: 0}
	testTime = time.UnixMilli(1_700_000_000_000)
	testPool = compress.NewPool()
)

const testDir = "d/t-0"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newDisk(seed uint64) *vfs.Mem { return vfs.NewMem(rand.New(rand.NewPCG(seed, 1)).Uint64) }

func testEnv(fsys vfs.FS) log.Env {
	return log.Env{FS: fsys, Files: segment.NewFileCache(fsys, 50), Pool: testPool}
}

func testOptions() log.Options {
	o := log.DefaultOptions()
	o.Compact, o.Delete, o.SegmentBytes, o.IndexIntervalBytes = true, false, 1000, 200
	o.FileDeleteDelay, o.VerifyTransactions = 0, false
	return o
}

func newLog(t testing.TB, disk vfs.FS, o log.Options) *log.Log {
	t.Helper()
	l, err := log.Create(testEnv(disk), testDir, testTP, protocol.TopicID{}, o)
	must(t, err)
	return l
}

func openLog(t testing.TB, disk vfs.FS, o log.Options, state log.OpenState) (*log.Log, log.Recovery) {
	t.Helper()
	l, recovery, err := log.Open(testEnv(disk), testDir, testTP, o, state)
	if err != nil {
		t.Fatalf("the log cannot be opened (%+v): %v", recovery, err)
	}
	l.SetHighWatermark(l.View().LogEndOffset)
	return l, recovery
}

// rec is a record of a test; value "" is a tombstone, key "" no key.
type rec struct{ key, value string }

// from is the producer of a batch; the zero one is none.
type from struct {
	id            protocol.ProducerID
	epoch         protocol.ProducerEpoch
	sequence      int32
	transactional bool
}

func batch(codec compress.Codec, p from, at time.Time, records ...rec) record.Batch {
	o := record.PlainOptions()
	o.Codec = codec
	if p != (from{}) {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = p.id, p.epoch, p.sequence, p.transactional
	}
	b := record.NewBuilder(o)
	for i, r := range records {
		b.Append(at.UnixMilli()+int64(i), orNil(r.key), orNil(r.value), nil)
	}
	return b.Build(testPool)
}

func orNil(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

func marker(id protocol.ProducerID, epoch protocol.ProducerEpoch, commit bool, at time.Time) record.Batch {
	kind := record.ControlAbort
	if commit {
		kind = record.ControlCommit
	}
	return record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind}, at.UnixMilli(), id, epoch)
}

// add appends batches, replicated at once.
func add(t testing.TB, l *log.Log, batches ...record.Batch) {
	t.Helper()
	for _, b := range batches {
		e := &log.Entry{Batch: b, Origin: log.OriginCoordinator}
		if b.IsControl() {
			e.Origin = log.OriginMarker
		}
		must(t, l.Append(testTime, 0, []*log.Entry{e}))
		must(t, e.Err)
	}
	l.SetHighWatermark(l.View().LogEndOffset)
}

func compact(t testing.TB, l *log.Log, checkpoint protocol.Offset, now time.Time) (protocol.Offset, RoundStats) {
	t.Helper()
	end, stats, err := Compact(now, l, checkpoint, DefaultSettings(), testPool)
	must(t, err)
	if m := l.Maintain(now); m.Err != nil {
		t.Fatal(m.Err)
	}
	if m := l.Maintain(now); m.Err != nil { // files whose delay is 0 go now
		t.Fatal(m.Err)
	}
	return end, stats
}

// allBatches reads everything.
func allBatches(t testing.TB, l *log.Log) (batches []record.Batch) {
	t.Helper()
	v := l.View()
	for from := v.LogStartOffset; from < v.LogEndOffset; {
		read, err := l.Read(from, 1<<20, v.LogEndOffset, true)
		must(t, err)
		bytes, err := read.Region.ReadAll()
		must(t, err)
		read.Region.Release()
		if len(bytes) == 0 {
			break
		}
		for len(bytes) > 0 {
			var b record.Batch
			b, bytes, err = record.Next(bytes)
			must(t, err)
			must(t, b.CheckCRC())
			batches = append(batches, b)
			from = b.NextOffset()
		}
	}
	return batches
}

// lines shows what a log holds, a line a batch.
func lines(t testing.TB, l *log.Log) (shown []string) {
	t.Helper()
	for _, b := range allBatches(t, l) {
		line := fmt.Sprintf("%d-%d", b.BaseOffset(), b.LastOffset())
		if b.IsControl() {
			line += " control"
		}
		if b.HasDeleteHorizon() {
			line += fmt.Sprintf(" horizon+%ds", (b.BaseTimestamp()-testTime.UnixMilli())/1000)
		}
		for r, err := range record.Records(b, testPool, 1<<20) {
			must(t, err)
			switch {
			case b.IsControl():
				kind, err := record.ParseControlKey(r.Key)
				must(t, err)
				line += " " + kind.String()
			case r.Value == nil:
				line += fmt.Sprintf(" %d:%s-", r.Offset, r.Key)
			default:
				line += fmt.Sprintf(" %d:%s=%s", r.Offset, r.Key, r.Value)
			}
		}
		shown = append(shown, line)
	}
	return shown
}
