package logdir

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// folder is a disk with an empty log directory, a.
func folder(t *testing.T) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(nil)
	must(t, m.MkdirAll("a"))
	return m
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetaPropertiesDamagedAtEveryByte cuts, zeroes and garbles the file: what is read is what was written, or an
// error. A flipped byte within a value that has no check of its own may pass as another value.
func TestMetaPropertiesDamagedAtEveryByte(t *testing.T) {
	want := MetaProperties{ClusterID: "JEXY6aqzQY-32P5TStzaFg", NodeID: 1, DirectoryID: protocol.DirectoryID{9}}
	text := string(want.text())
	for at := range len(text) {
		for kind, damaged := range map[string]string{
			"cut": text[:at], "zeroed": text[:at] + strings.Repeat("\x00", len(text)-at),
		} {
			got, err := ParseMetaProperties([]byte(damaged))
			if err == nil && got != want && !strings.HasPrefix(want.ClusterID, got.ClusterID) && got.NodeID != want.NodeID {
				t.Errorf("%s at %d reads as %+v", kind, at, got)
			}
		}
	}
}

func TestClassify(t *testing.T) {
	long := strings.Repeat("l", 250)
	for name, want := range map[string]Kind{
		"t-0": KindPartition, "a-b-12": KindPartition, "__consumer_offsets-49": KindPartition, long[:249] + "-0": KindPartition,
		long + "-0": KindUnknown, "..-0": KindUnknown, ".-0": KindUnknown, "t-2147483648": KindUnknown, "t": KindUnknown,
		"__cluster_metadata-0": KindIgnored, "remote-log-index-cache": KindIgnored, "t-delete": KindUnknown, "t-0-delete": KindUnknown,
	} {
		if got, _ := Classify(name); got != want {
			t.Errorf("%s is of kind %d, not %d", name, got, want)
		}
	}
}

func TestCheckpointFiles(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0\n0\n": "", "0\n1\nt 0 5\n": "t-0=5", "0\n2\nt 0 5\nu 1 7\n": "t-0=5 u-1=7",
		"0\n1\nt 0 5": "damaged", "0\n2\nt 0 5\n": "damaged", "1\n0\n": "damaged", "0\n": "damaged", "\x00\x00\x00": "damaged", "0\n1\nt 0 x\n": "damaged",
	} {
		m := folder(t)
		must(t, vfs.WriteFileAtomic(m, "a/"+HighWatermarkFile, []byte(text)))
		c, damaged, err := ReadCheckpoints(m, "a")
		must(t, err)
		var got []string
		for _, p := range slices.SortedFunc(maps.Keys(c.onDisk[HighWatermarkFile]), protocol.TopicPartition.Compare) {
			got = append(got, fmt.Sprintf("%s=%d", p, c.onDisk[HighWatermarkFile][p]))
		}
		got = append(got, strings.Repeat("damaged", len(damaged)))
		if joined := strings.TrimSpace(strings.Join(got, " ")); joined != want {
			t.Errorf("%q reads as %q, not %q", text, joined, want)
		}
	}
}

// FuzzSmallFiles reads foreign bytes as each small file of a log directory: no panic, and no more memory than the
// bytes are worth.
func FuzzSmallFiles(f *testing.F) {
	f.Add([]byte("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n"))
	f.Add([]byte(`{"version":0,"brokerEpoch":13}`))
	f.Add([]byte("0\n2\nt 0 5\nu 1 7\n"))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := folder(t)
		for _, file := range append([]string{CleanShutdownFile, BootIDFile}, CheckpointFiles[:]...) {
			must(t, vfs.WriteFileAtomic(m, "a/"+file, data))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		meta, metaErr := ParseMetaProperties(data)
		_, markerErr := ReadMarker(m, "a")
		_, damaged, checkpointErr := ReadCheckpoints(m, "a")
		runtime.ReadMemStats(&after)
		if metaErr == nil && (meta.ClusterID == "" || meta.NodeID < 0) {
			t.Errorf("accepted %+v", meta)
		}
		if markerErr != nil || checkpointErr != nil || len(damaged) > len(CheckpointFiles) {
			t.Errorf("content is an error of the system: %v, %v", markerErr, checkpointErr)
		}
		// Seven readings of the same bytes, each within 64 times their size and 64 KiB.
		if used := after.TotalAlloc - before.TotalAlloc; used > 7*uint64(64*len(data)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(data))
		}
	})
}
