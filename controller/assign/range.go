package assign

import (
	"cmp"
	"slices"
	"strings"
)

// inRangeOrder numbers the members in the order in which they get their ranges:
// first those with an instance id, which outlives their member ids.
func inRangeOrder(members []Member) []int {
	order := make([]int, len(members))
	for m := range order {
		order[m] = m
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := members[a].InstanceID, members[b].InstanceID
		switch {
		case x != "" && y != "":
			return strings.Compare(x, y)
		case x != "":
			return -1
		case y != "":
			return 1
		default:
			return cmp.Compare(a, b)
		}
	})
	return order
}

// cut cuts each topic into one range a subscriber, the first ones being larger by
// one where it does not come out even. What somebody owns now does not matter: the
// order of the members does not change by itself.
func (l *layout) cut(order []int) {
	turn := make([]int, len(order))
	for i, m := range order {
		turn[m] = i
	}
	for t := range l.topics {
		topic := &l.topics[t]
		subscribers := slices.Clone(topic.subscribers)
		slices.SortFunc(subscribers, func(a, b int) int { return turn[a] - turn[b] })
		least, more := len(topic.owners)/len(subscribers), len(topic.owners)%len(subscribers)
		next := 0
		for i, m := range subscribers {
			n := least
			if i < more {
				n++
			}
			for range n {
				topic.owners[next] = m
				next++
			}
		}
	}
}
