package sim

import (
	"bytes"
	"fmt"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
)

// model is what the clients know and what watching the node has shown: what must
// be in its logs.
type model struct {
	s       *Simulation
	topics  map[protocol.TopicID]*topicModel
	order   []*topicModel // in the order in which they were seen
	values  map[string]*written
	deletes map[protocol.TopicPartition]protocol.Offset // the highest DeleteRecords asked for
	ids     map[protocol.ProducerID]string
	ends    map[epochOf]protocol.Offset // what OffsetForLeaderEpoch said of past epochs
	pool    *compress.Pool
}

// epochOf is a leader epoch of a partition.
type epochOf struct {
	part  *partModel
	epoch protocol.LeaderEpoch
}

// topicModel is one incarnation of a topic.
type topicModel struct {
	plan        *topicPlan
	name        string
	id          protocol.TopicID
	parts       []*partModel
	deleteAsked bool // from here on it may vanish
	deleted     bool // acknowledged: it must not come back
}

// partModel is one partition of it.
type partModel struct {
	topic *topicModel
	n     int32
	at    map[protocol.Offset]*written
	times map[protocol.Offset]int64
	acked []*written
	// floor is below what a power cut must spare: acknowledged or read where every
	// answer waits for the disk.
	floor    protocol.Offset
	cuts     []lostTail
	maxStart protocol.Offset
	seen     observation

	undecided  []undecided // in transactions
	shadow     shadow      // what was ever written, of a topic of Kafka's own that is compacted
	cutPending bool        // the power went since the last look
	wasClean   bool        // the last end was a clean stop
}

// lostTail is what a power cut took: everything from end on. What earlier processes
// said of that is no longer true.
type lostTail struct {
	incarnation int // the process after the cut
	end         protocol.Offset
}

// state is what a client knows of a record that it sent.
type state int8

const (
	pending state = iota
	acknowledged
	refused // was certainly not appended
	unknown // may be there or not
	lost    // acknowledged, and taken by a power cut that may take it
)

// written is a record that a client sent.
type written struct {
	key, value []byte
	timestamp  int64
	topic      *topicPlan
	partition  int32
	number     int64 // rises with the order of sending, per producer and partition
	sender     *identity
	// repeats: it may be in the log more than once.
	repeats bool

	state  state
	offset protocol.Offset // acknowledged, or -1
	part   *partModel      // where it was seen, nil if nowhere
	place  protocol.Offset
}

// identity is a producer id and epoch, or a plain producer's connection: what it
// sends to a partition must be there in order. nil promises none.
type identity struct{ name string }

func (m *model) init(s *Simulation) {
	*m = model{
		s: s, topics: map[protocol.TopicID]*topicModel{}, values: map[string]*written{},
		deletes: map[protocol.TopicPartition]protocol.Offset{},
		ids:     map[protocol.ProducerID]string{}, ends: map[epochOf]protocol.Offset{}, pool: compress.NewPool(),
	}
}

// topic gives the model of a topic that was seen or told of.
func (m *model) topic(name string, id protocol.TopicID) *topicModel {
	if t := m.topics[id]; t != nil {
		if t.name != name {
			m.s.Violate("topic id %s is that of %s and of %s", id, t.name, name)
		}
		return t
	}
	t := &topicModel{name: name, id: id}
	for _, plan := range m.s.plan.topics {
		if plan.name == name {
			t.plan = plan
		}
	}
	if t.plan == nil {
		m.s.Violate("a topic %s that nobody created", name)
	}
	m.topics[id] = t
	m.order = append(m.order, t)
	return t
}

// part gives a partition's model, making it if it is new.
func (t *topicModel) part(n int32) *partModel {
	for int32(len(t.parts)) <= n {
		t.parts = append(t.parts, &partModel{
			topic: t, n: int32(len(t.parts)), at: map[protocol.Offset]*written{}, times: map[protocol.Offset]int64{},
		})
	}
	return t.parts[n]
}

func (p *partModel) String() string { return fmt.Sprintf("%s-%d (%s)", p.topic.name, p.n, p.topic.id) }

func (p *partModel) tp() protocol.TopicPartition {
	return protocol.TopicPartition{Topic: p.topic.name, Partition: p.n}
}

// stale tells that a power cut after a process has taken what it said of an offset.
func (p *partModel) stale(incarnation int, offset protocol.Offset) bool {
	for _, cut := range p.cuts {
		if cut.incarnation > incarnation && offset >= cut.end {
			return true
		}
	}
	return false
}

// acknowledge takes a successful answer; base is -1 where it names no offset.
func (m *model) acknowledge(p *partModel, records []*written, base protocol.Offset, appendTime int64, incarnation int) {
	for i, w := range records {
		m.s.counts.Acknowledged++
		w.state, w.offset = acknowledged, protocol.NoOffset
		if base < 0 {
			continue
		}
		offset := base + protocol.Offset(i)
		if p.stale(incarnation, offset) {
			m.taken(p, w, offset)
			continue
		}
		w.offset = offset
		p.acked = append(p.acked, w)
		timestamp := w.timestamp
		if p.topic.plan.appendTime {
			timestamp = appendTime
		}
		m.learn(p, offset, w, timestamp, "acknowledged")
		if p.topic.plan.flush {
			p.floor = max(p.floor, offset+1)
		}
	}
}

