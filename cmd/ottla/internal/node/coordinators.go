package node

import (
	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/group"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
)

var _ shard.Transactional = (*group.Coordinator)(nil)

// Groups runs the coordinators of groups on this node.
func (n *Node) Groups() *shard.Manager { return n.groups }

// coordinate makes the coordinators follow the leadership of their partitions.
func (n *Node) coordinate() {
	n.groups = shard.New(n.groupOptions())
	n.applier.Coordinate(&broker.Coordinators{
		Topic: protocol.ConsumerOffsetsTopic, Shards: n.groups, TopicsDeleted: groupTopicsDeleted,
	})
}

func (n *Node) groupOptions() shard.Options {
	machines := group.Options{Settings: group.SettingsOf(n.config), Random: n.options.Random, Image: n.quorum.Image, MaxBatchBytes: n.groupBatchBytes}
	return shard.Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: n.replicas, Pool: n.pool,
		NewMachine:   func(int32) machine.Machine { return group.New(machines) },
		Codec:        compress.Codec(n.config.Int("offsets.topic.compression.codec")),
		ReplyTimeout: millis(int64(n.config.Int("offsets.commit.timeout.ms"))),
		LoadBytes:    int(n.config.Int("offsets.load.buffer.size")),
		Loaders:      int(n.config.Int("group.coordinator.threads")),
		Workers:      n.options.Workers, Wake: n.wakes.of(partGroups), Logger: n.options.Logger,
	}
}

// groupBatchBytes is how many bytes of records a group may write at once: what the
// shard puts into a batch at the most, less its header and what compression may add
// to records that do not compress.
func (n *Node) groupBatchBytes() int {
	limit := n.groups.MaxBatchBytes()
	return limit - limit/128 - 256
}

// groupTopicsDeleted is the event by which groups learn that topics are gone.
func groupTopicsDeleted(topics []*metadata.Topic) any {
	var event group.TopicsDeleted
	for _, topic := range topics {
		event.Topics = append(event.Topics, group.DeletedTopic{Name: topic.Name, ID: topic.ID})
	}
	return event
}
