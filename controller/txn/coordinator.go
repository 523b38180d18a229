package txn

import (
	"maps"
	"slices"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// Options is what node hands in.
type Options struct {
	Settings Settings
	// Version is the finalized transaction.version of the moment.
	Version func() int16
	// MaxBatchBytes is max.message.bytes of __transaction_state: a transaction of
	// more partitions than a record can hold is refused. Nil: no limit.
	MaxBatchBytes func() int
}

// maxChanges bounds how many transactional ids one Tick changes; what is left is
// due at once.
const maxChanges = 1000

// Coordinator is the machine. See the package comment.
type Coordinator struct {
	options Options

	// Durable: changed by Apply alone (of a transaction, what is marked so).
	transactions map[string]*transaction
	ongoing      map[string]*transaction // those of transactions that are Ongoing

	// Volatile.
	epoch    protocol.LeaderEpoch
	timeouts time.Time           // when to look for transactions that took too long; zero: not active
	expiries time.Time           // when to look for ids that nobody uses
	spare    protocol.ProducerID // drawn in advance for an abort of the coordinator's own; -1: none
	drawing  bool                // one was asked for
}

// New makes an empty coordinator of one partition.
func New(options Options) *Coordinator {
	c := &Coordinator{options: options}
	c.forget()
	return c
}

var _ machine.Machine = (*Coordinator)(nil)

func (c *Coordinator) forget() {
	c.transactions, c.ongoing = map[string]*transaction{}, map[string]*transaction{}
	c.Resign()
}

// Restore implements machine.Machine. Coordinators have no snapshots: the shell
// restores to nothing and replays the log.
func (c *Coordinator) Restore(end protocol.Offset, _ protocol.LeaderEpoch, _ int64, records []machine.Record) error {
	c.forget()
	return c.replay(end, records)
}

// Apply implements machine.Machine.
func (c *Coordinator) Apply(base protocol.Offset, _ protocol.LeaderEpoch, _ int64, records []machine.Record) error {
	return c.replay(base, records)
}

// Committed implements machine.Machine: nothing here waits for it.
func (c *Coordinator) Committed(protocol.Offset) {}

// Activate implements machine.Machine: what was prepared is gone on with.
func (c *Coordinator) Activate(turn machine.Turn, epoch protocol.LeaderEpoch) (machine.Result, error) {
	c.Resign()
	c.epoch = epoch
	c.timeouts = turn.Now.Add(c.options.Settings.TimeoutCheckInterval)
	c.expiries = turn.Now.Add(c.options.Settings.ExpiryCheckInterval)
	d := c.decide(turn)
	for _, id := range slices.Sorted(maps.Keys(c.transactions)) {
		t := c.transactions[id]
		if t.durable.state.preparing() {
			c.complete(d, t, &t.durable)
		}
	}
	result := d.result(nil)
	result.Divisible = true
	return result, nil
}

// Resign implements machine.Machine: the volatile state is gone.
func (c *Coordinator) Resign() {
	c.timeouts, c.expiries, c.spare, c.drawing = time.Time{}, time.Time{}, protocol.NoProducerID, false
	for _, t := range c.transactions {
		t.previousEpoch, t.unmarked = noEpoch, nil
	}
}

// Handle implements machine.Machine: request is one of those in requests.go.
func (c *Coordinator) Handle(turn machine.Turn, request any) (machine.Result, error) {
	d := c.decide(turn)
	reply, err := c.serve(d, request)
	if err != nil {
		return machine.Result{}, err
	}
	result := d.result(reply)
	_, result.Divisible = request.(ProducerIDDrawn)
	return result, nil
}

func (c *Coordinator) serve(d *decision, request any) (any, error) {
	switch request := request.(type) {
	case InitProducerID:
		return c.initProducerID(d, request)
	case AddPartitions:
		return c.addPartitions(d, request)
	case Verify:
		return c.verify(d, request)
	case EndTxn:
		return c.endTxn(d, request)
	case MarkersWritten:
		return c.markersWritten(d, request)
	case ProducerIDDrawn:
		c.spare, c.drawing = request.ID, false
		if c.spare != protocol.NoProducerID { // else the next look asks again
			c.abortTimedOut(d)
		}
		return Done{}, nil
	case Describe:
		return c.describe(request)
	case List:
		return c.list(request), nil
	default:
		return nil, protocol.Errorf(protocol.InvalidRequest, "the transaction coordinator does not know %T", request)
	}
}

// Tick implements machine.Machine: it aborts what took too long and forgets ids
// that nobody uses.
func (c *Coordinator) Tick(turn machine.Turn) (machine.Result, error) {
	d := c.decide(turn)
	if !c.timeouts.After(turn.Now) {
		c.timeouts = turn.Now.Add(c.options.Settings.TimeoutCheckInterval)
		if more := c.abortTimedOut(d); more {
			c.timeouts = turn.Now
		}
	}
	if !c.expiries.After(turn.Now) {
		c.expiries = turn.Now.Add(c.options.Settings.ExpiryCheckInterval)
		if more := c.forgetExpired(d); more {
			c.expiries = turn.Now
		}
	}
	result := d.result(nil)
	result.Divisible = true
	return result, nil
}

// NextDeadline implements machine.Machine.
func (c *Coordinator) NextDeadline() time.Time {
	if c.expiries.Before(c.timeouts) {
		return c.expiries
	}
	return c.timeouts
}
