package history

import (
	"cmp"
	"fmt"
	"slices"
)

// write is what is known of a value.
type write struct {
	op        int // that sent it
	partition int32
	offset    int64 // NoOffset: nobody knows
	committed bool  // some reader of committed data returned it
	read      bool  // somebody returned it
	final     bool  // a final read returned it
	lost      bool  // told of as such
}

// placed is a value in the version order of a partition.
type placed struct{ offset, value int64 }

// final is what the final reads covered of a partition.
type final struct {
	read  bool
	first int64 // offset of the first value that it returned
	op    int
}

// checker is one run of Check.
type checker struct {
	o      Options
	ops    []Op
	report *Report
	writes map[int64]*write
	at     map[place]int64 // what an offset holds
	orders map[int32][]placed
	// highest is the index in the version order of the highest value that was read.
	highest map[int32]int
	finals  map[int32]final
}

type place struct {
	partition int32
	offset    int64
}

// Check judges a history. The operations are in the order in which they ended.
func Check(ops []Op, o Options) *Report {
	if o.Most == 0 {
		o.Most = 10
	}
	c := &checker{
		o: o, ops: ops, report: &Report{Operations: len(ops), Counts: map[Class]int{}},
		writes: map[int64]*write{}, at: map[place]int64{}, orders: map[int32][]placed{}, highest: map[int32]int{}, finals: map[int32]final{},
	}
	c.collectSends()
	c.collectReads()
	c.order()
	c.checkLost()
	c.checkTorn()
	c.checkPolls()
	c.checkSends()
	c.checkCircles()
	c.checkZombies()
	c.checkMarks()
	c.checkBounds()
	c.noteAllowed()
	return c.report
}

func (c *checker) found(class Class, op int, format string, args ...any) {
	c.report.Counts[class]++
	if c.report.Counts[class] <= c.o.Most {
		c.report.Anomalies = append(c.report.Anomalies, Anomaly{class, fmt.Sprintf(format, args...), op})
	}
}

// collectSends notes who wrote what, and where acknowledgements say that it is.
func (c *checker) collectSends() {
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work {
			continue
		}
		if op.Transactional {
			switch op.Outcome {
			case OK:
				c.report.Committed++
			case Fail:
				c.report.Aborted++
			case Unknown:
				c.report.Unknown++
			}
		}
		for _, s := range op.Sends {
			if before := c.writes[s.Value]; before != nil {
				c.found(NobodyWrote, i, "value %d was sent by operations %d and %d: the history is no history", s.Value, before.op, i)
				continue
			}
			if op.Outcome == OK {
				c.report.Sent++
			}
			w := &write{op: i, partition: s.Partition, offset: NoOffset}
			c.writes[s.Value] = w
			// Also of an aborted transaction: its records lie in the log.
			if s.Offset >= 0 {
				c.place(i, w, s)
			}
		}
	}
}

// place notes that an offset holds a value.
func (c *checker) place(op int, w *write, r Record) {
	at := place{r.Partition, r.Offset}
	if held, known := c.at[at]; known && held != r.Value {
		c.found(InconsistentOffset, op, "partition %d, offset %d holds value %d and value %d", r.Partition, r.Offset, held, r.Value)
		return
	}
	c.at[at] = r.Value
	switch {
	case w.offset == NoOffset:
		w.offset = r.Offset
		c.orders[r.Partition] = append(c.orders[r.Partition], placed{r.Offset, r.Value})
	case w.offset != r.Offset && !c.o.Repeats:
		c.found(Duplicate, op, "value %d of partition %d is at offset %d and at %d", r.Value, r.Partition, w.offset, r.Offset)
	}
}

// collectReads notes what was read, and by whom it must not be.
func (c *checker) collectReads() {
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work && op.Kind != Final {
			continue
		}
		if op.Kind == Final {
			f := final{read: true, first: NoOffset, op: i}
			if len(op.Reads) > 0 {
				f.first = op.Reads[0].Offset
			}
			c.finals[op.Mark.Partition] = f
		}
		for _, r := range op.Reads {
			c.report.Read++
			w := c.writes[r.Value]
			if w == nil || w.partition != r.Partition {
				c.found(NobodyWrote, i, "partition %d, offset %d holds value %d, which nobody sent there", r.Partition, r.Offset, r.Value)
				continue
			}
			c.place(i, w, r)
			w.read = true
			if op.Kind == Final {
				w.final = true
			}
			if !op.Committed && op.Kind != Final {
				continue
			}
			w.committed = true
			writer := &c.ops[w.op]
			if writer.Outcome == Fail {
				c.found(AbortedRead, i, "value %d of partition %d, offset %d was read as committed, and operation %d failed", r.Value, r.Partition, r.Offset, w.op)
			}
			if w.op == i {
				c.found(PrecommittedRead, i, "operation %d reads value %d, which it wrote", i, r.Value)
			}
		}
	}
}

// order sorts what is known of each partition.
func (c *checker) order() {
	for partition, list := range c.orders { // each by itself
		slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
		highest := -1
		for i, p := range list {
			if c.writes[p.value].committed {
				highest = i
			}
		}
		c.highest[partition] = highest
	}
}

func (c *checker) partitions() []int32 {
	var all []int32
	for p := range c.orders {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// mustBe tells whether an operation has certainly taken effect: it was told so, or
// something that it wrote was read as committed.
func (c *checker) mustBe(op int) bool {
	o := &c.ops[op]
	if o.Outcome != Unknown {
		return o.Outcome == OK
	}
	if !o.Transactional {
		return false // each send for itself
	}
	for _, s := range o.Sends {
		if c.writes[s.Value].committed {
			return true
		}
	}
	return false
}

// checkLost looks for what must have been read.
func (c *checker) checkLost() {
	for _, partition := range c.partitions() {
		f := c.finals[partition]
		for i, p := range c.orders[partition] {
			w := c.writes[p.value]
			if w.committed && f.read && !w.final && p.offset >= f.first {
				c.found(Vanished, w.op, "value %d of partition %d, offset %d was read as committed, and the final read did not find it", p.value, partition, p.offset)
				continue
			}
			if i < c.highest[partition] && !w.read && !w.committed && c.mustBe(w.op) {
				w.lost = true
				c.found(LostWrite, w.op, "value %d of partition %d, offset %d is committed, later ones were read, and nobody has read it", p.value, partition, p.offset)
			}
		}
	}
	for i := range c.ops {
		if c.ops[i].Kind != Work || len(c.ops[i].Sends) == 0 || !c.mustBe(i) {
			continue
		}
		for _, s := range c.ops[i].Sends {
			w := c.writes[s.Value]
			if f := c.finals[s.Partition]; f.read && !w.final && !w.committed && !w.lost {
				c.found(Unseen, i, "value %d of partition %d (offset %d) is committed, and the final read did not find it", s.Value, s.Partition, w.offset)
			}
		}
	}
}

// checkTorn looks for transactions of which the final reads show a part.
func (c *checker) checkTorn() {
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work || !op.Transactional {
			continue
		}
		var there, missing []int64
		for _, s := range op.Sends {
			switch {
			case !c.finals[s.Partition].read:
			case c.writes[s.Value].final:
				there = append(there, s.Value)
			default:
				missing = append(missing, s.Value)
			}
		}
		if len(there) > 0 && len(missing) > 0 {
			c.found(TornTransaction, i, "of operation %d (%s) value %d is visible and value %d is not", i, op.Outcome, there[0], missing[0])
		}
	}
}
