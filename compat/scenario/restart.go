package scenario

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// Restart is a row whose cells run together, since they share the restart of the node.
type Restart struct {
	Name string
	What string
	end  func(*harness.Node) error
	play func(Restart, Restarting)
}

// Restarting is what a Restart runs on.
type Restarting struct {
	testing.TB
	Ctx     context.Context
	Node    *harness.Node
	Clients []suite.Client
	Ref     *franz.Client
	Result  func(client string, err error) // of each client
}

// Restarts are the rows with a restart in the middle of producing and consuming.
func Restarts() []Restart {
	stop := func(n *harness.Node) error {
		_, err := n.Stop()
		return err
	}
	return []Restart{
		{"restart-sigterm", "a clean restart while clients produce and consume: every record once, in order", stop, Restart.streams},
		{"restart-sigkill", "kill -9 and start again, the same", (*harness.Node).Kill, Restart.streams},
		{"group-sigterm", "a clean restart under members of groups: no committed offset is lost or moves back, no record is missed", stop, Restart.groups},
		{"group-sigkill", "kill -9 and start again, the same", (*harness.Node).Kill, Restart.groups},
		{"copy-sigkill", "kill -9 and start again under copy loops in transactions: each record is once in the output, in order", (*harness.Node).Kill, Restart.copies},
	}
}

// Run plays the row with all clients at once and tells each one's result.
func (r Restart) Run(on Restarting) { r.play(r, on) }

// before and after are how many records each client must have acknowledged before the restart and after it.
const (
	before = 200
	after  = 200
)

// flow is one client under way: an endless producer, and a consumer that reads along until a last record.
type flow struct {
	on     Restarting
	client suite.Client
	topic  string
	last   string

	acked    count
	read     count
	stop     chan struct{}
	cancel   context.CancelFunc
	produced chan error
	consumed chan error
	acks     []suite.Ack    // once it has produced
	records  []suite.Record // once it has consumed
}

// count is how far something has come, and when.
type count struct{ n, at atomic.Int64 }

func (c *count) reached(n int) {
	c.n.Store(int64(n))
	c.at.Store(time.Now().UnixMilli())
}

func (c *count) ago() string {
	if at := c.at.Load(); at != 0 {
		return fmt.Sprintf("%.1f s ago", time.Since(time.UnixMilli(at)).Seconds())
	}
	return "never"
}

func (f *flow) name() string { return f.client.Name() }
func (f *flow) drop()        { f.cancel() }

// streams starts the flows of all clients, restarts the node in the middle of them, and judges each.
func (r Restart) streams(on Restarting) {
	var flows []*flow
	for _, c := range on.Clients {
		if Partakes(c.Name(), r.Name) {
			flows = append(flows, startFlow(on, r.Name, c))
		}
	}
	all := newCourse(on, flows)
	all.each("before the restart", func(ctx context.Context, f *flow) error { return f.reach(ctx, before, before/2) })
	r.restart(on, func() {})
	all.each("after the restart", func(ctx context.Context, f *flow) error { return f.more(ctx, after) })
	all.each("at the end", func(ctx context.Context, f *flow) error { return f.finish(ctx) })
	all.each("afterwards", func(ctx context.Context, f *flow) error { return f.judge(ctx) })
	all.results(r.Name, func(f *flow) string {
		return fmt.Sprintf("%d records acknowledged, %d read along", f.acked.n.Load(), f.read.n.Load())
	})
}

