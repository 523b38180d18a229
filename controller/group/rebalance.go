package group

import (
	"slices"
	"time"

	"ottla/protocol"
)

// initialDelay is how the first rebalance of an Empty group waits for more
// members: a delay, again after every one in which somebody came, but no longer
// in all than the rebalance timeout.
type initialDelay struct {
	delay, remaining time.Duration
	grew             bool // somebody came since the delay began
}

// wakeClassic builds a loaded group's volatile part: every member gets a whole
// session. A group that is larger than it may be now rebalances, so that its
// members can commit before some of them are left out.
func (c *Coordinator) wakeClassic(d *decision, g *classicGroup) {
	g.load()
	for _, m := range g.order {
		c.arm(g, m)
		c.prolong(d, m)
	}
	if len(g.members) > c.options.Settings.MaxSize {
		c.prepare(d, g)
	}
}

// arm says what the end of a member's session does.
func (c *Coordinator) arm(g *classicGroup, m *member) {
	m.session.expire = func(d *decision) {
		if m.waits() { // its session goes on when it gets its answer
			return
		}
		c.expel(d, g, m.id, protocol.UnknownMemberID)
		switch {
		case g.state == stateStable || g.state == stateCompleting:
			c.prepare(d, g)
		case g.state == statePreparing && g.allJoined():
			c.completeJoin(d, g)
		}
	}
}

// prolong begins a member's session anew.
func (c *Coordinator) prolong(d *decision, m *member) {
	c.deadlines.set(&m.session, d.now.Add(milliseconds(m.sessionTimeoutMs)))
}

// expel removes a member, or a member id that nobody used yet. What it waits for
// is answered, so that a client that is alive joins again.
func (c *Coordinator) expel(d *decision, g *classicGroup, memberID string, reason protocol.ErrorCode) {
	c.dropPending(g, memberID)
	m := g.members[memberID]
	if m == nil {
		return
	}
	c.answerJoin(d, g, m, failedJoin("", reason))
	d.answer(&m.sync, failedSync(reason))
	c.deadlines.cancel(&m.session)
	g.setPendingSync(m, false)
	at := g.place(m)
	g.order = slices.Delete(g.order, at, at+1)
	g.count(m, -1)
	delete(g.members, m.id)
	if m.instanceID != nil {
		delete(g.instances, *m.instanceID)
	}
	if g.leader != m.id {
		return
	}
	g.leader = ""
	if len(g.order) > 0 {
		g.leader = g.order[0].id
	}
}

// rebalance begins a rebalance, or, if one is on its way, ends it if this was
// all it waited for.
func (c *Coordinator) rebalance(d *decision, g *classicGroup) {
	if g.state != statePreparing {
		c.prepare(d, g)
		return
	}
	c.maybeComplete(d, g)
}

// maybeComplete ends a rebalance that waits for nobody any more. The first one of
// a group has a delay of its own to wait for.
func (c *Coordinator) maybeComplete(d *decision, g *classicGroup) {
	if g.state == statePreparing && g.previous != stateEmpty && g.allJoined() {
		c.completeJoin(d, g)
	}
}

// prepare begins a rebalance: all members are to join.
func (c *Coordinator) prepare(d *decision, g *classicGroup) {
	if g.state == stateCompleting {
		c.failSyncs(d, g, protocol.RebalanceInProgress)
	}
	for _, m := range g.order {
		g.setPendingSync(m, false)
	}
	c.deadlines.cancel(&g.syncDeadline)
	first := g.state == stateEmpty
	g.moveTo(d, statePreparing)
	switch {
	case first:
		delay := c.options.Settings.InitialRebalanceDelay
		g.initial = initialDelay{delay: delay, remaining: max(0, milliseconds(g.rebalanceTimeoutMs())-delay)}
		g.joinDeadline.expire = func(d *decision) { c.endInitialDelay(d, g) }
		c.deadlines.set(&g.joinDeadline, d.now.Add(delay))
	case g.allJoined():
		c.completeJoin(d, g)
	default:
		c.awaitMembers(d, g)
	}
}

// awaitMembers sets the time at which a rebalance goes on without those who
// have not joined.
func (c *Coordinator) awaitMembers(d *decision, g *classicGroup) {
	g.joinDeadline.expire = func(d *decision) { c.completeJoin(d, g) }
	c.deadlines.set(&g.joinDeadline, d.now.Add(milliseconds(g.rebalanceTimeoutMs())))
}

func (c *Coordinator) endInitialDelay(d *decision, g *classicGroup) {
	wait := g.initial
	if !wait.grew || wait.remaining == 0 {
		c.completeJoin(d, g)
		return
	}
	delay := min(c.options.Settings.InitialRebalanceDelay, wait.remaining)
	g.initial = initialDelay{delay: delay, remaining: max(0, wait.remaining-wait.delay)}
	c.deadlines.set(&g.joinDeadline, d.now.Add(delay))
}

// completeJoin ends PreparingRebalance with those who have joined. Dynamic
// members who have not are removed; static ones stay until their session ends.
func (c *Coordinator) completeJoin(d *decision, g *classicGroup) {
	c.deadlines.cancel(&g.joinDeadline)
	for _, m := range slices.Clone(g.order) {
		if m.join.token == 0 && m.instanceID == nil {
			c.expel(d, g, m.id, protocol.UnknownMemberID)
		}
	}
	if len(g.members) == 0 {
		c.becomeEmpty(d, g)
		return
	}
	if !g.electLeader() {
		c.awaitMembers(d, g) // only static members, none of them here
		return
	}
	g.generation++
	selected := g.selectProtocol()
	g.protocol = &selected
	g.moveTo(d, stateCompleting)
	g.readSubscriptions()
	for _, m := range g.order {
		c.answerJoin(d, g, m, g.joined(m, g.leader == m.id))
		c.prolong(d, m)
		m.isNew = false
		g.setPendingSync(m, true)
	}
	g.syncDeadline.expire = func(d *decision) { c.endSyncs(d, g) }
	c.deadlines.set(&g.syncDeadline, d.now.Add(milliseconds(g.rebalanceTimeoutMs())))
}

// becomeEmpty ends a rebalance that nobody joined.
func (c *Coordinator) becomeEmpty(d *decision, g *classicGroup) {
	g.generation++
	g.protocol = nil
	g.moveTo(d, stateEmpty)
	g.readSubscriptions()
	g.write(d)
}

// electLeader makes a member lead that has joined. There is none if nobody has.
func (g *classicGroup) electLeader() bool {
	if leader := g.members[g.leader]; leader != nil && leader.join.token != 0 {
		return true
	}
	for _, m := range g.order {
		if m.join.token != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

// cancelAll cancels all deadlines of a group that goes away. It is empty: nobody
// waits for anything.
func (c *Coordinator) cancelAll(g *classicGroup) {
	c.deadlines.cancel(&g.joinDeadline)
	c.deadlines.cancel(&g.syncDeadline)
	for _, m := range g.order {
		c.deadlines.cancel(&m.session)
	}
	for _, t := range g.pending {
		c.deadlines.cancel(t)
	}
}
