package group

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/protocol"
)

// heartbeat prolongs a member's session and tells it of a rebalance.
func (c *Coordinator) heartbeat(d *decision, m *kmsg.HeartbeatRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.HeartbeatResponse)
	response.ErrorCode = code(c.beat(d, m))
	return response
}

func (c *Coordinator) beat(d *decision, m *kmsg.HeartbeatRequest) protocol.ErrorCode {
	if m.Group == "" {
		return protocol.InvalidGroupID
	}
	known := c.lookup(m.Group)
	switch {
	case known == nil:
		return protocol.UnknownMemberID
	case known.consumer != nil:
		t := c.turn(d, m.Group)
		err := known.consumer.Beat(t, m)
		return protocol.CodeOf(errors.Join(c.settle(d, known.consumer, t, nil), err))
	}
	g := known.classic
	if bad := g.validate(m.MemberID, m.InstanceID); bad != protocol.None {
		return bad
	}
	if m.Generation != g.generation {
		return protocol.IllegalGeneration
	}
	c.prolong(d, g.members[m.MemberID])
	if g.state == statePreparing {
		return protocol.RebalanceInProgress
	}
	return protocol.None
}

// leaveHasMembers is the version from which on several members may leave at once.
const leaveHasMembers = 3

// leaveGroup removes members; an administrator removes static ones by their
// instance id alone.
func (c *Coordinator) leaveGroup(d *decision, m *kmsg.LeaveGroupRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.LeaveGroupResponse)
	leavers := m.Members
	if m.Version < leaveHasMembers {
		leavers = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	}
	if m.Group == "" {
		response.ErrorCode = code(protocol.InvalidGroupID)
		return response
	}
	if known := c.lookup(m.Group); known != nil && known.consumer != nil {
		return c.leaveConsumer(d, known.consumer, m, leavers)
	}
	g := c.classicGroup(m.Group)
	left := false
	for _, leaver := range leavers {
		outcome := protocol.UnknownMemberID
		if g != nil {
			outcome = c.leave(d, g, leaver)
		}
		left = left || outcome == protocol.None
		if m.Version < leaveHasMembers {
			response.ErrorCode = code(outcome)
			continue
		}
		response.Members = append(response.Members, kmsg.LeaveGroupResponseMember{
			MemberID: leaver.MemberID, InstanceID: leaver.InstanceID, ErrorCode: code(outcome),
		})
	}
	if !left {
		return response
	}
	switch g.state {
	case stateStable, stateCompleting:
		c.prepare(d, g)
	case statePreparing:
		c.maybeComplete(d, g)
	}
	return response
}

func (c *Coordinator) leave(d *decision, g *classicGroup, leaver kmsg.LeaveGroupRequestMember) protocol.ErrorCode {
	id := leaver.MemberID
	switch {
	case id == "":
		if leaver.InstanceID == nil || g.instances[*leaver.InstanceID] == nil {
			return protocol.UnknownMemberID
		}
		id = g.instances[*leaver.InstanceID].id
	case g.pending[id] != nil:
	default:
		if bad := g.validate(id, leaver.InstanceID); bad != protocol.None {
			return bad
		}
	}
	c.expel(d, g, id, protocol.UnknownMemberID)
	return protocol.None
}

// leaveConsumer removes members of a consumer group.
func (c *Coordinator) leaveConsumer(d *decision, g *consumer.Group, m *kmsg.LeaveGroupRequest, leavers []kmsg.LeaveGroupRequestMember) kmsg.Response {
	response := m.ResponseKind().(*kmsg.LeaveGroupResponse)
	t := c.turn(d, m.Group)
	outcomes := g.LeaveClassic(t, leavers)
	if err := c.settle(d, g, t, nil); err != nil {
		response.ErrorCode = code(protocol.CodeOf(err))
		return response
	}
	for i, leaver := range leavers {
		if m.Version < leaveHasMembers {
			response.ErrorCode = code(outcomes[i])
			continue
		}
		response.Members = append(response.Members, kmsg.LeaveGroupResponseMember{
			MemberID: leaver.MemberID, InstanceID: leaver.InstanceID, ErrorCode: code(outcomes[i]),
		})
	}
	return response
}
