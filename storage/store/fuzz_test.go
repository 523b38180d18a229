package store

import (
	"runtime"
	"testing"

	"ottla/storage/vfs"
)

// FuzzSmallFiles reads foreign bytes as each small file of a log directory: no panic, and no more memory than the
// bytes are worth.
func FuzzSmallFiles(f *testing.F) {
	f.Add([]byte("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n"))
	f.Add([]byte(`{"version":0,"brokerEpoch":13}`))
	f.Add([]byte("0\n2\nt 0 5\nu 1 7\n"))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := vfs.NewMem(nil)
		must(t, m.MkdirAll("a"))
		for _, file := range append([]string{cleanShutdownFile, bootIDFile}, checkpointFiles[:]...) {
			must(t, vfs.WriteFileAtomic(m, "a/"+file, data))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		meta, metaErr := ParseMetaProperties(data)
		_, markerErr := readMarker(m, "a")
		_, damaged, checkpointErr := readCheckpoints(m, "a")
		runtime.ReadMemStats(&after)
		if metaErr == nil && (meta.ClusterID == "" || meta.NodeID < 0) {
			t.Errorf("accepted %+v", meta)
		}
		if markerErr != nil || checkpointErr != nil || len(damaged) > len(checkpointFiles) {
			t.Errorf("content is an error of the system: %v, %v", markerErr, checkpointErr)
		}
		// Seven readings of the same bytes, each within 64 times their size and 64 KiB.
		if used := after.TotalAlloc - before.TotalAlloc; used > 7*uint64(64*len(data)+64<<10) {
			t.Errorf("%d bytes were allocated for %d", used, len(data))
		}
	})
}
