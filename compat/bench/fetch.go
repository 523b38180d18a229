package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sys/unix"

	"ottla/compat/bench/latency"
)

// fetchVersion is the last that is framed without compact fields.
const fetchVersion = 11

// newFetchFrame frames a Fetch of one partition without a session, and tells where its offset stands.
func newFetchFrame(topic string, partition int32, minBytes, maxBytes, maxWaitMs uint32) (frame []byte, offsetAt int) {
	b := make([]byte, 4, 128)
	b = binary.BigEndian.AppendUint16(b, 1) // Fetch
	b = binary.BigEndian.AppendUint16(b, fetchVersion)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = appendString(b, "bench")
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // a consumer
	b = binary.BigEndian.AppendUint32(b, maxWaitMs)
	b = binary.BigEndian.AppendUint32(b, minBytes)
	b = binary.BigEndian.AppendUint32(b, maxBytes)
	b = append(b, 0)                                 // isolation level
	b = binary.BigEndian.AppendUint32(b, 0)          // session
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // session epoch
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendString(b, topic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(partition))
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // current leader epoch
	offsetAt = len(b)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint64(b, 1<<64-1) // log start, of a follower
	b = binary.BigEndian.AppendUint32(b, maxBytes)
	b = binary.BigEndian.AppendUint32(b, 0) // forgotten topics
	b = appendString(b, "")                 // rack
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b, offsetAt
}

// fetchConn reads one partition and throws the records away.
type fetchConn struct {
	*conn
	raw      syscall.RawConn
	frame    []byte
	offsetAt int
	fixed    int // bytes of the response before the aborted transactions, its length included
}

func openFetch(ctx context.Context, addr, topic string, partition int32, minBytes, maxBytes, maxWaitMs uint32) (*fetchConn, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	f := &fetchConn{conn: c, fixed: 4 + 4 + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8 + 8}
	f.frame, f.offsetAt = newFetchFrame(topic, partition, minBytes, maxBytes, maxWaitMs)
	f.raw, err = c.SyscallConn()
	return f, err
}

// fetch asks from an offset on and gives how many record bytes came.
func (f *fetchConn) fetch(offset int64) (recordBytes int, err error) {
	binary.BigEndian.PutUint64(f.frame[f.offsetAt:], uint64(offset))
	if _, err := f.Write(f.frame); err != nil {
		return 0, err
	}
	// Exactly the fields before the records, and not more: the rest is for the kernel.
	head := make([]byte, f.fixed+12)
	if _, err := io.ReadFull(f.TCPConn, head); err != nil {
		return 0, err
	}
	if code := int16(binary.BigEndian.Uint16(head[f.fixed-26:])); code != 0 {
		return 0, kerr.ErrorForCode(code)
	}
	if aborted := int32(binary.BigEndian.Uint32(head[f.fixed:])); aborted > 0 {
		return 0, fmt.Errorf("%d aborted transactions", aborted)
	}
	size := int(int32(binary.BigEndian.Uint32(head[f.fixed+8:])))
	return size, f.discard(size)
}

