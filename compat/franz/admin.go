package franz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// admin runs f with an admin client.
func (c *Client) admin(f func(*kgo.Client, *kadm.Client) error) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client, kadm.NewClient(client))
}

// ListOffset asks for the offset at a timestamp or at one of the special values.
func (c *Client) ListOffset(ctx context.Context, topic string, partition int32, at int64) (int64, int64, error) {
	return c.listOffset(ctx, topic, partition, at, false)
}

// listOffset asks again where there is no leader for a moment, as on a busy machine where a broker's heartbeat is late.
func (c *Client) listOffset(ctx context.Context, topic string, partition int32, at int64, committed bool) (offset, timestamp int64, err error) {
	client, err := c.connect()
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	for {
		offset, timestamp, err = askOffset(ctx, client, topic, partition, at, committed)
		if !errors.Is(err, kerr.NotLeaderForPartition) && !errors.Is(err, kerr.LeaderNotAvailable) {
			return offset, timestamp, err
		}
		select {
		case <-ctx.Done():
			return 0, 0, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func askOffset(ctx context.Context, client *kgo.Client, topic string, partition int32, at int64, committed bool) (int64, int64, error) {
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp, part.CurrentLeaderEpoch = partition, at, -1
	reqTopic := kmsg.NewListOffsetsRequestTopic()
	reqTopic.Topic = topic
	reqTopic.Partitions = append(reqTopic.Partitions, part)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if committed {
		req.IsolationLevel = 1
	}
	req.Topics = append(req.Topics, reqTopic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, 0, fmt.Errorf("ListOffsets: %w", err)
	}
	answer := resp.Topics[0].Partitions[0]
	return answer.Offset, answer.Timestamp, kerr.ErrorForCode(answer.ErrorCode)
}

// CreateTopic creates a topic whose replicas are where Place says, or else as many a partition as the cluster gives by itself.
func (c *Client) CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error {
	if c.Place == nil {
		return c.CreateReplicated(ctx, topic, partitions, -1, configs)
	}
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.NumPartitions, wanted.ReplicationFactor = -1, -1
	for n := range partitions {
		wanted.ReplicaAssignment = append(wanted.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(n), Replicas: c.Place(n)})
	}
	return c.create(ctx, topic, wanted, configs)
}

// CreateReplicated creates a topic with so many replicas of each partition.
func (c *Client) CreateReplicated(ctx context.Context, topic string, partitions, replicas int, configs map[string]string) error {
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.NumPartitions, wanted.ReplicationFactor = int32(partitions), int16(replicas)
	return c.create(ctx, topic, wanted, configs)
}

func (c *Client) create(ctx context.Context, topic string, wanted kmsg.CreateTopicsRequestTopic, configs map[string]string) error {
	wanted.Topic = topic
	for k, v := range configs {
		wanted.Configs = append(wanted.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: k, Value: &v})
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, wanted)
	return c.admin(func(client *kgo.Client, _ *kadm.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
		made := resp.Topics[0]
		if err := kerr.ErrorForCode(made.ErrorCode); err != nil {
			return fmt.Errorf("create %s: %w (%s)", topic, err, *cmp.Or(made.ErrorMessage, new(string)))
		}
		return nil
	})
}

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	return c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		resp, err := a.DeleteTopics(ctx, topic)
		if err != nil {
			return err
		}
		return resp.Error()
	})
}

// CreatePartitions raises the number of partitions to total.
func (c *Client) CreatePartitions(ctx context.Context, topic string, total int) error {
	return c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		resp, err := a.UpdatePartitions(ctx, total, topic)
		if err != nil {
			return err
		}
		return resp.Error()
	})
}

// Partitions counts the partitions and fails if one has no leader.
func (c *Client) Partitions(ctx context.Context, topic string) (int, error) {
	count := 0
	err := c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		topics, err := a.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		detail := topics[topic]
		if detail.Err != nil {
			return detail.Err
		}
		for _, p := range detail.Partitions {
			if p.Err != nil || p.Leader < 0 {
				return fmt.Errorf("partition %d has leader %d: %w", p.Partition, p.Leader, p.Err)
			}
		}
		count = len(detail.Partitions)
		return nil
	})
	return count, err
}

// Topics lists the names of all topics that are not internal.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	var names []string
	err := c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		topics, err := a.ListTopics(ctx)
		if err != nil {
			return err
		}
		names = topics.Names()
		return nil
	})
	slices.Sort(names)
	return names, err
}

// TopicConfigs reads a topic's configuration.
func (c *Client) TopicConfigs(ctx context.Context, topic string) (map[string]string, error) {
	values := map[string]string{}
	err := c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		resources, err := a.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		resource, err := resources.On(topic, nil)
		if err != nil {
			return err
		}
		if resource.Err != nil {
			return resource.Err
		}
		for _, config := range resource.Configs {
			values[config.Key] = config.MaybeValue()
		}
		return nil
	})
	return values, err
}

// DeleteRecords deletes what lies before an offset; Latest means all.
func (c *Client) DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error) {
	var low int64
	err := c.admin(func(_ *kgo.Client, a *kadm.Client) error {
		offsets := kadm.Offsets{}
		offsets.AddOffset(topic, partition, before, -1)
		resp, err := a.DeleteRecords(ctx, offsets)
		if err != nil {
			return err
		}
		answer, ok := resp.Lookup(topic, partition)
		if !ok {
			return fmt.Errorf("no answer for %s-%d", topic, partition)
		}
		low = answer.LowWatermark
		return answer.Err
	})
	return low, err
}
