package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ottla/compat/harness"
)

// kind is a kind of fault, done to a machine.
type kind struct {
	name string
	do   func(context.Context, *Machine) error
}

func (s *siege) kinds() []kind {
	all := []kind{
		{"kill -9", s.kill},
		{"SIGTERM", s.terminate},
		{"SIGSTOP", s.suspendOne},
		{"isolation", s.isolate},
		{"one-way cut", s.cutOneWay},
		{"loss", s.lose},
		{"little bandwidth", s.throttle},
		{"power cut", s.cutPower},
		{"full disk", s.fill},
		{"slow disk", s.slowDisk},
		{"failing disk", s.failDisk},
		{"hung disk", s.hang},
	}
	if s.c.Flushed {
		all = append(all, kind{"power cut of all", func(ctx context.Context, _ *Machine) error { return s.cutAll(ctx) }})
	}
	if len(s.c.Controllers) > 1 {
		all = append(all, kind{"kill -9 of a controller", func(ctx context.Context, _ *Machine) error { return s.killController(ctx) }})
	}
	return all
}

func (s *siege) short() time.Duration { return time.Duration(s.random.IntN(3000)) * time.Millisecond }

func (s *siege) kill(ctx context.Context, m *Machine) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := m.Kill(); err != nil {
		return err
	}
	return errors.Join(pause(ctx, s.short()), s.start(ctx, m))
}

func (s *siege) terminate(ctx context.Context, m *Machine) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if _, err := m.Stop(); err != nil {
		if m.Kind == harness.Ottla {
			return err
		}
		s.odd("%v", err) // it has been killed
	}
	return errors.Join(pause(ctx, s.short()), s.start(ctx, m))
}

func (s *siege) killController(ctx context.Context) error {
	c := s.c.Controllers[s.random.IntN(len(s.c.Controllers))]
	if err := c.Kill(); err != nil {
		return err
	}
	return errors.Join(pause(ctx, s.short()), c.Start(ctx))
}

func (s *siege) isolate(ctx context.Context, m *Machine) error {
	return s.under(ctx, m, m.Host().Unplug, 3*time.Second, 12*time.Second, m.Host().Plug)
}

// cutOneWay lets a machine's packets not arrive, or none arrive there: at one other machine, a controller, or all.
func (s *siege) cutOneWay(ctx context.Context, m *Machine) error {
	var far []*harness.Host
	for _, o := range s.others(m) {
		far = append(far, o.Host())
	}
	for _, c := range s.c.Controllers {
		far = append(far, c.Host())
	}
	if n := s.random.IntN(len(far) + 1); n < len(far) {
		far = far[n : n+1]
	}
	away := s.random.IntN(2) == 0
	begin := func() error {
		for _, h := range far {
			from, to := h, m.Host()
			if away {
				from, to = to, from
			}
			if err := s.c.Network.Cut(from, to); err != nil {
				return err
			}
		}
		return nil
	}
	return s.under(ctx, m, begin, 4*time.Second, 15*time.Second, s.c.Network.Heal)
}

func (s *siege) lose(ctx context.Context, m *Machine) error {
	percent := 2 + s.random.IntN(28)
	return s.under(ctx, m, func() error { return s.c.Network.Lose(m.Host(), percent) }, 5*time.Second, 15*time.Second, s.c.Network.Heal)
}

func (s *siege) throttle(ctx context.Context, m *Machine) error {
	rate, delay := 200+s.random.IntN(2000), 50+s.random.IntN(450)
	return s.under(ctx, m, func() error { return m.Host().Throttle(rate, delay) }, 5*time.Second, 15*time.Second, m.Host().Unthrottle)
}

func (s *siege) slowDisk(ctx context.Context, m *Machine) error {
	begin := func() error { return m.Slow.Limit(m.Process().Pid(), 64<<10) }
	return s.under(ctx, m, begin, 5*time.Second, 12*time.Second, m.Slow.Lift)
}

func (s *siege) hang(ctx context.Context, m *Machine) error {
	var thaw func() error
	begin := func() (err error) {
		thaw, err = m.Disk.Freeze()
		return err
	}
	return s.under(ctx, m, begin, 3*time.Second, 14*time.Second, func() error {
		if thaw == nil {
			return nil
		}
		return thaw()
	})
}

