package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topic makes a new topic and waits until all its partitions have their leader and their replicas.
func (s *server) topic(ctx context.Context, partitions int) (string, error) {
	s.count++
	name := fmt.Sprintf("bench-%d", s.count)
	if err := s.ref.CreateReplicated(ctx, name, partitions, s.replicas, nil); err != nil {
		return "", err
	}
	for ctx.Err() == nil {
		leaders, err := s.findLeaders(ctx, name, partitions)
		if err != nil {
			return "", err
		}
		if leaders != nil {
			s.leaders[name] = leaders
			return name, nil
		}
		time.Sleep(retryPause)
	}
	return "", ctx.Err()
}

// findLeaders gives the address of each partition's leader once all are in sync and know their role; nil before.
func (s *server) findLeaders(ctx context.Context, topic string, partitions int) ([]string, error) {
	c, err := dial(ctx, s.Addr())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 1
	in := kmsg.NewMetadataRequestTopic()
	in.Topic = &topic
	req.Topics = append(req.Topics, in)
	resp, err := c.ask(req)
	if err != nil {
		return nil, err
	}
	metadata := resp.(*kmsg.MetadataResponse) //nolint:forcetypeassert // ResponseKind
	addresses := map[int32]string{}
	for _, one := range metadata.Brokers {
		addresses[one.NodeID] = net.JoinHostPort(one.Host, strconv.Itoa(int(one.Port)))
	}
	leaders, led := make([]string, partitions), map[string][]int32{}
	known := 0
	for _, one := range metadata.Topics[0].Partitions {
		at := addresses[one.Leader]
		if at == "" || len(one.ISR) < s.replicas {
			return nil, nil
		}
		leaders[one.Partition], led[at] = at, append(led[at], one.Partition)
		known++
	}
	if known < partitions {
		return nil, nil
	}
	for at, list := range led {
		if knows, err := knowsItLeads(ctx, at, topic, list); err != nil || !knows {
			return nil, err
		}
	}
	return leaders, nil
}

// knowsItLeads asks a broker for the ends of partitions.
func knowsItLeads(ctx context.Context, addr, topic string, partitions []int32) (bool, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 1, -1
	in := kmsg.NewListOffsetsRequestTopic()
	in.Topic = topic
	for _, p := range partitions {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = p, -1
		in.Partitions = append(in.Partitions, part)
	}
	req.Topics = append(req.Topics, in)
	resp, err := c.ask(req)
	if err != nil {
		return false, err
	}
	for _, part := range resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions { //nolint:forcetypeassert // ResponseKind
		if part.ErrorCode != 0 {
			return false, nil
		}
	}
	return true, nil
}
