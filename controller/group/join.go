package group

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/protocol"
)

// Versions of JoinGroup that change what happens.
const (
	joinHasRebalanceTimeout = 1
	joinKnowsMemberID       = 4 // a dynamic member gets its id first and joins with it (KIP-394)
	joinSkipsAssignment     = 9 // a static leader may come back without assigning anew (KIP-814)
)

// newMemberTimeout is how long a new member may wait for its first generation.
const newMemberTimeout = 5 * time.Minute

// join is one JoinGroup on its way.
type join struct {
	request   *kmsg.JoinGroupRequest
	sender    Request
	protocols []memberProtocol
	// rebalanceTimeoutMs is the request's, or the session timeout in version 0.
	rebalanceTimeoutMs int32
}

// refuse answers a JoinGroup with an error.
func (j *join) refuse(memberID string, c protocol.ErrorCode) *kmsg.JoinGroupResponse {
	response := j.request.ResponseKind().(*kmsg.JoinGroupResponse)
	response.MemberID, response.ErrorCode = memberID, code(c)
	return response
}

// joinGroup takes a member into the next generation of a classic group.
func (c *Coordinator) joinGroup(d *decision, sender Request, m *kmsg.JoinGroupRequest) kmsg.Response {
	j := &join{request: m, sender: sender}
	session := milliseconds(m.SessionTimeoutMillis)
	switch {
	case m.Group == "":
		return j.refuse(m.MemberID, protocol.InvalidGroupID)
	case session < c.options.Settings.MinSessionTimeout || session > c.options.Settings.MaxSessionTimeout:
		return j.refuse(m.MemberID, protocol.InvalidSessionTimeout)
	}
	if j.rebalanceTimeoutMs = m.RebalanceTimeoutMillis; m.Version < joinHasRebalanceTimeout {
		j.rebalanceTimeoutMs = m.SessionTimeoutMillis
	}
	j.protocols = protocolsOf(m.Protocols)
	known := c.lookup(m.Group)
	switch {
	case known != nil && known.consumer != nil && !known.empty():
		return c.joinConsumer(d, known.consumer, j)
	case known != nil && known.classic != nil:
		return c.joinClassic(d, known.classic, j)
	case m.MemberID != "":
		return j.refuse(m.MemberID, protocol.UnknownMemberID)
	case known != nil:
		c.writeTombstones(d, known) // an empty consumer group becomes a classic one
	}
	// A group is made even by a request that is then refused, as in Kafka.
	g, written := c.createClassic(m.Group, d.nowMs()), len(d.records)
	response := c.joinClassic(d, g, j)
	if len(d.records) == written {
		g.writeNew(d)
	}
	return response
}

// joinConsumer lets a member of the classic protocol join a consumer group.
func (c *Coordinator) joinConsumer(d *decision, g *consumer.Group, j *join) kmsg.Response {
	t := c.turn(d, g.ID())
	response, err := g.Join(t, j.request, j.rebalanceTimeoutMs, senderOf(j.sender), c.newUUID)
	if err == nil {
		err = c.settle(d, g, t, nil)
	}
	if err != nil {
		return j.refuse("", protocol.CodeOf(err))
	}
	return response
}

// writeNew writes a group that was just made. Whatever happened to it in the
// same decision is volatile.
func (g *classicGroup) writeNew(d *decision) { newClassicGroup(g.id, d.nowMs()).write(d) }

// joinClassic gives nil if the request is parked.
func (c *Coordinator) joinClassic(d *decision, g *classicGroup, j *join) kmsg.Response {
	var response *kmsg.JoinGroupResponse
	switch {
	case !c.hasRoom(g, j.request.MemberID):
		c.expel(d, g, j.request.MemberID, protocol.GroupMaxSizeReached)
		c.maybeComplete(d, g) // it may have been all that the others waited for
		response = j.refuse("", protocol.GroupMaxSizeReached)
	case !g.supports(j.request.ProtocolType, j.protocols):
		response = j.refuse(j.request.MemberID, protocol.InconsistentGroupProtocol)
	case j.request.MemberID == "":
		response = c.joinAnew(d, g, j)
	default:
		response = c.joinAgain(d, g, j)
	}
	if response == nil {
		return nil // not a nil pointer in an interface
	}
	response.SetVersion(j.request.Version)
	return response
}

// hasRoom tells whether a member may join without the group growing too large.
// While it rebalances those who have joined count: the last to come is left out.
func (c *Coordinator) hasRoom(g *classicGroup, memberID string) bool {
	m, limit := g.members[memberID], c.options.Settings.MaxSize
	switch g.state {
	case stateEmpty:
		return true
	case statePreparing:
		return m != nil && m.join.token != 0 || g.joining < limit
	default:
		return m != nil || len(g.members) < limit
	}
}

