package group

import (
	"ottla/protocol"
)

// group is one group of any kind. Exactly one of the kinds is set; the others
// (consumer, share and streams groups) have their place beside classic.
type group struct {
	id      string
	classic *classicGroup
}

// lookup finds a group, of whatever kind.
func (c *Coordinator) lookup(id string) *group { return c.groups[id] }

// classicGroup finds a classic group, or nil.
func (c *Coordinator) classicGroup(id string) *classicGroup {
	if g := c.groups[id]; g != nil {
		return g.classic
	}
	return nil
}

// createClassic makes a classic group of which nothing is known yet. A request
// that does so writes a record of the group in the same decision.
func (c *Coordinator) createClassic(id string, nowMs int64) *classicGroup {
	g := newClassicGroup(id, nowMs)
	c.groups[id] = &group{id: id, classic: g}
	return g
}

// wake builds a group's volatile state out of the durable one.
func (c *Coordinator) wake(d *decision, g *group) {
	if g.classic != nil {
		c.wakeClassic(d, g.classic)
	}
}

// sleep forgets a group's volatile state.
func (g *group) sleep() {
	if g.classic != nil {
		g.classic.membership = membership{}
	}
}

// dissolve forgets a group, and its deadlines with it.
func (c *Coordinator) dissolve(id string) {
	if g := c.classicGroup(id); g != nil {
		c.cancelAll(g)
	}
	delete(c.groups, id)
}

// mayDelete tells whether a group may be deleted: it is empty.
func (g *group) mayDelete() protocol.ErrorCode {
	if g.classic.state != stateEmpty {
		return protocol.NonEmptyGroup
	}
	return protocol.None
}
