package broker

import (
	"sync"

	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
)

// Spread knows over how many partitions of a coordinator's topic its keys are
// spread: those that the topic had when this node first saw it, as a Kafka broker
// counts them when it starts, so that partitions added later move no key away from
// what is known of it.
type Spread struct {
	topic      string
	configured int
	image      func() *metadata.Image

	mu         sync.Mutex
	id         protocol.TopicID
	partitions int
}

// NewSpread makes the Spread of a topic, which is to be created with configured
// partitions.
func NewSpread(topic string, configured int, image func() *metadata.Image) *Spread {
	return &Spread{topic: topic, configured: configured, image: image}
}

// PartitionFor is the partition that holds a key.
func (s *Spread) PartitionFor(key string) int32 {
	topic := s.image().Topic(s.topic)
	if topic == nil {
		return shard.PartitionFor(key, s.configured)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != topic.ID {
		s.id, s.partitions = topic.ID, topic.PartitionCount()
	}
	return shard.PartitionFor(key, s.partitions)
}
