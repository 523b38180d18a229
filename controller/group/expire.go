package group

import (
	"maps"
	"slices"
	"time"

	"ottla/controller/offsets"
	"ottla/protocol"
)

// expireOffsets deletes the offsets whose time is over, and the empty groups that
// have none left.
func (c *Coordinator) expireOffsets(d *decision) {
	c.deadlines.set(&c.cleanup, d.now.Add(c.options.Settings.OffsetsCheckInterval))
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		if c.expireOf(d, g) && g.mayDelete() == protocol.None {
			c.writeTombstones(d, g)
		}
	}
}

// expireOf deletes what expired of one group and tells whether nothing is left.
func (c *Coordinator) expireOf(d *decision, g *group) (all bool) {
	topics, open := c.offsets.Topics(g.id), c.offsets.OpenOf(g.id)
	if len(topics) == 0 {
		return !open
	}
	base := g.expiryBase()
	if base == nil {
		return false
	}
	all = !open
	for _, topic := range topics {
		if g.subscribed(topic) {
			all = false
			continue
		}
		c.offsets.EachOf(g.id, topic, func(partition int32, o offsets.Offset) {
			if expired(o, d.nowMs(), base(o), c.options.Settings.OffsetsRetention) && !c.offsets.Open(g.id, topic, partition) {
				d.records = append(d.records, offsets.Tombstone(g.id, topic, partition))
			} else {
				all = false
			}
		})
	}
	return all
}

// expiryBase gives the time from which on retention counts (KIP-211), or nil if
// nothing expires now. That of a consumer group counts since the commit, for topics
// that nobody subscribes to.
func (g *group) expiryBase() func(offsets.Offset) int64 {
	if g.consumer != nil {
		return sinceCommit
	}
	return g.classic.expiryBase()
}

func sinceCommit(o offsets.Offset) int64 { return o.CommitMs }

// expiryBase is that of a classic group:
//
//   - A group without a protocol commits for itself: since the commit.
//   - An Empty group: since it became so, or since the commit if it is not known.
//   - A Stable group of consumers: since the commit, for topics that nobody
//     subscribes to; which those are, the caller asks.
//   - A group that rebalances keeps everything: its members may come back.
func (g *classicGroup) expiryBase() func(offsets.Offset) int64 {
	switch {
	case g.protocolType == "":
		return sinceCommit
	case g.state == stateEmpty && g.stateMs >= 0:
		return func(offsets.Offset) int64 { return g.stateMs }
	case g.state == stateEmpty:
		return sinceCommit
	case g.state == stateStable && g.protocolType == consumerProtocol && g.topics != nil:
		return sinceCommit
	}
	return nil
}

// expired tells whether an offset's time is over. A commit that asked for a
// retention of its own has it, whatever the group does.
func expired(o offsets.Offset, nowMs, sinceMs int64, retention time.Duration) bool {
	if o.ExpireMs >= 0 {
		return nowMs >= o.ExpireMs
	}
	return nowMs-sinceMs >= retention.Milliseconds()
}

// deleteTopics deletes the offsets of topics that are gone. An offset that was
// committed for a later topic of the same name stays.
func (c *Coordinator) deleteTopics(d *decision, topics []DeletedTopic) {
	for _, group := range c.offsets.Groups() {
		for _, topic := range topics {
			c.offsets.EachOfTopic(group, topic.Name, topic.ID, func(partition int32) {
				d.records = append(d.records, offsets.Tombstone(group, topic.Name, partition))
			})
		}
	}
}
