package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// classicMember joins, syncs and beats. All its partitions are given up at each rebalance, as with the eager protocol.
type classicMember struct {
	run        *groupRun
	conn       *conn
	index      int
	id         string
	generation int32
	last       time.Time // a heartbeat was sent that was answered
}

func (m *classicMember) live(ctx context.Context, die <-chan struct{}) error {
	for {
		if err := m.join(); err != nil {
			return err
		}
		for {
			dead, err := beat(ctx, die)
			if err != nil {
				return err
			}
			if dead {
				m.run.die(m.index, m.last)
				return nil
			}
			again, err := m.heartbeat()
			if err != nil {
				return err
			}
			if again {
				break
			}
		}
	}
}

// join goes on until it is in a generation with what it was given.
func (m *classicMember) join() error {
	for {
		joined, err := m.joinOnce()
		if err != nil {
			return err
		}
		if joined == nil {
			continue
		}
		done, err := m.sync(joined)
		if done || err != nil {
			return err
		}
	}
}

func (m *classicMember) joinOnce() (*kmsg.JoinGroupResponse, error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 5, m.run.group, m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(sessionTime.Milliseconds()), 30_000
	subscribed := kmsg.ConsumerMemberMetadata{Topics: []string{m.run.topic}}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", subscribed.AppendTo(nil)
	req.Protocols = append(req.Protocols, protocol)
	m.last = time.Now()
	resp, err := m.conn.ask(req)
	if err != nil {
		return nil, err
	}
	joined := resp.(*kmsg.JoinGroupResponse) //nolint:forcetypeassert // ResponseKind
	switch failed := kerr.ErrorForCode(joined.ErrorCode); {
	case failed == nil:
		m.id, m.generation = joined.MemberID, joined.Generation
		return joined, nil
	case errors.Is(failed, kerr.MemberIDRequired):
		m.id = joined.MemberID
		return nil, nil //nolint:nilnil // once more
	case errors.Is(failed, kerr.UnknownMemberID):
		m.id = ""
		return nil, nil //nolint:nilnil // once more
	default:
		return nil, failed
	}
}

// sync gives out the partitions if this is the leader, and takes its own.
func (m *classicMember) sync(joined *kmsg.JoinGroupResponse) (done bool, err error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 3, m.run.group, m.id, m.generation
	if joined.LeaderID == m.id {
		req.GroupAssignment = m.assign(joined.Members)
	}
	m.last = time.Now()
	resp, err := m.conn.ask(req)
	if err != nil {
		return false, err
	}
	synced := resp.(*kmsg.SyncGroupResponse) //nolint:forcetypeassert // ResponseKind
	if failed := kerr.ErrorForCode(synced.ErrorCode); failed != nil {
		return false, m.again(failed)
	}
	var given kmsg.ConsumerMemberAssignment
	if err := given.ReadFrom(synced.MemberAssignment); err != nil {
		return false, err
	}
	var partitions []int32
	for _, t := range given.Topics {
		partitions = append(partitions, t.Partitions...)
	}
	m.run.owns(m.index, m.generation, partitions)
	return true, nil
}

// assign deals the partitions out.
func (m *classicMember) assign(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	var all []kmsg.SyncGroupRequestGroupAssignment
	for i, member := range members {
		topic := kmsg.ConsumerMemberAssignmentTopic{Topic: m.run.topic}
		for p := i; p < m.run.partitions; p += len(members) {
			topic.Partitions = append(topic.Partitions, int32(p))
		}
		given := kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{topic}}
		all = append(all, kmsg.SyncGroupRequestGroupAssignment{MemberID: member.MemberID, MemberAssignment: given.AppendTo(nil)})
	}
	return all
}

// again tells what to do about an error: nil is to join again.
func (m *classicMember) again(failed error) error {
	switch {
	case errors.Is(failed, kerr.RebalanceInProgress), errors.Is(failed, kerr.IllegalGeneration):
		return nil
	case errors.Is(failed, kerr.UnknownMemberID):
		m.id = ""
		return nil
	}
	return failed
}

func (m *classicMember) heartbeat() (again bool, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 3, m.run.group, m.id, m.generation
	sent := time.Now()
	resp, err := m.conn.ask(req)
	if err != nil {
		return false, err
	}
	if failed := kerr.ErrorForCode(resp.(*kmsg.HeartbeatResponse).ErrorCode); failed != nil { //nolint:forcetypeassert // ResponseKind
		return true, m.again(failed)
	}
	m.last = sent
	return false, nil
}
