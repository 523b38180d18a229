package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/segmentio/kafka-go"

	"ottla/compat/suite"
)

// with runs something with the library's low-level client.
func with[T any](c *client, what func(*kafka.Client) (T, error)) (T, error) {
	transport := &kafka.Transport{MetadataTTL: metadataTTL}
	defer transport.CloseIdleConnections()
	return what(&kafka.Client{Addr: kafka.TCP(c.addr), Transport: transport})
}

// ListOffset asks for the offset at a timestamp, at the beginning or at the end.
func (c *client) ListOffset(ctx context.Context, topic string, partition int32, at int64) (offset, timestamp int64, err error) {
	answer, err := with(c, func(k *kafka.Client) (*kafka.ListOffsetsResponse, error) {
		return k.ListOffsets(ctx, &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{topic: {{Partition: int(partition), Timestamp: at}}},
		})
	})
	if err != nil {
		return 0, 0, err
	}
	p := answer.Topics[topic][0]
	switch {
	case p.Error != nil:
		return 0, 0, p.Error
	case at == kafka.FirstOffset:
		return p.FirstOffset, -1, nil
	case at == kafka.LastOffset:
		return p.LastOffset, -1, nil
	}
	for offset, timestamp := range p.Offsets {
		if timestamp.IsZero() {
			return offset, -1, nil
		}
		return offset, timestamp.UnixMilli(), nil
	}
	return -1, -1, nil
}

// CreateTopic creates a topic with one replica a partition.
func (c *client) CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error {
	config := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: configs[key]})
	}
	answer, err := with(c, func(k *kafka.Client) (*kafka.CreateTopicsResponse, error) {
		return k.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// DeleteTopic deletes a topic.
func (c *client) DeleteTopic(ctx context.Context, topic string) error {
	answer, err := with(c, func(k *kafka.Client) (*kafka.DeleteTopicsResponse, error) {
		return k.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// CreatePartitions raises the number of partitions to total.
func (c *client) CreatePartitions(ctx context.Context, topic string, total int) error {
	answer, err := with(c, func(k *kafka.Client) (*kafka.CreatePartitionsResponse, error) {
		return k.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(total)}},
		})
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *client) metadata(ctx context.Context, topics ...string) (*kafka.MetadataResponse, error) {
	return with(c, func(k *kafka.Client) (*kafka.MetadataResponse, error) {
		return k.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	})
}

// Topics lists the names of all topics that are not internal.
func (c *client) Topics(ctx context.Context) ([]string, error) {
	answer, err := c.metadata(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, topic := range answer.Topics {
		if !topic.Internal {
			names = append(names, topic.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Partitions counts the partitions and fails if one has no leader.
func (c *client) Partitions(ctx context.Context, topic string) (int, error) {
	answer, err := c.metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	if answer.Topics[0].Error != nil {
		return 0, answer.Topics[0].Error
	}
	for _, p := range answer.Topics[0].Partitions {
		if p.Error != nil || p.Leader.Host == "" {
			return 0, fmt.Errorf("partition %d has no leader: %w", p.ID, p.Error)
		}
	}
	return len(answer.Topics[0].Partitions), nil
}

// TopicConfigs reads a topic's configuration.
func (c *client) TopicConfigs(ctx context.Context, topic string) (map[string]string, error) {
	answer, err := with(c, func(k *kafka.Client) (*kafka.DescribeConfigsResponse, error) {
		return k.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}},
		})
	})
	if err != nil {
		return nil, err
	}
	if answer.Resources[0].Error != nil {
		return nil, answer.Resources[0].Error
	}
	values := map[string]string{}
	for _, entry := range answer.Resources[0].ConfigEntries {
		values[entry.ConfigName] = entry.ConfigValue
	}
	return values, nil
}

// Commit sets what a group without members has committed.
func (c *client) Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	var to []kafka.OffsetCommit
	for _, partition := range slices.Sorted(maps.Keys(offsets)) {
		to = append(to, kafka.OffsetCommit{Partition: int(partition), Offset: offsets[partition]})
	}
	answer, err := with(c, func(k *kafka.Client) (*kafka.OffsetCommitResponse, error) {
		return k.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: to},
		})
	})
	if err != nil {
		return err
	}
	for _, p := range answer.Topics[topic] {
		if p.Error != nil {
			return p.Error
		}
	}
	return nil
}

// Committed tells what a group has committed for a topic, by partition.
func (c *client) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	count, err := c.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	var all []int
	for partition := range count {
		all = append(all, partition)
	}
	answer, err := with(c, func(k *kafka.Client) (*kafka.OffsetFetchResponse, error) {
		return k.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: all}})
	})
	if err != nil {
		return nil, err
	}
	committed := map[int32]int64{}
	for _, p := range answer.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		if p.CommittedOffset >= 0 {
			committed[int32(p.Partition)] = p.CommittedOffset
		}
	}
	return committed, answer.Error
}

var _ interface {
	suite.GroupMember
	suite.OffsetLister
	suite.TopicAdmin
	suite.Describer
	suite.ConfigReader
	suite.GroupAdmin
} = (*client)(nil)
