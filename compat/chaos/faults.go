package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"ottla/compat/harness"
)

// strike does one fault after the other until the time is over. Each kind comes before
// any comes again.
func (r *run) strike(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.o.Seed, 0))
	kinds := []struct {
		name string
		do   func(context.Context, *rand.Rand) error
	}{
		{"kill -9", func(ctx context.Context, random *rand.Rand) error { return r.restart(ctx, random, true) }},
		{"SIGTERM", func(ctx context.Context, random *rand.Rand) error { return r.restart(ctx, random, false) }},
		{"SIGSTOP", r.suspend},
	}
	if r.o.SlowDisk != nil {
		kinds = append(kinds, struct {
			name string
			do   func(context.Context, *rand.Rand) error
		}{"slow disk", r.slow})
	}
	var order []int
	for end := time.Now().Add(r.o.Duration); time.Now().Before(end); {
		if err := pause(ctx, time.Duration(float64(r.o.Pause)*(0.5+random.Float64()))); err != nil {
			return err
		}
		if len(order) == 0 {
			order = random.Perm(len(kinds))
		}
		kind := kinds[order[0]]
		order = order[1:]
		if err := kind.do(ctx, random); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		r.mu.Lock()
		r.faults[kind.name]++
		r.mu.Unlock()
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (r *run) restart(ctx context.Context, random *rand.Rand, kill bool) error {
	began := time.Now()
	r.incarnation.Add(1)
	if kill {
		if err := r.o.Node.Kill(); err != nil {
			return err
		}
	} else if _, err := r.o.Node.Stop(); err != nil {
		return err
	}
	if err := pause(ctx, time.Duration(random.IntN(500))*time.Millisecond); err != nil {
		return err
	}
	if _, err := r.o.Node.Start(ctx); err != nil {
		return err
	}
	r.incarnation.Add(1)
	r.down += time.Since(began)
	return nil
}

// suspend stops the process for a while, in which its sockets still take bytes.
func (r *run) suspend(ctx context.Context, random *rand.Rand) error {
	began := time.Now()
	process := r.o.Node.Process()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	waited := pause(ctx, time.Duration(500+random.IntN(3000))*time.Millisecond)
	if err := process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	r.down += time.Since(began)
	return waited
}

// slow lets the disk take only 256 KiB a second for a while.
func (r *run) slow(ctx context.Context, random *rand.Rand) error {
	began := time.Now()
	if err := r.o.SlowDisk.Limit(r.o.Node.Process().Pid(), 256<<10); err != nil {
		return err
	}
	harness.Progress("the disk takes 256 KiB a second")
	waited := pause(ctx, time.Duration(1000+random.IntN(3000))*time.Millisecond)
	if err := r.o.SlowDisk.Lift(); err != nil {
		return err
	}
	r.down += time.Since(began)
	return waited
}
