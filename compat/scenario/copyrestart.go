package scenario

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// copyRecords is how many records each loop has to copy, ten in a transaction. So many it has copied when the others come, and the
// node goes down.
const (
	copyRecords = 1000
	copyBefore  = 100
)

// copyFlow is a copy loop that goes on while the node restarts. One that gives up is followed by another of the same transactional id,
// as an application would be.
type copyFlow struct {
	on     Restarting
	client suite.Client
	from   string
	to     string
	copied atomic.Int64 // by transactions that the client knows to be committed
	gaveUp atomic.Int64
	stop   chan struct{}
	cancel context.CancelFunc
	ended  chan error
}

func (f *copyFlow) name() string { return f.client.Name() }

func (f *copyFlow) told() string {
	ctx, cancel := context.WithTimeout(context.Background(), toldLimit)
	defer cancel()
	state, partitions, err := f.on.Ref.Transaction(ctx, f.to)
	stable, failed := f.on.Ref.LastStable(ctx, f.to, 0)
	text := fmt.Sprintf("%d records were copied, and %d loops gave up\n%s\n%s\nthe transaction is %s with %v (%v), the last stable offset of the output %d (%v)",
		f.copied.Load(), f.gaveUp.Load(), groupTold(ctx, f.on.Ref, f.from), offsetsTold(ctx, f.on.Ref, f.from, f.from), state, partitions, err, stable, failed)
	if e, ok := f.client.(suite.Explainer); ok {
		text += "\n" + e.Explain()
	}
	return text
}

func (f *copyFlow) drop() { f.cancel() }

// copies has a loop of each client copy, and restarts the node in the middle.
func (r Restart) copies(on Restarting) {
	var flows []*copyFlow
	for _, c := range on.Clients {
		if Partakes(c.Name(), r.Name) {
			flows = append(flows, startCopyFlow(on, r.Name, c))
		}
	}
	all := newCourse(on, flows)
	all.each("before the restart", func(ctx context.Context, f *copyFlow) error {
		return waitFor(ctx, func() (bool, error) { return f.copied.Load() >= copyBefore, nil })
	})
	all.each("the rest of the input", func(ctx context.Context, f *copyFlow) error { return f.feed(ctx, copyBefore, copyRecords) })
	r.restart(on, func() {})
	all.each("after the restart", func(ctx context.Context, f *copyFlow) error {
		var wrong error
		err := waitFor(ctx, func() (bool, error) {
			if found := f.judge(ctx); found == nil || ctx.Err() == nil {
				wrong = found
			}
			return wrong == nil, nil
		})
		if err != nil && wrong != nil {
			return fmt.Errorf("%w: %w", err, wrong)
		}
		return err
	})
	all.each("at the end", func(ctx context.Context, f *copyFlow) error {
		close(f.stop)
		if err := within(ctx, "the copy loop", f.ended); err != nil {
			return err
		}
		return f.judge(ctx)
	})
	all.results(r.Name, func(f *copyFlow) string { return fmt.Sprintf("%d loops gave up", f.gaveUp.Load()) })
}

func startCopyFlow(on Restarting, row string, c suite.Client) *copyFlow {
	f := &copyFlow{
		on: on, client: c, from: row + "-" + c.Name() + "-in", to: row + "-" + c.Name() + "-out",
		stop: make(chan struct{}), ended: make(chan error, 1),
	}
	for _, topic := range []string{f.from, f.to} {
		if err := createAndWait(on.Ctx, on.Ref, topic, 1, nil); err != nil {
			on.Fatal(err)
		}
	}
	if err := f.feed(on.Ctx, 0, copyBefore); err != nil {
		on.Fatal(err)
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(on.Ctx)
	go func() { f.ended <- f.loop(ctx) }()
	return f
}

// feed writes records to the input, which hold their numbers.
func (f *copyFlow) feed(ctx context.Context, from, to int) error {
	var records []suite.Record
	for i := from; i < to; i++ {
		records = append(records, suite.Record{Value: []byte(strconv.Itoa(i))})
	}
	acks, err := f.on.Ref.Produce(ctx, suite.ProduceOptions{Topic: f.from, Idempotent: true}, records)
	for i, ack := range acks {
		if err == nil && ack.Err != "" {
			err = fmt.Errorf("record %d of the input: %s", from+i, ack.Err)
		}
	}
	return err
}

// loop copies until it is told to stop.
func (f *copyFlow) loop(ctx context.Context) error {
	for {
		before := f.copied.Load()
		_, err := f.client.(suite.Copier).CopyInTransactions(ctx, suite.CopyOptions{
			Group: f.from, From: f.from, To: f.to, TransactionalID: f.to, SessionMs: mortalSessionMs, Batch: 10,
			OnCopied: func(n int) { f.copied.Store(before + int64(n)) },
		}, f.stop)
		select {
		case <-f.stop:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond): // of rest, as whoever starts programs again gives
		}
		f.gaveUp.Add(1)
		harness.Progress("the copy loop of %s gave up: %v", f.name(), err)
	}
}

// judge reads the output: each record of the input is there once, and in order; no transaction is open; and that all was read is
// committed.
func (f *copyFlow) judge(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	output, err := f.on.Ref.Consume(ask, suite.ConsumeOptions{Topic: f.to, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true})
	if err != nil {
		return err
	}
	for i, r := range output {
		if string(r.Value) != strconv.Itoa(i) {
			return fmt.Errorf("record %d of the output is %s", i, r.Value)
		}
	}
	if len(output) != copyRecords {
		return fmt.Errorf("%d records are in the output, want %d", len(output), copyRecords)
	}
	end, _, err := f.on.Ref.ListOffset(ask, f.to, 0, suite.Latest)
	if err != nil {
		return err
	}
	stable, err := f.on.Ref.LastStable(ask, f.to, 0)
	if err == nil && stable != end {
		err = fmt.Errorf("the last stable offset is %d, the end %d", stable, end)
	}
	if err != nil {
		return err
	}
	committed, err := f.on.Ref.Committed(ask, f.from, f.from)
	if err == nil && committed[0] != copyRecords {
		err = fmt.Errorf("offset %d is committed, want %d", committed[0], copyRecords)
	}
	return err
}
