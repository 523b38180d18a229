package simcluster

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/protocol/wire"
)

// poison makes who looks at a frame that he let go see it at once, in all runs.
var poison = sync.OnceFunc(func() { wire.PoisonFrames(true) })

func run(seed uint64) (seeded.Result, Counts) {
	poison()
	s := New(seed, nil)
	counts, result := s.Run(), s.Result(seed)
	if result.Failure != nil {
		result.Failure = fmt.Errorf("%s: %w", s.plan.kind, result.Failure)
	}
	return result, counts
}

// TestSeeds runs seeds; seeded.Seeds says which.
func TestSeeds(t *testing.T) { seeded.Seeds(t, 40, run, (*Counts).add) }

// found are seeds that have found something in the code: they stay, beside those of TestSeeds. A seed means another run once a
// choice is added; what each has found is in a story of its own package as well.
var found = []uint64{658}

func TestFound(t *testing.T) {
	for _, seed := range found {
		if result, _ := run(seed); result.Failure != nil {
			t.Errorf("seed %d after %d events: %v", seed, result.Events, result.Failure)
		}
	}
}

// TestReplay: the same seed gives the same run.
func TestReplay(t *testing.T) {
	seeded.Replay(t, 1, 5, func(seed uint64) seeded.Result {
		result, _ := run(seed)
		return result
	})
}

// TestSeed prints the run of one seed.
func TestSeed(t *testing.T) {
	poison()
	var lines io.Writer
	if os.Getenv("OTTLA_SIM_SEED") != "" {
		lines = os.Stdout
	}
	s := New(uint64(seeded.Env(t, "OTTLA_SIM_SEED", 1)), lines)
	t.Logf("%+v", s.plan)
	counts := s.Run()
	t.Logf("%+v", counts)
	if s.Failure != nil {
		t.Fatal(s.Failure)
	}
}

func (c *Counts) add(other Counts) {
	c.Events += other.Events
	c.Kills += other.Kills
	c.PowerCuts += other.PowerCuts
	c.Wipes += other.Wipes
	c.Stops += other.Stops
	c.Pauses += other.Pauses
	c.Cuts += other.Cuts
	c.Elections += other.Elections
	c.Unclean += other.Unclean
	c.Acknowledged += other.Acknowledged
	c.Truncations += other.Truncations
	c.Deletes += other.Deletes
	c.Reassigned += other.Reassigned
	c.MidOperation += other.MidOperation
}
