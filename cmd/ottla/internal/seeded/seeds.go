package seeded

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Result is what became of a seed.
type Result struct {
	Seed    uint64
	Failure error         // nil: every invariant held
	Hash    uint64        // of all that has happened
	Events  int           // that were run
	Virtual time.Duration // that passed
}

// Env is the number that the environment has under a name.
func Env(t *testing.T, name string, otherwise int) int {
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

// Seeds runs OTTLA_SIM_SEEDS seeds (or otherwise so many) from OTTLA_SIM_FIRST on, as many at a time as there are processors:
// each is a world of its own. C counts what has happened, and add sums it. The first failure ends it, unless OTTLA_SIM_ALL is 1.
func Seeds[C any](t *testing.T, otherwise int, run func(seed uint64) (Result, C), add func(sum *C, one C)) {
	t.Helper()
	first, count, all := Env(t, "OTTLA_SIM_FIRST", 1), Env(t, "OTTLA_SIM_SEEDS", otherwise), Env(t, "OTTLA_SIM_ALL", 0) == 1
	var (
		next    atomic.Int64
		mu      sync.Mutex
		total   C
		events  int
		virtual time.Duration
		ran     int
		failed  bool
	)
	take := func(t *testing.T, result Result, counts C) (goOn bool) {
		mu.Lock()
		defer mu.Unlock()
		add(&total, counts)
		events, virtual, ran = events+result.Events, virtual+result.Virtual, ran+1
		if result.Failure != nil && (all || !failed) {
			failed = true
			t.Errorf("seed %d after %d events and %v: %v\nOTTLA_SIM_SEED=%d with -run TestSeed$ -v shows it",
				result.Seed, result.Events, result.Virtual, result.Failure, result.Seed)
		}
		if ran%200 == 0 || ran == count {
			t.Logf("%d seeds, %d events, %v of their time; %+v", ran, events, virtual.Round(time.Second), total)
		}
		return all || !failed
	}
	for range min(runtime.GOMAXPROCS(0), count) {
		t.Run("side by side", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				if result, counts := run(uint64(int64(first) + i)); !take(t, result, counts) {
					return
				}
			}
		})
	}
}

// Replay runs OTTLA_SIM_REPLAYS seeds (or otherwise so many) from first on, each twice: it is the same run, bit for bit.
func Replay(t *testing.T, first uint64, otherwise int, run func(seed uint64) Result) {
	t.Helper()
	for i := range uint64(Env(t, "OTTLA_SIM_REPLAYS", otherwise)) {
		one, two := run(first+i), run(first+i)
		if one.Hash != two.Hash || one.Events != two.Events {
			t.Errorf("seed %d: hash %016x after %d events, and then %016x after %d", first+i, one.Hash, one.Events, two.Hash, two.Events)
		}
	}
}
