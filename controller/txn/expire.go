package txn

import (
	"maps"
	"math"
	"slices"

	"ottla/protocol"
)

// noTimeout is the timeout of a transaction whose end another system decides
// (KIP-939).
const noTimeout = math.MaxInt32

// abortTimedOut aborts the transactions that took too long, and fences their
// producers. It tells whether there are more than one look may change.
func (c *Coordinator) abortTimedOut(d *decision) (more bool) {
	for i, id := range c.timedOut(d.nowMs()) {
		if i == maxChanges {
			return true
		}
		t := c.ongoing[id]
		switch needsID := c.abort(d, t, c.spare); {
		case needsID && !c.drawing:
			c.drawing = true
			d.effect(DrawProducerID{})
		case !needsID && exhausted(t.durable.producer.Epoch):
			c.spare = protocol.NoProducerID // used; another is drawn for the next
		}
	}
	return false
}

// timedOut lists transactions that are Ongoing for longer than they may.
func (c *Coordinator) timedOut(nowMs int64) []string {
	var ids []string
	for id, t := range c.ongoing {
		if t.durable.timeoutMs != noTimeout && t.durable.startMs+int64(t.durable.timeoutMs) < nowMs {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// forgetExpired forgets transactional ids that nobody has used for long. It tells
// whether there are more than one look may change.
func (c *Coordinator) forgetExpired(d *decision) (more bool) {
	last := d.nowMs() - c.options.Settings.Expiration.Milliseconds()
	expired := 0
	for _, id := range slices.Sorted(maps.Keys(c.transactions)) {
		m := &c.transactions[id].durable
		if m.state == Ongoing || m.state.preparing() || m.updateMs > last {
			continue
		}
		if expired == maxChanges {
			return true
		}
		expired++
		d.remove(id)
	}
	return false
}
