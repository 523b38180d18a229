package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nextMember is a member of the next-generation protocol (KIP-848): one request says and hears everything. It gives up at once
// what it is told to.
type nextMember struct {
	run   *groupRun
	conn  *conn
	index int
	id    string
	epoch int32
	owned []int32
	told  []int32 // what the coordinator was last told
	last  time.Time
}

func (m *nextMember) live(ctx context.Context, die <-chan struct{}) error {
	id := [16]byte{}
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	m.id = fmt.Sprintf("%x-%d", id, m.index)
	for first := true; ; first = false {
		changed, err := m.heartbeat(first)
		if err != nil {
			return err
		}
		if changed {
			continue // what it has given up or taken is told at once
		}
		dead, err := beat(ctx, die)
		if err != nil {
			return err
		}
		if dead {
			m.run.die(m.index, m.last)
			return nil
		}
	}
}

func (m *nextMember) heartbeat(first bool) (changed bool, err error) {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch = 1, m.run.group, m.id, m.epoch
	if first {
		req.SubscribedTopicNames = []string{m.run.topic}
		req.RebalanceTimeoutMillis = 30_000
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	} else if !slices.Equal(m.owned, m.told) {
		topic := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		topic.TopicID, topic.Partitions = m.run.topicID, m.owned
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{topic}
		m.told = m.owned
	}
	sent := time.Now()
	resp, err := m.conn.ask(req)
	if err != nil {
		return false, err
	}
	answer := resp.(*kmsg.ConsumerGroupHeartbeatResponse) //nolint:forcetypeassert // ResponseKind
	if failed := kerr.ErrorForCode(answer.ErrorCode); failed != nil {
		if errors.Is(failed, kerr.NotCoordinator) || errors.Is(failed, kerr.CoordinatorLoadInProgress) {
			return false, nil
		}
		return false, failed
	}
	m.last = sent
	moved := m.epoch != answer.MemberEpoch
	m.epoch = answer.MemberEpoch
	if answer.Assignment != nil {
		var given []int32
		for _, t := range answer.Assignment.Topics {
			given = append(given, t.Partitions...)
		}
		slices.Sort(given)
		changed = !slices.Equal(given, m.owned)
		m.owned = given
	}
	if moved || changed {
		m.run.owns(m.index, m.epoch, m.owned)
	}
	return changed, nil
}
