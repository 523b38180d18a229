package clean

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// TestCutInASwapThatWaits truncates a log into a compacted segment that waits for room for its names. As long as its .log ends in .swap
// a start would take what is torn of it for damage: the log stays as it is. Else, and with room, it is cut and written to, and opened
// as the death of the process or of the machine leaves it at any moment then.
func TestCutInASwapThatWaits(t *testing.T) {
	for _, stuck := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix} {
		t.Run(stuck, func(t *testing.T) {
			met := 0
			for seed := uint64(1); seed <= 3; seed++ {
				w, disk, o := prepared(t, seed, true)
				disk.OnOperation(func(op vfs.Operation) error {
					if op.Kind == vfs.OpRename && strings.HasSuffix(op.Name, stuck+segment.SwapSuffix) {
						return syscall.ENOSPC
					}
					return nil
				})
				if _, _, _ = Compact(w.now, w.log, 0, DefaultSettings(), testPool); !w.log.SwapWaits() {
					continue
				}
				met++
				w.cutInSwap(disk, o, stuck)
			}
			if met == 0 {
				t.Error("no swap waited")
			}
		})
	}
}

func (w *world) cutInSwap(disk *vfs.Mem, o log.Options, stuck string) {
	t, to := w.t, w.inSwap(disk, stuck)
	if stuck == segment.LogSuffix {
		before, view := lines(t, w.log), w.log.View()
		if err := w.log.TruncateTo(to); !errors.Is(err, syscall.ENOSPC) || w.log.View() != view || !slices.Equal(lines(t, w.log), before) {
			t.Fatalf("without room the log is cut: %v", err)
		}
		w.opens(disk, o)
		disk.OnOperation(nil)
	}
	must(t, w.log.TruncateTo(to))
	for n := range 12 {
		w.add(batch(codecs[n%len(codecs)], from{}, w.now, rec{key: "key", value: strings.Repeat("v", 10*n)}))
		w.opens(disk, o)
		if n%5 == 4 {
			must(t, w.log.Flush(w.now))
		}
	}
	disk.OnOperation(nil)
	w.maintain()
	w.opens(disk, o)
	if w.log.SwapWaits() {
		t.Error("with room the swap is not finished")
	}
}

// inSwap is an offset within the segment that waits for the name of one of its files.
func (w *world) inSwap(disk *vfs.Mem, stuck string) protocol.Offset {
	entries, err := disk.ReadDir(testDir)
	must(w.t, err)
	v, err := w.log.CleanView()
	must(w.t, err)
	for _, e := range entries {
		if base, suffix, ok := segment.ParseName(e.Name); ok && suffix == stuck+segment.SwapSuffix {
			for i, s := range v.Segments[:len(v.Segments)-1] {
				if s.Base() == base {
					return (base + v.Segments[i+1].Base()) / 2
				}
			}
		}
	}
	w.t.Fatal("no segment waits")
	return 0
}

// opens opens what a crash now leaves: all that was durable is there, and nothing else than what the log has.
func (w *world) opens(disk *vfs.Mem, o log.Options) {
	w.t.Helper()
	has, durable := lines(w.t, w.log), w.log.View().DurableEnd
	solid := 0
	for _, b := range allBatches(w.t, w.log) {
		if b.LastOffset() < durable {
			solid++
		}
	}
	check := func(state string, left *vfs.Mem, trust log.Trust) {
		l, report, err := log.Open(testEnv(left), testDir, testTP, o, log.OpenState{RecoveryPoint: durable, Trust: trust, Now: w.now})
		if err != nil {
			w.t.Fatalf("%s: %v (%+v)", state, err, report)
		}
		defer func() { _, _ = l.Close(w.now, false) }()
		l.SetHighWatermark(l.View().LogEndOffset)
		got := lines(w.t, l)
		strange := slices.ContainsFunc(got, func(line string) bool { return !slices.Contains(has, line) })
		if strange || len(got) < solid || !slices.Equal(got[:solid], has[:solid]) {
			w.t.Fatalf("%s: it has\n%s\nof which %d were durable:\n%s", state, strings.Join(got, "\n"), solid, strings.Join(has, "\n"))
		}
	}
	check("killed", disk.Kill(), log.SameBoot)
	disk.CrashStates(func(state string, left *vfs.Mem) { check(state, left, log.OtherBoot) })
}
