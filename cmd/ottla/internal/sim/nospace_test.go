package sim

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ottla/cmd/ottla/internal/seeded"
)

// shortages are how many operations find no room, one after the other.
var shortages = []int{1, 3, 40, 400}

// TestNoSpaceAtEveryWrite: whichever write finds no room, alone or with those that follow it, the process lives, no directory
// goes offline, nothing acknowledged is lost, and all is as usual once there is room. OTTLA_SIM_NOSPACE_SEEDS seeds from
// OTTLA_SIM_FIRST on; of the writes of a run every OTTLA_SIM_NOSPACE_STEP-th is the first to fail. With OTTLA_SIM_NOSPACE_AT, one run
// with OTTLA_SIM_NOSPACE_TIMES failures from that one on is shown.
func TestNoSpaceAtEveryWrite(t *testing.T) {
	first, seeds := seeded.Env(t, "OTTLA_SIM_FIRST", 1), seeded.Env(t, "OTTLA_SIM_NOSPACE_SEEDS", 1)
	if showNoSpace(t, Options{Seed: uint64(first)}) {
		return
	}
	for seed := uint64(first); seed < uint64(first+seeds); seed++ {
		runNoSpace(t, Options{Seed: seed}, seeded.Env(t, "OTTLA_SIM_NOSPACE_STEP", 0), 8, shortages)
	}
}

// TestNoSpaceInScript is the same with the script, which does in few seconds whatever writes: OTTLA_SIM_NOSPACE_STEP=1 lets each of its
// writes find no room, in one run alone and in others with those that follow it.
func TestNoSpaceInScript(t *testing.T) {
	o := Options{Seed: uint64(seeded.Env(t, "OTTLA_SIM_FIRST", 1)), Script: true}
	if showNoSpace(t, o) {
		return
	}
	step := seeded.Env(t, "OTTLA_SIM_NOSPACE_STEP", 0)
	if step == 0 {
		runNoSpace(t, o, 0, 40, shortages)
		return
	}
	for _, times := range shortages {
		runNoSpace(t, o, step, 0, []int{times})
	}
}

// showNoSpace shows one run, if one is asked for.
func showNoSpace(t *testing.T, o Options) bool {
	at := seeded.Env(t, "OTTLA_SIM_NOSPACE_AT", 0)
	if at == 0 {
		return false
	}
	o.NoSpace, o.Trace = &NoSpace{At: at, Times: seeded.Env(t, "OTTLA_SIM_NOSPACE_TIMES", 1)}, os.Stdout
	if result := Run(o); result.Failure != nil {
		t.Fatal(result.Failure)
	}
	return true
}

// runNoSpace counts the operations that may need room, and lets every step-th of them be the first that finds none: step 0 is as many
// as make that number of runs.
func runNoSpace(t *testing.T, o Options, step, runs int, times []int) {
	t.Helper()
	whole := o
	whole.NoSpace = &NoSpace{}
	counted := Run(whole)
	if counted.Failure != nil {
		t.Errorf("seed %d without faults: %v", o.Seed, counted.Failure)
		return
	}
	if step == 0 {
		step = max(1, counted.NeedingRoom/runs)
	}
	var all []int
	for at := 1 + int(o.Seed)%step; at <= counted.NeedingRoom; at += step {
		all = append(all, at)
	}
	var next, faults atomic.Int64
	var workers sync.WaitGroup
	var mu sync.Mutex
	failures := map[int]string{}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := int(next.Add(1) - 1); n < len(all); n = int(next.Add(1) - 1) {
				one := o
				one.NoSpace = &NoSpace{At: all[n], Times: times[n%len(times)]}
				result := Run(one)
				faults.Add(int64(result.Counts.DiskFaults))
				if result.Failure != nil {
					mu.Lock()
					failures[all[n]] = fmt.Sprintf("seed %d, %d operations from the %d-th on find no room: %v", o.Seed, one.NoSpace.Times, all[n], result.Failure)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	for _, at := range all {
		if text := failures[at]; text != "" {
			t.Error(strings.TrimSpace(text))
		}
	}
	if int(faults.Load()) < len(all) {
		t.Errorf("in %d runs only %d operations found no room", len(all), faults.Load())
	}
	t.Logf("seed %d: %d of %d operations, %v at a time: %d operations found no room, %d runs failed", o.Seed, len(all), counted.NeedingRoom, times,
		faults.Load(), len(failures))
}
