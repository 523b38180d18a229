package history

import (
	"cmp"
	"fmt"
	"slices"
)

// checkZombies looks for writes that were acknowledged though they began after a
// newer instance of the producer was there.
func (c *checker) checkZombies() {
	type fence struct {
		epoch int32
		at    int64
	}
	fences := map[int32][]fence{}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Fence && op.Outcome == OK {
			fences[op.Producer.ID] = append(fences[op.Producer.ID], fence{op.Producer.Epoch, op.End})
		}
	}
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Work || op.Outcome != OK || op.Producer.ID == 0 || len(op.Sends) == 0 {
			continue
		}
		for _, f := range fences[op.Producer.ID] {
			if f.epoch > op.Producer.Epoch && op.Begin > f.at {
				c.found(Zombie, i, "producer %d, epoch %d was acknowledged operation %d, which began after epoch %d was given out", op.Producer.ID, op.Producer.Epoch, i, f.epoch)
				break
			}
		}
	}
}

type groupPartition struct{ group, partition int32 }

// checkMarks looks at the offsets of groups, and at who owns what.
func (c *checker) checkMarks() {
	type owned struct{ group, generation, partition int32 }
	owners := map[owned]int32{}
	commits := map[groupPartition][]int{}
	for i := range c.ops {
		op := &c.ops[i]
		switch op.Kind {
		case Own:
			key := owned{op.Mark.Group, op.Mark.Epoch, op.Mark.Partition}
			if before, known := owners[key]; known && before != op.Process {
				c.found(TwoOwners, i, "in generation %d of group %d both process %d and process %d own partition %d", key.generation, key.group, before, op.Process, key.partition)
			}
			owners[key] = op.Process
		case Commit:
			if op.Outcome != Fail {
				key := groupPartition{op.Mark.Group, op.Mark.Partition}
				commits[key] = append(commits[key], i)
			}
		}
	}
	highest := map[groupPartition][]int{} // per key: acknowledged commits, each above all before it
	for key, list := range commits {      // each by itself
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(c.ops[a].End, c.ops[b].End) })
		best := int64(-1)
		for _, i := range list {
			if op := &c.ops[i]; op.Outcome == OK && op.Mark.Offset > best {
				best = op.Mark.Offset
				highest[key] = append(highest[key], i)
			}
		}
	}
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == Fetch && op.Outcome == OK {
			key := groupPartition{op.Mark.Group, op.Mark.Partition}
			c.checkFetch(i, highest[key], commits[key])
		}
	}
}

// checkFetch compares a committed offset with the highest one that was acknowledged
// before it was asked for. A lower one is right if it may have come later.
func (c *checker) checkFetch(i int, highest, all []int) {
	op := &c.ops[i]
	after, _ := slices.BinarySearchFunc(highest, op.Begin, func(h int, begin int64) int { return cmp.Compare(c.ops[h].End, begin) })
	if after == 0 {
		return
	}
	best := &c.ops[highest[after-1]]
	if op.Mark.Offset >= best.Mark.Offset {
		return
	}
	for _, other := range all {
		o := &c.ops[other]
		late := o.End >= best.Begin || o.Outcome == Unknown
		if o.Mark.Offset == op.Mark.Offset && late && o.Begin <= op.End {
			return
		}
	}
	c.found(OffsetRegress, i, "group %d: the offset of partition %d is %d, and %d was acknowledged before", op.Mark.Group, op.Mark.Partition, op.Mark.Offset, best.Mark.Offset)
}

// checkBounds follows high watermarks and last stable offsets.
func (c *checker) checkBounds() {
	type stand struct {
		last  Bounds
		since int64 // when the last stable offset was first seen where it is, below the high watermark
	}
	stands := map[int32]*stand{}
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind != Bound || op.Outcome != OK {
			continue
		}
		b := op.Bounds
		s := stands[b.Partition]
		if s == nil {
			stands[b.Partition] = &stand{b, op.End}
			continue
		}
		if b.Incarnation == s.last.Incarnation && (b.HighWatermark < s.last.HighWatermark || b.LastStable < s.last.LastStable) {
			c.found(BoundRegress, i, "partition %d went back from %+v to %+v", b.Partition, s.last, b)
		}
		if b.LastStable > b.HighWatermark {
			c.found(BoundRegress, i, "partition %d: the last stable offset is beyond the high watermark: %+v", b.Partition, b)
		}
		// Where there was nothing undecided, nothing holds it yet.
		if b.LastStable != s.last.LastStable || b.LastStable == b.HighWatermark || s.last.LastStable == s.last.HighWatermark {
			s.since = op.End
		} else if c.o.StuckAfter > 0 && op.End-s.since > c.o.StuckAfter {
			c.found(StuckLastStable, i, "partition %d: the last stable offset stays at %d below %d for %d ms", b.Partition, b.LastStable, b.HighWatermark, (op.End-s.since)/1e6)
			s.since = op.End
		}
		s.last = b
	}
}

// CheckCopy compares what was copied with what there was to copy: as multisets they
// are the same. It gives one line for each value that is missing or there too often,
// at most most of them.
func CheckCopy(input, output []int64, most int) []string {
	counts := map[int64]int{}
	for _, v := range input {
		counts[v]++
	}
	for _, v := range output {
		counts[v]--
	}
	var wrong []int64
	for v, n := range counts {
		if n != 0 {
			wrong = append(wrong, v)
		}
	}
	slices.Sort(wrong)
	var lines []string
	for _, v := range wrong {
		if len(lines) == most {
			return append(lines, fmt.Sprintf("and %d more", len(wrong)-most))
		}
		if n := counts[v]; n > 0 {
			lines = append(lines, fmt.Sprintf("value %d is missing %d times in the copy", v, n))
		} else {
			lines = append(lines, fmt.Sprintf("value %d is %d times too often in the copy", v, -n))
		}
	}
	return lines
}
