package sim

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// sendAll sends as many requests as may be under way.
func (p *producer) sendAll() {
	for p.inFlight < p.plan.inFlight && p.conn.open && !p.s.Now.Before(p.pause) {
		batches := p.choose()
		if len(batches) == 0 {
			return
		}
		p.sendOne(batches)
	}
}

// choose takes the first unsent batch of some lanes, unless it must wait.
func (p *producer) choose() []*batch {
	var chosen []*batch
	lanes := append([]*lane{}, p.lanes...)
	seeded.Shuffle(p.random, lanes)
	for _, l := range lanes {
		for _, b := range l.queue {
			if !b.sent {
				chosen = append(chosen, b)
				break
			}
		}
		if len(chosen) > p.random.Below(3) {
			break
		}
	}
	return chosen
}

func (p *producer) sendOne(batches []*batch) {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = p.plan.acks, 5000
	for _, b := range batches {
		if !b.sent && !b.doubtful {
			b.incarnation = p.conn.incarnation
		}
		b.sent = true
		for _, w := range b.records {
			if w.sender = p.identity; w.repeats {
				w.sender = nil // what is sent again may come in any order
			}
		}
		p.addTo(req, b)
	}
	p.inFlight++
	conn := p.conn
	conn.send(req, p.plan.version, 15*time.Second, p.plan.acks != 0, func(resp kmsg.Response, err error) {
		if conn == p.conn {
			p.inFlight = max(0, p.inFlight-1)
		}
		switch {
		case err != nil:
			p.failed(batches)
		case resp == nil: // acks=0
			for _, b := range batches {
				p.finish(b)
				p.giveUp(b)
			}
		default:
			p.answered(conn.incarnation, batches, resp.(*kmsg.ProduceResponse))
		}
		if conn == p.conn && conn.open {
			p.sendAll()
		}
	})
}

func (p *producer) addTo(req *kmsg.ProduceRequest, b *batch) {
	t := b.lane.topic
	var topic *kmsg.ProduceRequestTopic
	for i := range req.Topics {
		if req.Topics[i].TopicID == t.id {
			topic = &req.Topics[i]
		}
	}
	if topic == nil {
		made := kmsg.NewProduceRequestTopic()
		made.Topic, made.TopicID = t.name, t.id
		req.Topics = append(req.Topics, made)
		topic = &req.Topics[len(req.Topics)-1]
	}
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = b.lane.n, b.bytes
	topic.Partitions = append(topic.Partitions, part)
}

// finish takes a batch off its lane.
func (p *producer) finish(b *batch) { b.lane.queue = deleteOne(b.lane.queue, b) }

// failed is a request whose outcome nobody knows.
func (p *producer) failed(batches []*batch) {
	for _, b := range batches {
		switch {
		case b.lane.gone || p.id != b.id && p.plan.idempotent:
		case p.plan.idempotent || p.plan.retries:
			b.sent, b.doubtful = false, true
		default:
			p.finish(b)
			p.giveUp(b)
		}
	}
}

// answered takes a response, partition by partition.
func (p *producer) answered(incarnation int, batches []*batch, resp *kmsg.ProduceResponse) {
	for _, b := range batches {
		part := p.partOf(resp, b)
		if part == nil {
			p.s.Violate("%s: the answer lacks %s", p.name, b.lane.part())
			return
		}
		if b.lane.gone || p.plan.idempotent && b.id != p.id {
			continue // given up already
		}
		p.outcome(incarnation, b, part)
		if p.s.Failure != nil {
			return
		}
	}
}

func (p *producer) partOf(resp *kmsg.ProduceResponse, b *batch) *kmsg.ProduceResponseTopicPartition {
	t := b.lane.topic
	for i := range resp.Topics {
		if resp.Topics[i].Topic != t.name && resp.Topics[i].TopicID != t.id {
			continue
		}
		for j := range resp.Topics[i].Partitions {
			if resp.Topics[i].Partitions[j].Partition == b.lane.n {
				return &resp.Topics[i].Partitions[j]
			}
		}
	}
	return nil
}

