package simcluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/replica"

	"ottla/cmd/ottla/internal/seeded"
)

// producer sends batches of records with values of its own, one batch at a time, again until it is answered.
type producer struct {
	s        *Simulation
	random   *seeded.Random
	tp       protocol.TopicPartition
	acks     int16
	number   int
	id       protocol.ProducerID
	sequence int32
	count    int      // values made
	values   []string // of the batch under way; nil: none
	leader   int      // where it sends
	done     bool
}

// acknowledged is a batch that all in-sync replicas have confirmed.
type acknowledged struct {
	tp     protocol.TopicPartition
	base   protocol.Offset
	values []string
}

func (p *producer) start() {
	p.renew()
	p.s.After(p.random.Between(0, 50*time.Millisecond), "a producer begins", p.next)
}

func (p *producer) renew() {
	p.s.producerIDs++
	p.id, p.sequence = p.s.producerIDs, 0
}

// next makes a batch.
func (p *producer) next() {
	if p.s.ending {
		p.done = true
		return
	}
	p.values = nil
	for range 1 + p.random.Below(4) {
		p.count++
		p.values = append(p.values, fmt.Sprintf("%d-%d", p.number, p.count))
	}
	p.send()
}

func (p *producer) batch() record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = p.id, 0, p.sequence
	b := record.NewBuilder(o)
	for _, value := range p.values {
		b.Append(p.s.Now.UnixMilli(), nil, []byte(value), nil)
	}
	return b.Build(nil)
}

// send sends the batch to whom the cluster may have as leader.
func (p *producer) send() {
	if p.leader == 0 || p.random.Chance(600) {
		p.leader = int(p.s.controller.image().partitions[p.tp].Leader)
	}
	if p.leader < 1 || p.random.Chance(20) {
		p.leader = 1 + p.random.Below(len(p.s.machines))
	}
	to := p.s.machine(p.leader)
	bytes, id, sequence := p.batch(), p.id, p.sequence
	// Longer than the broker waits, so that an answer says what became of the batch.
	p.s.network.Call(clientEnd, p.leader, "produce", 600*time.Millisecond, func(reply func(any)) {
		if to.image == nil {
			return
		}
		to.manager.Append(p.s.Now, replica.AppendRequest{
			Partition: p.tp, TopicID: topicID, Records: slices.Clone(bytes), RequiredAcks: p.acks, Timeout: 300 * time.Millisecond, AllowZstd: true,
		}, func(result replica.AppendResult) {
			if p.id == id && p.sequence == sequence { // and not late, when the batch was answered long ago
				p.judge(to, result)
			}
			reply(result)
		})
	}, func(answer any, err error) {
		if err != nil {
			p.leader = 0
			p.again()
			return
		}
		p.answered(answer.(replica.AppendResult))
	})
}

// judge: the present leader knows all of a producer's batches that were acknowledged. A former one may not.
func (p *producer) judge(by *machine, result replica.AppendResult) {
	if protocol.CodeOf(result.Err) != protocol.OutOfOrderSequenceNumber || p.acks != replica.AcksAll || !p.s.safe() || p.s.deletedUpTo[p.tp] > 0 {
		return
	}
	if d, err := by.manager.Describe(p.tp); err == nil && d.View.LeaderEpoch == p.s.controller.image().partitions[p.tp].LeaderEpoch {
		p.s.Violate("producer %d of %s, all of whose batches were acknowledged, is answered by the leader: %v", p.number, p.tp, result.Err)
	}
}

func (p *producer) again() {
	p.s.After(p.random.Between(time.Millisecond, 30*time.Millisecond), fmt.Sprintf("producer %d tries again", p.number), p.send)
}

func (p *producer) answered(result replica.AppendResult) {
	switch code := protocol.CodeOf(result.Err); code {
	case protocol.None:
		if p.acks == replica.AcksAll {
			p.s.acknowledge(acknowledged{p.tp, result.BaseOffset, p.values})
		}
		p.sequence += int32(len(p.values))
		p.s.After(p.random.Between(0, 40*time.Millisecond), fmt.Sprintf("producer %d goes on", p.number), p.next)
	case protocol.OutOfOrderSequenceNumber, protocol.UnknownProducerID:
		p.renew() // what became of the batch is not known
		p.next()
	case protocol.NotLeaderOrFollower, protocol.NotEnoughReplicas, protocol.NotEnoughReplicasAfterAppend, protocol.RequestTimedOut, protocol.UnknownTopicOrPartition:
		p.again()
	default:
		p.s.Violate("producer %d is answered %v", p.number, result.Err)
	}
}

// consumer reads one partition from any replica, in order.
type consumer struct {
	s      *Simulation
	random *seeded.Random
	tp     protocol.TopicPartition
	at     protocol.Offset
	epoch  protocol.LeaderEpoch // of the last record read; NoLeaderEpoch: none yet
}

func (c *consumer) start() {
	c.s.After(c.random.Between(5*time.Millisecond, 60*time.Millisecond), "a consumer reads", c.read)
}

func (c *consumer) read() {
	if c.s.over {
		return
	}
	from := 1 + c.random.Below(len(c.s.machines))
	to := c.s.machine(from)
	c.detectLoss(to)
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.SessionEpoch, req.MaxBytes, req.MaxWaitMillis, req.MinBytes = 17, -1, 1<<20, 50, 1
	req.ReplicaState = kmsg.NewFetchRequestReplicaState()
	req.ReplicaState.ID = -1
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID = topicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = c.tp.Partition, int64(c.at), 1000
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	c.s.network.Call(clientEnd, from, "consume", 200*time.Millisecond, func(reply func(any)) {
		to.serveFetch(req, func(resp *kmsg.FetchResponse) { reply(resp) })
	}, func(answer any, err error) {
		if err == nil {
			c.take(answer.(*kmsg.FetchResponse))
		}
		c.start()
	})
}

// detectLoss asks a leader where the epoch ends that was read last, as clients do that look for lost records (KIP-320).
func (c *consumer) detectLoss(by *machine) {
	if !by.up || by.image == nil || !c.s.safe() || c.epoch == protocol.NoLeaderEpoch {
		return
	}
	current := c.s.controller.image().partitions[c.tp].LeaderEpoch
	known, end, err := by.manager.EpochEnd(c.tp, current, c.epoch)
	if err == nil && (known != c.epoch || end < c.at) && c.s.deletedUpTo[c.tp] == 0 {
		c.s.Violate("the leader %d of %s says that epoch %d ends at %d (%d), but it was read up to %d", by.id, c.tp, c.epoch, end, known, c.at)
	}
}

func (c *consumer) take(resp *kmsg.FetchResponse) {
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			bytes := p.RecordBatches
			for len(bytes) > 0 {
				batch, rest, err := record.Next(bytes)
				if err != nil {
					break
				}
				bytes = rest
				c.batch(batch)
			}
			if p.ErrorCode == int16(protocol.OffsetOutOfRange) && c.s.deletedUpTo[c.tp] > c.at {
				c.at = c.s.deletedUpTo[c.tp]
			}
		}
	}
}

// batch holds what was read against what was read before.
func (c *consumer) batch(b record.Batch) {
	if b.NextOffset() <= c.at {
		return
	}
	if c.s.safe() && b.BaseOffset() > c.at && b.BaseOffset() > c.s.deletedUpTo[c.tp] {
		c.s.Violate("a consumer of %s at %d is given offset %d next", c.tp, c.at, b.BaseOffset())
	}
	c.s.consumed(c.tp, b)
	c.at, c.epoch = b.NextOffset(), b.PartitionLeaderEpoch()
}
