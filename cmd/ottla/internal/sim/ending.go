package sim

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
)

// healTime is how long after the last fault everything may take to be answered.
const healTime = 90 * time.Second

// heal ends the faults: from here on everything must succeed, and in time.
func (s *Simulation) heal() {
	s.phase = healing
	for _, h := range s.hosts {
		h.faults, h.slowTasks, h.crashIn = nil, time.Time{}, 0
		if h.up && h.sawFault && !h.stopping && s.noSpace.NoSpace == nil { // want of room must pass by itself
			h.die(kill)
		}
	}
	s.AllWell("looks whether all is well again", time.Second, 100*time.Millisecond, healTime, s.waiting, func() {
		s.phase = reading
		s.readAll()
	})
}

// waiting tells what is not as it should be; "" if all is.
func (s *Simulation) waiting() string {
	for _, h := range s.hosts {
		if !h.up || !h.started || !h.serving {
			return h.name + " does not serve"
		}
		if failed := h.node.Store().Failed(); len(failed) > 0 {
			return h.name + ": offline: " + failed[0].String()
		}
		if text := h.undecidedParts(); text != "" {
			return text
		}
	}
	var all []string
	for _, c := range s.clients {
		if text := c.idle(); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// readAll reads every partition from its start to its end, and compares.
func (s *Simulation) readAll() {
	h := s.hosts[0]
	c := s.connect("reader", h, protocol.OnBroker, nil)
	if c == nil {
		s.Violate("the node does not take a connection")
		return
	}
	c.cuts = 0
	r := &reader{s: s, host: h, conn: c}
	for _, w := range h.watched.list {
		if !w.part.topic.plan.transactions {
			r.parts = append(r.parts, w.part)
		}
	}
	r.next()
}

// reader is the last consumer, one partition after the other.
type reader struct {
	s     *Simulation
	host  *host
	conn  *conn
	parts []*partModel
	part  *partModel
	start protocol.Offset
	at    protocol.Offset
	end   protocol.Offset
}

func (r *reader) next() {
	if len(r.parts) == 0 {
		r.s.readTransactions(r.done)
		return
	}
	r.part, r.parts = r.parts[0], r.parts[1:]
	r.begin()
}

func (r *reader) begin() {
	r.ask(-2, func(start protocol.Offset, _ int64) {
		r.ask(-1, func(end protocol.Offset, _ int64) {
			r.start, r.at, r.end = start, start, end
			r.read()
		})
	})
}

// ask looks an offset up; nothing may go wrong any more.
func (r *reader) ask(timestamp int64, done func(offset protocol.Offset, timestamp int64)) {
	part := r.part
	r.conn.send(listOffsets(part, timestamp), 10, 10*time.Second, true, func(resp kmsg.Response, err error) {
		if err != nil {
			r.s.Violate("reader: ListOffsets of %s: %v", part, err)
			return
		}
		answer := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if answer.ErrorCode != 0 {
			r.s.Violate("reader: ListOffsets of %s: %s", part, protocol.ErrorCode(answer.ErrorCode))
			return
		}
		done(protocol.Offset(answer.Offset), answer.Timestamp)
	})
}

func (r *reader) read() {
	if r.at >= r.end {
		r.compare()
		return
	}
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 500, 1, 1<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = r.part.topic.name, r.part.topic.id
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.LastFetchedEpoch, part.CurrentLeaderEpoch = r.part.n, int64(r.at), 1<<20, -1, -1
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	r.conn.send(req, 17, 10*time.Second, true, func(resp kmsg.Response, err error) {
		if err != nil {
			r.s.Violate("reader: fetch of %s: %v", r.part, err)
			return
		}
		r.take(&resp.(*kmsg.FetchResponse).Topics[0].Partitions[0])
	})
}

func (r *reader) take(part *kmsg.FetchResponseTopicPartition) {
	switch code := protocol.ErrorCode(part.ErrorCode); {
	case code == protocol.OffsetOutOfRange && r.at < r.part.maxStart:
		r.begin() // retention was faster
		return
	case code != protocol.None || len(part.RecordBatches) == 0:
		r.s.Violate("reader: fetch of %s at %d of %d gave %s and %d bytes", r.part, r.at, r.end, code, len(part.RecordBatches))
		return
	}
	for rest := part.RecordBatches; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		if err != nil || batch.CheckCRC() != nil {
			r.s.Violate("reader: %s at %d: no batch: %v", r.part, r.at, err)
			return
		}
		rest = after
		for one, err := range record.Records(batch, r.s.model.pool, 1<<24) {
			if err != nil || one.Offset > r.at {
				r.s.Violate("reader: %s at %d: offset %d, %v", r.part, r.at, one.Offset, err)
				return
			}
			if one.Offset == r.at {
				r.s.model.read(r.part, one, batch, r.host.incarnation)
				r.at++
			}
		}
	}
	if r.s.Failure == nil {
		r.read()
	}
}

// compare holds what was read of a partition against what was acknowledged.
func (r *reader) compare() {
	p, s := r.part, r.s
	for _, w := range p.acked {
		if w.offset >= r.start && p.at[w.offset] != w {
			s.Violate("%s: lost: record %.60s was acknowledged at offset %d, the log goes from %d to %d", p, w.value, w.offset, r.start, r.end)
			return
		}
	}
	last := map[*identity]*written{}
	for offset := r.start; offset < r.end; offset++ {
		w := p.at[offset]
		if w == nil || w.sender == nil {
			continue
		}
		if before := last[w.sender]; before != nil && before.number >= w.number {
			s.Violate("%s: out of order: %.60s is before %.60s at offset %d, both of %s", p, before.value, w.value, offset, w.sender.name)
			return
		}
		last[w.sender] = w
	}
	r.seek(0)
}

// seek compares lookups by time with the model, which now knows every record.
func (r *reader) seek(tries int) {
	if tries == 4 || r.s.Failure != nil {
		r.next()
		return
	}
	p, s := r.part, r.s
	var timestamp int64
	switch {
	case tries == 0:
		timestamp = -3 // KIP-734
	case r.end > r.start && s.random.Chance(700):
		timestamp = p.times[r.start+protocol.Offset(s.random.Below(int(r.end-r.start)))] + int64(s.random.Below(3)) - 1
	default:
		timestamp = s.Now.UnixMilli() - int64(s.random.Below(100000))
	}
	timestamp = max(timestamp, -3)
	if timestamp < 0 && timestamp != -3 {
		timestamp = 0
	}
	r.ask(timestamp, func(found protocol.Offset, at int64) {
		if start := p.seen.start; start != r.start {
			r.begin() // retention was faster
			return
		}
		if timestamp == -3 && found >= 0 && found < r.start {
			r.seek(tries + 1) // as Apache Kafka, which does not look at the log start here
			return
		}
		if want := p.byTime(timestamp, r.start, r.end); want != found || want >= 0 && p.times[want] != at {
			s.Violate("%s: by time %d: offset %d (%d), it is %d (%d)", p, timestamp, found, at, want, p.times[want])
			return
		}
		r.seek(tries + 1)
	})
}

// byTime is what a lookup is to find.
func (p *partModel) byTime(timestamp int64, start, end protocol.Offset) protocol.Offset {
	found := protocol.NoOffset
	for offset := start; offset < end; offset++ {
		at := p.times[offset]
		if timestamp >= 0 && at >= timestamp {
			return offset
		}
		if timestamp == -3 && (found < 0 || at > p.times[found]) {
			found = offset
		}
	}
	return found
}

// done ends the run, or stops the node and reads once more.
func (r *reader) done() {
	s := r.s
	if !s.plan.ending.restart {
		s.finished = true
		return
	}
	s.plan.ending.restart = false
	r.host.stop()
	deadline := s.Now.Add(healTime)
	incarnation := r.host.incarnation
	var look func()
	look = func() {
		switch waiting := s.waiting(); {
		case waiting == "" && r.host.incarnation > incarnation:
			s.readAll()
		case s.Now.After(deadline):
			s.Violate("%v after a clean stop something still waits: %s", healTime, waiting)
		default:
			s.After(100*time.Millisecond, "looks whether the node is back", look)
		}
	}
	s.After(time.Second, "looks whether the node is back", look)
}