// newProducerID checks that no id is given out twice.
func (m *model) newProducerID(id protocol.ProducerID, to string) {
	if before, given := m.ids[id]; given {
		m.s.Violate("producer id %d was given to %s and to %s", id, before, to)
	}
	m.ids[id] = to
}

// taken notes that a power cut took an acknowledged record.
func (m *model) taken(p *partModel, w *written, offset protocol.Offset) {
	if p.topic.plan.flush {
		m.s.Violate("%s: a power cut took record %s at offset %d, which was acknowledged after a flush", p, w.value, offset)
	}
	w.state = lost
	m.s.counts.LostByCut++
}

// learn takes note that an offset holds a record.
func (m *model) learn(p *partModel, offset protocol.Offset, w *written, timestamp int64, how string) {
	if known := p.at[offset]; known != nil && known != w {
		m.s.Violate("%s: inconsistent offset %d: it holds %.60s, and now (%s) %.60s", p, offset, known.value, how, w.value)
		return
	}
	if w.topic != p.topic.plan || w.partition != p.n {
		m.s.Violate("%s: offset %d holds %.60s, which was sent to %s-%d", p, offset, w.value, w.topic.name, w.partition)
	}
	if w.state == refused {
		m.s.Violate("%s: offset %d holds %.60s, which was refused", p, offset, w.value)
	}
	if w.part != nil && (w.part != p || w.place != offset) && !w.repeats {
		m.s.Violate("%s: duplicate: %.60s is at offset %d and at %d of %s", p, w.value, offset, w.place, w.part)
	}
	if known, ok := p.times[offset]; ok && known != timestamp {
		m.s.Violate("%s: offset %d has timestamp %d, and now (%s) %d", p, offset, known, how, timestamp)
	}
	p.at[offset], p.times[offset] = w, timestamp
	w.part, w.place = p, offset
}

// read takes a record that a consumer got.
func (m *model) read(p *partModel, r record.Record, batch record.Batch, incarnation int) {
	w := m.values[valueID(r.Value)]
	switch {
	case w == nil:
		m.s.Violate("%s: offset %d holds %.80q, which nobody sent", p, r.Offset, r.Value)
		return
	case !bytes.Equal(w.value, r.Value) || !bytes.Equal(w.key, r.Key) || len(r.Headers) != 0:
		m.s.Violate("%s: offset %d holds a changed record: %.80q=%.80q instead of %.80q=%.80q", p, r.Offset, r.Key, r.Value, w.key, w.value)
		return
	case batch.IsLogAppendTime() != p.topic.plan.appendTime:
		m.s.Violate("%s: offset %d has the wrong type of timestamp", p, r.Offset)
	case !p.topic.plan.appendTime && r.Timestamp != w.timestamp:
		m.s.Violate("%s: offset %d has timestamp %d, sent was %d", p, r.Offset, r.Timestamp, w.timestamp)
	}
	if p.stale(incarnation, r.Offset) {
		if p.topic.plan.flush {
			m.s.Violate("%s: a power cut took offset %d, which was read though not durable", p, r.Offset)
		}
		return
	}
	m.learn(p, r.Offset, w, r.Timestamp, "read")
	if p.topic.plan.flush {
		p.floor = max(p.floor, r.Offset+1)
	}
}

// valueID is the part of a value up to the first blank.
func valueID(value []byte) string {
	if at := bytes.IndexByte(value, ' '); at >= 0 {
		value = value[:at]
	}
	return string(value)
}

// powerWasCut says that what was not durable on a host may be gone.
func (m *model) powerWasCut(*host) {
	for _, t := range m.order {
		for _, p := range t.parts {
			p.cutPending = true
		}
	}
}

// stoppedCleanly says that everything on a host is durable.
func (m *model) stoppedCleanly(*host) {
	for _, t := range m.order {
		for _, p := range t.parts {
			p.wasClean = true
		}
	}
}

// truncate forgets what lies from end on; a power cut took it.
func (m *model) truncate(p *partModel, end protocol.Offset, incarnation int) {
	p.cuts = append(p.cuts, lostTail{incarnation, end})
	for offset, last := end, p.lastKnown(); offset <= last; offset++ {
		w := p.at[offset]
		if w == nil {
			continue
		}
		delete(p.at, offset)
		delete(p.times, offset)
		if w.part == p && w.place == offset {
			w.part = nil
		}
	}
	kept := p.acked[:0]
	for _, w := range p.acked {
		if w.offset < end {
			kept = append(kept, w)
			continue
		}
		m.taken(p, w, w.offset)
	}
	p.acked = kept
}

// lastKnown is the highest offset of which anything is known.
func (p *partModel) lastKnown() protocol.Offset {
	highest := protocol.NoOffset
	for offset := range p.at { // in any order: only the highest counts
		highest = max(highest, offset)
	}
	return highest
}
