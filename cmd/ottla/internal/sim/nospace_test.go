package sim

import (
	"os"
	"testing"
)

// TestNoSpaceAtEveryWrite: whichever write finds no room, alone or with those that follow it, the process lives, no directory
// goes offline, nothing acknowledged is lost, and all is as usual once there is room. OTTLA_SIM_NOSPACE_SEEDS seeds from
// OTTLA_SIM_FIRST on; of the writes of a run every OTTLA_SIM_NOSPACE_STEP-th is the first to fail. With OTTLA_SIM_NOSPACE_AT, one run
// with OTTLA_SIM_NOSPACE_TIMES failures from that one on is shown.
func TestNoSpaceAtEveryWrite(t *testing.T) {
	first, seeds := env(t, "OTTLA_SIM_FIRST", 1), env(t, "OTTLA_SIM_NOSPACE_SEEDS", 1)
	step := env(t, "OTTLA_SIM_NOSPACE_STEP", 0)
	if at := env(t, "OTTLA_SIM_NOSPACE_AT", 0); at > 0 {
		result := Run(Options{Seed: uint64(first), NoSpace: &NoSpace{At: at, Times: env(t, "OTTLA_SIM_NOSPACE_TIMES", 1)}, Trace: os.Stdout})
		t.Fatal(result.Failure)
	}
	runs, faults := 0, 0
	for seed := uint64(first); seed < uint64(first+seeds); seed++ {
		whole := Run(Options{Seed: seed, NoSpace: &NoSpace{}})
		if whole.Failure != nil {
			t.Errorf("seed %d without faults: %v", seed, whole.Failure)
			continue
		}
		each := step
		if each == 0 {
			each = max(1, whole.NeedingRoom/8)
		}
		for at := 1 + int(seed)%each; at <= whole.NeedingRoom; at += each {
			result := Run(Options{Seed: seed, NoSpace: &NoSpace{At: at, Times: []int{1, 3, 40, 400}[runs%4]}})
			runs, faults = runs+1, faults+result.Counts.DiskFaults
			if result.Failure != nil {
				t.Errorf("seed %d, %d operations from the %d-th on find no room: %v", seed, []int{1, 3, 40, 400}[(runs-1)%4], at, result.Failure)
			}
		}
	}
	if faults < runs {
		t.Errorf("in %d runs only %d operations found no room", runs, faults)
	}
	t.Logf("%d runs, %d operations found no room", runs, faults)
}
