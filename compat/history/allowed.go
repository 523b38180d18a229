package history

import (
	"cmp"
	"slices"
)

// Allowed are what a history may have and what is told all the same: writes of transactions are not isolated in Kafka, and a reader
// may be behind.
type Allowed struct {
	// WriteCycles are groups of transactions whose writes lie before each other's in a circle (G0).
	WriteCycles int
	// ReadWriteCycles are groups of transactions that have read each other's writes or missed them in a circle (G-single, G2).
	ReadWriteCycles int
	// WorstLag is the longest time, in nanoseconds, since what a poll of committed data read was surely not the last any more:
	// a later write had been acknowledged so long before the poll began.
	WorstLag int64
}

// noteAllowed looks for what is allowed.
func (c *checker) noteAllowed() {
	writes, reads := map[int32][]int32{}, map[int32][]int32{}
	lists := map[int32][]placed{} // of transactions that stand, by partition
	for _, partition := range c.partitions() {
		var list []placed
		for _, p := range c.orders[partition] {
			if c.stands(c.writes[p.value].op) {
				list = append(list, p)
			}
		}
		for i := 1; i < len(list); i++ {
			link(writes, c.writes[list[i-1].value].op, c.writes[list[i].value].op)
		}
		lists[partition] = list
	}
	c.report.Allowed.WriteCycles = len(components(writes))
	for i := range c.ops {
		if op := &c.ops[i]; c.stands(i) && op.Committed {
			c.linkReads(reads, i, lists)
		}
	}
	c.report.Allowed.ReadWriteCycles = len(components(reads))
	c.noteLag()
}

// stands tells whether an operation is a transaction that has not failed.
func (c *checker) stands(op int) bool {
	o := &c.ops[op]
	return o.Kind == Work && o.Transactional && o.Outcome != Fail
}

func link(edges map[int32][]int32, from, to int) {
	list := edges[int32(from)]
	if from != to && (len(list) == 0 || list[len(list)-1] != int32(to)) {
		edges[int32(from)] = append(list, int32(to))
	}
}

// linkReads links a transaction with those whose writes it has read, and with those who wrote next behind them.
func (c *checker) linkReads(edges map[int32][]int32, op int, lists map[int32][]placed) {
	last := map[int32]int64{}
	for _, r := range c.ops[op].Reads {
		if w := c.writes[r.Value]; w != nil && c.stands(w.op) {
			link(edges, w.op, op)
		}
		if at, known := last[r.Partition]; !known || r.Offset > at {
			last[r.Partition] = r.Offset
		}
	}
	for _, partition := range sortedKeys(last) {
		list := lists[partition]
		next, _ := slices.BinarySearchFunc(list, last[partition]+1, func(p placed, offset int64) int { return cmp.Compare(p.offset, offset) })
		if next < len(list) {
			link(edges, op, c.writes[list[next].value].op)
		}
	}
}

func sortedKeys(m map[int32]int64) []int32 {
	var keys []int32
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// noteLag finds how far behind the polls of committed data are.
func (c *checker) noteLag() {
	type acknowledged struct{ offset, earliest int64 } // when the first of this and all later writes was acknowledged
	lists := map[int32][]acknowledged{}
	for _, partition := range c.partitions() {
		var list []acknowledged
		for _, p := range c.orders[partition] {
			if op := &c.ops[c.writes[p.value].op]; op.Outcome == OK {
				list = append(list, acknowledged{p.offset, op.End})
			}
		}
		for i := len(list) - 2; i >= 0; i-- {
			list[i].earliest = min(list[i].earliest, list[i+1].earliest)
		}
		lists[partition] = list
	}
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work || !op.Committed {
			continue
		}
		last := map[int32]int64{}
		for _, r := range op.Reads {
			last[r.Partition] = max(last[r.Partition], r.Offset)
		}
		for partition, offset := range last { // only the longest counts
			list := lists[partition]
			next, _ := slices.BinarySearchFunc(list, offset+1, func(a acknowledged, offset int64) int { return cmp.Compare(a.offset, offset) })
			if next < len(list) {
				c.report.Allowed.WorstLag = max(c.report.Allowed.WorstLag, op.Begin-list[next].earliest)
			}
		}
	}
}
