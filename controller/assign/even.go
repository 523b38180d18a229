package assign

// place is one partition, by the number of its topic.
type place struct{ topic, partition int }

// spreadEven assigns where all subscribe to the same topics: everybody has as many
// partitions as everybody else, or one more. Who has more now may keep the one
// more; what is left of them goes to the last members.
func (l *layout) spreadEven() {
	owned := make([][]place, len(l.members))
	l.keep(func(m, t int, partitions []int32) {
		for _, p := range partitions {
			if l.topics[t].owners[p] == nobody {
				l.topics[t].owners[p] = m
				owned[m] = append(owned[m], place{t, int(p)})
			}
		}
	})
	var open []place // those that nobody has, then those that somebody has too many
	total := 0
	for t := range l.topics {
		total += len(l.topics[t].owners)
		for p, owner := range l.topics[t].owners {
			if owner == nobody {
				open = append(open, place{t, p})
			}
		}
	}
	least, more := total/len(l.members), total%len(l.members)
	lacks := make([]int, len(l.members))
	for m := range l.members {
		quota := least
		if more > 0 && (len(owned[m]) > least || len(l.members)-m <= more) {
			quota++
			more--
		}
		kept := min(quota, len(owned[m]))
		open = append(open, owned[m][kept:]...)
		lacks[m] = quota - kept
	}
	for m, n := range lacks {
		for _, at := range open[:n] {
			l.topics[at.topic].owners[at.partition] = m
		}
		open = open[n:]
	}
}
