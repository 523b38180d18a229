package group

import (
	"bytes"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// syncNamesProtocol is the version from which on SyncGroup names the protocol.
const syncNamesProtocol = 5

// syncGroup takes the leader's assignments and gives each member its own.
func (c *Coordinator) syncGroup(d *decision, m *kmsg.SyncGroupRequest) kmsg.Response {
	refuse := func(c protocol.ErrorCode) kmsg.Response {
		response := m.ResponseKind().(*kmsg.SyncGroupResponse)
		response.ErrorCode = code(c)
		return response
	}
	if m.Version >= syncNamesProtocol && (m.ProtocolType == nil || m.Protocol == nil) {
		return refuse(protocol.InconsistentGroupProtocol)
	}
	if m.Group == "" {
		return refuse(protocol.InvalidGroupID)
	}
	known := c.lookup(m.Group)
	if known == nil || known.empty() {
		return refuse(protocol.UnknownMemberID)
	}
	if known.consumer != nil {
		t := c.turn(d, m.Group)
		response, err := known.consumer.Sync(t, m)
		if err = errors.Join(err, c.settle(d, known.consumer, t, nil)); err != nil {
			return refuse(protocol.CodeOf(err))
		}
		return response
	}
	g := known.classic
	if bad := g.validateSync(m); bad != protocol.None {
		return refuse(bad)
	}
	member := g.members[m.MemberID]
	if g.state == statePreparing {
		return refuse(protocol.RebalanceInProgress)
	}
	c.synced(g, member)
	if g.state == stateStable {
		response := g.assigned(member)
		response.SetVersion(m.Version)
		return response
	}
	d.answer(&member.sync, failedSync(protocol.RebalanceInProgress)) // of a connection that the client gave up
	member.sync = c.park(d, m.Version)
	if g.leader == member.id {
		c.assign(d, g, m.GroupAssignment)
	}
	return nil
}

func (g *classicGroup) validateSync(m *kmsg.SyncGroupRequest) protocol.ErrorCode {
	differs := func(asked *string, is string) bool { return asked != nil && is != "" && *asked != is }
	if bad := g.validate(m.MemberID, m.InstanceID); bad != protocol.None {
		return bad
	}
	switch {
	case m.Generation != g.generation:
		return protocol.IllegalGeneration
	case differs(m.ProtocolType, g.protocolType), differs(m.Protocol, g.protocolName()):
		return protocol.InconsistentGroupProtocol
	}
	return protocol.None
}

// synced notes that a member has sent its SyncGroup.
func (c *Coordinator) synced(g *classicGroup, m *member) {
	if g.setPendingSync(m, false); g.unsynced == 0 {
		c.deadlines.cancel(&g.syncDeadline)
	}
}

// assign makes the group Stable: assignments and members are written. Whom the
// leader forgot gets an empty assignment.
func (c *Coordinator) assign(d *decision, g *classicGroup, assignments []kmsg.SyncGroupRequestGroupAssignment) {
	for _, m := range g.order {
		m.assignment = nil
	}
	for _, a := range assignments {
		if m := g.members[a.MemberID]; m != nil {
			m.assignment = bytes.Clone(a.MemberAssignment)
		}
	}
	g.write(d)
	if c.tooLarge(d.records) {
		d.records = nil
		c.failSyncs(d, g, protocol.UnknownServerError)
		c.prepare(d, g)
		return
	}
	// What is written tells since when the group completes its rebalance, as
	// Kafka has it; it is Stable only once that is committed.
	g.moveTo(d, stateStable)
	for _, m := range g.order {
		if d.answer(&m.sync, g.assigned(m)) {
			c.prolong(d, m)
		}
	}
}

// assigned tells a member its assignment.
func (g *classicGroup) assigned(m *member) *kmsg.SyncGroupResponse {
	response := kmsg.NewPtrSyncGroupResponse()
	response.MemberAssignment, response.Protocol = m.assignment, g.protocol
	if g.protocolType != "" {
		protocolType := g.protocolType
		response.ProtocolType = &protocolType
	}
	return response
}

func failedSync(c protocol.ErrorCode) *kmsg.SyncGroupResponse {
	response := kmsg.NewPtrSyncGroupResponse()
	response.ErrorCode = code(c)
	return response
}

// failSyncs answers every SyncGroup that waits for the leader. Assignments of an
// earlier generation are gone.
func (c *Coordinator) failSyncs(d *decision, g *classicGroup, reason protocol.ErrorCode) {
	for _, m := range g.order {
		m.assignment = nil
		if d.answer(&m.sync, failedSync(reason)) {
			c.prolong(d, m)
		}
	}
}

// endSyncs removes the members that have not sent their SyncGroup in time; the
// others rebalance.
func (c *Coordinator) endSyncs(d *decision, g *classicGroup) {
	if g.unsynced == 0 || g.state != stateCompleting && g.state != stateStable {
		return
	}
	var late []string
	for _, m := range g.order {
		if m.pendingSync {
			late = append(late, m.id)
		}
	}
	for _, id := range late {
		c.expel(d, g, id, protocol.UnknownMemberID)
	}
	c.prepare(d, g)
}
