package fetcher

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// The special timestamps of ListOffsets that are asked.
const (
	latest   int64 = -1
	earliest int64 = -2
)

// unregisteredPause is how often is looked whether the node has registered.
const unregisteredPause = 20 * time.Millisecond

// step begins what is new, and sends the next request, if there is something to ask. busy is set, and stays so until the
// answer is handled.
func (one *fetcher) step(now time.Time) {
	begin, req := one.next(now)
	for len(begin) > 0 {
		for _, p := range begin {
			position, err := one.of.options.Replicas.BeginFollowing(now, p.tp, p.topicID, p.epoch)
			one.settle(now, p, position, err)
		}
		begin, req = one.next(now)
	}
	if req == nil {
		one.of.wake()
		return
	}
	one.of.options.Send(one.leader, one.index, req, func(now time.Time, resp kmsg.Response, frame *wire.Frame, err error) {
		one.of.options.Workers(func() { one.handle(now, resp, frame, err) })
	})
}

// toBegin gives the parts whose position is to be asked, and ends the pauses that are over. mu is held.
func (one *fetcher) toBegin(now time.Time) (begin []*part) {
	waiting := one.delayed[:0]
	for _, p := range one.delayed {
		if now.Before(p.notBefore) {
			waiting = append(waiting, p)
			continue
		}
		p.notBefore = time.Time{}
		p.mark()
	}
	clear(one.delayed[len(waiting):])
	one.delayed = waiting
	for _, p := range one.changed {
		if p.state == starting && !now.Before(p.notBefore) {
			begin = append(begin, p)
		}
	}
	return begin
}

// next gives the parts that are to begin, or makes the next request, or ends the step. All of that is one look: a part that
// is assigned between two would be in neither.
func (one *fetcher) next(now time.Time) (begin []*part, req kmsg.Request) {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if begin = one.toBegin(now); len(begin) > 0 {
		return begin, nil
	}
	epoch, registered := one.of.options.brokerEpoch()
	if !registered {
		one.notBefore = now.Add(unregisteredPause)
	}
	if !one.of.closed && !now.Before(one.notBefore) {
		if req := one.locate(now); req != nil {
			return nil, req
		}
		if req := one.build(now, epoch); req != nil {
			one.requests.mark(now)
			return nil, req
		}
	}
	one.busy = false
	one.dropIfIdle()
	if now.Before(one.notBefore) && len(one.parts) > 0 {
		one.dueAt(one.notBefore)
		return nil, nil
	}
	for _, p := range one.delayed {
		one.dueAt(p.notBefore)
	}
	return nil, nil
}

// locate asks where the logs begin or end that are not where they were fetched. mu is held.
func (one *fetcher) locate(now time.Time) kmsg.Request {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = int32(one.of.options.NodeID)
	topics := map[string]int{}
	for _, p := range one.changed {
		if p.state != locating || now.Before(p.notBefore) {
			continue
		}
		at, found := topics[p.tp.Topic]
		if !found {
			at = len(req.Topics)
			topics[p.tp.Topic] = at
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = p.tp.Topic
			req.Topics = append(req.Topics, topic)
		}
		ask := kmsg.NewListOffsetsRequestTopicPartition()
		ask.Partition, ask.CurrentLeaderEpoch, ask.Timestamp = p.tp.Partition, int32(p.epoch), latest
		if p.leaderEnd != protocol.NoOffset {
			ask.Timestamp = earliest
		}
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, ask)
	}
	if len(req.Topics) == 0 {
		return nil
	}
	return req
}