func (p *producer) outcome(incarnation int, b *batch, part *kmsg.ProduceResponseTopicPartition) {
	code := protocol.ErrorCode(part.ErrorCode)
	if code != protocol.None {
		p.s.Linef("%s: %s of %s-%d seq %d", p.name, code, b.lane.topic.name, b.lane.n, b.sequence)
	}
	switch code {
	case protocol.None:
		p.inOrder(b)
		p.finish(b)
		p.s.model.acknowledge(b.lane.part(), b.records, protocol.Offset(part.BaseOffset), part.LogAppendTime, incarnation)
	case protocol.DuplicateSequenceNumber:
		if !b.doubtful {
			p.s.Violate("%s: a batch that was sent once to %s is called a duplicate", p.name, b.lane.part())
		}
		p.finish(b)
		p.s.model.acknowledge(b.lane.part(), b.records, -1, -1, incarnation)
	case protocol.OutOfOrderSequenceNumber:
		p.outOfOrder(incarnation, b)
	case protocol.UnknownTopicID, protocol.UnknownTopicOrPartition, protocol.NotLeaderOrFollower, protocol.InconsistentTopicID:
		p.stale = true
		p.retry(b, code == protocol.NotLeaderOrFollower)
	case protocol.KafkaStorageError, protocol.RequestTimedOut, protocol.NotEnoughReplicasAfterAppend:
		p.retry(b, true)
	case protocol.MessageTooLarge, protocol.RecordListTooLarge, protocol.InvalidTimestamp:
		p.refusedAs(b, code)
	default:
		p.s.Violate("%s: produce to %s gave %s", p.name, b.lane.part(), code)
	}
}

// retry sends a batch again, if this producer does that.
func (p *producer) retry(b *batch, mayBeThere bool) {
	if !p.plan.idempotent && !p.plan.retries {
		p.finish(b)
		p.giveUp(b)
		if !mayBeThere && !b.doubtful {
			p.refuse(b)
		}
		return
	}
	b.sent, b.doubtful = false, b.doubtful || mayBeThere
	p.pause = p.s.Now.Add(p.random.Between(0, 100*time.Millisecond)) // retry.backoff.ms
	p.again(100 * time.Millisecond)
}

func (p *producer) refuse(b *batch) {
	for _, w := range b.records {
		w.state = refused
		p.s.counts.Refused++
	}
}

// refusedAs is a batch that the node will never take.
func (p *producer) refusedAs(b *batch, code protocol.ErrorCode) {
	plan := b.lane.topic.plan
	excused := code == protocol.InvalidTimestamp && p.plan.oddTimes && !plan.appendTime ||
		code == protocol.MessageTooLarge && b.bad || code == protocol.RecordListTooLarge && b.uncompressed > plan.segmentBytes()/2
	if !excused {
		p.s.Violate("%s: produce to %s gave %s", p.name, b.lane.part(), code)
	}
	p.finish(b)
	if p.giveUp(b); !b.doubtful {
		p.refuse(b)
	}
	if p.plan.idempotent {
		p.reset("a batch was refused") // its sequence numbers are a gap
	}
}

// segmentBytes is how large a batch may be.
func (t *topicPlan) segmentBytes() int {
	for _, c := range t.configs {
		if c.name == "internal.segment.bytes" {
			size, err := strconv.Atoi(c.value)
			if err != nil {
				panic(err)
			}
			return size
		}
	}
	return 1 << 20
}

// inOrder checks that no batch is taken before an earlier one, once the node knows
// the producer.
func (p *producer) inOrder(b *batch) {
	l := b.lane
	switch {
	case !p.plan.idempotent || l.queue[0] == b:
		l.known = true
	case l.known && (len(l.part().cuts) == 0 || l.part().topic.plan.flush):
		p.s.Violate("%s: %s took sequence %d before %d", p.name, l.part(), b.sequence, l.queue[0].sequence)
	default:
		l.jumped = true // as Apache Kafka 4.4.0, where nothing is known of a producer (KAFKA-15591)
	}
}

// outOfOrder is right where an earlier batch is to be sent again. The first one of a
// partition is out of order only if a power cut has taken what was before it, or if
// the node knew nothing of the producer and took a later one for the first, as Apache
// Kafka 4.4.0 does too (KAFKA-15591).
func (p *producer) outOfOrder(incarnation int, b *batch) {
	if b.lane.queue[0] != b {
		p.retry(b, false)
		return
	}
	part := b.lane.part()
	cut := len(part.cuts) > 0 && !part.topic.plan.flush
	// After a restart the node knows only the last batch of each producer from before
	// (that is all a snapshot holds): it cannot tell an older one for a duplicate.
	forgotten := b.doubtful && b.incarnation < incarnation
	if forgotten {
		p.s.counts.Forgotten++
	}
	if !b.lane.jumped && !cut && !forgotten {
		p.s.Violate("%s: %s takes sequence %d (record %.60s) for out of order, and all before it are acknowledged", p.name, part, b.sequence, b.records[0].value)
		return
	}
	p.reset("the first batch is out of order")
}
