package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"ottla/protocol/record"
	"ottla/storage/vfs"
)

// mutation breaks one invariant in the golden directories.
type mutation struct {
	name string // of the test
	want Fault
	file string                           // that is to be named
	do   func(t *testing.T, f tree) int64 // gives the position that is to be named
}

// batchAt gives the nth batch of a log and where it begins.
func batchAt(t *testing.T, data []byte, n int) (record.Batch, int64) {
	t.Helper()
	rest, at := data, int64(0)
	for range n {
		b, after, err := record.Next(rest)
		if err != nil {
			t.Fatal(err)
		}
		at += int64(len(b))
		rest = after
	}
	b, _, err := record.Next(rest)
	if err != nil {
		t.Fatal(err)
	}
	return b, at
}

// findBatch gives the first batch that is wanted.
func findBatch(t *testing.T, data []byte, wanted func(record.Batch) bool) (record.Batch, int64) {
	t.Helper()
	at := int64(0)
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil {
			t.Fatal(err)
		}
		if wanted(b) {
			return b, at
		}
		at, rest = at+int64(len(b)), after
	}
	t.Fatal("there is no such batch")
	return nil, 0
}

// seal renews the checksum of a batch.
func seal(b record.Batch) { binary.BigEndian.PutUint32(b[17:], b.ComputeCRC()) }

// change gives a mutation that changes a byte range of a file.
func change(file string, at int64, what func(data []byte)) func(*testing.T, tree) int64 {
	return func(t *testing.T, f tree) int64 {
		what(f[file])
		return at
	}
}

// replace gives one that replaces text in a file.
func replace(file, before, after string) func(*testing.T, tree) int64 {
	return func(t *testing.T, f tree) int64 {
		if !bytes.Contains(f[file], []byte(before)) {
			t.Fatalf("%s does not contain %q: %q", file, before, f[file])
		}
		f[file] = bytes.Replace(f[file], []byte(before), []byte(after), 1)
		return -1
	}
}

// inBatch gives one that changes the nth batch of a log and makes its checksum right.
func inBatch(file string, n int, what func(b record.Batch)) func(*testing.T, tree) int64 {
	return func(t *testing.T, f tree) int64 {
		b, at := batchAt(t, f[file], n)
		what(b)
		seal(b)
		return at
	}
}

const metaHome = "/d/a/__cluster_metadata-0/"

// home finds the directory of a partition.
func home(f tree, partition string) string {
	for _, dir := range goldenDirs {
		for name := range f {
			if strings.HasPrefix(name, dir+"/"+partition+"/") {
				return dir
			}
		}
	}
	return "/missing"
}

