package txn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
)

// TestRandom lets producers of both ways do anything at any time: they crash, go
// on as zombies, their requests arrive late, their replies are lost; between them
// the coordinator's volatile state vanishes and its writes fail. Partitions are
// simulated with what the storage holds of a producer. Besides the invariants of
// the rig these hold:
//
//   - All writes of one transaction have one outcome, the one that its producer was
//     told, if it was told any.
//   - Who has not the epoch of now is not taken.
//   - Once all is quiet, no transaction is open on any partition.
func TestRandom(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newChaos(t, seed).run() })
	}
}

type chaos struct {
	*rig
	rand       *rand.Rand
	clients    []*client
	partitions map[protocol.TopicPartition]*partition
	late       []func()

	transactions int                  // those that clients began
	outcomes     map[int]map[bool]int // by transaction: how many writes were committed, aborted
	writes       map[int]int          // by transaction: how many were taken
	told         map[int]bool         // by transaction: what the client was told
}

// partition is what the storage knows of producers.
type partition struct {
	epochs map[protocol.ProducerID]protocol.ProducerEpoch
	open   map[protocol.ProducerID][]int // transactions of the writes that have no outcome yet
}

// client is what one producer knows.
type client struct {
	id      string
	version int16 // Version0 or Version2
	is      Producer
	ready   bool
	current int // its transaction; 0: none
	added   map[protocol.TopicPartition]bool
	ending  *bool // what it asked for and has no answer to
	timeout int32
}

func newChaos(t *testing.T, seed uint64) *chaos {
	s := settings()
	s.Expiration = time.Hour
	s.ExpiryCheckInterval = 10 * time.Minute
	c := &chaos{
		rig: newRig(t, s), rand: rand.New(rand.NewPCG(seed, 6)), partitions: map[protocol.TopicPartition]*partition{},
		outcomes: map[int]map[bool]int{}, writes: map[int]int{}, told: map[int]bool{},
	}
	c.version = int16(c.rand.IntN(3))
	for i := range 6 {
		version := Version0
		if c.version == Version2 && i%2 == 0 {
			version = Version2
		}
		c.clients = append(c.clients, &client{id: fmt.Sprint("id", i/2), version: version, is: NoProducer, timeout: 20_000 + int32(c.rand.IntN(60_000))})
	}
	for i := range 4 {
		c.partitions[protocol.TopicPartition{Topic: "t", Partition: int32(i)}] = &partition{
			map[protocol.ProducerID]protocol.ProducerEpoch{}, map[protocol.ProducerID][]int{},
		}
	}
	return c
}

func (c *chaos) run() {
	for range 600 {
		c.step(c.clients[c.rand.IntN(len(c.clients))])
	}
	c.finish()
}

// finish lets everything end, and looks at what came of it.
func (c *chaos) finish() {
	for _, send := range c.late {
		send()
	}
	for range 4 {
		c.writeMarkers(1)
		c.advance(time.Minute, nil)
	}
	c.writeMarkers(1)
	for id, t := range c.c.transactions {
		if t.durable.state == Ongoing || t.durable.state.preparing() {
			c.t.Fatalf("%s is still %s", id, t.durable.state)
		}
	}
	for _, tp := range slices.SortedFunc(maps.Keys(c.partitions), protocol.TopicPartition.Compare) {
		for producer, open := range c.partitions[tp].open {
			c.t.Fatalf("%v hangs: transactions %v of producer %d are open", tp, open, producer)
		}
	}
	for transaction, written := range c.writes {
		outcome := c.outcomes[transaction]
		if len(outcome) != 1 || outcome[true]+outcome[false] != written {
			c.t.Fatalf("transaction %d has %d writes: %d were committed, %d aborted", transaction, written, outcome[true], outcome[false])
		}
		if told, known := c.told[transaction]; known && outcome[told] == 0 {
			c.t.Fatalf("the client of transaction %d was told commit=%t, and it was not so", transaction, told)
		}
	}
}

func (c *chaos) step(one *client) {
	switch n := c.rand.IntN(100); {
	case n < 3:
		c.lose()
	case n < 6:
		c.fail()
	case n < 18:
		c.advance(time.Duration(c.rand.IntN(4000))*time.Millisecond, nil)
	case n < 20:
		c.advance(time.Duration(c.rand.IntN(90))*time.Second, nil)
	case n < 36:
		c.writeMarkers(c.rand.Float64())
	case n < 40 && len(c.late) > 0:
		at := c.rand.IntN(len(c.late))
		send := c.late[at]
		c.late = slices.Delete(c.late, at, at+1)
		send()
	case n < 44: // it crashes and starts anew
		one.is, one.ready, one.current, one.ending = NoProducer, false, 0, nil
	case n < 50 || !one.ready:
		c.init(one)
	case n < 80 && one.ending == nil:
		c.write(one)
	default:
		c.end(one)
	}
}

// lose has a decision made whose records do not get into the log.
func (c *chaos) lose() {
	one := c.clients[c.rand.IntN(len(c.clients))]
	for _, request := range []any{
		InitProducerID{TransactionalID: one.id, TimeoutMs: one.timeout, Expected: NoProducer, Drawn: 1_000_000},
		EndTxn{TransactionalID: one.id, Producer: one.is, Commit: c.rand.IntN(2) == 0, Version: one.version, Drawn: 1_000_000},
		AddPartitions{TransactionalID: one.id, Producer: one.is, Partitions: []protocol.TopicPartition{{Topic: "t"}}, Version: one.version},
	} {
		if c.rand.IntN(2) == 0 {
			_, _ = c.c.Handle(c.turn(), request)
			break
		}
	}
	c.fail()
}