// fill leaves no room on a disk.
func (s *siege) fill(ctx context.Context, m *Machine) error {
	path := filepath.Join(m.Disk.Mount, "ballast")
	return s.under(ctx, m, func() error { return takeRoom(path) }, 4*time.Second, 10*time.Second, func() error { return os.Remove(path) })
}

// takeRoom makes a file that takes all that is free.
func takeRoom(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for size, step := int64(0), int64(64<<20); step >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, step); {
		case err == nil:
			size += step
		case errors.Is(err, syscall.ENOSPC):
			step /= 2
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("fill the disk: %w", err)
		}
	}
	return nil
}

// cutPower is a machine that crashes.
func (s *siege) cutPower(ctx context.Context, m *Machine) error {
	return s.alone(ctx, func() error {
		if err := m.Disk.Cut(s.random.IntN(4) == 0); err != nil {
			return err
		}
		if err := endNow(m); err != nil {
			return err
		}
		return errors.Join(pause(ctx, s.short()), s.lostPower(ctx, m))
	})
}

// cutAll takes the power of all brokers at once.
func (s *siege) cutAll(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	for _, m := range s.c.Machines {
		if err := m.Disk.Cut(s.random.IntN(4) == 0); err != nil {
			return err
		}
	}
	for _, m := range s.c.Machines {
		if err := endNow(m); err != nil {
			return err
		}
	}
	started := make(chan error, len(s.c.Machines))
	for _, m := range s.c.Machines {
		wait := s.short()
		go func() { started <- errors.Join(pause(ctx, wait), s.lostPower(ctx, m)) }()
	}
	var err error
	for range s.c.Machines {
		err = errors.Join(err, <-started)
	}
	return err
}

// failDisk is a disk that answers everything with an error. The broker is left to find out; who does not end by it is ended.
func (s *siege) failDisk(ctx context.Context, m *Machine) error {
	return s.alone(ctx, func() error {
		if err := m.Disk.Cut(s.random.IntN(2) == 0); err != nil {
			return err
		}
		select {
		case <-m.Process().Done():
		case <-time.After(20 * time.Second):
			s.odd("%s has not noticed in 20 s that its disk fails", m.Name())
		case <-ctx.Done():
		}
		if err := endNow(m); err != nil {
			return err
		}
		return s.lostPower(ctx, m)
	})
}

// endNow kills a process that may have ended by itself.
func endNow(m *Machine) error {
	if err := m.Process().Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-m.Process().Done()
	return nil
}

// suspendOne suspends a broker until it is in no ISR (or its time is over), and waits until it is back.
func (s *siege) suspendOne(ctx context.Context, m *Machine) error {
	var began time.Time
	var p Paused
	var followed []partition
	begin := func() error {
		before, err := s.partitions(ctx, nil)
		if err == nil {
			followed = slices.DeleteFunc(before, func(x partition) bool { return x.Leader == int32(m.ID) || x.topic != topics[plain].name })
		}
		began = time.Now()
		return m.Pause()
	}
	err := s.under(ctx, m, begin, stepPause, 2*stepPause, func() error {
		for limit := time.Now().Add(20 * time.Second); ; {
			all, err := s.partitions(ctx, nil)
			if err == nil && len(followed) > 0 && p.LeftLeaders == 0 && !inSync(slices.DeleteFunc(slices.Clone(all), notOf(followed)), int32(m.ID)) {
				p.LeftLeaders = time.Since(began)
			}
			if err == nil && len(all) > 0 && !inSync(all, int32(m.ID)) {
				p.Left, p.left = time.Since(began), true
				break
			}
			if time.Now().After(limit) || pause(ctx, stepPause) != nil {
				break
			}
		}
		return m.Resume()
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = append(s.paused, p)
	return nil
}

// notOf tells of a partition that it is not among those.
func notOf(those []partition) func(partition) bool {
	return func(p partition) bool {
		return !slices.ContainsFunc(those, func(o partition) bool { return o.topic == p.topic && o.Partition == p.Partition })
	}
}

func inSync(all []partition, id int32) bool {
	return slices.ContainsFunc(all, func(p partition) bool { return slices.Contains(p.ISR, id) })
}
