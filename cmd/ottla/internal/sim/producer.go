package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"

	"ottla/cmd/ottla/internal/seeded"
)

// producer sends records to the partitions of its topics: several requests at a
// time, batches of several partitions in one, and again after a failure. As with
// Kafka's own, a batch is sent only when no earlier one of its partition waits to
// be sent, so that an idempotent producer keeps its order.
type producer struct {
	s      *Simulation
	host   *host
	name   string
	plan   producerPlan
	random *seeded.Random

	conn     *conn
	id       protocol.ProducerID
	asking   bool // for an id
	learning bool // asking for metadata
	stale    bool // the metadata is to be asked for again
	missing  bool // a topic was not there: ask again some time
	pause    time.Time
	inFlight int
	lanes    []*lane
	identity *identity
	epochs   int // identities so far
	pumping  bool
}

// lane is one partition as a producer writes to it.
type lane struct {
	topic    *topicModel
	n        int32
	number   int64 // of the next record
	sequence int32
	queue    []*batch // in order, until answered
	known    bool     // something was acknowledged under the present producer id
	jumped   bool     // the first that was taken was not the first sent
	gone     bool     // the topic was deleted
}

func (l *lane) part() *partModel { return l.topic.part(l.n) }

// batch is one batch of a lane.
type batch struct {
	lane         *lane
	records      []*written
	bytes        []byte
	uncompressed int
	sequence     int32
	id           protocol.ProducerID
	sent         bool
	doubtful     bool // an earlier try may have succeeded

	incarnation int // of the node it was first sent to
	born        time.Time
	bad         bool // too large, on purpose
}

func newProducer(s *Simulation, h *host, i int) *producer {
	return &producer{
		s: s, host: h, name: fmt.Sprintf("producer%d", i), plan: s.plan.producers[i], random: s.random.Fork(),
		id: protocol.NoProducerID, stale: true,
	}
}

func (p *producer) start() { p.again(p.random.Between(0, 2*time.Second)) }

// again schedules a turn.
func (p *producer) again(delay time.Duration) {
	if p.pumping {
		return
	}
	p.pumping = true
	p.s.After(delay, p.name+" works", func() {
		p.pumping = false
		p.turn()
	})
}

func (p *producer) turn() {
	if p.conn == nil || !p.conn.open {
		p.inFlight = 0
		p.conn = p.s.connect(p.name, p.host, protocol.OnBroker, p.disconnected)
		if p.conn == nil {
			p.again(100 * time.Millisecond)
			return
		}
		if !p.plan.idempotent {
			p.renew() // order holds within a connection
		}
	}
	if !p.learning && (p.stale || p.missing && p.random.Chance(50)) {
		p.askMetadata()
	}
	switch {
	case p.asking:
	case p.plan.idempotent && p.id == protocol.NoProducerID:
		p.askID()
	default:
		if p.s.phase == working {
			p.make()
		}
		p.expire()
		p.sendAll()
	}
	if p.s.phase == working || p.idle() != "" {
		p.again(p.random.Between(p.plan.pace/2, 3*p.plan.pace/2))
	}
}

func (p *producer) disconnected() {
	p.asking, p.learning, p.inFlight, p.stale = false, false, 0, true
	p.again(p.random.Between(0, 50*time.Millisecond))
}

func (p *producer) idle() string {
	for _, l := range p.lanes {
		if len(l.queue) > 0 {
			return fmt.Sprintf("%s: %d batches to %s-%d are not answered", p.name, len(l.queue), l.topic.name, l.n)
		}
	}
	return ""
}

// renew gives what follows an identity of its own.
func (p *producer) renew() {
	p.epochs++
	p.identity = &identity{fmt.Sprintf("%s/%d", p.name, p.epochs)}
}

func (p *producer) askMetadata() {
	p.learning = true
	conn := p.conn
	conn.send(metadataRequest(p.random, p.plan.topics, p.s.phase == working), int16(10+p.random.Below(4)), 10*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == p.conn {
			p.learning = false
		}
		if err == nil {
			p.learn(resp.(*kmsg.MetadataResponse))
		}
	})
}

