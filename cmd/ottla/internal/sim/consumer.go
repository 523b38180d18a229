package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// consumer reads all partitions of its topics, one fetch at a time, with or without
// a fetch session, and checks that it misses nothing and sees nothing twice.
type consumer struct {
	s      *Simulation
	host   *host
	name   string
	plan   consumerPlan
	random *seeded.Random

	conn     *conn
	asking   bool // for metadata or offsets
	fetching bool
	stale    bool
	missing  bool
	cursors  []*cursor
	pumping  bool
	session  int32
	epoch    int32 // of the session; 0: begin one
}

// cursor is a consumer's place in a partition.
type cursor struct {
	topic       *topicModel
	n           int32
	offset      protocol.Offset // NoOffset: to be looked up
	lookup      int64           // the timestamp to look up then
	lastEpoch   protocol.LeaderEpoch
	leaderEpoch protocol.LeaderEpoch
	cuts        int  // of the partition's, which this cursor has learnt of
	cut         bool // one of them took what was read
	inSession   bool
	sent        cursorPosition
}

// cursorPosition is what a session remembers of a partition.
type cursorPosition struct {
	offset                 protocol.Offset
	lastEpoch, leaderEpoch protocol.LeaderEpoch
	maxBytes               int32
}

func (c *cursor) part() *partModel { return c.topic.part(c.n) }

func newConsumer(s *Simulation, h *host, i int) *consumer {
	return &consumer{s: s, host: h, name: fmt.Sprintf("consumer%d", i), plan: s.plan.consumers[i], random: s.random.Fork(), stale: true}
}

func (c *consumer) start() { c.again(c.random.Between(0, 3*time.Second)) }

func (c *consumer) again(delay time.Duration) {
	if c.pumping {
		return
	}
	c.pumping = true
	c.s.After(delay, c.name+" works", func() {
		c.pumping = false
		c.turn()
	})
}

func (c *consumer) turn() {
	if c.s.finished {
		return
	}
	if c.conn == nil || !c.conn.open {
		c.conn = c.s.connect(c.name, c.host, protocol.OnBroker, c.disconnected)
		if c.conn == nil {
			c.again(100 * time.Millisecond)
			return
		}
	}
	switch unplaced := c.unplaced(); {
	case c.asking || c.fetching:
	case c.stale || c.missing && c.random.Chance(50):
		c.askMetadata()
	case len(unplaced) > 0:
		c.askOffsets(unplaced)
	case len(c.cursors) > 0:
		c.fetch()
	default:
		c.stale = true
	}
	c.again(c.random.Between(c.plan.pace/2, 3*c.plan.pace/2))
}

func (c *consumer) disconnected() {
	c.asking, c.fetching, c.stale = false, false, true
	c.endSession()
	c.again(c.random.Between(0, 50*time.Millisecond))
}

func (c *consumer) endSession() {
	c.session, c.epoch = 0, 0
	for _, p := range c.cursors {
		p.inSession = false
	}
}

// idle tells which partitions the consumer has not read to their end.
func (c *consumer) idle() string {
	for _, p := range c.cursors {
		if hw, err := c.host.node.Replicas().HighWatermark(p.part().tp()); err == nil && p.offset < hw && c.host.node.Image().TopicByID(p.topic.id) != nil {
			return fmt.Sprintf("%s is at %d of %s, whose high watermark is %d", c.name, p.offset, p.part(), hw)
		}
	}
	return ""
}

func (c *consumer) unplaced() []*cursor {
	var list []*cursor
	for _, p := range c.cursors {
		if p.offset == protocol.NoOffset {
			list = append(list, p)
		}
	}
	return list
}

func (c *consumer) askMetadata() {
	c.asking = true
	conn := c.conn
	conn.send(metadataRequest(c.random, c.plan.topics, c.s.phase == working), int16(10+c.random.Below(4)), 10*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == c.conn {
			c.asking = false
		}
		if err == nil {
			c.learn(resp.(*kmsg.MetadataResponse))
		}
	})
}

func (c *consumer) learn(resp *kmsg.MetadataResponse) {
	c.stale, c.missing = false, len(resp.Topics) < len(c.plan.topics)
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		if topic.ErrorCode != 0 {
			c.missing = true
			c.forget(*topic.Topic, protocol.ZeroUUID)
			continue
		}
		t := c.s.model.topic(*topic.Topic, topic.TopicID)
		c.forget(t.name, t.id)
		for j := range topic.Partitions {
			p := c.cursor(t, topic.Partitions[j].Partition)
			if epoch := protocol.LeaderEpoch(topic.Partitions[j].LeaderEpoch); c.plan.version >= 9 && c.random.Chance(700) {
				p.leaderEpoch = max(p.leaderEpoch, epoch)
			}
		}
	}
}

