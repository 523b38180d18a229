package group

import (
	"maps"
	"slices"
	"time"

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
	if len(c.offsets[g.id]) == 0 {
		return true
	}
	base := g.expiryBase()
	if base == nil {
		return false
	}
	all = true
	for _, topic := range slices.Sorted(maps.Keys(c.offsets[g.id])) {
		if g.subscribed(topic) {
			all = false
			continue
		}
		c.offsets.eachOf(g.id, topic, func(partition int32, o committedOffset) {
			if o.expired(d.nowMs(), base(o), c.options.Settings.OffsetsRetention) {
				d.deleteOffset(g.id, topic, partition)
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
func (g *group) expiryBase() func(committedOffset) int64 {
	if g.consumer != nil {
		return sinceCommit
	}
	return g.classic.expiryBase()
}

func sinceCommit(o committedOffset) int64 { return o.commitMs }

// expiryBase is that of a classic group:
//
//   - A group without a protocol commits for itself: since the commit.
//   - An Empty group: since it became so, or since the commit if it is not known.
//   - A Stable group of consumers: since the commit, for topics that nobody
//     subscribes to; which those are, the caller asks.
//   - A group that rebalances keeps everything: its members may come back.
func (g *classicGroup) expiryBase() func(committedOffset) int64 {
	switch {
	case g.protocolType == "":
		return sinceCommit
	case g.state == stateEmpty && g.stateMs >= 0:
		return func(committedOffset) int64 { return g.stateMs }
	case g.state == stateEmpty:
		return sinceCommit
	case g.state == stateStable && g.protocolType == consumerProtocol && g.topics != nil:
		return sinceCommit
	}
	return nil
}

// expired tells whether an offset's time is over. A commit that asked for a
// retention of its own has it, whatever the group does.
func (o *committedOffset) expired(nowMs, sinceMs int64, retention time.Duration) bool {
	if o.expireMs >= 0 {
		return nowMs >= o.expireMs
	}
	return nowMs-sinceMs >= retention.Milliseconds()
}

// deleteTopics deletes the offsets of topics that are gone. An offset that was
// committed for a later topic of the same name stays.
func (c *Coordinator) deleteTopics(d *decision, topics []DeletedTopic) {
	for _, group := range slices.Sorted(maps.Keys(c.offsets)) {
		for _, topic := range topics {
			c.offsets.eachOf(group, topic.Name, func(partition int32, o committedOffset) {
				if o.topicID.IsZero() || o.topicID == topic.ID {
					d.deleteOffset(group, topic.Name, partition)
				}
			})
		}
	}
}
