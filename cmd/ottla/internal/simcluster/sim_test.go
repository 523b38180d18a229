package simcluster

import (
	"io"
	"os"
	"strconv"
	"testing"
)

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSeeds runs OTTLA_SIM_SEEDS seeds from OTTLA_SIM_FIRST on.
func TestSeeds(t *testing.T) {
	first, count := number(t, "OTTLA_SIM_FIRST", 1), number(t, "OTTLA_SIM_SEEDS", 40)
	var sum Counts
	for seed := first; seed < first+count; seed++ {
		s := New(seed, nil)
		counts, violation := s.Run()
		if violation != "" {
			t.Fatalf("seed %d after %d events (%s): %s", seed, counts.Events, s.plan.kind, violation)
		}
		sum.add(counts)
		if done := seed - first + 1; done%500 == 0 && done < count {
			t.Logf("%d seeds so far", done)
		}
	}
	t.Logf("%d seeds: %+v", count, sum)
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

// TestReplay: the same seed gives the same run.
func TestReplay(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		one, two := New(seed, nil), New(seed, nil)
		one.Run()
		two.Run()
		if one.Hash() != two.Hash() || one.Count != two.Count {
			t.Errorf("seed %d: %d events, then %d", seed, one.Count, two.Count)
		}
	}
}

// TestSeed prints the run of one seed.
func TestSeed(t *testing.T) {
	var lines io.Writer
	if os.Getenv("OTTLA_SIM_SEED") != "" {
		lines = os.Stdout
	}
	s := New(number(t, "OTTLA_SIM_SEED", 1), lines)
	t.Logf("%+v", s.plan)
	counts, violation := s.Run()
	t.Logf("%+v", counts)
	if violation != "" {
		t.Fatal(violation)
	}
}
