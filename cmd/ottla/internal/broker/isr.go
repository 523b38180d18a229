package broker

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/partition"
)

// isrPause comes before a wish that failed is sent again
// (DefaultAlterPartitionManager).
const isrPause = 50 * time.Millisecond

// ISRAnswer takes the controller's answer to a wish.
type ISRAnswer func(now time.Time, result partition.AlterResult)

// ISRChanges asks the controller for the in-sync replicas that leaders on this node
// wish for. One request at a time is on its way; what is wished for meanwhile goes
// with the next.
type ISRChanges struct {
	NodeID protocol.NodeID
	Epoch  func() protocol.BrokerEpoch // of the registration, -1 before
	Image  func() *metadata.Image
	Send   Send
	Wake   func()

	// How many wishes were granted that take members out, and in, and how many refused; for metrics to read.
	Shrinks, Expands, Failed atomic.Int64

	mu       sync.Mutex
	wished   []isrWish
	waiting  bool
	incoming func(now time.Time) // the answer, for the next Tick
	next     time.Time           // when to send; zero: at once
}

type isrWish struct {
	tp     protocol.TopicPartition
	wish   *partition.AlterPartition
	before int // how many were in sync as far as the metadata knew
	answer ISRAnswer
}

// Ask queues a wish; a later one of the same partition takes its place.
func (c *ISRChanges) Ask(tp protocol.TopicPartition, wish *partition.AlterPartition, answer func(now time.Time, result partition.AlterResult)) {
	w := isrWish{tp: tp, wish: wish, before: len(wish.ISR), answer: answer}
	if known := c.Image().Partition(tp); known != nil {
		w.before = len(known.ISR)
	}
	c.mu.Lock()
	c.wished = slices.DeleteFunc(c.wished, func(w isrWish) bool { return w.tp == tp })
	c.wished = append(c.wished, w)
	c.mu.Unlock()
	c.Wake()
}

// NextDeadline tells when Tick has something to do.
func (c *ISRChanges) NextDeadline(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.incoming != nil:
		return now
	case c.waiting || len(c.wished) == 0 || c.Epoch() < 0:
		return time.Time{}
	case c.next.IsZero():
		return now
	default:
		return c.next
	}
}

// Tick hands on the answer that came and sends what is wished for.
func (c *ISRChanges) Tick(now time.Time) {
	c.mu.Lock()
	incoming := c.incoming
	c.incoming = nil
	c.mu.Unlock()
	if incoming != nil {
		incoming(now)
	}
	c.mu.Lock()
	epoch := c.Epoch()
	if c.waiting || len(c.wished) == 0 || epoch < 0 || now.Before(c.next) {
		c.mu.Unlock()
		return
	}
	sent := c.wished
	c.wished, c.waiting, c.next = nil, true, time.Time{}
	c.mu.Unlock()
	c.Send(c.request(epoch, sent), func(resp kmsg.Response, err error) {
		c.mu.Lock()
		c.incoming = func(now time.Time) { c.take(now, sent, resp, err) }
		c.mu.Unlock()
		c.Wake()
	})
}

func (c *ISRChanges) request(epoch protocol.BrokerEpoch, sent []isrWish) kmsg.Request {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.BrokerID, req.BrokerEpoch = int32(c.NodeID), int64(epoch)
	slices.SortFunc(sent, func(a, b isrWish) int {
		return cmp.Or(slices.Compare(a.wish.TopicID[:], b.wish.TopicID[:]), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	for _, w := range sent {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].TopicID != w.wish.TopicID {
			topic := kmsg.NewAlterPartitionRequestTopic()
			topic.Topic, topic.TopicID = w.tp.Topic, w.wish.TopicID
			req.Topics = append(req.Topics, topic)
		}
		topic := &req.Topics[len(req.Topics)-1]
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.PartitionEpoch = w.tp.Partition, int32(w.wish.LeaderEpoch), w.wish.PartitionEpoch
		for _, member := range w.wish.ISR {
			one := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			one.BrokerID, one.BrokerEpoch = int32(member.ID), int64(c.memberEpoch(member, epoch))
			p.NewEpochISR = append(p.NewEpochISR, one)
			p.NewISR = append(p.NewISR, int32(member.ID))
		}
		topic.Partitions = append(topic.Partitions, p)
	}
	return req
}

// memberEpoch is the registration that is wished for: as the follower fetched, this
// node's own, or what the metadata knows (KIP-903).
func (c *ISRChanges) memberEpoch(member partition.ISRMember, own protocol.BrokerEpoch) protocol.BrokerEpoch {
	switch {
	case member.ID == c.NodeID:
		return own
	case member.BrokerEpoch >= 0:
		return member.BrokerEpoch
	}
	if known := c.Image().Broker(member.ID); known != nil {
		return known.Epoch
	}
	return -1
}

// take hands each wish its answer. Without one, or when this registration is not the
// present one, all of them are asked for again after a pause.
func (c *ISRChanges) take(now time.Time, sent []isrWish, resp kmsg.Response, err error) {
	altered, ok := resp.(*kmsg.AlterPartitionResponse)
	c.mu.Lock()
	c.waiting = false
	if err != nil || !ok || altered.ErrorCode != 0 {
		for _, w := range sent {
			if !slices.ContainsFunc(c.wished, func(later isrWish) bool { return later.tp == w.tp }) {
				c.wished = append(c.wished, w)
			}
		}
		c.next = now.Add(isrPause)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	results := map[topicIDPartition]partition.AlterResult{}
	for _, topic := range altered.Topics {
		for _, p := range topic.Partitions {
			result := partition.AlterResult{Error: protocol.ErrorCode(p.ErrorCode), LeaderEpoch: protocol.LeaderEpoch(p.LeaderEpoch), PartitionEpoch: p.PartitionEpoch}
			for _, id := range p.ISR {
				result.ISR = append(result.ISR, protocol.NodeID(id))
			}
			results[topicIDPartition{topic.TopidID, p.Partition}] = result
		}
	}
	for _, w := range sent {
		result, answered := results[topicIDPartition{w.wish.TopicID, w.tp.Partition}]
		if !answered {
			result.Error = protocol.UnknownServerError
		}
		c.count(w, result.Error)
		if result.Error != protocol.None {
			c.mu.Lock()
			c.next = now.Add(isrPause)
			c.mu.Unlock()
		}
		w.answer(now, result)
	}
}

// count counts as ReplicaManager's IsrShrinksPerSec, IsrExpandsPerSec and FailedIsrUpdatesPerSec do.
func (c *ISRChanges) count(w isrWish, refusal protocol.ErrorCode) {
	switch {
	case refusal != protocol.None:
		c.Failed.Add(1)
	case len(w.wish.ISR) < w.before:
		c.Shrinks.Add(1)
	case len(w.wish.ISR) > w.before:
		c.Expands.Add(1)
	}
}