// metadataRequest asks for topics; now and then only for those that asking creates.
func metadataRequest(r *seeded.Random, topics []*topicPlan, mayCreate bool) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	req.AllowAutoTopicCreation = mayCreate && r.Chance(300)
	for _, t := range topics {
		if req.AllowAutoTopicCreation && !t.auto {
			continue
		}
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(t.name)
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// learn takes the partitions that there are.
func (p *producer) learn(resp *kmsg.MetadataResponse) {
	p.stale, p.missing = false, len(resp.Topics) < len(p.plan.topics)
	for _, topic := range resp.Topics {
		if topic.ErrorCode != 0 {
			p.missing = true
			p.dropOthers(*topic.Topic, protocol.ZeroUUID)
			continue
		}
		t := p.s.model.topic(*topic.Topic, topic.TopicID)
		p.dropOthers(t.name, t.id)
		for _, part := range topic.Partitions {
			p.lane(t, part.Partition)
		}
	}
}

func (p *producer) lane(t *topicModel, n int32) *lane {
	for _, l := range p.lanes {
		if l.topic == t && l.n == n {
			return l
		}
	}
	l := &lane{topic: t, n: n}
	p.lanes = append(p.lanes, l)
	return l
}

// dropOthers gives up what waits for earlier topics of a name, if the name is not
// just unknown for the moment.
func (p *producer) dropOthers(name string, id protocol.TopicID) {
	kept := p.lanes[:0]
	for _, l := range p.lanes {
		if l.topic.name != name || l.topic.id == id || !l.topic.deleteAsked {
			kept = append(kept, l)
			continue
		}
		l.gone = true
		for _, b := range l.queue {
			p.giveUp(b)
		}
		l.queue = nil
	}
	p.lanes = kept
}

func (p *producer) giveUp(b *batch) {
	for _, w := range b.records {
		w.state = unknown
		p.s.counts.Unknown++
	}
}

func (p *producer) askID() {
	p.asking = true
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis = 60000
	req.ProducerID, req.ProducerEpoch = -1, -1
	p.conn.send(req, int16(p.random.Below(6)), 10*time.Second, true, func(resp kmsg.Response, err error) {
		p.asking = false
		if err != nil {
			return
		}
		answer := resp.(*kmsg.InitProducerIDResponse)
		if answer.ErrorCode != 0 {
			if code := protocol.ErrorCode(answer.ErrorCode); code != protocol.CoordinatorLoadInProgress {
				p.s.Violate("%s: InitProducerId gave %s", p.name, code)
			}
			return
		}
		p.id = protocol.ProducerID(answer.ProducerID)
		p.s.model.newProducerID(p.id, p.name)
		p.renew()
		for _, l := range p.lanes {
			l.sequence = 0
		}
		p.again(0)
	})
}

// make makes a batch for one of the partitions.
func (p *producer) make() {
	if len(p.lanes) == 0 {
		return
	}
	l := p.lanes[p.random.Below(len(p.lanes))]
	if len(l.queue) >= 8 {
		return
	}
	b := &batch{lane: l, sequence: l.sequence, id: p.id, born: p.s.Now}
	options := record.PlainOptions()
	if p.plan.idempotent {
		options.ProducerID, options.ProducerEpoch, options.BaseSequence = p.id, 0, l.sequence
	}
	if p.random.Chance(700) {
		options.Codec = p.plan.codec
	}
	builder := record.NewBuilder(options)
	count := 1 + p.random.Below(p.plan.largest)
	limit := p.batchLimit(l)
	for i := range count {
		if i > 0 && builder.SizeBytes() > limit {
			break
		}
		w := p.record(l)
		b.records = append(b.records, w)
		builder.Append(w.timestamp, w.key, w.value, nil)
	}
	if p.plan.oversized && p.random.Chance(30) {
		p.oversize(b, builder, l)
	}
	b.uncompressed = builder.SizeBytes()
	b.bytes = builder.Build(p.s.model.pool)
	l.sequence += int32(len(b.records))
	l.queue = append(l.queue, b)
}

// batchLimit keeps most batches smaller than a segment.
func (p *producer) batchLimit(l *lane) int {
	if p.random.Chance(20) {
		return 1 << 20
	}
	return l.topic.plan.segmentBytes() / 3
}

// oversize makes a batch larger than any segment may be.
func (p *producer) oversize(b *batch, builder *record.Builder, l *lane) {
	w := p.record(l)
	filler := make([]byte, 1100*1024)
	for i := range filler {
		filler[i] = byte(p.random.Next())
	}
	w.value = append(w.value, filler...)
	b.records, b.bad = append(b.records, w), true
	builder.Append(w.timestamp, w.key, w.value, nil)
}

// record makes a record that no other equals.
func (p *producer) record(l *lane) *written {
	l.number++
	w := &written{
		timestamp: p.s.Now.UnixMilli() - int64(p.random.Below(2000)), topic: l.topic.plan, partition: l.n, number: l.number,
		offset: protocol.NoOffset, repeats: !p.plan.idempotent && p.plan.retries,
	}
	if p.plan.oddTimes && p.random.Chance(100) {
		w.timestamp = seeded.Pick(p.random, 0, 1, w.timestamp+24*3600*1000, w.timestamp-400*24*3600*1000, 32503680000000)
	}
	if p.random.Chance(500) {
		w.key = fmt.Appendf(nil, "key%d", p.random.Below(5))
	}
	id := fmt.Sprintf("%s/%s/%d/%d", p.name, l.topic.id, l.n, l.number)
	w.value = append([]byte(id), ' ')
	for range p.random.Below(p.plan.valueBytes + 1) {
		w.value = append(w.value, 'a'+byte(p.random.Below(26)))
	}
	p.s.model.values[id] = w
	return w
}

// expire gives up what waits for too long, as delivery.timeout.ms does.
func (p *producer) expire() {
	for _, l := range p.lanes {
		if len(l.queue) > 0 && p.s.Now.Sub(l.queue[0].born) > 2*time.Minute && p.s.phase == working {
			p.reset("a batch expired")
			return
		}
	}
}

// reset gives up everything under way and begins with a new producer id.
func (p *producer) reset(why string) {
	p.s.Linef("%s begins anew: %s", p.name, why)
	for _, l := range p.lanes {
		for _, b := range l.queue {
			p.giveUp(b)
		}
		l.queue, l.sequence, l.known, l.jumped = nil, 0, false, false
	}
	p.id = protocol.NoProducerID
	p.conn.close()
}
