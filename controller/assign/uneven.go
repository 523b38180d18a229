package assign

import (
	"cmp"
	"slices"
)

// maxRounds bounds how often the topics are gone over; each time about halves
// what is uneven between members whose subscriptions overlap.
const maxRounds = 16

// spreadUneven assigns where subscriptions differ: who subscribes to a partition's
// topic and owns it keeps it; what is open goes, topic by topic, to the subscriber
// with the fewest; then partitions of each topic go from those of its subscribers
// who have the most to those who have the fewest, until no topic has any that would
// even them out. A chain (a partition of one topic for one of another) is not
// looked for, as in Apache Kafka.
func (l *layout) spreadUneven() {
	sizes := make([]int, len(l.members))
	l.keep(func(m, t int, partitions []int32) {
		for _, p := range partitions {
			if l.topics[t].owners[p] == nobody {
				l.topics[t].owners[p] = m
				sizes[m]++
			}
		}
	})
	order := l.densestFirst()
	for _, t := range order {
		topic := &l.topics[t]
		if !slices.Contains(topic.owners, nobody) {
			continue
		}
		low := newLowSide(bySize(topic.subscribers, sizes), sizes)
		for p, owner := range topic.owners {
			if owner == nobody {
				m := low.next()
				topic.owners[p] = m
				sizes[m]++
			}
		}
	}
	l.level(order, sizes)
}

// densestFirst numbers the topics by partitions a subscriber, the most first, then
// by subscribers, the fewest first.
func (l *layout) densestFirst() []int {
	order := make([]int, len(l.topics))
	for t := range order {
		order[t] = t
	}
	density := func(t int) float64 { return float64(len(l.topics[t].owners)) / float64(len(l.topics[t].subscribers)) }
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(density(b), density(a)),
			cmp.Compare(len(l.topics[a].subscribers), len(l.topics[b].subscribers)),
			cmp.Compare(a, b),
		)
	})
	return order
}

// level goes over the topics until a whole round has moved nothing.
func (l *layout) level(order []int, sizes []int) {
	quiet := 0 // topics in a row that did not change
	for range maxRounds {
		for _, t := range order {
			if len(l.topics[t].subscribers) > 1 && l.levelTopic(&l.topics[t], sizes) {
				quiet = 0
			}
			if quiet++; quiet > len(order) {
				return
			}
		}
	}
}

// levelTopic moves partitions of one topic from the fullest of its subscribers to
// the emptiest, and tells whether it did.
func (l *layout) levelTopic(topic *laidTopic, sizes []int) bool {
	sorted := bySize(topic.subscribers, sizes)
	if sizes[sorted[len(sorted)-1]]-sizes[sorted[0]] <= 1 {
		return false
	}
	gives := make(map[int][]int, len(sorted)) // what each may give, the last first
	for p, owner := range topic.owners {
		gives[owner] = append(gives[owner], p)
	}
	low, high := newLowSide(slices.Clone(sorted), sizes), newHighSide(sorted, sizes)
	moved := false
	for {
		from := high.next(func(m int) bool { return len(gives[m]) > 0 })
		if from < 0 {
			return moved
		}
		last := len(gives[from]) - 1
		p := gives[from][last]
		gives[from] = gives[from][:last]
		to := low.next()
		if high.level-low.level <= 1 {
			return moved
		}
		topic.owners[p] = to
		sizes[from]--
		sizes[to]++
		moved = true
	}
}

// bySize sorts members by how many partitions they have, then by number.
func bySize(members, sizes []int) []int {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b int) int { return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b)) })
	return sorted
}
