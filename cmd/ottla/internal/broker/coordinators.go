package broker

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
)

// Coordinators makes the shards of one internal topic follow this node's
// leadership of its partitions. An Applier drives it, after the replicas have
// taken the roles of the same Image.
type Coordinators struct {
	Topic  string // protocol.ConsumerOffsetsTopic or protocol.TransactionStateTopic
	Shards *shard.Manager
	// TopicsDeleted makes the event by which the machines learn that topics are
	// gone; they were as given. nil: they are not told.
	TopicsDeleted func(topics []*metadata.Topic) any
}

// lead follows one partition of the topic: is its present state, nil if this
// node has no replica that works.
func (c *Coordinators) lead(now time.Time, nodeID protocol.NodeID, n int32, is *metadata.Partition) {
	switch {
	case is == nil:
		c.Shards.Unload(now, n, protocol.NoLeaderEpoch)
	case is.Leader == nodeID:
		c.Shards.Load(now, n, is.LeaderEpoch)
	default:
		c.Shards.Unload(now, n, is.LeaderEpoch)
	}
}

// settings tells the shards how large a batch of the topic may be.
func (c *Coordinators) settings(options *TopicOptions) {
	of := options.Of(c.Topic)
	c.Shards.SetMaxBatchBytes(int(min(int64(of.MaxMessageBytes), of.SegmentBytes)))
}

func (c *Coordinators) topicsDeleted(now time.Time, topics []*metadata.Topic) {
	if c.TopicsDeleted != nil && len(topics) > 0 {
		c.Shards.Broadcast(now, c.TopicsDeleted(topics))
	}
}

// Coordinate adds coordinators, before the first Image.
func (a *Applier) Coordinate(c *Coordinators) { a.coordinators = append(a.coordinators, c) }

// coordinate tells those who coordinate by a topic's partition how that stands.
func (a *Applier) coordinate(now time.Time, tp protocol.TopicPartition, is *metadata.Partition) {
	for _, c := range a.coordinators {
		if c.Topic == tp.Topic {
			c.lead(now, a.nodeID, tp.Partition, is)
		}
	}
}

// InternalTopic is how a coordinator's topic is to be created, with the settings
// that Apache Kafka 4.4.0 gives it (GroupCoordinatorService.
// groupMetadataTopicConfigs, TransactionStateManager.transactionTopicConfigs).
func InternalTopic(node *config.BrokerConfig, name string) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = name
	prefix := "offsets.topic."
	settings := [][2]string{{"cleanup.policy", "compact"}, {"compression.type", "producer"}}
	if name == protocol.TransactionStateTopic {
		prefix = "transaction.state.log."
		settings = [][2]string{
			{"cleanup.policy", "compact"},
			{"compression.type", "uncompressed"},
			{"unclean.leader.election.enable", "false"},
			{"min.insync.replicas", strconv.Itoa(int(node.Int(prefix + "min.isr")))},
		}
	}
	topic.NumPartitions = node.Int(prefix + "num.partitions")
	topic.ReplicationFactor = int16(node.Int(prefix + "replication.factor"))
	settings = append(settings, [2]string{"segment.bytes", strconv.Itoa(int(node.Int(prefix + "segment.bytes")))})
	for _, setting := range settings {
		one := kmsg.NewCreateTopicsRequestTopicConfig()
		one.Name, one.Value = setting[0], kmsg.StringPtr(setting[1])
		topic.Configs = append(topic.Configs, one)
	}
	return topic
}
