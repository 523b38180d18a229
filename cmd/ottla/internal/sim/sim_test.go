package sim

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

func env(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSeed runs the one seed of OTTLA_SIM_SEED and prints one line an event.
func TestSeed(t *testing.T) {
	seed := env(t, "OTTLA_SIM_SEED", -1)
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

// TestSeeds runs OTTLA_SIM_SEEDS seeds from OTTLA_SIM_FIRST on, as many at a time as there are processors: each is a world of its own.
func TestSeeds(t *testing.T) {
	first, count := env(t, "OTTLA_SIM_FIRST", 1), env(t, "OTTLA_SIM_SEEDS", 20)
	results, stop := make(chan Result), make(chan struct{})
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), count) {
		go func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				select {
				case results <- Run(Options{Seed: uint64(int64(first) + i)}):
				case <-stop:
					return
				}
			}
		}()
	}
	defer close(stop)
	var total Counts
	var events int
	var virtual time.Duration
	began, told := time.Now(), time.Now()
	for i := range count {
		result := <-results
		if result.Failure != nil {
			t.Errorf("seed %d after %d events and %v: %v\nto see it:\n  OTTLA_SIM_SEED=%d go test -run TestSeed$ ./cmd/ottla/internal/sim -v",
				result.Seed, result.Events, result.Virtual, result.Failure, result.Seed)
			if env(t, "OTTLA_SIM_ALL", 0) == 0 {
				return
			}
		}
		total.Add(result.Counts)
		events, virtual = events+result.Events, virtual+result.Virtual
		if time.Since(told) > 10*time.Second || i == count-1 {
			told = time.Now()
			seconds := time.Since(began).Seconds()
			t.Logf("%d seeds, %.2f seeds/s, %d events, %.0f events/s, %.0f times real time; %+v",
				i+1, float64(i+1)/seconds, events, float64(events)/seconds, virtual.Seconds()/seconds, total)
		}
	}
}

// TestReplay runs seeds twice: the traces are the same, bit for bit.
func TestReplay(t *testing.T) {
	for seed := range uint64(env(t, "OTTLA_SIM_REPLAYS", 5)) {
		first, second := Run(Options{Seed: 1000 + seed}), Run(Options{Seed: 1000 + seed})
		if first.Hash != second.Hash || first.Events != second.Events {
			t.Errorf("seed %d: hash %016x after %d events, and then %016x after %d", 1000+seed, first.Hash, first.Events, second.Hash, second.Events)
		}
	}
}
