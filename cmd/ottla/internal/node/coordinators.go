package node

import (
	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
)

// Groups runs the coordinators of groups on this node; nil if it has none.
func (n *Node) Groups() *shard.Manager { return n.groups }

// coordinate makes the coordinators follow the leadership of their partitions,
// if this build has any.
func (n *Node) coordinate() {
	if n.options.NewGroupMachine == nil {
		return
	}
	n.groups = shard.New(n.groupOptions())
	n.applier.Coordinate(&broker.Coordinators{
		Topic: protocol.ConsumerOffsetsTopic, Shards: n.groups, TopicsDeleted: n.options.GroupTopicsDeleted,
	})
}

func (n *Node) groupOptions() shard.Options {
	return shard.Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: n.replicas, Pool: n.pool, NewMachine: n.options.NewGroupMachine,
		Codec:        compress.Codec(n.config.Int("offsets.topic.compression.codec")),
		ReplyTimeout: millis(int64(n.config.Int("offsets.commit.timeout.ms"))),
		LoadBytes:    int(n.config.Int("offsets.load.buffer.size")),
		Loaders:      int(n.config.Int("group.coordinator.threads")),
		Workers:      n.options.Workers, Wake: n.wakes.of(partGroups), Logger: n.options.Logger,
	}
}