// joinAnew lets a member join that has no id yet, or has forgotten it.
func (c *Coordinator) joinAnew(d *decision, g *classicGroup, j *join) *kmsg.JoinGroupResponse {
	m := j.request
	if m.InstanceID != nil {
		id := c.newMemberID(*m.InstanceID)
		if old := g.instances[*m.InstanceID]; old != nil {
			return c.replaceStatic(d, g, old, id, j)
		}
		return c.addMember(d, g, id, j)
	}
	id := c.newMemberID(j.sender.ClientID)
	if m.Version < joinKnowsMemberID {
		return c.addMember(d, g, id, j)
	}
	pending := &deadline{}
	pending.expire = func(d *decision) {
		c.dropPending(g, id)
		if g.state == statePreparing && g.allJoined() {
			c.completeJoin(d, g)
		}
	}
	g.pending[id] = pending
	c.deadlines.set(pending, d.now.Add(milliseconds(m.SessionTimeoutMillis)))
	return j.refuse(id, protocol.MemberIDRequired)
}

// newMemberID makes an id as Kafka does: who asks (as much of it as records can hold), and a random UUID in hex.
func (c *Coordinator) newMemberID(of string) string {
	u := protocol.NewUUID(c.options.Random)
	text := hex.EncodeToString(u[:])
	of = strings.ToValidUTF8(of[:min(len(of), math.MaxInt16-len("-00000000-0000-0000-0000-000000000000"))], "")
	return of + "-" + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

func (c *Coordinator) dropPending(g *classicGroup, memberID string) {
	if t := g.pending[memberID]; t != nil {
		c.deadlines.cancel(t)
		delete(g.pending, memberID)
	}
}

// joinAgain lets a member join under the id that it was given.
func (c *Coordinator) joinAgain(d *decision, g *classicGroup, j *join) *kmsg.JoinGroupResponse {
	m := j.request
	if g.pending[m.MemberID] != nil {
		if m.InstanceID != nil {
			return j.refuse("", protocol.UnknownServerError) // ids of static members are never pending
		}
		return c.addMember(d, g, m.MemberID, j)
	}
	if bad := g.validate(m.MemberID, m.InstanceID); bad != protocol.None {
		return j.refuse(m.MemberID, bad)
	}
	known := g.members[m.MemberID]
	leads := g.leader == known.id
	switch {
	case g.state == stateEmpty:
		return j.refuse(m.MemberID, protocol.UnknownMemberID)
	case g.state == stateCompleting && known.matches(j.protocols):
		// It has missed the answer: here it is again.
		return g.joined(known, leads)
	case g.state == stateStable && !leads && known.matches(j.protocols):
		return g.joined(known, false)
	}
	// Something changed, a rebalance is on its way, or the leader wants one.
	g.update(known, j.protocols, j.rebalanceTimeoutMs, m.SessionTimeoutMillis)
	c.awaitJoin(d, g, known, m.Version)
	c.rebalance(d, g)
	return nil
}

// addMember takes a new member in.
func (c *Coordinator) addMember(d *decision, g *classicGroup, id string, j *join) *kmsg.JoinGroupResponse {
	m := j.request
	c.dropPending(g, id)
	joiner := &member{
		id: id, instanceID: m.InstanceID, clientID: j.sender.ClientID, clientHost: j.sender.ClientHost,
		rebalanceTimeoutMs: j.rebalanceTimeoutMs, sessionTimeoutMs: m.SessionTimeoutMillis,
		protocols: j.protocols, isNew: true,
	}
	if g.state == statePreparing && g.previous == stateEmpty {
		g.initial.grew = true
	}
	if len(g.members) == 0 {
		g.protocolType = m.ProtocolType
	}
	g.add(joiner)
	c.arm(g, joiner)
	c.awaitJoin(d, g, joiner, m.Version)
	// It does not know its id, so it sends no heartbeats; if its client goes
	// away meanwhile, nothing tells. So it may not wait for ever.
	c.deadlines.set(&joiner.session, d.now.Add(newMemberTimeout))
	c.rebalance(d, g)
	return nil
}

// awaitJoin parks a member's JoinGroup. An older one, of a connection that the
// client has given up, is answered.
func (c *Coordinator) awaitJoin(d *decision, g *classicGroup, m *member, version int16) {
	c.answerJoin(d, g, m, failedJoin(m.id, protocol.RebalanceInProgress))
	m.join = c.park(d, version)
	g.joining++
}

// answerJoin answers a member's JoinGroup, if it has one parked.
func (c *Coordinator) answerJoin(d *decision, g *classicGroup, m *member, response *kmsg.JoinGroupResponse) {
	if d.answer(&m.join, response) {
		g.joining--
	}
}

func failedJoin(memberID string, c protocol.ErrorCode) *kmsg.JoinGroupResponse {
	response := kmsg.NewPtrJoinGroupResponse()
	response.MemberID, response.ErrorCode = memberID, code(c)
	return response
}

// joined tells a member its generation. Who leads gets the metadata of all.
func (g *classicGroup) joined(m *member, leads bool) *kmsg.JoinGroupResponse {
	response := kmsg.NewPtrJoinGroupResponse()
	response.MemberID, response.Generation, response.LeaderID = m.id, g.generation, g.leader
	response.Protocol = g.protocol
	if g.protocolType != "" {
		protocolType := g.protocolType
		response.ProtocolType = &protocolType
	}
	if leads {
		for _, other := range g.order {
			response.Members = append(response.Members, kmsg.JoinGroupResponseMember{
				MemberID: other.id, InstanceID: other.instanceID, ProtocolMetadata: other.metadata(g.protocolName()),
			})
		}
	}
	return response
}
