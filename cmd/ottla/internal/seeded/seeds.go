package seeded

import (
	"os"
	"runtime"
	"strconv"
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
	first, count := Env(t, "OTTLA_SIM_FIRST", 1), Env(t, "OTTLA_SIM_SEEDS", otherwise)
	type outcome struct {
		Result
		counts C
	}
	results, stop := make(chan outcome), make(chan struct{})
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), count) {
		go func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				result, counts := run(uint64(int64(first) + i))
				select {
				case results <- outcome{result, counts}:
				case <-stop:
					return
				}
			}
		}()
	}
	defer close(stop)
	var total C
	var events int
	var virtual time.Duration
	began, told := time.Now(), time.Now()
	for i := range count {
		result := <-results
		if result.Failure != nil {
			t.Errorf("seed %d after %d events and %v: %v\nOTTLA_SIM_SEED=%d with -run TestSeed$ -v shows it",
				result.Seed, result.Events, result.Virtual, result.Failure, result.Seed)
			if Env(t, "OTTLA_SIM_ALL", 0) == 0 {
				return
			}
		}
		add(&total, result.counts)
		events, virtual = events+result.Events, virtual+result.Virtual
		if time.Since(told) > 10*time.Second || i == count-1 {
			told = time.Now()
			seconds := time.Since(began).Seconds()
			t.Logf("%d seeds, %.2f seeds/s, %d events, %.0f events/s, %.0f times real time; %+v",
				i+1, float64(i+1)/seconds, events, float64(events)/seconds, virtual.Seconds()/seconds, total)
		}
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