func (c *consumer) cursor(t *topicModel, n int32) *cursor {
	for _, p := range c.cursors {
		if p.topic == t && p.n == n {
			return p
		}
	}
	p := &cursor{topic: t, n: n, offset: protocol.NoOffset, lastEpoch: protocol.NoLeaderEpoch, leaderEpoch: protocol.NoLeaderEpoch}
	switch c.plan.from {
	case fromEarliest:
		p.lookup = -2
	case fromLatest:
		p.lookup = -1
	case fromTime:
		p.lookup = c.s.Now.UnixMilli() - int64(c.random.Below(20000))
	}
	c.cursors = append(c.cursors, p)
	return p
}

// forget drops deleted topics of a name.
func (c *consumer) forget(name string, id protocol.TopicID) {
	kept := c.cursors[:0]
	dropped := false
	for _, p := range c.cursors {
		if p.topic.name == name && p.topic.id != id && p.topic.deleteAsked {
			dropped = dropped || p.inSession
			continue
		}
		kept = append(kept, p)
	}
	c.cursors = kept
	if dropped {
		c.endSession() // rather than to say what is forgotten: both are done by clients
	}
}

// askOffsets looks up where to begin.
func (c *consumer) askOffsets(cursors []*cursor) {
	c.asking = true
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	for _, p := range cursors {
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = p.topic.name
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = p.n, p.lookup, -1
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
	}
	conn := c.conn
	conn.send(req, int16(4+c.random.Below(6)), 10*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == c.conn {
			c.asking = false
		}
		if err == nil {
			c.place(cursors, resp.(*kmsg.ListOffsetsResponse), conn.incarnation)
		}
	})
}

// place takes the answer: topics come in the order in which they were asked for.
func (c *consumer) place(cursors []*cursor, resp *kmsg.ListOffsetsResponse, incarnation int) {
	answers := map[protocol.TopicPartition]kmsg.ListOffsetsResponseTopicPartition{}
	for _, topic := range resp.Topics {
		for _, part := range topic.Partitions {
			answers[protocol.TopicPartition{Topic: topic.Topic, Partition: part.Partition}] = part
		}
	}
	for _, p := range cursors {
		part, found := answers[p.part().tp()]
		switch code := protocol.ErrorCode(part.ErrorCode); {
		case !found:
			c.s.Violate("%s: ListOffsets does not answer for %s", c.name, p.part())
		case code != protocol.None:
			c.excuse(code, "ListOffsets", p.part())
			c.stale = true
		case part.Offset >= 0:
			p.offset, p.cuts, p.lastEpoch = protocol.Offset(part.Offset), p.part().cutsBy(incarnation), protocol.NoLeaderEpoch
			p.cut = false
		default: // nothing at or after that time
			p.lookup = -1
		}
	}
}

// cutsBy counts the power cuts before a process.
func (p *partModel) cutsBy(incarnation int) int {
	for i, cut := range p.cuts {
		if cut.incarnation > incarnation {
			return i
		}
	}
	return len(p.cuts)
}

// excuse accepts the errors that a client answers by looking at the metadata again.
func (c *consumer) excuse(code protocol.ErrorCode, what string, p *partModel) {
	excuse(c.s, c.name, code, what, p)
}

func excuse(s *Simulation, who string, code protocol.ErrorCode, what string, p *partModel) {
	s.Linef("%s: %s of %s gave %s", who, what, p, code)
	switch code {
	case protocol.UnknownTopicOrPartition, protocol.UnknownTopicID, protocol.InconsistentTopicID:
		if !p.topic.deleteAsked {
			s.Violate("%s: %s of %s gave %s, and nobody deleted it", who, what, p, code)
		}
	case protocol.NotLeaderOrFollower, protocol.KafkaStorageError, protocol.LeaderNotAvailable,
		protocol.OffsetNotAvailable, protocol.FencedLeaderEpoch, protocol.UnknownLeaderEpoch:
	default:
		s.Violate("%s: %s of %s gave %s", who, what, p, code)
	}
}
