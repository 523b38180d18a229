package fetcher

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// session is the client's side of an incremental fetch session (KIP-227, FetchSessionHandler.java).
type session struct {
	id      int32
	epoch   int32 // of the next request; 0 asks for a new session
	members int   // parts that it has
}

// asked is what a request says of a part: the session keeps it until it is said anew.
type asked struct {
	offset    protocol.Offset
	lastEpoch protocol.LeaderEpoch
	logStart  protocol.Offset
}

// reset begins a new session with the next request, which closes the one with this id.
func (one *fetcher) reset(id int32) {
	one.session = session{id: id}
	one.forgotten = nil
	for _, p := range one.parts {
		p.asked = nil
		p.mark()
	}
}

// answered takes the id that a response carries.
func (s *session) answered(id int32) {
	switch {
	case id == 0 || s.id != 0 && s.epoch != 0 && id != s.id:
		s.id, s.epoch = 0, 0 // the leader keeps none
	case s.epoch == math.MaxInt32:
		s.epoch = 1
	default:
		s.id, s.epoch = id, s.epoch+1
	}
}

// build makes the next Fetch of what may be fetched now; nil: there is nothing to ask. mu is held.
func (one *fetcher) build(now time.Time, epoch protocol.BrokerEpoch) *kmsg.FetchRequest {
	o := &one.of.options
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = int32(o.NodeID)
	req.ReplicaState = kmsg.NewFetchRequestReplicaState()
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(o.NodeID), int64(epoch)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(o.MaxWait.Milliseconds()), int32(o.MinBytes), int32(o.ResponseMaxBytes)
	req.SessionID, req.SessionEpoch = one.session.id, one.session.epoch
	b := builder{req: req, fetches: map[protocol.TopicID]int{}, forgets: map[protocol.TopicID]int{}}
	changed, forgotten := one.changed, one.forgotten
	one.changed, one.forgotten = nil, nil
	leaving := make(map[name]bool, len(forgotten))
	for _, n := range forgotten {
		if req.SessionEpoch != 0 {
			b.forget(n)
			leaving[n] = true
		}
	}
	for _, p := range changed {
		p.marked = false
		if !one.fetchable(now, p) {
			if p.asked != nil {
				p.asked = nil
				one.session.members--
				b.forget(p.name)
			}
			continue
		}
		if leaving[p.name] {
			p.mark() // it has to be out of the session before it can come in again: with the next request, which is to be soon
			req.MaxWaitMillis = 0
			continue
		}
		next := asked{p.position.Offset, p.position.LastEpoch, p.position.LogStart}
		if p.asked != nil && *p.asked == next {
			continue
		}
		if p.asked == nil {
			one.session.members++
		}
		p.asked = &next
		b.fetch(p, o.MaxBytes)
	}
	for _, p := range one.delayed {
		req.MaxWaitMillis = min(req.MaxWaitMillis, int32(p.notBefore.Sub(now).Milliseconds())) // it is not to wait for the others' records
	}
	if one.session.members == 0 && len(req.ForgottenTopics) == 0 {
		return nil
	}
	return req
}

// fetchable tells whether a part may be asked for. A throttled one that is behind waits for its share.
func (one *fetcher) fetchable(now time.Time, p *part) bool {
	if p.state != fetching || now.Before(p.notBefore) {
		return false
	}
	if p.lag == 0 && p.answered || !one.of.options.Throttled(p.tp) {
		return true
	}
	allowed, again := one.of.throttle.Ask(now, one.of.options.MaxBytes)
	if allowed > 0 {
		return true
	}
	p.notBefore = again
	one.delayed = append(one.delayed, p) // those whose pause is over have just left
	return false
}

// builder groups partitions by topic, in the order in which they come.
type builder struct {
	req     *kmsg.FetchRequest
	fetches map[protocol.TopicID]int
	forgets map[protocol.TopicID]int
}

func (b *builder) fetch(p *part, maxBytes int) {
	at, found := b.fetches[p.topicID]
	if !found {
		at = len(b.req.Topics)
		b.fetches[p.topicID] = at
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = p.tp.Topic, p.topicID
		b.req.Topics = append(b.req.Topics, topic)
	}
	one := kmsg.NewFetchRequestTopicPartition()
	one.Partition, one.CurrentLeaderEpoch = p.tp.Partition, int32(p.epoch)
	one.FetchOffset, one.LastFetchedEpoch = int64(p.asked.offset), int32(p.asked.lastEpoch)
	one.LogStartOffset, one.PartitionMaxBytes = int64(p.asked.logStart), int32(maxBytes)
	b.req.Topics[at].Partitions = append(b.req.Topics[at].Partitions, one)
}

func (b *builder) forget(n name) {
	at, found := b.forgets[n.topicID]
	if !found {
		at = len(b.req.ForgottenTopics)
		b.forgets[n.topicID] = at
		topic := kmsg.NewFetchRequestForgottenTopic()
		topic.Topic, topic.TopicID = n.tp.Topic, n.topicID
		b.req.ForgottenTopics = append(b.req.ForgottenTopics, topic)
	}
	b.req.ForgottenTopics[at].Partitions = append(b.req.ForgottenTopics[at].Partitions, n.tp.Partition)
}