// files lists the files of a directory with a suffix, sorted.
func (f tree) files(dir, suffix string) []string {
	var list []string
	for name := range f {
		if path.Dir(name) == dir && strings.HasSuffix(name, suffix) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// mutations are built from where the golden's partitions lie.
func mutations(t *testing.T, f tree) []mutation {
	in := func(partition string) string { return home(f, partition) + "/" + partition }
	file := func(partition, suffix string, n int) string {
		list := f.files(in(partition), suffix)
		if n >= len(list) {
			t.Fatalf("%s has only %d files %s", partition, len(list), suffix)
		}
		return list[n]
	}
	log0, log1 := file("plain-0", ".log", 0), file("plain-0", ".log", 1)
	txn0, txn1 := file("txns-0", ".log", 0), file("txns-0", ".log", 1)
	metaLog := file("__cluster_metadata-0", ".log", 0)
	offsets := file("__consumer_offsets-0", ".log", 0)
	plainHome := home(f, "plain-0")
	return slices.Concat(directoryMutations(in), []mutation{
		{"magic", BatchFrame, log0, inBatch(log0, 1, func(b record.Batch) { b[16] = 1 })},
		{"length too large", BatchFrame, log0, func(t *testing.T, f tree) int64 {
			b, at := batchAt(t, f[log0], 1)
			binary.BigEndian.PutUint32(b[8:], 1<<30)
			return at
		}},
		{"half a header", BatchFrame, log0, func(_ *testing.T, f tree) int64 {
			at := int64(len(f[log0]))
			f[log0] = append(f[log0], 1, 2, 3)
			return at
		}},
		{"a payload byte", BatchCRC, log0, func(t *testing.T, f tree) int64 {
			b, at := batchAt(t, f[log0], 1)
			b[len(b)-1] ^= 1
			return at
		}},
		{"base offset", BatchOffset, log0, func(t *testing.T, f tree) int64 {
			b, at := batchAt(t, f[log0], 2)
			b.SetBaseOffset(b.BaseOffset() - 1)
			return at
		}},
		{"leader epoch", BatchEpoch, file("plain-0", ".log", 3), func(t *testing.T, f tree) int64 {
			b, at := batchAt(t, f[file("plain-0", ".log", 3)], 1)
			b.SetPartitionLeaderEpoch(b.PartitionLeaderEpoch() - 1)
			return at
		}},
		{"attributes", BatchHeader, log0, inBatch(log0, 1, func(b record.Batch) { b[21] = 1 })},
		{"codec", BatchHeader, log0, inBatch(log0, 1, func(b record.Batch) { b[22] |= 7 })},
		{"count", BatchHeader, log0, inBatch(log0, 1, func(b record.Batch) { b[60]++ })},
		{"no producer", BatchHeader, txn0, inBatch(txn0, 0, func(b record.Batch) { copy(b[43:], "\xff\xff\xff\xff\xff\xff\xff\xff") })},
		{"record length", BatchRecords, log0, inBatch(log0, 0, func(b record.Batch) { b[61]++ })},
		{"gzip", BatchRecords, log0, inBatch(log0, 1, func(b record.Batch) { b[61]++ })},
		{"largest timestamp", BatchTimestamp, log0, inBatch(log0, 1, func(b record.Batch) { b[42]++ })},
		{"control record", BatchControl, txn1, func(t *testing.T, f tree) int64 {
			b, at := findBatch(t, f[txn1], func(b record.Batch) bool { return b.IsControl() })
			b[61+8] = 9 // the type in the record's key
			seal(b)
			return at
		}},
		{"segments overlap", SegmentOverlap, "", func(t *testing.T, f tree) int64 {
			for _, suffix := range []string{".index", ".timeindex"} {
				delete(f, strings.TrimSuffix(log1, ".log")+suffix)
			}
			var base int64
			fmt.Sscanf(path.Base(log1), "%d.log", &base)
			f[path.Join(path.Dir(log1), fmt.Sprintf("%020d.log", base-1))] = f[log1]
			delete(f, log1)
			return 0
		}},
		{"a segment is missing", SegmentGap, file("plain-0", ".log", 2), func(_ *testing.T, f tree) int64 {
			for _, suffix := range []string{".log", ".index", ".timeindex"} {
				delete(f, strings.TrimSuffix(log1, ".log")+suffix)
			}
			return 0
		}},
		{"index position", Index, file("plain-0", ".index", 0), change(file("plain-0", ".index", 0), 0, func(d []byte) { d[7]++ })},
		{"index offset", Index, file("plain-0", ".index", 0), change(file("plain-0", ".index", 0), 0, func(d []byte) { d[3] = 0 })},
		{"half an entry", Index, file("plain-0", ".index", 0), func(_ *testing.T, f tree) int64 {
			name := file("plain-0", ".index", 0)
			at := int64(len(f[name]))
			f[name] = append(f[name], 1, 2, 3)
			return at
		}},
		{"index beyond the log", Index, file("plain-0", ".index", 0), func(_ *testing.T, f tree) int64 {
			name := file("plain-0", ".index", 0)
			at := int64(len(f[name]))
			f[name] = append(f[name], 0, 0, 1, 0, 0, 1, 0, 0)
			return at
		}},
		{"time index timestamp", TimeIndex, file("plain-0", ".timeindex", 0), change(file("plain-0", ".timeindex", 0), 0, func(d []byte) { d[7]++ })},
		{"time index offset", TimeIndex, file("plain-0", ".timeindex", 0), change(file("plain-0", ".timeindex", 0), 0, func(d []byte) { d[11]++ })},
		{"largest timestamp not in the time index", TimeIndex, file("plain-0", ".timeindex", 0), func(_ *testing.T, f tree) int64 {
			name := file("plain-0", ".timeindex", 0)
			f[name] = f[name][:len(f[name])-12]
			return int64(len(f[name]))
		}},
		{"aborted transaction not in the index", TxnIndex, file("txns-0", ".txnindex", 0), func(_ *testing.T, f tree) int64 {
			name := file("txns-0", ".txnindex", 0)
			f[name] = f[name][:len(f[name])-34]
			return -1
		}},
		{"first offset of an aborted transaction", TxnIndex, file("txns-0", ".txnindex", 0), change(file("txns-0", ".txnindex", 0), 34, func(d []byte) { d[34+17]-- })},
		{"txnindex version", TxnIndex, file("txns-0", ".txnindex", 0), change(file("txns-0", ".txnindex", 0), -1, func(d []byte) { d[1] = 1 })},
		{"epochs cut", EpochCheckpoint, in("plain-0") + "/leader-epoch-checkpoint", func(_ *testing.T, f tree) int64 {
			name := in("plain-0") + "/leader-epoch-checkpoint"
			f[name] = f[name][:len(f[name])-1]
			return -1
		}},
		{"epoch start", EpochStart, in("txns-0") + "/leader-epoch-checkpoint", func(t *testing.T, f tree) int64 {
			name := in("txns-0") + "/leader-epoch-checkpoint"
			f[name] = []byte("0\n1\n0 0\n")
			return -1
		}},
		{"snapshot checksum", ProducerSnapshot, file("txns-0", ".snapshot", 0), change(file("txns-0", ".snapshot", 0), -1, func(d []byte) { d[20]++ })},
		{"sequence in a snapshot", ProducerState, file("txns-0", ".snapshot", 0), change(file("txns-0", ".snapshot", 0), -1, func(d []byte) {
			d[10+13]++
			binary.BigEndian.PutUint32(d[2:], crc32.Checksum(d[6:], crc32.MakeTable(crc32.Castagnoli)))
		})},
		{"topic id", TopicID, in("plain-0") + "/partition.metadata", change(in("plain-0")+"/partition.metadata", -1, func(d []byte) { d[25] ^= 1 })},
		{"partition.metadata", PartitionMetadata, in("plain-0") + "/partition.metadata", replace(in("plain-0")+"/partition.metadata", "version: 0", "version: 1")},
		{"recovery point", RecoveryPoint, plainHome + "/recovery-point-offset-checkpoint", raise(plainHome+"/recovery-point-offset-checkpoint", "plain 0 ")},
		{"high watermark", HighWatermark, plainHome + "/replication-offset-checkpoint", raise(plainHome+"/replication-offset-checkpoint", "plain 0 ")},
		{"log start", LogStart, plainHome + "/log-start-offset-checkpoint", raise(plainHome+"/log-start-offset-checkpoint", "plain 0 ")},
		{"cleaner offset", CleanerOffset, home(f, "compact-0") + "/cleaner-offset-checkpoint", raise(home(f, "compact-0")+"/cleaner-offset-checkpoint", "compact 0 ")},
		{"coordinator version", CoordinatorState, offsets, inBatch(offsets, 0, func(b record.Batch) { b[61+7]++ })},
		{"metadata record", MetadataRecord, metaLog, func(t *testing.T, f tree) int64 {
			b, at := findBatch(t, f[metaLog], func(b record.Batch) bool { return !b.IsControl() })
			b[61+7] = 0x7f // the kind of the record
			seal(b)
			return at
		}},
		{"metadata gap", BatchOffset, metaLog, func(t *testing.T, f tree) int64 {
			b, at := batchAt(t, f[metaLog], 3)
			b.SetBaseOffset(b.BaseOffset() + 1)
			return at
		}},
		{"metadata snapshot without its footer", MetadataSnapshot, file("__cluster_metadata-0", ".checkpoint", 1), func(t *testing.T, f tree) int64 {
			name := file("__cluster_metadata-0", ".checkpoint", 1)
			_, at := findBatch(t, f[name], func(b record.Batch) bool { return b.IsControl() && b.BaseOffset() > 0 })
			f[name] = f[name][:at]
			return at
		}},
		{"metadata snapshot says another thing", MetadataState, file("__cluster_metadata-0", ".checkpoint", 3), func(t *testing.T, f tree) int64 {
			name := file("__cluster_metadata-0", ".checkpoint", 3)
			b, _ := findBatch(t, f[name], func(b record.Batch) bool { return bytes.Contains(b, []byte("segment.ms")) })
			at := bytes.Index(b, []byte("1000000"))
			b[at] = '2'
			seal(b)
			return -1
		}},
		{"quorum-state", QuorumState, metaHome + "quorum-state", replace(metaHome+"quorum-state", "{", "[")},
		{"quorum-state behind the log", QuorumState, metaHome + "quorum-state", replace(metaHome+"quorum-state", `"leaderEpoch":2`, `"leaderEpoch":1`)},
	})
}

// raise gives a mutation that makes a line of a checkpoint say an offset that no log here reaches.
func raise(file, line string) func(*testing.T, tree) int64 {
	return func(t *testing.T, f tree) int64 {
		text := string(f[file])
		at := strings.Index(text, "\n"+line)
		if at < 0 {
			t.Fatalf("%s has no line %q: %q", file, line, text)
		}
		end := at + 1 + len(line)
		f[file] = []byte(text[:end] + "99" + text[end:])
		return -1
	}
}

func directoryMutations(in func(string) string) []mutation {
	a, b := "/d/a/meta.properties", "/d/b/meta.properties"
	return []mutation{
		{"meta.properties version", MetaProperties, a, replace(a, "version=1", "version=2")},
		{"no meta.properties", MetaProperties, "/d/b", func(_ *testing.T, f tree) int64 { delete(f, b); return -1 }},
		{"cluster id", ClusterID, b, replace(b, "cluster.id=M", "cluster.id=N")},
		{"node id", NodeID, b, replace(b, "node.id=1", "node.id=2")},
		{"directory id", DirectoryID, b, func(_ *testing.T, f tree) int64 { f[b] = f[a]; return -1 }},
		{"marker", CleanShutdown, "/d/a/.kafka_cleanshutdown", replace("/d/a/.kafka_cleanshutdown", "{", "")},
		{"name", Name, "/d/a/orders", func(_ *testing.T, f tree) int64 { f["/d/a/orders/x"] = nil; return -1 }},
		{"partition twice", PartitionTwice, "", func(_ *testing.T, f tree) int64 {
			from := in("empty-0")
			to := "/d/a/empty-0"
			if from == to {
				to = "/d/b/empty-0"
			}
			for name, data := range f.only(from + "/") {
				f[to+strings.TrimPrefix(name, from)] = data
			}
			return -1
		}},
		{"partition missing", PartitionMissing, path.Dir(in("empty-1")), func(_ *testing.T, f tree) int64 {
			for name := range f.only(in("empty-1") + "/") {
				delete(f, name)
			}
			return -1
		}},
		{"checkpoint cut", Checkpoint, "/d/a/recovery-point-offset-checkpoint", func(_ *testing.T, f tree) int64 {
			name := "/d/a/recovery-point-offset-checkpoint"
			f[name] = f[name][:len(f[name])-1]
			return -1
		}},
		{"checkpoint with a partition twice", Checkpoint, "/d/a/recovery-point-offset-checkpoint", func(_ *testing.T, f tree) int64 {
			f["/d/a/recovery-point-offset-checkpoint"] = []byte("0\n2\ngone 0 1\ngone 0 2\n")
			return -1
		}},
	}
}

// TestMutations breaks each invariant once: that fault is found, by name, file and position, and no other.
func TestMutations(t *testing.T) {
	whole := golden(t)
	if before := whole.check(t, goldenDirs...); before.FaultCount > 0 {
		t.Fatalf("the directories have faults:\n%s", describe(before))
	}
	seen := map[Fault]bool{Unreadable: true} // TestUnreadable
	for _, m := range mutations(t, whole) {
		t.Run(m.name, func(t *testing.T) {
			f := whole.clone()
			position := m.do(t, f)
			report := f.check(t, goldenDirs...)
			if len(report.Faults) != 1 {
				t.Fatalf("%d faults instead of one:\n%s", len(report.Faults), describe(report))
			}
			got := report.Faults[0]
			if got.Name != m.want || m.file != "" && got.File != m.file || got.Position != position {
				t.Errorf("found %s\nwant %s in %s at byte %d", got, m.want, m.file, position)
			}
			seen[m.want] = true
		})
	}
	for _, name := range allFaults() {
		if !seen[name] {
			t.Errorf("no mutation breaks %s", name)
		}
	}
}

// allFaults are the names of faults.go that are invariants.
func allFaults() []Fault {
	return []Fault{
		Unreadable, MetaProperties, ClusterID, NodeID, DirectoryID, CleanShutdown, Name, PartitionTwice, PartitionMissing, Checkpoint,
		RecoveryPoint, LogStart, HighWatermark, CleanerOffset, PartitionMetadata, TopicID, SegmentOverlap, SegmentGap, BatchFrame,
		BatchCRC, BatchOffset, BatchEpoch, BatchHeader, BatchRecords, BatchTimestamp, BatchControl, Index, TimeIndex, TxnIndex,
		EpochCheckpoint, EpochStart, ProducerSnapshot, ProducerState, QuorumState, MetadataRecord, MetadataSnapshot, MetadataState,
		CoordinatorState,
	}
}

// failing is a disk that refuses to read one file.
type failing struct {
	vfs.FS
	name string
}

func (f failing) OpenFile(name string, flag int) (vfs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.OpenFile(name, flag)
}

func TestUnreadable(t *testing.T) {
	whole := golden(t)
	for name := range whole {
		if strings.Contains(name, "/.lock") {
			continue // it has no content
		}
		report, err := Run(failing{whole.mem(t), name}, goldenDirs, Options{InUse: unlocked})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Faults) == 0 || !slices.ContainsFunc(report.Faults, func(f Finding) bool { return f.File == name }) {
			t.Errorf("%s cannot be read, and the report does not say so:\n%s", name, describe(report))
		}
	}
}
