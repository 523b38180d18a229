package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ottla/compat/bench/latency"
)

// rateLoad sends single records at a fixed rate, spread over some connections. A record that could not be sent in time is sent as
// soon as it can be, and its latency counts from when it was due.
type rateLoad struct {
	connections int
	perSecond   int
	seconds     float64
	recordBytes int
	idempotent  bool
}

func (r rateLoad) line(name string) *line { return &line{name: name, round: r.round} }

func (r rateLoad) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, r.connections)
	if err != nil {
		return nil, err
	}
	all, err := r.open(ctx, s, topic)
	if err != nil {
		return nil, err
	}
	latencies := &latency.Histogram{}
	total := int(float64(r.perSecond) * r.seconds)
	used, err := s.during(func() error {
		due := newSchedule(r.perSecond)
		var group sync.WaitGroup
		errs := make([]error, len(all)+1)
		for i, c := range all {
			group.Go(func() {
				for n := i; n < total && errs[i] == nil; n += len(all) {
					var answer []byte
					if answer, errs[i] = c.read(); errs[i] == nil {
						latencies.Add(time.Since(due.at(n)))
						errs[i] = c.frame.acknowledged(answer)
					}
				}
			})
		}
		errs[len(all)] = due.run(total, func(n int) error { return all[n%len(all)].send() })
		group.Wait()
		return errors.Join(errs...)
	})
	for _, c := range all {
		_ = c.Close()
	}
	if err != nil {
		return nil, err
	}
	if err := s.ref.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	out := figures{{name: "CPU us/request", value: used.cpuSeconds / float64(total) * 1e6}}
	return append(append(out, quantiles(latencies)...), used.peak()), nil
}

func (r rateLoad) open(ctx context.Context, s *server, topic string) ([]*produceConn, error) {
	var all []*produceConn
	for i := range r.connections {
		c, err := openProduce(ctx, s.leader(topic, i), newProduceFrame(topic, int32(i), newBatch(1, r.recordBytes)), r.idempotent)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// schedule says when each of many things is due.
type schedule struct {
	begin time.Time
	every time.Duration
}

func newSchedule(perSecond int) schedule {
	return schedule{begin: time.Now().Add(time.Millisecond), every: time.Second / time.Duration(perSecond)}
}

func (s schedule) at(n int) time.Time { return s.begin.Add(time.Duration(n) * s.every) }

// run calls do for each number when it is due. The runtime's timers are too coarse for ten thousand a second, so the thread
// itself sleeps.
func (s schedule) run(total int, do func(n int) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // nanoseconds; without it sleeps are 50 us late
	for n := range total {
		for left := time.Until(s.at(n)); left > 0; left = time.Until(s.at(n)) {
			pause := unix.NsecToTimespec(int64(left))
			_ = unix.Nanosleep(&pause, nil) // interrupted: the loop goes on
		}
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}
