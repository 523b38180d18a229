package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"ottla/compat/bench/latency"
	"ottla/compat/powercut"
)

// flushLoad is the price of flush.messages=1: producers that each wait for one acknowledgement before the next record, with
// every record on the disk before it is acknowledged. The disk is a file system of its own in a file, whose journal nobody
// else writes.
type flushLoad struct {
	fs         string // ext4 or xfs
	partitions int    // the producers spread over
	producers  int
	requests   int // of each producer
	synced     bool

	disks map[*server]*powercut.Disk
	nodes []*server
}

// flushLines are the loads that flush before they acknowledge, and one that does not, for the price.
func flushLines(s settings) []*line {
	const producers = 16
	requests := 400
	kinds := []string{"ext4", "xfs"}
	if s.quick {
		requests, kinds = 100, kinds[:1]
	}
	var all []*line
	for _, kind := range kinds {
		for _, partitions := range []int{1, producers} {
			name := fmt.Sprintf("flush.messages=1, %s, 16 producers, %d part.", kind, partitions)
			all = append(all, (&flushLoad{fs: kind, partitions: partitions, producers: producers, requests: requests, synced: true}).line(name))
		}
	}
	return append(all, (&flushLoad{fs: kinds[0], partitions: 1, producers: producers, requests: requests}).line("the same on "+kinds[0]+" without flush, 1 part."))
}

func (f *flushLoad) line(name string) *line {
	f.disks = map[*server]*powercut.Disk{}
	return &line{name: name, alone: true, prepare: f.prepare, round: f.round, end: f.end}
}

// prepare starts a server on a disk of its own.
func (f *flushLoad) prepare(ctx context.Context, s *server) error {
	dir, err := os.MkdirTemp("", "ottla-flush-")
	if err != nil {
		return err
	}
	disk, err := powercut.NewDisk(f.fs, dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotServed, errors.Join(err, os.RemoveAll(dir)))
	}
	f.disks[s] = disk
	more := map[string]string{}
	if f.synced {
		more["log.flush.interval.messages"] = "1"
	}
	fresh, err := newServer(s.Kind(), filepath.Join(disk.Mount, strconv.Itoa(len(f.nodes))), more)
	if err != nil {
		return err
	}
	if _, err := fresh.node.Start(ctx); err != nil {
		return err
	}
	f.nodes = append(f.nodes, fresh)
	*s = *fresh
	_, err = f.round(ctx, s) // not measured: the code of the one server is compiled while it runs
	return err
}

func (f *flushLoad) end() error {
	var errs []error
	for _, node := range f.nodes {
		node.close()
	}
	for _, disk := range f.disks {
		errs = append(errs, disk.Close(), os.RemoveAll(filepath.Dir(disk.Mount)))
	}
	return errors.Join(errs...)
}

func (f *flushLoad) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, f.partitions)
	if err != nil {
		return nil, err
	}
	const recordBytes = 1100
	batch := newBatch(1, recordBytes)
	var all []*produceConn
	for i := range f.producers {
		c, err := openProduce(ctx, s.leader(topic, i%f.partitions), newProduceFrame(topic, int32(i%f.partitions), batch), false)
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
			group.Go(func() { errs[i] = c.pipeline(f.requests, 1, latencies) })
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
	requests := float64(f.producers * f.requests)
	return append(throughput(requests, requests*recordBytes, true, used), quantiles(latencies)...), nil
}
