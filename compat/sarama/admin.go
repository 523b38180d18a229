package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"ottla/compat/suite"
)

// admin runs something with an admin client.
func (c *client) admin(what func(sarama.Client, sarama.ClusterAdmin) error) error {
	connected, err := sarama.NewClient([]string{c.addr}, settings())
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdminFromClient(connected)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	return what(connected, admin)
}

// ListOffset asks for the offset at a timestamp or at one of the special values.
func (c *client) ListOffset(_ context.Context, topic string, partition int32, at int64) (offset, timestamp int64, err error) {
	err = c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		results, err := a.ListOffsets(map[string]map[int32]int64{topic: {partition: at}}, nil)
		if err != nil {
			return err
		}
		result := results[topic][partition]
		offset, timestamp = result.Offset, result.Timestamp
		if errors.Is(result.Err, sarama.ErrNoError) {
			return nil
		}
		return result.Err
	})
	return offset, timestamp, err
}

// CreateTopic creates a topic with one replica a partition.
func (c *client) CreateTopic(_ context.Context, topic string, partitions int, configs map[string]string) error {
	detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for key, value := range configs {
		detail.ConfigEntries[key] = &value
	}
	return c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error { return a.CreateTopic(topic, detail, false) })
}

// DeleteTopic deletes a topic.
func (c *client) DeleteTopic(_ context.Context, topic string) error {
	return c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error { return a.DeleteTopic(topic) })
}

// CreatePartitions raises the number of partitions to total.
func (c *client) CreatePartitions(_ context.Context, topic string, total int) error {
	return c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		return a.CreatePartitions(topic, int32(total), nil, false)
	})
}

// Topics lists the names of all topics.
func (c *client) Topics(context.Context) (names []string, err error) {
	err = c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		topics, err := a.ListTopics()
		names = slices.Sorted(maps.Keys(topics))
		return err
	})
	return names, err
}

// Partitions counts the partitions and fails if one has no leader.
func (c *client) Partitions(_ context.Context, topic string) (count int, err error) {
	err = c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		topics, err := a.DescribeTopics([]string{topic})
		if err != nil {
			return err
		}
		if topics[0].Err != sarama.ErrNoError {
			return topics[0].Err
		}
		for _, p := range topics[0].Partitions {
			if p.Err != sarama.ErrNoError || p.Leader < 0 {
				return fmt.Errorf("partition %d has leader %d: %w", p.ID, p.Leader, p.Err)
			}
		}
		count = len(topics[0].Partitions)
		return nil
	})
	return count, err
}

// TopicConfigs reads a topic's configuration.
func (c *client) TopicConfigs(_ context.Context, topic string) (map[string]string, error) {
	values := map[string]string{}
	err := c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		entries, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		for _, e := range entries {
			values[e.Name] = e.Value
		}
		return err
	})
	return values, err
}

// DeleteRecords deletes what lies before an offset; Latest means all. The admin client does not tell the new log start, the
// leader's answer does.
func (c *client) DeleteRecords(_ context.Context, topic string, partition int32, before int64) (low int64, err error) {
	err = c.admin(func(connected sarama.Client, _ sarama.ClusterAdmin) error {
		leader, err := connected.Leader(topic, partition)
		if err != nil {
			return err
		}
		response, err := leader.DeleteRecords(&sarama.DeleteRecordsRequest{
			Version: 2, Timeout: 100 * time.Second,
			Topics: map[string]*sarama.DeleteRecordsRequestTopic{topic: {PartitionOffsets: map[int32]int64{partition: before}}},
		})
		if err != nil {
			return err
		}
		answer := response.Topics[topic].Partitions[partition]
		low = answer.LowWatermark
		if answer.Err != sarama.ErrNoError {
			return answer.Err
		}
		return nil
	})
	return low, err
}

// Commit sets what a group without members has committed.
func (c *client) Commit(_ context.Context, group, topic string, offsets map[int32]int64) error {
	to := map[int32]sarama.OffsetAndMetadata{}
	for partition, offset := range offsets {
		to[partition] = sarama.OffsetAndMetadata{Offset: offset, LeaderEpoch: -1}
	}
	return c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		response, err := a.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{topic: to}, nil)
		if err != nil {
			return err
		}
		for _, partition := range slices.Sorted(maps.Keys(response.Errors[topic])) {
			if code := response.Errors[topic][partition]; code != sarama.ErrNoError {
				return code
			}
		}
		return nil
	})
}

// Committed tells what a group has committed for a topic, by partition.
func (c *client) Committed(_ context.Context, group, topic string) (map[int32]int64, error) {
	committed := map[int32]int64{}
	err := c.admin(func(_ sarama.Client, a sarama.ClusterAdmin) error {
		answers, err := a.ListConsumerGroupOffsetsBatch(map[string]map[string][]int32{group: nil})
		if err != nil {
			return err
		}
		answer := answers[group]
		if answer.Err != sarama.ErrNoError {
			return answer.Err
		}
		for partition, block := range answer.Blocks[topic] {
			if block.Offset >= 0 {
				committed[partition] = block.Offset
			}
		}
		return nil
	})
	return committed, err
}

var _ interface {
	suite.Streamer
	suite.GroupMember
	suite.OffsetLister
	suite.TopicAdmin
	suite.Describer
	suite.ConfigReader
	suite.RecordDeleter
	suite.GroupAdmin
} = (*client)(nil)
