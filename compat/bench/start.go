package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// startLine measures the first start on an empty directory, a second start, and the memory when nothing happens.
func startLine(idle time.Duration) *line {
	return &line{name: "start, and memory when idle", alone: true, round: func(ctx context.Context, s *server) (figures, error) {
		s.count++
		fresh, err := newServer(s.Kind(), filepath.Join(s.dir, strconv.Itoa(s.count)), nil)
		if err != nil {
			return nil, err
		}
		s.brokers = fresh.brokers
		defer func() { _ = os.RemoveAll(fresh.dir) }()
		defer fresh.close()
		first, err := fresh.node.Start(ctx)
		if err != nil {
			return nil, err
		}
		cpu, err := fresh.node.ProcessorTime()
		if err != nil {
			return nil, err
		}
		if _, err := fresh.node.Stop(); err != nil {
			return nil, err
		}
		again, err := fresh.node.Start(ctx)
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(idle):
		}
		memory, err := memoryMB(fresh.node.Process().Pid(), "VmRSS:")
		return figures{
			{name: "first start ms", value: float64(first.Milliseconds())},
			{name: "again ms", value: float64(again.Milliseconds())},
			{name: "CPU s of start", value: cpu.Seconds()},
			{name: "idle RSS MB", value: memory},
		}, err
	}}
}
