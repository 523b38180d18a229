package simbrokers

import (
	"os"
	"testing"

	"ottla/cmd/ottla/internal/seeded"
)

func run(seed uint64) (seeded.Result, Counts) { return Run(seed, nil) }

// TestSeeds runs seeds; seeded.Seeds says which.
func TestSeeds(t *testing.T) { seeded.Seeds(t, 10, run, (*Counts).add) }

// TestReplay: the same seed gives the same run.
func TestReplay(t *testing.T) {
	seeded.Replay(t, 1, 3, func(seed uint64) seeded.Result {
		result, _ := run(seed)
		return result
	})
}

// TestSeed runs the one seed of OTTLA_SIM_SEED and prints one line an event.
func TestSeed(t *testing.T) {
	seed := seeded.Env(t, "OTTLA_SIM_SEED", -1)
	if seed < 0 {
		seed = 1
	}
	lines := os.Stdout
	if os.Getenv("OTTLA_SIM_SEED") == "" {
		lines = nil
	}
	result, counts := run(uint64(seed))
	if lines != nil {
		result, counts = Run(uint64(seed), lines)
	}
	t.Logf("%d events, %+v", result.Events, counts)
	if result.Failure != nil {
		t.Fatal(result.Failure)
	}
}
