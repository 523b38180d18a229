package replica

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

// wait gives an answer that another goroutine makes.
func (p *pending[T]) wait() T {
	p.t.Helper()
	<-p.ready
	return p.get()
}

// numbered makes a batch of one producer whose values say who and how many.
func numbered(producer, number int) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = protocol.ProducerID(producer), 0, int32(number)
	b := record.NewBuilder(o)
	var value [16]byte
	binary.BigEndian.PutUint64(value[:], uint64(producer))
	binary.BigEndian.PutUint64(value[8:], uint64(number))
	b.Append(start.UnixMilli(), nil, value[:], nil)
	return b.Build(nil)
}

// onBothDisks runs a test on the disk in memory and on a real one.
func onBothDisks(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Run("memory", func(t *testing.T) { test(t, newFixture(t)) })
	t.Run("disk", func(t *testing.T) {
		test(t, newFixture(t, func(f *fixture, _ *Options) {
			f.fs, f.mem, f.dirs = vfs.OS(), nil, []string{t.TempDir()}
		}))
	})
}

// TestConcurrentAppendAndFetch: many producers that each send every batch twice,
// and many consumers that wait: everyone sees everything, once, in the order of
// each producer, and nobody sleeps through an append.
func TestConcurrentAppendAndFetch(t *testing.T) {
	onBothDisks(t, func(t *testing.T, f *fixture) {
		const producers, consumers, each = 8, 4, 60
		f.lead(orders, alone(ordersID, 0))
		var wg sync.WaitGroup
		for producer := range producers {
			wg.Go(func() {
				for number := range each {
					first := f.start(request(orders, numbered(producer, number), AcksAll))
					again := f.start(request(orders, numbered(producer, number), AcksAll))
					a, b := first.wait(), again.wait()
					if a.Err != nil || b.Err != nil || a.BaseOffset != b.BaseOffset {
						t.Errorf("producer %d number %d: %+v and %+v", producer, number, a, b)
						return
					}
				}
			})
		}
		for range consumers {
			wg.Go(func() { consumeAll(t, f, producers, each) })
		}
		wg.Wait()
		f.idle()
	})
}

func consumeAll(t *testing.T, f *fixture, producers, each int) {
	next := make([]uint64, producers)
	offset := protocol.Offset(0)
	for offset < protocol.Offset(producers*each) {
		// Nobody ticks: a lost wake-up is a hanging test.
		p, _ := f.poll(consumer(at(orders, offset)))
		results := p.wait()
		if results[0].Err != nil {
			t.Error(results[0].Err)
			return
		}
		for _, b := range batchesOf(t, &results[0]) {
			if b.BaseOffset() != offset {
				t.Errorf("offset %d follows %d", b.BaseOffset(), offset)
				return
			}
			offset = b.NextOffset()
			value := b.Payload()[len(b.Payload())-17:]
			producer, number := binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:])
			if number != next[producer] {
				t.Errorf("producer %d: %d follows %d", producer, number, next[producer])
				return
			}
			next[producer]++
		}
	}
}

// TestNoLostWakeUp races one append against one fetch, many times over.
func TestNoLostWakeUp(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	for i := range 2000 {
		var wg sync.WaitGroup
		wg.Go(func() { f.fill(orders, batch(1, 1)) })
		p, _ := f.poll(consumer(at(bills, 0), at(orders, protocol.Offset(i))))
		results := p.wait()
		if got := sizes(t, results); got != fmt.Sprintf("0 1@%d", i) {
			t.Fatalf("got %s", got)
		}
		wg.Wait()
	}
	f.idle()
}

// TestCancelRaces: cancel, deadline and append at once give one answer.
func TestCancelRaces(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	for i := range 500 {
		var wg sync.WaitGroup
		p, cancel := f.poll(consumer(at(orders, protocol.Offset(i))))
		wg.Go(func() { f.fill(orders, batch(1, 1)) })
		wg.Go(cancel)
		wg.Go(func() { f.manager.Tick(start.Add(time.Second)) })
		results := p.wait()
		release(results)
		wg.Wait()
	}
	f.idle()
}

// TestHandOver: whoever finds the log busy leaves the batch and goes; the holder
// writes all of them at once.
func TestHandOver(t *testing.T) {
	f := newFixture(t, func(_ *fixture, o *Options) { o.QueueBatches = 10 })
	f.lead(orders, alone(ordersID, 0))
	busy, goOn := make(chan struct{}), make(chan struct{})
	var writes atomic.Int64
	f.mem.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".log") && writes.Add(1) == 1 {
			close(busy)
			<-goOn
		}
		return nil
	})
	var wg sync.WaitGroup
	first := newPending[AppendResult](t)
	wg.Go(func() { f.manager.Append(f.now, request(orders, numbered(0, 0), AcksAll), first.done) })
	<-busy
	var later []*pending[AppendResult]
	for i := range 12 {
		p := newPending[AppendResult](t)
		accepted := f.manager.Append(f.now, request(orders, numbered(1+i/2, i%2), AcksAll), p.done)
		if accepted != (i < 10) {
			t.Errorf("batch %d: accepted %v", i, accepted)
		}
		if p.isDone() {
			t.Errorf("batch %d was answered while the log was busy", i)
		}
		later = append(later, p)
	}
	close(goOn)
	wg.Wait()
	f.must(first.get().Err)
	for i, p := range later {
		if got := p.get(); got.Err != nil || got.BaseOffset != protocol.Offset(1+i) {
			t.Errorf("batch %d: %+v", i, got)
		}
	}
	if n := writes.Load(); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

