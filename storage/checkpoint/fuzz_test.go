package checkpoint

import (
	"runtime"
	"testing"
)

// FuzzBudget: no small text file costs more than its bytes are worth.
func FuzzBudget(f *testing.F) {
	f.Add([]byte("0\n2\na 0 1\nb 1 7\n"))
	f.Add([]byte("0\n2\n1 5\n2 6\n"))
	f.Add([]byte("0\n2000000000\n"))
	f.Add([]byte("version: 0\ntopic_id: JEXY6aqzQY-32P5TStzaFg\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, read := range map[string]func(){
			"offsets":  func() { _, _ = ParseOffsets(data) },
			"epochs":   func() { _, _ = ParseEpochs(data) },
			"topic id": func() { _, _ = ParseTopicID(data) },
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			read()
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*len(data)+64<<10) {
				t.Errorf("%s: %d bytes were allocated for %d", name, used, len(data))
			}
		}
	})
}
