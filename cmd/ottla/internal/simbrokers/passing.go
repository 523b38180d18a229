package simbrokers

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// The topic that is deleted, and made again under the same name.
const (
	passingName       = "letters"
	passingPartitions = 2
)

// changes tells whether disks are lost, replicas move or topics go.
func (p *plan) changes() bool { return p.wipes || p.reassigns || p.renewal > 0 }

// renew makes the topic, or deletes it, whichever is due, by its name or by its id.
func (a *admin) renew() {
	a.s.After(a.random.Between(time.Millisecond, a.s.plan.renewal), "the admin makes a topic or deletes it", func() {
		if a.s.ending {
			return
		}
		done := func(kmsg.Response, error) { a.renew() }
		known := a.s.controllers.truth.loader.Image().Topic(passingName)
		if known == nil {
			req, topic := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
			req.Version, req.TimeoutMillis = 7, 1000
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = passingName, passingPartitions, int16(seeded.Pick(a.random, replicas, replicas, minISR))
			config, value := kmsg.NewCreateTopicsRequestTopicConfig(), fmt.Sprint(minISR)
			config.Name, config.Value = "min.insync.replicas", &value
			topic.Configs = append(topic.Configs, config)
			req.Topics = append(req.Topics, topic)
			a.ask(req, done)
			return
		}
		req, topic := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewDeleteTopicsRequestTopic()
		req.Version, req.TimeoutMillis = 6, 1000
		if topic.TopicID = known.ID; a.random.Chance(500) {
			topic.Topic, topic.TopicID = kmsg.StringPtr(passingName), protocol.TopicID{}
		}
		req.Topics = append(req.Topics, topic)
		a.ask(req, done)
	})
}

// reassign chooses other replicas for a partition, in other numbers now and then; none: what was asked for before is taken back.
func (a *admin) reassign(tp protocol.TopicPartition, order []int32) (protocol.TopicPartition, []int32) {
	if a.s.plan.renewal > 0 && a.random.Chance(300) {
		tp.Topic = passingName
	}
	if a.random.Chance(100) {
		return tp, nil
	}
	return tp, order[:seeded.Pick(a.random, replicas, replicas, minISR, len(order))]
}

// place is one of a record.
type place struct {
	topic  protocol.TopicID
	n      int32
	offset protocol.Offset
}

// reader reads a partition from its beginning, of one topic of that name after the other, from its leader or whoever was it once.
type reader struct {
	s        *Simulation
	random   *seeded.Random
	tp       protocol.TopicPartition
	topic    protocol.TopicID
	position protocol.Offset
}

func (s *Simulation) read(tp protocol.TopicPartition) {
	r := &reader{s: s, random: s.random.Fork(), tp: tp}
	s.readers = append(s.readers, r)
	r.later()
}

func (r *reader) later() {
	r.s.After(r.random.Between(time.Millisecond, 200*time.Millisecond), "a reader of "+r.tp.String()+" goes on", r.fetch)
}

func (r *reader) fetch() {
	if r.s.ending {
		return
	}
	image := r.s.controllers.truth.loader.Image()
	topic, state := image.Topic(r.tp.Topic), image.Partition(r.tp)
	if state != nil && topic.ID != r.topic {
		r.topic, r.position = topic.ID, 0
	}
	to := 1 + r.random.Below(len(r.s.machines))
	if state != nil && state.Leader > 0 && r.random.Chance(700) {
		to = int(state.Leader)
	}
	asked := r.topic
	req := readFrom(asked, r.tp.Partition, r.position)
	r.s.ask(clientEnd, to, req, func(frame []byte, err error) {
		if err == nil && asked == r.topic {
			r.take(frame, to, req)
		}
		r.later()
	})
}

// take holds what is read against what was read before: a record stays where it is, and is of the topic that was asked for.
func (r *reader) take(frame []byte, from int, req *kmsg.FetchRequest) {
	_, resp, err := wire.ReadResponse(frame, req)
	must(err)
	topics := resp.(*kmsg.FetchResponse).Topics
	if len(topics) == 0 || topics[0].Partitions[0].ErrorCode != 0 {
		return
	}
	for bytes := topics[0].Partitions[0].RecordBatches; len(bytes) > 0; {
		batch, rest, err := record.Next(bytes)
		must(err)
		for each, err := range record.Records(batch, r.s.pool, 1<<20) {
			must(err)
			r.note(each.Offset, string(each.Value), from)
		}
		bytes, r.position = rest, batch.NextOffset()
	}
}

func (r *reader) note(offset protocol.Offset, value string, from int) {
	at := place{r.topic, r.tp.Partition, offset}
	before, known := r.s.consumed[at]
	switch {
	case known && before != value:
		r.s.Violate("%d gives %q at offset %d of %s, where %q was read before", from, value, offset, r.tp, before)
	case r.tp.Topic == passingName && !strings.HasPrefix(value, r.topic.String()):
		r.s.Violate("%d gives %q at offset %d of %s, which is not of the topic %s", from, value, offset, r.tp, r.topic)
	}
	r.s.consumed[at] = value
	r.s.counts.Read++
}

// verifyRead: what readers were given is still there, and the last topic has only what was written to it.
func (s *Simulation) verifyRead(logs map[protocol.TopicPartition]contents) {
	image := s.controllers.truth.loader.Image()
	for tp, log := range logs {
		topic := image.Topic(tp.Topic).ID
		for offset, value := range log.values {
			if read, known := s.consumed[place{topic, tp.Partition, offset}]; known && read != value {
				s.Violate("%q was read at offset %d of %s, where there is %q", read, offset, tp, value)
			}
			if tp.Topic == passingName && !strings.HasPrefix(value, topic.String()) {
				s.Violate("%q at offset %d of %s is not of the topic %s", value, offset, tp, topic)
			}
		}
	}
	for at, read := range s.consumed {
		topic := image.TopicByID(at.topic)
		if topic == nil {
			continue
		}
		tp := protocol.TopicPartition{Topic: topic.Name, Partition: at.n}
		if _, there := logs[tp].values[at.offset]; !there {
			s.Violate("%q was read at offset %d of %s, where there is nothing", read, at.offset, tp)
		}
	}
}

// verifyGone: nobody gives anything of a topic that was deleted.
func (s *Simulation) verifyGone(topic protocol.TopicID) {
	for _, m := range s.machines {
		for n := range int32(passingPartitions) {
			req := readFrom(topic, n, 0)
			s.ask(clientEnd, int(m.id), req, func(frame []byte, err error) {
				if err != nil {
					s.Violate("%d does not answer a fetch of a topic that was deleted: %v", m.id, err)
					return
				}
				_, resp, err := wire.ReadResponse(frame, req)
				must(err)
				if code := protocol.ErrorCode(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode); code != protocol.UnknownTopicID {
					s.Violate("%d answers a fetch of a topic that was deleted with %s", m.id, code)
				}
			})
		}
	}
}
