package clean

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

var swapStates = flag.String("swapstates", "", "write the states of a swap below this directory, for testdata/swap/Swap.java")

// TestSwapAsKafka ends the process before each operation of a compaction. What a start makes of the files is what Apache Kafka makes of
// them: the same segments with the same bytes (testdata/swap).
func TestSwapAsKafka(t *testing.T) {
	golden, err := os.ReadFile("testdata/swap/kafka.txt")
	if err != nil && *swapStates == "" {
		t.Fatal(err)
	}
	var ours strings.Builder
	for seed := range uint64(3) {
		w, disk, o := prepared(t, seed, true)
		o.FileDeleteDelay = time.Hour
		w.log.SetOptions(o)
		n := 0
		disk.OnOperation(func(op vfs.Operation) error {
			if !op.Kind.Changes() || op.Kind == vfs.OpSync || op.Kind == vfs.OpWrite {
				return nil
			}
			n++
			name := fmt.Sprintf("%d-%03d", seed, n)
			left := disk.Kill()
			if *swapStates != "" {
				export(t, left, filepath.Join(*swapStates, name, "t-0"))
			}
			l, recovery, err := log.Open(testEnv(left), testDir, testTP, o, log.OpenState{RecoveryPoint: w.log.View().DurableEnd, Trust: log.SameBoot, Now: w.now})
			if err != nil {
				t.Fatalf("%s: %v (%+v)", name, err, recovery)
			}
			fmt.Fprintf(&ours, "%s", name)
			for _, s := range l.Segments() {
				data, err := vfs.ReadFile(left, path.Join(testDir, segment.FileName(s.Base, segment.LogSuffix)))
				must(t, err)
				sum := sha256.Sum256(data)
				fmt.Fprintf(&ours, " %d:%d:%x", s.Base, len(data), sum[:4])
			}
			fmt.Fprintln(&ours)
			_, err = l.Close(w.now, false)
			must(t, err)
			return nil
		})
		_, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
		must(t, err)
		disk.OnOperation(nil)
	}
	if *swapStates != "" {
		return
	}
	want := strings.Split(strings.TrimSpace(string(golden)), "\n")
	got := strings.Split(strings.TrimSpace(ours.String()), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("state %d of %d and %d: a start finds\n%s\nand Apache Kafka's\n%s", i, len(got), len(want), got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

func export(t *testing.T, disk vfs.FS, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	entries, err := disk.ReadDir(testDir)
	must(t, err)
	for _, e := range entries {
		data, err := vfs.ReadFile(disk, path.Join(testDir, e.Name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, e.Name), data, 0o644))
	}
}
