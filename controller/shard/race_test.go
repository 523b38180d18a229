package shard

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ottla/protocol"
)

// TestManyGoroutines: requests from everywhere while leadership comes and goes
// and time passes. Each is answered once, in an order that its own client can
// rely on, and what was acknowledged is there.
func TestManyGoroutines(t *testing.T) {
	const (
		clients  = 12
		requests = 300
		shards   = 4
	)
	var tasks sync.WaitGroup
	r := newRig(t, func(o *Options) {
		o.LoadBytes = 5000
		o.Workers = func(task func()) { tasks.Go(task) }
	})
	var clock atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(clock.Add(1)) * time.Millisecond) }
	epochs := [shards]protocol.LeaderEpoch{}
	elect := func(p int32) {
		epochs[p]++
		r.role(p, 1, epochs[p], int32(epochs[p]), []protocol.NodeID{1}, 1)
		r.shards.Load(now(), p, epochs[p])
	}
	for p := range int32(shards) {
		elect(p)
	}
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() { // the node's pump, and the controller
		random := rand.New(rand.NewPCG(1, 1))
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r.shards.Tick(now())
			if i%200 == 199 {
				p := int32(random.IntN(shards))
				if random.IntN(2) == 0 {
					r.shards.Unload(now(), p, epochs[p])
				}
				elect(p)
			}
			r.shards.Broadcast(now(), put{"event", "x"})
			r.shards.Counts()
		}
	})
	var acknowledged [shards][clients]int
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 2))
			key := fmt.Sprint("client-", c)
			for range requests {
				p := int32(random.IntN(shards))
				answers := make(chan int, 2)
				var request any = add{key}
				if random.IntN(10) == 0 {
					request = wait{key} // answered by the add behind it, or by an unload
				}
				r.shards.Submit(now(), p, request, func(reply any, err error) {
					n, _ := reply.(int)
					answers <- n
				})
				if _, parked := request.(wait); parked {
					r.shards.Submit(now(), p, put{key, fmt.Sprint(acknowledged[p][c])}, func(any, error) {})
					<-answers
					continue
				}
				if n := <-answers; n > 0 {
					if n <= acknowledged[p][c] {
						t.Errorf("partition %d: %d was acknowledged after %d", p, n, acknowledged[p][c])
					}
					acknowledged[p][c] = n
				}
				if len(answers) > 0 {
					t.Error("a second answer")
				}
			}
		})
	}
	running.Wait()
	close(stop)
	others.Wait()
	total := 0
	for p := range int32(shards) {
		elect(p)
		for ; ; r.shards.Tick(now()) {
			if _, active, _ := r.shards.Counts(); active == shards {
				break
			}
		}
		for c := range clients {
			answer := make(chan any, 1)
			r.shards.Submit(now(), p, get{fmt.Sprint("client-", c)}, func(reply any, err error) { answer <- reply })
			if n, _ := strconv.Atoi(fmt.Sprint(<-answer)); n < acknowledged[p][c] {
				t.Errorf("partition %d, client %d: %d, acknowledged was %d", p, c, n, acknowledged[p][c])
			}
			total += acknowledged[p][c]
		}
	}
	if total == 0 {
		t.Error("nothing was ever acknowledged")
	}
	r.shards.Close(now())
	tasks.Wait()
}

// TestIdleShards: a thousand shards cost nothing when nothing is due, and a tick
// touches only those that are.
func TestIdleShards(t *testing.T) {
	r := newRig(t)
	for p := range int32(1000) {
		r.leadActive(p, 1)
	}
	r.ask(500, alarm{time.Second}).is("set")
	if due := r.shards.NextDeadline(); !due.Equal(r.now.Add(time.Second)) {
		t.Fatalf("due at %v", due)
	}
	calls := func() (n int) {
		for p := range int32(1000) {
			n += r.toy(p).deadlineCalls
		}
		return n
	}
	before := calls()
	if allocations := testing.AllocsPerRun(100, func() {
		r.shards.NextDeadline()
		r.shards.Tick(r.now)
	}); allocations != 0 {
		t.Errorf("a tick with nothing due allocates %v times", allocations)
	}
	if more := calls() - before; more != 0 {
		t.Errorf("a tick with nothing due asked %d machines", more)
	}
	r.advance(time.Second)
	if more := calls() - before; more > 8 {
		t.Errorf("a tick with one shard due asked machines %d times", more)
	}
	if due := r.shards.NextDeadline(); !due.IsZero() {
		t.Errorf("due at %v", due)
	}
}

// TestWake: who waits for NextDeadline learns that it came nearer.
func TestWake(t *testing.T) {
	r := newRig(t)
	r.leadActive(0, 1)
	r.leadActive(1, 1)
	for _, step := range []struct {
		p     int32
		after time.Duration
		woken bool
	}{{0, 10 * time.Second, true}, {1, 20 * time.Second, false}, {1, 5 * time.Second, true}, {0, 6 * time.Second, false}} {
		before := r.wakes
		r.ask(step.p, alarm{step.after}).is("set")
		if woken := r.wakes > before; woken != step.woken {
			t.Errorf("alarm after %v: woken %v", step.after, woken)
		}
	}
	if due := r.shards.NextDeadline(); !due.Equal(r.now.Add(5 * time.Second)) {
		t.Errorf("due at %v", due)
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, request := range []any{put{"key", "a value of some bytes"}, get{"key"}} {
		b.Run(fmt.Sprintf("%T", request), func(b *testing.B) {
			r := newRig(b)
			r.leadActive(0, 1)
			b.ReportAllocs()
			for b.Loop() {
				r.shards.Submit(r.now, 0, request, func(any, error) {})
			}
		})
	}
}

// BenchmarkSubmitParallel: group commit among many clients of one shard.
func BenchmarkSubmitParallel(b *testing.B) {
	r := newRig(b)
	r.leadActive(0, 1)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(each *testing.PB) {
		answered := make(chan struct{}, 1)
		for each.Next() {
			r.shards.Submit(r.now, 0, put{"key", "a value of some bytes"}, func(any, error) { answered <- struct{}{} })
			<-answered
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(len(r.batches(0))), "requests/batch")
}

func BenchmarkLoad(b *testing.B) {
	r := newRig(b)
	r.leadActive(0, 1)
	for range 100 {
		r.ask(0, many{1000, 100})
	}
	epoch := protocol.LeaderEpoch(1)
	b.ReportAllocs()
	for b.Loop() {
		epoch++
		r.leadActive(0, epoch)
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "records/s")
}
