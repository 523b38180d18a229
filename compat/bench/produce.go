package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ottla/compat/bench/latency"
)

// produceLoad is a fixed number of produce requests over some connections, each with a partition of its own and so many
// requests under way.
type produceLoad struct {
	connections int
	requests    int // on each connection
	records     int // in each request
	batchBytes  int
	window      int
	idempotent  bool
	small       bool // tell requests rather than bytes
}

func (p produceLoad) line(name string) *line { return &line{name: name, round: p.round} }

func (p produceLoad) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, p.connections)
	if err != nil {
		return nil, err
	}
	batch := newBatch(p.records, p.batchBytes)
	var all []*produceConn
	for i := range p.connections {
		c, err := openProduce(ctx, s.leader(topic, i), newProduceFrame(topic, int32(i), batch), p.idempotent)
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close() }()
		all = append(all, c)
	}
	latencies := &latency.Histogram{}
	used, err := s.during(func() error {
		var group sync.WaitGroup
		errs := make([]error, len(all))
		for i, c := range all {
			group.Go(func() { errs[i] = c.pipeline(p.requests, p.window, latencies) })
		}
		group.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	if err := s.ref.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	requests := float64(p.connections * p.requests)
	out := throughput(requests, requests*float64(p.batchBytes), p.small, used)
	return append(append(out, quantiles(latencies)...), used.peak()), nil
}

// throughput tells speed and the broker's processor time, by bytes or by requests.
func throughput(requests, bytes float64, small bool, used usage) figures {
	if small {
		return figures{
			{name: "requests/s", value: requests / used.wall.Seconds(), higher: true},
			{name: "CPU us/request", value: used.cpuSeconds / requests * 1e6},
		}
	}
	return figures{
		{name: "MB/s", value: bytes / 1e6 / used.wall.Seconds(), higher: true},
		{name: "CPU s/GB", value: used.cpuSeconds / (bytes / 1e9)},
	}
}

// produceConn sends one frame again and again.
type produceConn struct {
	*conn
	frame      *produceFrame
	idempotent bool
	sent       uint32 // records
}

func openProduce(ctx context.Context, addr string, frame *produceFrame, idempotent bool) (*produceConn, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	p := &produceConn{conn: c, frame: frame, idempotent: idempotent}
	if idempotent {
		id, epoch, err := c.producerID()
		if err != nil {
			return nil, err
		}
		frame.idempotent(id, epoch)
	}
	return p, nil
}

// send writes one request. When it returns, the frame is the kernel's.
func (p *produceConn) send() error {
	if p.idempotent {
		p.frame.sequence(p.sent)
		p.sent += p.frame.records
	}
	_, err := p.Write(p.frame.bytes)
	return err
}

// pipeline sends requests, at most window of them unanswered.
func (p *produceConn) pipeline(requests, window int, latencies *latency.Histogram) error {
	sent := make(chan time.Time, window)
	places := make(chan struct{}, window)
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for range requests {
				answer, err := p.read()
				if err != nil {
					return err
				}
				latencies.Add(time.Since(<-sent))
				<-places
				if err := p.frame.acknowledged(answer); err != nil {
					return err
				}
			}
			return nil
		}()
		_ = p.CloseWrite() // a sender that still writes ends
	}()
	for range requests {
		select {
		case places <- struct{}{}:
		case err := <-failed:
			return fmt.Errorf("produce: %w", err)
		}
		sent <- time.Now()
		if err := p.send(); err != nil {
			return fmt.Errorf("produce: %w", errors.Join(err, <-failed))
		}
	}
	return <-failed
}
