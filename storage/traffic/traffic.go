package traffic

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ottla/protocol"
)

// Counters are those of one topic on this node. Appends count whoever made them, clients or coordinators;
// reads only those of consumers and followers.
type Counters struct {
	BytesIn         atomic.Int64 // of batches appended
	MessagesIn      atomic.Int64 // records appended
	BytesRejected   atomic.Int64 // of batches larger than allowed
	ProduceRequests atomic.Int64 // batches that were to be appended
	ProduceFailed   atomic.Int64 // of those, refused for other reasons than the role, the size or the disk
	FetchRequests   atomic.Int64 // partitions that were read
	FetchFailed     atomic.Int64 // of those, for which Kafka has no code
	BytesOut        atomic.Int64 // of records given to consumers
	ReplicatedOut   atomic.Int64 // of records given to followers
	ReplicatedIn    atomic.Int64 // of batches that followers here have copied from leaders
}

// Topics has the counters of topics that have replicas here, and the sums of
// those that no longer have.
type Topics struct {
	mu     sync.Mutex
	topics map[string]*counted
	past   Counters // also of requests for partitions that are not here
}

type counted struct {
	Counters
	replicas int
}

// Of gives the counters of a topic to one more replica.
func (t *Topics) Of(topic string) *Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.topics[topic]
	if found == nil {
		found = new(counted)
		if t.topics == nil {
			t.topics = map[string]*counted{}
		}
		t.topics[topic] = found
	}
	found.replicas++
	return &found.Counters
}

// Leave says that one replica is gone. What is still on its way is not counted.
func (t *Topics) Leave(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.topics[topic]; found != nil {
		if found.replicas--; found.replicas == 0 {
			t.past.add(&found.Counters)
			delete(t.topics, topic)
		}
	}
}

// Nowhere counts requests for partitions that are not here.
func (t *Topics) Nowhere() *Counters { return &t.past }

func (c *Counters) add(other *Counters) {
	c.BytesIn.Add(other.BytesIn.Load())
	c.MessagesIn.Add(other.MessagesIn.Load())
	c.BytesRejected.Add(other.BytesRejected.Load())
	c.ProduceRequests.Add(other.ProduceRequests.Load())
	c.ProduceFailed.Add(other.ProduceFailed.Load())
	c.FetchRequests.Add(other.FetchRequests.Load())
	c.FetchFailed.Add(other.FetchFailed.Load())
	c.BytesOut.Add(other.BytesOut.Load())
	c.ReplicatedOut.Add(other.ReplicatedOut.Load())
	c.ReplicatedIn.Add(other.ReplicatedIn.Load())
}

// Each calls visit with the counters of every topic that has replicas here,
// by name, and at last with those of all, which never fall, under the name "".
func (t *Topics) Each(visit func(topic string, counters *Counters)) {
	type named struct {
		topic    string
		counters *Counters
	}
	all := new(Counters)
	t.mu.Lock()
	topics := make([]named, 0, len(t.topics))
	for topic, of := range t.topics {
		topics = append(topics, named{topic, &of.Counters})
	}
	all.add(&t.past)
	t.mu.Unlock()
	slices.SortFunc(topics, func(a, b named) int { return strings.Compare(a.topic, b.topic) })
	for _, of := range topics {
		all.add(of.counters)
		visit(of.topic, of.counters)
	}
	visit("", all)
}

// Appended counts a batch that the log has taken. A duplicate is not to be told: it was counted before.
func (c *Counters) Appended(sizeBytes int, records int64) {
	c.BytesIn.Add(int64(sizeBytes))
	c.MessagesIn.Add(records)
}

// Refused counts a batch of so many bytes that was not appended. What does not
// count as failed is Kafka's choice (ReplicaManager.appendRecordsToLeader).
func (c *Counters) Refused(sizeBytes int, err error) {
	switch protocol.CodeOf(err) {
	case protocol.UnknownTopicOrPartition, protocol.NotLeaderOrFollower, protocol.CorruptMessage, protocol.KafkaStorageError:
	case protocol.MessageTooLarge, protocol.RecordListTooLarge:
		c.BytesRejected.Add(int64(sizeBytes))
	default:
		c.ProduceFailed.Add(1)
	}
}

// Fetched counts what a consumer or a follower got of one partition.
func (c *Counters) Fetched(sizeBytes int64, follower bool, err error) {
	c.FetchRequests.Add(1)
	if protocol.CodeOf(err) == protocol.UnknownServerError {
		c.FetchFailed.Add(1)
	}
	if follower {
		c.ReplicatedOut.Add(sizeBytes)
	} else {
		c.BytesOut.Add(sizeBytes)
	}
}
