package scenario

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

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
	*testing.T
	Ctx     context.Context
	Node    *harness.Node
	Clients []suite.Client
	Ref     *franz.Client
	Result  func(client string, failed bool)
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
	client suite.Client
	topic  string
	last   string

	acked    chan int
	read     chan int
	stop     chan struct{}
	produced chan error
	consumed chan error
	acks     []suite.Ack
	records  []suite.Record
}

// streams starts the flows of all clients, restarts the node in the middle of them, and judges each.
func (r Restart) streams(on Restarting) {
	var flows []*flow
	for _, c := range on.Clients {
		if Partakes(c.Name(), r.Name) {
			flows = append(flows, startFlow(on, r.Name, c))
		}
	}
	failed := make([]error, len(flows))
	each := func(what string, step func(*flow) error) {
		var group sync.WaitGroup
		for i, f := range flows {
			group.Go(func() {
				if failed[i] == nil {
					if err := step(f); err != nil {
						failed[i] = fmt.Errorf("%s: %w", what, err)
					}
				}
			})
		}
		group.Wait()
	}
	each("before the restart", func(f *flow) error { return f.reach(on.Ctx, before, before/2) })
	if err := r.end(on.Node); err != nil {
		on.Fatal(err)
	}
	if _, err := on.Node.Start(on.Ctx); err != nil {
		on.Fatal(err)
	}
	each("after the restart", func(f *flow) error { return f.more(on.Ctx, after) })
	each("at the end", func(f *flow) error { return f.finish(on) })
	each("afterwards", func(f *flow) error { return f.judge(on, r.Name) })
	for i, f := range flows {
		if failed[i] != nil {
			on.Errorf("%s with %s: %v", r.Name, f.client.Name(), failed[i])
		}
		on.Result(f.client.Name(), failed[i] != nil)
		harness.Progress("%s with %s: %d records acknowledged, %d read along; error: %v", r.Name, f.client.Name(), len(f.acks), len(f.records), failed[i])
	}
}

func startFlow(on Restarting, name string, c suite.Client) *flow {
	f := &flow{
		client: c, topic: name + "-" + c.Name(), last: "the last record",
		acked: make(chan int, 1), read: make(chan int, 1), stop: make(chan struct{}),
		produced: make(chan error, 1), consumed: make(chan error, 1),
	}
	if err := createAndWait(on.Ctx, on.Ref, f.topic, 1, nil); err != nil {
		on.Fatal(err)
	}
	go func() {
		var err error
		f.acks, err = c.(suite.Streamer).Stream(on.Ctx, suite.StreamOptions{
			ProduceOptions: suite.ProduceOptions{Topic: f.topic, Acks: "all", Idempotent: true, LingerMs: 1},
			Window:         50,
			OnAck:          func(n int) { latest(f.acked, n) },
		}, f.stop)
		f.produced <- err
	}()
	go func() {
		var err error
		f.records, err = c.Consume(on.Ctx, suite.ConsumeOptions{
			Topic: f.topic, From: map[int32]int64{0: 0}, UntilValue: f.last, Reset: "earliest",
			OnRecord: func(n int) { latest(f.read, n) },
		})
		f.consumed <- err
	}()
	return f
}

// latest puts n into a channel of one place, over what nobody took.
func latest(c chan int, n int) {
	select {
	case <-c:
	default:
	}
	select {
	case c <- n:
	default:
	}
}

// wait waits until the channel's number is high enough.
func (f *flow) wait(ctx context.Context, c chan int, enough int, what string) (int, error) {
	for n := 0; ; {
		if n >= enough {
			return n, nil
		}
		select {
		case n = <-c:
		case err := <-f.produced:
			return n, fmt.Errorf("the producer ended: %w", err)
		case err := <-f.consumed:
			return n, fmt.Errorf("the consumer ended: %w", err)
		case <-ctx.Done():
			return n, fmt.Errorf("only %d records %s: %w", n, what, ctx.Err())
		}
	}
}

func (f *flow) reach(ctx context.Context, acked, read int) error {
	if _, err := f.wait(ctx, f.acked, acked, "acknowledged"); err != nil {
		return err
	}
	_, err := f.wait(ctx, f.read, read, "read")
	return err
}

// more waits for further acknowledgements beyond those that came up to now.
func (f *flow) more(ctx context.Context, n int) error {
	now, err := f.wait(ctx, f.acked, 1, "acknowledged")
	if err != nil {
		return err
	}
	_, err = f.wait(ctx, f.acked, now+n, "acknowledged")
	return err
}

// finish stops the producer, writes the last record by the reference, and waits for the consumer to find it.
func (f *flow) finish(on Restarting) error {
	close(f.stop)
	if err := <-f.produced; err != nil {
		return fmt.Errorf("the producer: %w", err)
	}
	_, err := on.Ref.Produce(on.Ctx, suite.ProduceOptions{Topic: f.topic}, []suite.Record{{Value: []byte(f.last)}})
	if err != nil {
		return fmt.Errorf("the last record: %w", err)
	}
	if err := <-f.consumed; err != nil {
		return fmt.Errorf("the consumer, after %d records: %w", len(f.records), err)
	}
	return nil
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
func (f *flow) judge(on Restarting, row string) error {
	log, err := on.Ref.Consume(on.Ctx, suite.ConsumeOptions{Topic: f.topic, From: map[int32]int64{0: 0}})
	if err != nil {
		return err
	}
	_, givesUp := Cannot(f.client.Name(), row+": every record")
	at := 0
	for i, ack := range f.acks {
		there := at < len(log)-1 && string(log[at].Value) == strconv.Itoa(i)
		switch {
		case ack.Err != "" && !givesUp:
			return fmt.Errorf("record %d was never acknowledged: %s%s", i, ack.Err, f.refused())
		case ack.Err != "" && !there:
			continue
		case !there:
			return fmt.Errorf("record %d is not in the log at offset %d, which holds %q; the log has %d records, %d were sent%s",
				i, at, log[at].Value, len(log)-1, len(f.acks), f.refused())
		// A batch that was sent again after the restart may be acknowledged without its offset.
		case ack.Offset >= 0 && ack.Offset != log[at].Offset:
			return fmt.Errorf("record %d was acknowledged at offset %d, and is at %d", i, ack.Offset, log[at].Offset)
		}
		at++
	}
	if at != len(log)-1 || log[at].Offset != int64(at) {
		return fmt.Errorf("the log has %d records, the last at offset %d; %d were sent%s", len(log)-1, log[len(log)-1].Offset, len(f.acks), f.refused())
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