// TestRoleChangesBetweenWriteAndAnswer: the directory fails while a round is
// being written; the epoch it was written in is over.
func TestLeadershipLostDuringAppend(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	r := f.replica(orders)
	f.mem.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpWrite {
			r.offline()
		}
		return nil
	})
	got := f.append(request(orders, batch(1, 1), AcksAll))
	if code(got.Err) != protocol.NotLeaderOrFollower && code(got.Err) != protocol.KafkaStorageError {
		t.Errorf("got %+v", got)
	}
}

// TestTruncationWhileReading: a follower of this leader reads uncommitted
// records while the role changes to and fro and the log is cut. What it gets is
// whole batches of one history or an error, never torn bytes.
func TestTruncationWhileReading(t *testing.T) {
	onBothDisks(t, func(t *testing.T, f *fixture) {
		isr := []protocol.NodeID{1, 2}
		f.lead(orders, among(ordersID, 0, 0, isr, 1, 2))
		r := f.replica(orders)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					req := follower(2, at(orders, 0))
					req.Replica, req.MaxWait = Debugging, 0
					result := f.fetch(req)[0]
					if result.Err == nil {
						for _, b := range batchesOf(t, &result) {
							if err := b.CheckCRC(); err != nil {
								t.Error(err)
							}
						}
					}
				}
			})
		}
		for epoch := protocol.LeaderEpoch(1); epoch < 60; epoch += 2 {
			for range 5 {
				f.append(request(orders, batch(2, 50), AcksLeader))
			}
			f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: epoch, PartitionEpoch: int32(epoch), ISR: isr, Replicas: isr})
			f.truncate(r, 2)
			f.lead(orders, among(ordersID, epoch+1, int32(epoch+1), isr, 1, 2))
		}
		close(stop)
		wg.Wait()
	})
}

// truncate does what a fetcher will do.
func (f *fixture) truncate(r *Replica, offset protocol.Offset) {
	f.t.Helper()
	r.appendMu.Lock()
	f.must(r.log().TruncateTo(offset))
	r.stateMu.Lock()
	s := r.publish(r.core.Truncated(r.ends()), true)
	r.stateMu.Unlock()
	r.appendMu.Unlock()
	r.settle(s)
	r.pump(f.now)
}

// TestRegionsAreReleased: after all kinds of fetches no file is pinned, so the
// cache can close them all.
func TestRegionsAreReleased(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	f.fill(orders, batch(3, 100), batch(3, 100))
	req := consumer(at(orders, 0), at(bills, 0))
	req.MinBytes = 1 << 20
	for range 10 {
		p, cancel := f.poll(req)
		f.fill(bills, batch(1, 100))
		cancel()
		release(p.get())
		p, _ = f.poll(req)
		f.manager.Tick(f.now.Add(time.Second))
		release(p.get())
		failing := consumer(at(orders, 0), at(bills, 1000))
		release(f.fetch(failing))
		release(f.fetch(consumer(at(orders, 0))))
	}
	req = consumer(at(orders, 0))
	req.ReadCommitted = true
	release(f.fetch(req))
	release(f.fetch(follower(7, at(orders, 0)))) // no replica
	f.idle()
	held := f.fetch(consumer(at(orders, 0)))
	if f.closeIdle() == 0 {
		t.Error("a region does not pin its file")
	}
	release(held)
	if n := f.closeIdle(); n != 0 {
		t.Errorf("%d files are still pinned", n)
	}
}

// closeIdle closes what is not pinned and counts what is left open.
func (f *fixture) closeIdle() int {
	f.files.CloseIdle() // what was used since the last time stays open
	f.files.CloseIdle()
	return f.files.Open()
}

// TestStopWhileBusy: appenders and fetchers are answered when the node stops.
func TestStopWhileBusy(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	var wg sync.WaitGroup
	for producer := range 4 {
		wg.Go(func() {
			for number := 0; ; number++ {
				if got := f.start(request(orders, numbered(producer, number), AcksAll)).wait(); got.Err != nil {
					if code(got.Err) != protocol.NotLeaderOrFollower {
						t.Error(got.Err)
					}
					return
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for offset := protocol.Offset(0); ; {
				p, _ := f.poll(consumer(at(orders, offset)))
				result := p.wait()[0]
				if result.Err != nil {
					return
				}
				for _, b := range batchesOf(t, &result) {
					offset = b.NextOffset()
				}
			}
		})
	}
	for f.replica(orders).log().View().LogEndOffset < 100 {
	}
	f.must(f.manager.Close(f.now))
	wg.Wait()
	f.idle()
}

// BenchmarkAppend measures a produce of 1 KB batches by 64 goroutines on one
// partition of a real disk.
func BenchmarkAppend(b *testing.B) {
	cases := []struct {
		name  string
		acks  int16
		flush int64
	}{{"acks=1", AcksLeader, 0}, {"acks=all", AcksAll, 0}, {"flush", AcksAll, 1}}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b, func(f *fixture, _ *Options) {
				f.fs, f.mem, f.dirs = vfs.OS(), nil, []string{b.TempDir()}
				f.options.FlushMessages = c.flush
			})
			f.lead(orders, alone(ordersID, 0))
			template := batch(1, 1000)
			b.SetBytes(int64(len(template)))
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				records := append(record.Batch{}, template...)
				ready := make(chan AppendResult, 1)
				req := request(orders, records, c.acks)
				done := func(result AppendResult) { ready <- result }
				for pb.Next() {
					records.SetBaseOffset(0)
					f.manager.Append(f.now, req, done)
					if result := <-ready; result.Err != nil {
						b.Error(result.Err)
						return
					}
				}
			})
		})
	}
}
