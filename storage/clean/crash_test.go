package clean

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// prepared is a log in which much is to be compacted. Only what Flush made durable is owed after a power cut.
func prepared(t *testing.T, seed uint64, flush bool) (*world, *vfs.Mem, log.Options) {
	disk := newDisk(seed)
	o := testOptions()
	o.SegmentBytes, o.DeleteRetention, o.ProducerIDExpiration = 500+int64(seed%5)*150, time.Hour, 1000*time.Hour
	if seed%2 == 0 {
		o.FileDeleteDelay = time.Hour
	}
	w := newWorld(t, seed, newLog(t, disk, o))
	disk.SyncAll()
	for range 30 {
		w.grow()
	}
	if flush {
		must(t, w.log.Flush(w.now))
	}
	return w, disk, o
}

// TestCrashWhileCompacting cuts the power, and kills the process, before each operation of a compaction. Whatever is left is opened,
// tells what the log told before, can be compacted, and tells the same.
func TestCrashWhileCompacting(t *testing.T) {
	for _, seed := range []uint64{2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, disk, o := prepared(t, seed, true)
			states := 0
			recoverAll := func(op string) {
				durable := w.log.View().DurableEnd
				disk.CrashStates(func(state string, left *vfs.Mem) {
					states++
					w.recovers(left, o, log.OpenState{RecoveryPoint: durable, Trust: log.OtherBoot, Now: w.now}, op+" "+state)
				})
				w.recovers(disk.Kill(), o, log.OpenState{RecoveryPoint: durable, Trust: log.SameBoot, Now: w.now}, op+" killed")
			}
			disk.OnOperation(func(op vfs.Operation) error {
				if op.Kind.Changes() {
					recoverAll(op.String())
				}
				return nil
			})
			end, stats, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
			must(t, err)
			w.maintain()
			disk.OnOperation(nil)
			recoverAll("the end")
			w.checkpoint = end
			w.law(w.log, true)
			if stats.SegmentsMade == 0 || states < 100 {
				t.Errorf("%d states, %+v", states, stats)
			}
		})
	}
}

// recovers opens what a crash left, and checks it.
func (w *world) recovers(left *vfs.Mem, o log.Options, state log.OpenState, when string) {
	w.t.Helper()
	env := testEnv(left)
	l, recovery, err := log.Open(env, testDir, testTP, o, state)
	if err != nil {
		w.t.Fatalf("%s: %v (%+v)", when, err, recovery)
	}
	defer func() { _, _ = l.Close(w.now, false) }()
	l.SetHighWatermark(l.View().LogEndOffset)
	v, err := l.CleanView()
	must(w.t, err)
	if v.LogEndOffset < state.RecoveryPoint {
		w.t.Fatalf("%s: the log ends at %d, but %d was durable", when, v.LogEndOffset, state.RecoveryPoint)
	}
	check := func(what string) {
		if got, want := latest(read(w.t, l, true)), w.values(v.LastStableOffset); !maps.Equal(got, want) {
			w.t.Fatalf("%s: %s: values\n%v\nnot\n%v (%+v)", when, what, got, want, recovery)
		}
	}
	check("opened")
	w.owed(l, when)
	if _, _, err := Compact(w.now, l, 0, DefaultSettings(), testPool); err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	check("compacted again")
}

// owed checks that every record that is there is one that was written, at its offset, and that aborted ones are not visible.
func (w *world) owed(l *log.Log, when string) {
	known := map[protocol.Offset]written{}
	for _, r := range w.all {
		known[r.offset] = r
	}
	for offset, f := range read(w.t, l, false) {
		if r, is := known[offset]; !is || f != (found{r.key, r.value}) {
			w.t.Fatalf("%s: offset %d holds %v, not %v", when, offset, f, known[offset])
		}
	}
	for offset := range read(w.t, l, true) {
		if known[offset].aborted {
			w.t.Fatalf("%s: the record at %d is aborted and visible", when, offset)
		}
	}
}

// TestFailingDisk lets each operation of a compaction fail once. The log either goes on as it was, or is poisoned and says so;
// a start then finds everything.
func TestFailingDisk(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 1; ; n++ {
			w, disk, o := prepared(t, uint64(n%4), true)
			count, failed := 0, ""
			disk.OnOperation(func(op vfs.Operation) error {
				if op.Kind.Changes() || op.Kind == vfs.OpRead && errors.Is(fault, syscall.EIO) {
					if count++; count == n {
						failed = op.String()
						return fault
					}
				}
				return nil
			})
			_, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
			disk.OnOperation(nil)
			if failed == "" {
				must(t, err)
				if n < 25 {
					t.Errorf("only %d operations", n)
				}
				break
			}
			when := fmt.Sprintf("%v at %s", fault, failed)
			// An index that cannot be read costs time only; what is to be deleted and finds no room for its longer name goes at once; and
			// what counts already gets its final name later.
			harmless := strings.Contains(failed, " read ") ||
				errors.Is(fault, syscall.ENOSPC) && (strings.HasSuffix(failed, segment.DeletedSuffix) || strings.Contains(failed, segment.SwapSuffix+" -> "))
			if err == nil && !harmless {
				t.Fatalf("%s: nobody noticed", when)
			}
			if w.log.Failed() == nil {
				w.owed(w.log, when)
				w.grow() // it is as it was
				must(t, w.log.Flush(w.now))
				must(t, w.log.Maintain(w.now).Err)
				if _, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool); err != nil {
					t.Fatalf("%s: then %v", when, err)
				}
			}
			durable := w.log.View().DurableEnd
			w.recovers(disk.Kill(), o, log.OpenState{RecoveryPoint: durable, Trust: log.SameBoot, Now: w.now}, when+" killed")
			w.recovers(disk.Crash(), o, log.OpenState{RecoveryPoint: durable, Trust: log.OtherBoot, Now: w.now}, when+" crashed")
		}
	}
}

// TestPowerCutOfWhatWasNotFlushed compacts segments that were never synced: what was put in their place is durable.
func TestPowerCutOfWhatWasNotFlushed(t *testing.T) {
	for seed := range uint64(4) {
		w, disk, o := prepared(t, seed, false)
		end, _, err := Compact(w.now, w.log, 0, DefaultSettings(), testPool)
		must(t, err)
		disk.CrashStates(func(state string, left *vfs.Mem) {
			l, recovery, err := log.Open(testEnv(left), testDir, testTP, o, log.OpenState{Trust: log.OtherBoot, Now: w.now})
			if err != nil {
				t.Fatalf("%s: %v (%+v)", state, err, recovery)
			}
			defer func() { _, _ = l.Close(w.now, false) }()
			l.SetHighWatermark(l.View().LogEndOffset)
			w.owed(l, state)
			if l.View().LogEndOffset < end {
				t.Fatalf("%s: the log ends at %d, compacted up to %d", state, l.View().LogEndOffset, end)
			}
		})
	}
}
