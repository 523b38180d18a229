package franz

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/suite"
)

// ConsumerGroup is a group of either protocol, as its coordinator describes it.
type ConsumerGroup struct {
	State    string
	Consumer bool   // the group is of the protocol consumer
	Epoch    int32  // of a group of the protocol consumer
	Assignor string // of one as well
	Members  map[string]ConsumerMember
}

// ConsumerMember is one member of it.
type ConsumerMember struct {
	InstanceID string
	Epoch      int32 // of one of the protocol consumer
	Classic    bool  // it speaks the classic protocol
	Partitions map[string][]int32
}

// ConsumerGroup describes a group.
func (c *Client) ConsumerGroup(ctx context.Context, group string) (described ConsumerGroup, err error) {
	err = c.admin(func(client *kgo.Client, _ *kadm.Client) error {
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = []string{group}
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return fmt.Errorf("ConsumerGroupDescribe: %w", err)
		}
		g := resp.Groups[0]
		if g.ErrorCode == kerr.GroupIDNotFound.Code {
			described, err = classicGroup(ctx, client, group)
			return err
		}
		described = ConsumerGroup{State: g.State, Consumer: true, Epoch: g.Epoch, Assignor: g.AssignorName, Members: map[string]ConsumerMember{}}
		for _, m := range g.Members {
			one := ConsumerMember{Epoch: m.MemberEpoch, Classic: m.MemberType == 0, Partitions: map[string][]int32{}}
			if m.InstanceID != nil {
				one.InstanceID = *m.InstanceID
			}
			for _, of := range m.Assignment.TopicPartitions {
				one.Partitions[of.Topic] = of.Partitions
			}
			described.Members[m.MemberID] = one
		}
		return kerr.ErrorForCode(g.ErrorCode)
	})
	return described, err
}

func classicGroup(ctx context.Context, client *kgo.Client, group string) (ConsumerGroup, error) {
	found, err := kadm.NewClient(client).DescribeGroups(ctx, group)
	if err != nil {
		return ConsumerGroup{}, err
	}
	described := ConsumerGroup{State: found[group].State, Members: map[string]ConsumerMember{}}
	for _, m := range found[group].Members {
		one := ConsumerMember{Classic: true, Partitions: map[string][]int32{}}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, of := range assigned.Topics {
				one.Partitions[of.Topic] = of.Partitions
			}
		}
		described.Members[m.MemberID] = one
	}
	return described, found[group].Err
}

// Beat says hello in a group of the protocol consumer, and gives the name of the error that is answered, if there is one.
func (c *Client) Beat(ctx context.Context, group, topic string) (name string, err error) {
	err = c.admin(func(client *kgo.Client, _ *kadm.Client) error {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Group, req.MemberID, req.RebalanceTimeoutMillis = group, "somebody", 30_000
		req.SubscribedTopicNames, req.Topics = []string{topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		resp, err := req.RequestWith(ctx, client)
		if err == nil {
			name = suite.ErrorName(kerr.ErrorForCode(resp.ErrorCode))
		}
		return err
	})
	return name, err
}