func (c *chaos) init(one *client) {
	request := InitProducerID{TransactionalID: one.id, TimeoutMs: one.timeout, Expected: NoProducer, Drawn: protocol.NoProducerID}
	if c.rand.IntN(3) == 0 {
		request.Expected = one.is
	}
	before := c.producerOf(one.id)
	a := c.send(request)
	if producer, ok := a.reply.(Producer); ok {
		if producer.ID == before.ID && producer.Epoch < before.Epoch {
			c.t.Fatalf("%s got %v after %v", one.id, producer, before)
		}
		if c.rand.IntN(10) > 0 { // else the reply is lost
			one.is, one.ready, one.current, one.ending = producer, true, 0, nil
		}
	}
}

func (c *chaos) producerOf(id string) Producer {
	if t := c.c.transactions[id]; t != nil {
		return t.durable.producer
	}
	return NoProducer
}

// write writes to one partition, as part of the client's transaction.
func (c *chaos) write(one *client) {
	tp := protocol.TopicPartition{Topic: "t", Partition: int32(c.rand.IntN(len(c.partitions)))}
	if one.current == 0 {
		c.transactions++
		one.current, one.added = c.transactions, map[protocol.TopicPartition]bool{}
	}
	transaction, producer, version := one.current, one.is, one.version
	send := func() {
		if version == Version0 {
			// The client adds the partition; the broker verifies that it did.
			if !one.added[tp] {
				if c.send(AddPartitions{one.id, producer, []protocol.TopicPartition{tp}, Version0}).err != nil {
					return
				}
				one.added[tp] = true
			}
			verified, _ := c.send(Verify{one.id, producer, []protocol.TopicPartition{tp}}).reply.(Verified)
			if len(verified) == 0 || !verified[0] {
				return
			}
		} else if c.send(AddPartitions{one.id, producer, []protocol.TopicPartition{tp}, Version2}).err != nil {
			return
		}
		if now := c.producerOf(one.id); now != producer {
			c.t.Fatalf("%v was taken for %s, which has %v", producer, one.id, now)
		}
		p := c.partitions[tp]
		if known, has := p.epochs[producer.ID]; has && producer.Epoch < known {
			return
		}
		p.epochs[producer.ID] = producer.Epoch
		p.open[producer.ID] = append(p.open[producer.ID], transaction)
		c.writes[transaction]++
	}
	if version == Version2 && c.rand.IntN(8) == 0 {
		c.late = append(c.late, send)
		return
	}
	send()
}

// end ends the client's transaction, or asks again.
func (c *chaos) end(one *client) {
	if one.ending == nil {
		if one.current == 0 {
			return
		}
		commit := c.rand.IntN(2) == 0
		one.ending = &commit
	}
	commit, transaction := *one.ending, one.current
	request := EndTxn{one.id, one.is, commit, one.version, protocol.NoProducerID}
	if one.version == Version2 && c.rand.IntN(8) == 0 {
		c.late = append(c.late, func() { c.send(request) })
	}
	a := c.send(request)
	lost := c.rand.IntN(6) == 0
	switch protocol.CodeOf(a.err) {
	case protocol.None:
		c.told[transaction] = commit
		if lost {
			return // it asks again
		}
		if one.version == Version2 {
			one.is = a.reply.(Producer)
		}
		one.current, one.ending = 0, nil
	case protocol.ConcurrentTransactions:
	default:
		one.ready, one.current, one.ending = false, 0, nil
	}
}

// writeMarkers writes some of the markers that are asked for, and reports some.
func (c *chaos) writeMarkers(share float64) {
	for _, id := range slices.Sorted(maps.Keys(c.asked)) {
		asked := c.asked[id]
		if t := c.c.transactions[id]; t == nil || !t.durable.state.preparing() {
			delete(c.asked, id)
			continue
		} else if asked.Producer != t.durable.producer {
			c.t.Fatalf("markers of %v are asked for, and %s has %v", asked.Producer, id, t.durable.producer)
		}
		var written []protocol.TopicPartition
		for _, tp := range asked.Partitions {
			if c.rand.Float64() < share {
				c.mark(tp, asked)
				written = append(written, tp)
			}
		}
		if len(written) > 0 && c.rand.Float64() < max(share, 0.5) {
			c.report(id, written...)
		}
	}
	if c.wanted && c.rand.Float64() < share {
		c.wanted = false
		c.drawn++
		c.send(ProducerIDDrawn{c.drawn})
	}
}

// mark is what the storage does with a marker (ProducerAppendInfo).
func (c *chaos) mark(tp protocol.TopicPartition, m WriteMarkers) {
	p := c.partitions[tp]
	id, open := m.Producer.ID, p.open[m.Producer.ID]
	if known, has := p.epochs[id]; has {
		switch {
		case m.Producer.Epoch < known, m.Version >= Version2 && m.Producer.Epoch == known && len(open) > 0:
			c.t.Fatalf("a marker of %v comes to %v, where the epoch is %d", m.Producer, tp, known)
		}
	}
	p.epochs[id] = m.Producer.Epoch
	for _, transaction := range open {
		if c.outcomes[transaction] == nil {
			c.outcomes[transaction] = map[bool]int{}
		}
		c.outcomes[transaction][m.Commit]++
	}
	delete(p.open, id)
}
