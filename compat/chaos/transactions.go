package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/history"
)

// instance is one life of a transactional producer.
type instance struct {
	*run
	process  int32
	client   *kgo.Client
	producer history.Producer
	random   *rand.Rand
	topics   []int
}

// begin starts an instance: from the moment that it has its epoch, earlier ones are
// fenced. nil: the work has ended.
func (r *run) begin(ctx context.Context, process int32, epoch int32, random *rand.Rand, into []int) *instance {
	client, err := r.client(kgo.TransactionalID(fmt.Sprintf("chaos-%d", process)), kgo.TransactionTimeout(transactionTimeout))
	if err != nil {
		r.odd("transactional producer: %v", err)
		return nil
	}
	i := &instance{run: r, process: process, client: client, producer: history.Producer{ID: process, Epoch: epoch}, random: random, topics: into}
	for !r.stopped() && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, operationLimit)
		began := r.now()
		_, _, err := client.ProducerID(asking)
		cancel()
		if err == nil {
			r.add(history.Op{Kind: history.Fence, Process: process, Begin: began, Producer: i.producer})
			return i
		}
		r.wait(100 * time.Millisecond)
	}
	client.Close()
	return nil
}

// transact runs transactions over the partitions of the transactional topic.
func (r *run) transact(ctx context.Context, process int32, random *rand.Rand) {
	r.live(ctx, process, random, []int{transactional})
}

// feed runs transactions over the topic that is copied from.
func (r *run) feed(ctx context.Context, process int32, random *rand.Rand) {
	r.live(ctx, process, random, []int{input})
}