func startFlow(on Restarting, name string, c suite.Client) *flow {
	f := &flow{
		on: on, client: c, topic: name + "-" + c.Name(), last: "the last record",
		stop: make(chan struct{}), produced: make(chan error, 1), consumed: make(chan error, 1),
	}
	if err := createAndWait(on.Ctx, on.Ref, f.topic, 1, nil); err != nil {
		on.Fatal(err)
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(on.Ctx)
	go func() {
		var err error
		f.acks, err = c.(suite.Streamer).Stream(ctx, suite.StreamOptions{
			ProduceOptions: suite.ProduceOptions{Topic: f.topic, Acks: "all", Idempotent: true, LingerMs: 1},
			Window:         50, OnAck: f.acked.reached,
		}, f.stop)
		f.produced <- err
	}()
	go func() {
		var err error
		f.records, err = c.Consume(ctx, suite.ConsumeOptions{
			Topic: f.topic, From: map[int32]int64{0: 0}, UntilValue: f.last, Reset: "earliest", OnRecord: f.read.reached,
		})
		f.consumed <- err
	}()
	return f
}

// wait waits until a count is high enough; neither the producer nor the consumer may end meanwhile.
func (f *flow) wait(ctx context.Context, c *count, enough int64, what string) error {
	err := waitFor(ctx, func() (bool, error) {
		select {
		case err := <-f.produced:
			return false, fmt.Errorf("the producer ended: %w", err)
		case err := <-f.consumed:
			return false, fmt.Errorf("the consumer ended: %w", err)
		default:
			return c.n.Load() >= enough, nil
		}
	})
	if err != nil {
		return fmt.Errorf("%d of %d records %s: %w", c.n.Load(), enough, what, err)
	}
	return nil
}

func (f *flow) reach(ctx context.Context, acked, read int64) error {
	if err := f.wait(ctx, &f.acked, acked, "acknowledged"); err != nil {
		return err
	}
	return f.wait(ctx, &f.read, read, "read")
}

// more waits for further acknowledgements beyond those that came up to now.
func (f *flow) more(ctx context.Context, n int64) error {
	return f.wait(ctx, &f.acked, f.acked.n.Load()+n, "acknowledged")
}

// finish stops the producer, writes the last record by the reference, and waits for the consumer to find it.
func (f *flow) finish(ctx context.Context) error {
	close(f.stop)
	if err := within(ctx, "the producer", f.produced); err != nil {
		return err
	}
	_, err := f.on.Ref.Produce(ctx, suite.ProduceOptions{Topic: f.topic}, []suite.Record{{Value: []byte(f.last)}})
	if err != nil {
		return fmt.Errorf("the last record: %w", err)
	}
	return within(ctx, fmt.Sprintf("the consumer, after %d records", f.read.n.Load()), f.consumed)
}

// refused tells of records that the client was refused, if any were.
func (f *flow) refused() string {
	count, first := 0, ""
	for i, ack := range f.acks {
		if ack.Err != "" {
			if count++; count == 1 {
				first = fmt.Sprintf(" (%s for record %d", ack.Err, i)
			}
		}
	}
	if count == 0 {
		return ", and every one was acknowledged"
	}
	return fmt.Sprintf("%s, and %d refusals in all)", first, count)
}

// judge reads the log by the reference: record i holds the number i, so none is lost, doubled or out of order; every
// acknowledgement names its offset; and the consumer read the same.
func (f *flow) judge(ctx context.Context) error {
	log, err := f.on.Ref.Consume(ctx, suite.ConsumeOptions{Topic: f.topic, From: map[int32]int64{0: 0}})
	if err != nil {
		return err
	}
	sent := len(log) - 1 // behind them lies the last record
	for i, ack := range f.acks {
		switch {
		case ack.Err != "":
			return fmt.Errorf("record %d was never acknowledged: %s%s", i, ack.Err, f.refused())
		case i >= sent || string(log[i].Value) != strconv.Itoa(i):
			return fmt.Errorf("record %d is not in the log at its place, which has %q; the log has %d records, %d were sent%s",
				i, log[i].Value, sent, len(f.acks), f.refused())
		// A batch that was sent again after the restart may be acknowledged without its offset.
		case ack.Offset >= 0 && ack.Offset != log[i].Offset:
			return fmt.Errorf("record %d was acknowledged at offset %d, and is at %d", i, ack.Offset, log[i].Offset)
		}
	}
	if sent != len(f.acks) || log[sent].Offset != int64(sent) {
		return fmt.Errorf("the log has %d records, the last at offset %d; %d were sent%s", sent, log[sent].Offset, len(f.acks), f.refused())
	}
	if len(f.records) != len(log) {
		return fmt.Errorf("the consumer read %d records, the log has %d", len(f.records), len(log))
	}
	for i, r := range f.records {
		if r.Offset != log[i].Offset || string(r.Value) != string(log[i].Value) {
			return fmt.Errorf("the consumer read %q at offset %d, the log has %q at %d", r.Value, r.Offset, log[i].Value, log[i].Offset)
		}
	}
	return nil
}
