package sim

import (
	"os"
	"testing"

	"ottla/cmd/ottla/internal/seeded"
)

// TestSeed runs the one seed of OTTLA_SIM_SEED and prints one line an event.
func TestSeed(t *testing.T) {
	seed := seeded.Env(t, "OTTLA_SIM_SEED", -1)
	o := Options{Seed: 1}
	if seed >= 0 {
		o = Options{Seed: uint64(seed), Trace: os.Stdout}
	}
	result := Run(o)
	if result.Failure != nil {
		t.Fatalf("seed %d: %v", o.Seed, result.Failure)
	}
	t.Logf("seed %d: %d events, %v, hash %016x, %+v", o.Seed, result.Events, result.Virtual, result.Hash, result.Counts)
}

// TestSeeds runs seeds; seeded.Seeds says which.
func TestSeeds(t *testing.T) {
	seeded.Seeds(t, 20, func(seed uint64) (seeded.Result, Counts) {
		result := Run(Options{Seed: seed})
		return result.Result, result.Counts
	}, (*Counts).Add)
}

// TestReplay runs seeds twice: the traces are the same, bit for bit.
func TestReplay(t *testing.T) {
	seeded.Replay(t, 1000, 5, func(seed uint64) seeded.Result { return Run(Options{Seed: seed}).Result })
}
