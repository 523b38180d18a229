package group

import (
	"ottla/controller/consumer"
	"ottla/protocol"
)

// group is one group of any kind. Exactly one of the kinds is set; share and
// streams groups have their place beside them.
type group struct {
	id       string
	classic  *classicGroup
	consumer *consumer.Group
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
	switch {
	case g.classic != nil:
		c.wakeClassic(d, g.classic)
	case g.consumer != nil:
		c.wakeConsumer(d, g.consumer)
	}
}

// sleep forgets a group's volatile state.
func (g *group) sleep() {
	switch {
	case g.classic != nil:
		g.classic.membership = membership{}
	case g.consumer != nil:
		g.consumer.Sleep()
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
	if !g.empty() {
		return protocol.NonEmptyGroup
	}
	return protocol.None
}

// empty tells that a group has no members and waits for none.
func (g *group) empty() bool {
	if g.consumer != nil {
		return g.consumer.Size() == 0
	}
	return g.classic.state == stateEmpty
}

// subscribed tells whether offsets of a topic are in use.
func (g *group) subscribed(topic string) bool {
	if g.consumer != nil {
		return g.consumer.Subscribed(topic)
	}
	return g.classic.subscribed(topic)
}

// writeTombstones deletes an empty group.
func (c *Coordinator) writeTombstones(d *decision, g *group) {
	if g.consumer == nil {
		d.write(groupKey(g.id), nil, 0)
		return
	}
	t := c.turn(d, g.id)
	g.consumer.WriteTombstones(t)
	d.records = append(d.records, t.Records...)
}