// discard lets the kernel drop n bytes without copying them (MSG_TRUNC, tcp(7)).
func (f *fetchConn) discard(n int) error {
	var buffer [1 << 16]byte
	for n > 0 {
		var got int
		var failed error
		err := f.raw.Read(func(fd uintptr) bool {
			for n > 0 {
				got, _, failed = unix.Recvfrom(int(fd), buffer[:min(n, len(buffer))], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
				if errors.Is(failed, unix.EAGAIN) {
					failed = nil
					return false
				}
				if failed != nil || got == 0 {
					return true
				}
				n -= got
			}
			return true
		})
		switch {
		case err != nil:
			return err
		case failed != nil:
			return failed
		case n > 0 && got == 0:
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// catchUp reads what was written before, from the page cache.
type catchUp struct {
	connections int
	batches     int // in each partition
	passes      int // over each partition in a round
	topics      map[string]string
}

const (
	storedBatchBytes   = 64 << 10
	storedBatchRecords = 64
	fetchBytes         = 1 << 20
)

func (c *catchUp) line(name string) *line {
	return &line{name: name, prepare: c.prepare, round: c.round}
}

func (c *catchUp) prepare(ctx context.Context, s *server) error {
	topic, err := s.topic(ctx, c.connections)
	if err != nil {
		return err
	}
	c.topics[s.Addr()] = topic
	for p := range c.connections {
		conn, err := openProduce(ctx, s.leader(topic, p), newProduceFrame(topic, int32(p), newBatch(storedBatchRecords, storedBatchBytes)), false)
		if err != nil {
			return err
		}
		if err := conn.pipeline(c.batches, 5, &latency.Histogram{}); err != nil {
			return err
		}
		_ = conn.Close()
	}
	return nil
}

func (c *catchUp) round(ctx context.Context, s *server) (figures, error) {
	var all []*fetchConn
	topic := c.topics[s.Addr()]
	for p := range c.connections {
		f, err := openFetch(ctx, s.leader(topic, p), topic, int32(p), 1, fetchBytes, 500)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		all = append(all, f)
	}
	latencies := &latency.Histogram{}
	used, err := s.during(func() error {
		var group sync.WaitGroup
		errs := make([]error, len(all))
		for i, f := range all {
			group.Go(func() {
				for range c.passes {
					errs[i] = errors.Join(errs[i], c.pass(f, latencies))
				}
			})
		}
		group.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	bytes := float64(c.connections*c.passes*c.batches) * storedBatchBytes
	return append(append(throughput(0, bytes, false, used), quantiles(latencies)...), used.peak()), nil
}

// pass reads a partition once. A batch of which only a part came is asked for again.
func (c *catchUp) pass(f *fetchConn, latencies *latency.Histogram) error {
	for batch := 0; batch < c.batches; {
		begin := time.Now()
		size, err := f.fetch(int64(batch * storedBatchRecords))
		if err != nil {
			return err
		}
		latencies.Add(time.Since(begin))
		if size < storedBatchBytes {
			return fmt.Errorf("a fetch of batch %d of %d gave %d bytes", batch, c.batches, size)
		}
		batch += size / storedBatchBytes
	}
	return nil
}

// tail is one consumer that waits for what one producer sends: the latency from when a record was due until it is there.
type tail struct{ rateLoad }

func (t tail) line(name string) *line { return &line{name: name, round: t.round} }

func (t tail) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, 1)
	if err != nil {
		return nil, err
	}
	producer, err := openProduce(ctx, s.leader(topic, 0), newProduceFrame(topic, 0, newBatch(1, t.recordBytes)), t.idempotent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = producer.Close() }()
	consumer, err := openFetch(ctx, s.leader(topic, 0), topic, 0, 1, fetchBytes, 500)
	if err != nil {
		return nil, err
	}
	defer func() { _ = consumer.Close() }()
	total := int(float64(t.perSecond) * t.seconds)
	latencies := &latency.Histogram{}
	used, err := s.during(func() error {
		due := newSchedule(t.perSecond)
		var group sync.WaitGroup
		var errs [3]error
		group.Go(func() { errs[0] = t.consume(consumer, total, due, latencies) })
		group.Go(func() {
			for range total {
				answer, err := producer.read()
				if err == nil {
					err = producer.frame.acknowledged(answer)
				}
				if err != nil {
					errs[1] = err
					return
				}
			}
		})
		errs[2] = due.run(total, func(int) error { return producer.send() })
		group.Wait()
		return errors.Join(errs[:]...)
	})
	if err != nil {
		return nil, err
	}
	if err := s.ref.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	out := figures{{name: "CPU us/record", value: used.cpuSeconds / float64(total) * 1e6}}
	return append(append(out, quantiles(latencies)...), used.peak()), nil
}

func (t tail) consume(f *fetchConn, total int, due schedule, latencies *latency.Histogram) error {
	for offset := 0; offset < total; {
		size, err := f.fetch(int64(offset))
		if err != nil {
			return err
		}
		now := time.Now()
		for range size / t.recordBytes {
			latencies.Add(now.Sub(due.at(offset)))
			offset++
		}
	}
	return nil
}
