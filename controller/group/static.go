package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// replaceStatic gives a static member that starts anew its new id (KIP-345). The
// old id is fenced at once. A Stable group stays so unless the protocol that it
// uses would change: only the new id is written.
func (c *Coordinator) replaceStatic(d *decision, g *classicGroup, old *member, id string, j *join) *kmsg.JoinGroupResponse {
	previous := *old
	m, leader := c.exchange(d, g, old, id), g.leader
	if leader == id {
		leader = old.id
	}
	g.update(m, j.protocols, j.rebalanceTimeoutMs, j.request.SessionTimeoutMillis)
	switch {
	case g.state == stateStable && g.selectProtocol() == g.protocolName():
		g.write(d)
		if c.tooLarge(d.records) {
			d.records = nil
			restored := c.exchange(d, g, m, previous.id)
			g.update(restored, previous.protocols, previous.rebalanceTimeoutMs, previous.sessionTimeoutMs)
			response := g.joined(restored, false)
			response.MemberID, response.LeaderID, response.ErrorCode = "", leader, code(protocol.UnknownServerError)
			return response
		}
		return g.welcomeBack(m, leader, j.request.Version)
	case g.state == stateCompleting:
		// The leader may assign to the old id already, so all must join again.
		c.awaitJoin(d, g, m, j.request.Version)
		c.prepare(d, g)
	default:
		c.awaitJoin(d, g, m, j.request.Version)
		c.rebalance(d, g)
	}
	return nil
}

// welcomeBack tells a static member of a Stable group its new id. If it leads,
// then from version 9 on it is told so, and that the assignment stands; before,
// the leader is said to be its old self, so that it takes itself for a follower.
func (g *classicGroup) welcomeBack(m *member, oldLeader string, version int16) *kmsg.JoinGroupResponse {
	skips := version >= joinSkipsAssignment && g.leader == m.id
	response := g.joined(m, skips)
	response.SkipAssignment = skips
	if version < joinSkipsAssignment {
		response.LeaderID = oldLeader
	}
	return response
}

// exchange puts a member with a new id in the place of another. What the old one
// waits for is answered: it is fenced.
func (c *Coordinator) exchange(d *decision, g *classicGroup, old *member, id string) *member {
	c.answerJoin(d, g, old, failedJoin(old.id, protocol.FencedInstanceID))
	d.answer(&old.sync, failedSync(protocol.FencedInstanceID))
	c.deadlines.cancel(&old.session)
	m := &member{
		id: id, instanceID: old.instanceID, clientID: old.clientID, clientHost: old.clientHost, sequence: old.sequence,
		rebalanceTimeoutMs: old.rebalanceTimeoutMs, sessionTimeoutMs: old.sessionTimeoutMs,
		protocols: old.protocols, assignment: old.assignment, pendingSync: old.pendingSync,
	}
	g.order[g.place(old)] = m
	g.count(old, -1)
	delete(g.members, old.id)
	g.enter(m)
	if g.leader == old.id {
		g.leader = id
	}
	c.arm(g, m)
	c.prolong(d, m)
	return m
}
