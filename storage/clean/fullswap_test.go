package clean

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// wantsRoom tells that an operation may find none: of renames also the one that makes a name shorter, as it may need a block of the
// directory. On file systems that never write over anything removals do, too.
func wantsRoom(kind vfs.Kind, removals bool) bool {
	switch kind {
	case vfs.OpCreate, vfs.OpWrite, vfs.OpMkdir, vfs.OpRename:
		return true
	case vfs.OpRemove:
		return removals
	default:
		return false
	}
}

// TestSwapWithoutRoom lets each operation of a compaction find no room: it alone, or it and all that come after it. The log never
// fails: it shows what it showed, takes records when it may, and when there is room everything gets its name and the compaction is
// done anew. And whatever a crash after it leaves, also one of a start that is tidying up, is opened and holds what was there.
func TestSwapWithoutRoom(t *testing.T) {
	seeds, step := []uint64{1, 2}, 1
	if testing.Short() {
		seeds, step = seeds[:1], 3
	}
	for _, mode := range []struct {
		name           string
		fault          error
		lasts, removes bool
	}{
		{"once", syscall.ENOSPC, false, false},
		{"from then on", syscall.EDQUOT, true, false},
		{"removals too", syscall.ENOSPC, true, true},
	} {
		if testing.Short() && !mode.removes {
			continue // it has fewer faults
		}
		t.Run(mode.name, func(t *testing.T) {
			kinds := map[string]bool{}
			for _, seed := range seeds {
				for k := 1; ; k += step {
					f := &fullSwap{T: t, lasts: mode.lasts, removes: mode.removes, fault: mode.fault}
					if !f.run(seed, k) {
						break
					}
					kinds[f.kind] = true
				}
			}
			for _, kind := range []string{".swap", ".deleted", "place " + segment.LogSuffix, "place " + segment.IndexSuffix, "place " + segment.TimeIndexSuffix} {
				if !kinds[kind] && step == 1 {
					t.Errorf("no operation %q was met: %v", kind, kinds)
				}
			}
		})
	}
}

// fullSwap is one compaction that finds no room.
type fullSwap struct {
	*testing.T
	lasts, removes bool
	fault          error

	*world
	disk *vfs.Mem
	o    log.Options
	kind string // of the step that met it
	when string
}

func (f *fullSwap) Helper() { f.T.Helper() }

// run lets operation k find no room; false: there are not so many.
func (f *fullSwap) run(seed uint64, k int) bool {
	t := f.T
	f.world, f.disk, f.o = prepared(t, seed, true)
	w := f.world
	before := read(t, w.log, true)
	count, hit := 0, false
	f.disk.OnOperation(func(op vfs.Operation) error {
		if !wantsRoom(op.Kind, f.removes) {
			return nil
		}
		if count++; count == k || hit && f.lasts {
			if !hit {
				f.when, f.kind = fmt.Sprintf("seed %d: %v at %d, %s", seed, f.fault, k, op), stepOf(op)
			}
			hit = true
			return f.fault
		}
		return nil
	})
	_, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
	if !hit {
		must(t, err)
		f.disk.OnOperation(nil)
		return false
	}
	f.works(err)
	if got, want := latest(read(t, w.log, true)), latest(before); !maps.Equal(got, want) {
		t.Fatalf("%s: it shows\n%v\nnot\n%v", f.when, got, want)
	}
	f.crash(k)
	if m := w.log.Maintain(w.now); m.Err != nil { // still no room
		f.works(m.Err)
	}
	f.disk.OnOperation(nil)
	f.goOn()
	return true
}

// works checks that the log has not failed, whatever the call said.
func (f *fullSwap) works(err error) {
	f.Helper()
	if failed := f.log.Failed(); failed != nil {
		f.Fatalf("%s: the log has failed: %v", f.when, failed)
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		f.Fatalf("%s: %v", f.when, err)
	}
}

// crash opens what a crash now leaves, and what one leaves before each operation of that start: of many states every fifth, other ones
// after each operation.
func (f *fullSwap) crash(k int) {
	durable := f.log.View().DurableEnd
	other := log.OpenState{RecoveryPoint: durable, Trust: log.OtherBoot, Now: f.now}
	same := log.OpenState{RecoveryPoint: durable, Trust: log.SameBoot, Now: f.now}
	f.recovers(f.disk.Kill(), f.o, same, f.when+" killed")
	f.disk.CrashStates(func(state string, left *vfs.Mem) {
		if k++; k%5 == 0 {
			f.recovers(left, f.o, other, f.when+" "+state)
		}
	})
	var starts []func()
	n := 0
	left := f.disk.Kill()
	left.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			n++
		}
		if op.Kind.Changes() && n%8 == k%8 {
			left.CrashStates(func(state string, again *vfs.Mem) {
				if k++; k%5 == 0 {
					when := f.when + ", killed, crashed at the start at " + op.String() + " " + state
					starts = append(starts, func() { f.recovers(again, f.o, other, when) })
				}
			})
		}
		return nil
	})
	l, _, err := log.Open(testEnv(left), testDir, testTP, f.o, same)
	must(f.T, err)
	_, err = l.Close(f.now, false)
	must(f.T, err)
	for _, start := range starts {
		start()
	}
}

// goOn finds room.
func (f *fullSwap) goOn() {
	w := f.world
	w.grow()
	must(f.T, w.log.Flush(w.now))
	w.maintain()
	end, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
	if err != nil {
		f.Fatalf("%s: then %v", f.when, err)
	}
	w.maintain()
	w.now = w.now.Add(2 * time.Hour)
	w.maintain()
	w.checkpoint = end
	w.law(w.log, true)
	entries, err := f.disk.ReadDir(testDir)
	must(f.T, err)
	for _, e := range entries {
		for _, suffix := range []string{segment.SwapSuffix, segment.CleanedSuffix, segment.DeletedSuffix} {
			if strings.HasSuffix(e.Name, suffix) {
				f.Fatalf("%s: %s is left", f.when, e.Name)
			}
		}
	}
	f.recovers(f.disk.Crash(), f.o, log.OpenState{RecoveryPoint: w.log.View().DurableEnd, Trust: log.OtherBoot, Now: w.now}, f.when+" in the end")
	_, err = w.log.Close(w.now, true)
	must(f.T, err)
}

// stepOf names the step of the swap that an operation is of.
func stepOf(op vfs.Operation) string {
	switch {
	case op.Kind != vfs.OpRename:
		return op.Kind.String()
	case strings.HasSuffix(op.NewName, segment.SwapSuffix):
		return segment.SwapSuffix
	case strings.HasSuffix(op.NewName, segment.DeletedSuffix):
		return segment.DeletedSuffix
	}
	return "place " + op.NewName[strings.LastIndexByte(op.NewName, '.'):]
}
