package replica

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ottla/protocol"
)

// Traffic are the plain counters of one topic on this node, for metrics to read
// (BrokerTopicMetrics). Appends count whoever made them, clients or coordinators;
// reads only those of consumers and followers.
type Traffic struct {
	BytesIn         atomic.Int64 // of batches appended
	MessagesIn      atomic.Int64 // records appended
	BytesRejected   atomic.Int64 // of batches larger than allowed
	ProduceRequests atomic.Int64 // batches that were to be appended
	ProduceFailed   atomic.Int64 // of those, refused for other reasons than the role, the size or the disk
	FetchRequests   atomic.Int64 // partitions that were read
	FetchFailed     atomic.Int64 // of those, for which Kafka has no code
	BytesOut        atomic.Int64 // of records given to consumers
	ReplicatedOut   atomic.Int64 // of records given to followers
}

// topicTraffic has the counters of topics that have replicas here, and the sums of
// those that no longer have.
type topicTraffic struct {
	mu     sync.Mutex
	topics map[string]*trafficOf
	past   Traffic // also of requests for partitions that are not here
}

type trafficOf struct {
	Traffic
	replicas int
}

// of gives the counters of a topic to one more replica.
func (t *topicTraffic) of(topic string) *Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.topics[topic]
	if found == nil {
		found = new(trafficOf)
		if t.topics == nil {
			t.topics = map[string]*trafficOf{}
		}
		t.topics[topic] = found
	}
	found.replicas++
	return &found.Traffic
}

// leave says that one replica is gone. What is still on its way is not counted.
func (t *topicTraffic) leave(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.topics[topic]; found != nil {
		if found.replicas--; found.replicas == 0 {
			t.past.add(&found.Traffic)
			delete(t.topics, topic)
		}
	}
}

func (c *Traffic) add(other *Traffic) {
	c.BytesIn.Add(other.BytesIn.Load())
	c.MessagesIn.Add(other.MessagesIn.Load())
	c.BytesRejected.Add(other.BytesRejected.Load())
	c.ProduceRequests.Add(other.ProduceRequests.Load())
	c.ProduceFailed.Add(other.ProduceFailed.Load())
	c.FetchRequests.Add(other.FetchRequests.Load())
	c.FetchFailed.Add(other.FetchFailed.Load())
	c.BytesOut.Add(other.BytesOut.Load())
	c.ReplicatedOut.Add(other.ReplicatedOut.Load())
}

// EachTraffic calls visit with the counters of every topic that has replicas here,
// by name, and at last with those of all, which never fall, under the name "".
func (m *Manager) EachTraffic(visit func(topic string, traffic *Traffic)) {
	type named struct {
		topic   string
		traffic *Traffic
	}
	all := new(Traffic)
	m.traffic.mu.Lock()
	topics := make([]named, 0, len(m.traffic.topics))
	for topic, of := range m.traffic.topics {
		topics = append(topics, named{topic, &of.Traffic})
	}
	all.add(&m.traffic.past)
	m.traffic.mu.Unlock()
	slices.SortFunc(topics, func(a, b named) int { return strings.Compare(a.topic, b.topic) })
	for _, of := range topics {
		all.add(of.traffic)
		visit(of.topic, of.traffic)
	}
	visit("", all)
}

// trafficOf gives the counters of a replica; those of none are kept apart.
func (m *Manager) trafficOf(r *Replica) *Traffic {
	if r == nil {
		return &m.traffic.past
	}
	return r.traffic
}

// appended counts a batch that the log has taken; a duplicate was counted before.
// The bytes are not the replica's any more and are not looked at.
func (c *Traffic) appended(a *pendingAppend) {
	if !a.entry.Duplicate {
		c.BytesIn.Add(int64(len(a.entry.Batch)))
		c.MessagesIn.Add(int64(a.entry.LastOffset - a.entry.FirstOffset + 1))
	}
}

// refused counts a batch of so many bytes that was not appended. What does not
// count as failed is Kafka's choice (ReplicaManager.appendRecordsToLeader).
func (c *Traffic) refused(sizeBytes int, err error) {
	switch protocol.CodeOf(err) {
	case protocol.UnknownTopicOrPartition, protocol.NotLeaderOrFollower, protocol.CorruptMessage, protocol.KafkaStorageError:
	case protocol.MessageTooLarge, protocol.RecordListTooLarge:
		c.BytesRejected.Add(int64(sizeBytes))
	default:
		c.ProduceFailed.Add(1)
	}
}

// count adds what a fetch gave to whom.
func (p *poll) count(results []FetchResult) {
	if p.req.Replica == Debugging {
		return // tools and coordinators
	}
	for i := range results {
		traffic := p.manager.trafficOf(p.slots[i].replica)
		traffic.FetchRequests.Add(1)
		if protocol.CodeOf(results[i].Err) == protocol.UnknownServerError {
			traffic.FetchFailed.Add(1)
		}
		switch size := results[i].Records.Len(); {
		case size == 0:
		case p.req.Replica >= 0:
			traffic.ReplicatedOut.Add(size)
		default:
			traffic.BytesOut.Add(size)
		}
	}
}
