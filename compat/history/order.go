package history

import (
	"slices"
	"sort"
)

// reach is how far a process has come in a partition.
type reach struct {
	offset int64
	op     int
}

type cursor struct {
	process   int32
	partition int32
}

// checkPolls follows each reader through each partition.
func (c *checker) checkPolls() {
	at := map[cursor]reach{}
	byProcess := map[int32][]int32{}
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind == Assign || op.Rebalanced {
			for _, p := range byProcess[op.Process] {
				delete(at, cursor{op.Process, p})
			}
			byProcess[op.Process] = nil
		}
		if op.Kind != Work || op.Rebalanced {
			continue
		}
		for _, r := range op.Reads {
			key := cursor{op.Process, r.Partition}
			before, known := at[key]
			if known {
				c.step(i, before, r)
			} else {
				byProcess[op.Process] = append(byProcess[op.Process], r.Partition)
			}
			at[key] = reach{r.Offset, i}
		}
	}
}

// step judges a move of a reader from one offset to the next.
func (c *checker) step(op int, before reach, r Record) {
	back, skip := NonmonotonicPoll, PollSkip
	if before.op == op {
		back, skip = IntNonmonotonicPoll, IntPollSkip
	}
	if r.Offset <= before.offset {
		c.found(back, op, "process %d reads offset %d of partition %d after offset %d", c.ops[op].Process, r.Offset, r.Partition, before.offset)
		return
	}
	order := c.orders[r.Partition]
	first := sort.Search(len(order), func(i int) bool { return order[i].offset > before.offset })
	for _, p := range order[first:] {
		if p.offset >= r.Offset {
			return
		}
		if c.visible(p.value, c.ops[op].Committed) {
			c.found(skip, op, "process %d reads offset %d of partition %d after offset %d, and offset %d holds value %d",
				c.ops[op].Process, r.Offset, r.Partition, before.offset, p.offset, p.value)
			return
		}
	}
}

// visible tells whether a reader must find a value that lies in the log.
func (c *checker) visible(value int64, committed bool) bool {
	w := c.writes[value]
	return !committed || w.committed || c.mustBe(w.op)
}

// checkSends looks whether what was sent in order lies in order.
func (c *checker) checkSends() {
	if c.o.Repeats {
		return
	}
	type lane struct {
		producer  Producer
		process   int32
		partition int32
	}
	last := map[lane]reach{}
	// By the beginning: the order in which a process works is not that in which its outcomes became known.
	order := make([]int, 0, len(c.ops))
	for i := range c.ops {
		if c.ops[i].Kind == Work && len(c.ops[i].Sends) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, c.ops[a].Begin-c.ops[b].Begin))) })
	for _, i := range order {
		op := &c.ops[i]
		for _, s := range op.Sends {
			offset := c.writes[s.Value].offset
			if offset == NoOffset {
				continue
			}
			key := lane{op.Producer, op.Process, s.Partition}
			if before, known := last[key]; known && offset <= before.offset {
				class := NonmonotonicSend
				if before.op == i {
					class = IntNonmonotonicSend
				}
				c.found(class, i, "process %d sent value %d to partition %d after what lies at offset %d, and it lies at %d", op.Process, s.Value, s.Partition, before.offset, offset)
			}
			last[key] = reach{offset, i}
		}
	}
}

// checkCircles looks for transactions that have each read, as committed, what the
// next one in a circle wrote: strongly connected components over write-read edges.
func (c *checker) checkCircles() {
	edges := map[int32][]int32{} // from the writer to the reader
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work || !op.Transactional || !op.Committed || op.Outcome == Fail || len(op.Sends) == 0 {
			continue
		}
		for _, r := range op.Reads {
			w := c.writes[r.Value]
			if w == nil || w.op == i || !c.ops[w.op].Transactional {
				continue
			}
			from := int32(w.op)
			if list := edges[from]; len(list) == 0 || list[len(list)-1] != int32(i) {
				edges[from] = append(list, int32(i))
			}
		}
	}
	for _, circle := range components(edges) {
		c.found(Circular, int(circle[0]), "operations %v have read from each other in a circle", circle)
	}
}

// components gives the strongly connected components of more than one node (Tarjan,
// without recursion).
func components(edges map[int32][]int32) [][]int32 {
	var nodes []int32
	for n := range edges {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	t := &tarjan{edges: edges, index: map[int32]int{}, low: map[int32]int{}, on: map[int32]bool{}}
	for _, n := range nodes {
		if _, seen := t.index[n]; !seen {
			t.visit(n)
		}
	}
	return t.found
}

type tarjan struct {
	edges      map[int32][]int32
	index, low map[int32]int
	on         map[int32]bool
	stack      []int32
	found      [][]int32
}

func (t *tarjan) enter(n int32) {
	t.index[n], t.low[n] = len(t.index), len(t.index)
	t.stack, t.on[n] = append(t.stack, n), true
}

func (t *tarjan) visit(root int32) {
	type frame struct {
		node int32
		next int
	}
	t.enter(root)
	calls := []frame{{node: root}}
	for len(calls) > 0 {
		f := &calls[len(calls)-1]
		if f.next < len(t.edges[f.node]) {
			to := t.edges[f.node][f.next]
			f.next++
			if at, seen := t.index[to]; !seen {
				t.enter(to)
				calls = append(calls, frame{node: to})
			} else if t.on[to] {
				t.low[f.node] = min(t.low[f.node], at)
			}
			continue
		}
		node := f.node
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			up := calls[len(calls)-1].node
			t.low[up] = min(t.low[up], t.low[node])
		}
		t.leave(node)
	}
}

// leave takes a finished component off the stack.
func (t *tarjan) leave(n int32) {
	if t.low[n] != t.index[n] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != n { // it is near the end
		at--
	}
	component := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, m := range component {
		t.on[m] = false
	}
	if len(component) > 1 {
		slices.Sort(component)
		t.found = append(t.found, component)
	}
}