// live runs one instance after the other. Some end in the middle of a transaction, and
// of those some go on when the next one is there.
func (r *run) live(ctx context.Context, process int32, random *rand.Rand, into []int) {
	var zombie *instance
	for epoch := int32(1); !r.stopped() && ctx.Err() == nil; epoch++ {
		i := r.begin(ctx, process, epoch, random, into)
		if i == nil {
			break
		}
		if zombie != nil {
			late := zombie
			late.random = rand.New(rand.NewPCG(r.o.Seed, uint64(process)<<32|uint64(epoch)))
			r.workers.Go(func() { late.haunt(ctx) })
			zombie = nil
		}
		for alive := true; alive && !r.stopped() && ctx.Err() == nil; {
			switch random.IntN(40) {
			case 0: // dies with records in an open transaction
				i.add(i.send(ctx, i.op()))
				alive = false
				r.abandon(i.client)
			case 1: // is thought dead
				i.add(i.send(ctx, i.op()))
				alive, zombie = false, i
				r.abandon(i.client)
			default:
				if alive = i.one(ctx); !alive {
					r.abandon(i.client)
				}
			}
			r.wait(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		if r.stopped() {
			if into[0] == transactional && ctx.Err() == nil { // which the node has to end
				i.add(i.send(ctx, i.op()))
			}
			r.abandon(i.client)
		}
	}
}

func (i *instance) op() history.Op {
	return history.Op{Process: i.process, Begin: i.now(), Transactional: true, Producer: i.producer, Outcome: history.Fail}
}

// send begins a transaction and sends records in it. Nothing ends it: as long as nobody
// asks to commit it, it fails.
func (i *instance) send(ctx context.Context, op history.Op) history.Op {
	if err := i.client.BeginTransaction(); err != nil {
		return op
	}
	i.more(ctx, &op)
	return op
}

// more sends records, and tells whether all were taken.
func (i *instance) more(ctx context.Context, op *history.Op) bool {
	sending, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	var records []*kgo.Record
	first := len(op.Sends)
	for range 1 + i.random.IntN(6) {
		topic := i.topics[i.random.IntN(len(i.topics))]
		record, send := i.record(topic, i.random.Int32N(topics[topic].partitions), 0)
		records, op.Sends = append(records, record), append(op.Sends, send)
	}
	all := true
	for _, got := range i.client.ProduceSync(sending, records...) {
		for n := range records {
			if records[n] == got.Record && got.Err == nil {
				op.Sends[first+n].Offset = got.Record.Offset
			}
		}
		all = all && got.Err == nil
	}
	return all
}

// one runs a transaction, and tells whether the instance may go on.
func (i *instance) one(ctx context.Context) bool {
	op := i.op()
	if err := i.client.BeginTransaction(); err != nil {
		return false
	}
	sound := true
	for range 1 + i.random.IntN(3) {
		sound = sound && i.more(ctx, &op)
	}
	ending, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	if !sound || i.random.IntN(4) == 0 {
		err := i.client.EndTransaction(ending, kgo.TryAbort)
		i.add(op)
		return err == nil
	}
	err := i.client.EndTransaction(ending, kgo.TryCommit)
	if op.Outcome = history.OK; err != nil {
		op.Outcome = history.Unknown
	}
	i.add(op)
	return err == nil
}

// haunt goes on with an open transaction after a newer instance was there. Nothing of it
// may ever be seen.
func (i *instance) haunt(ctx context.Context) {
	op := i.op()
	ending, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	if i.more(ctx, &op) {
		op.Outcome = history.OK // an anomaly: it is fenced
	}
	_ = i.client.EndTransaction(ending, kgo.TryCommit) // had it an effect, an aborted read would show it
	i.add(op)
}

// copyLoop reads committed records of the input, and writes a record for each into the
// output, with the offsets, in transactions.
func (r *run) copyLoop(ctx context.Context, process int32, random *rand.Rand) {
	for !r.stopped() && ctx.Err() == nil {
		session, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(r.servers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(fmt.Sprintf("chaos-copy-%d", process)),
			kgo.TransactionTimeout(transactionTimeout), kgo.ConsumerGroup("chaos-copy"), kgo.ConsumeTopics(topics[input].name),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.SessionTimeout(8*time.Second), kgo.HeartbeatInterval(time.Second), kgo.RebalanceTimeout(15*time.Second), kgo.ProducerLinger(0),
			kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.FetchMaxWait(500*time.Millisecond),
		)
		if err != nil {
			r.odd("copy: %v", err)
			return
		}
		for r.copyOne(ctx, process, random, session) && !r.stopped() && ctx.Err() == nil {
			r.wait(0)
		}
		session.Close()
	}
}

// copyOne copies what one poll gives. It tells whether the session may go on.
func (r *run) copyOne(ctx context.Context, process int32, random *rand.Rand, session *kgo.GroupTransactSession) bool {
	polling, cancel := context.WithTimeout(ctx, time.Second)
	fetches := session.PollRecords(polling, 100)
	cancel()
	if fetches.NumRecords() == 0 {
		return true
	}
	op := history.Op{Process: process, Begin: r.now(), Transactional: true, Committed: true, Rebalanced: true, Outcome: history.Fail}
	if err := session.Begin(); err != nil {
		return false
	}
	var records []*kgo.Record
	fetches.EachRecord(func(got *kgo.Record) {
		read := taken(got)
		record, send := r.record(output, got.Partition, read.Value)
		op.Reads, op.Sends, records = append(op.Reads, read), append(op.Sends, send), append(records, record)
	})
	working, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	sound := true
	for _, got := range session.ProduceSync(working, records...) {
		for n := range records {
			if records[n] == got.Record && got.Err == nil {
				op.Sends[n].Offset = got.Record.Offset
			}
		}
		sound = sound && got.Err == nil
	}
	if random.IntN(60) == 0 { // dies
		r.add(op)
		return false
	}
	try := kgo.TransactionEndTry(sound && random.IntN(8) != 0)
	committed, err := session.End(working, try)
	switch {
	case committed && err == nil:
		op.Outcome = history.OK
	case err != nil && bool(try):
		op.Outcome = history.Unknown
	}
	r.add(op)
	return err == nil
}
