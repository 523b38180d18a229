package log

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

var testTP = protocol.TopicPartition{Topic: "t", Partition: 0}

var testTime = time.UnixMilli(1_700_000_000_000)

func testEnv(fsys vfs.FS) Env {
	return Env{FS: fsys, Files: segment.NewFileCache(fsys, 50), Pool: compress.NewPool()}
}

func newDisk(seed uint64) *vfs.Mem {
	random := rand.New(rand.NewPCG(seed, 1)).Uint64
	return vfs.NewMem(random)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// goldenRoot is what Apache Kafka 4.4.0 wrote; see its README.
const goldenRoot = "../../testdata/logs-4.4.0"

// loadTree copies a directory of the machine onto a disk in memory.
func loadTree(t testing.TB, disk vfs.FS, from, to string, want func(name string) bool) {
	t.Helper()
	check(t, disk.MkdirAll(to))
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || want != nil && !want(name) {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := path.Join(to, filepath.ToSlash(relative))
		if err := disk.MkdirAll(path.Dir(target)); err != nil {
			return err
		}
		return vfs.WriteFile(disk, target, data, true)
	})
	check(t, err)
}

// readDir gives the names and contents of a directory's files.
func readDir(t testing.TB, disk vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := disk.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		data, err := vfs.ReadFile(disk, path.Join(dir, e.Name))
		check(t, err)
		files[e.Name] = string(data)
	}
	return files
}

// allBatches reads everything through Read.
func allBatches(t testing.TB, l *Log, maxBytes int) []record.Batch {
	t.Helper()
	var batches []record.Batch
	v := l.View()
	for from := v.LogStartOffset; from < v.LogEndOffset; {
		read, err := l.Read(from, maxBytes, v.LogEndOffset, true)
		if err != nil {
			t.Fatalf("read at %d: %v", from, err)
		}
		bytes, err := read.Region.ReadAll()
		check(t, err)
		read.Region.Release()
		if len(bytes) == 0 {
			t.Fatalf("nothing at %d of %d", from, v.LogEndOffset)
		}
		for len(bytes) > 0 {
			var b record.Batch
			b, bytes, err = record.Next(bytes)
			check(t, err)
			check(t, b.CheckCRC())
			batches = append(batches, b)
			from = b.NextOffset()
		}
	}
	return batches
}

// batchOf makes a plain batch of n records of the given value size.
func batchOf(n, size int, timestampMs int64) record.Batch {
	builder := record.NewBuilder(record.PlainOptions())
	for range n {
		builder.Append(timestampMs, []byte("key"), make([]byte, size), nil)
	}
	return builder.Build(nil)
}

func batchBy(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32, n int, transactional bool) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, epoch, sequence, transactional
	builder := record.NewBuilder(o)
	for range n {
		builder.Append(testTime.UnixMilli(), []byte("key"), []byte("value"), nil)
	}
	return builder.Build(nil)
}

func markerOf(id protocol.ProducerID, epoch protocol.ProducerEpoch, commit bool, coordinatorEpoch int32) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.Transactional, o.Control = id, epoch, true, true
	kind := record.ControlAbort
	if commit {
		kind = record.ControlCommit
	}
	key, value := record.EndTxnMarker{Type: kind, CoordinatorEpoch: coordinatorEpoch}.Encode()
	builder := record.NewBuilder(o)
	builder.Append(testTime.UnixMilli(), key, value, nil)
	return builder.Build(nil)
}

func appendOne(t testing.TB, l *Log, origin Origin, b record.Batch) *Entry {
	t.Helper()
	e := &Entry{Batch: b, Origin: origin}
	check(t, l.Append(testTime, 0, []*Entry{e}))
	return e
}

func isDamaged(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged)
}
