package assign

// lowSide tells who gets the next partition: the members with the fewest one after
// the other, and when each has got one, those who had one more with them, and so
// on. It is like pouring water into a vessel with steps.
type lowSide struct {
	sorted []int // members by size
	sizes  []int // of all members; the caller counts what is given
	level  int   // what those on the water's surface had before this turn
	count  int   // how many are on the surface: the first of sorted
	at     int   // whose turn it is
}

func newLowSide(sorted, sizes []int) *lowSide {
	return &lowSide{sorted: sorted, sizes: sizes, level: sizes[sorted[0]] - 1}
}

func (s *lowSide) next() int {
	if s.at >= s.count {
		s.level++
		for s.count < len(s.sorted) && s.sizes[s.sorted[s.count]] == s.level {
			s.count++
		}
		s.at = 0
	}
	s.at++
	return s.sorted[s.at-1]
}

// highSide tells who gives the next partition: the members with the most, one after
// the other from the end, and when each has given one, those who had one less with
// them. Who has nothing to give is set aside.
type highSide struct {
	sorted     []int
	sizes      []int
	level      int // what those at the top had before this turn
	start, end int // they are sorted[start:end]; beyond are those set aside
	at         int // whose turn it is
}

func newHighSide(sorted, sizes []int) *highSide {
	n := len(sorted)
	return &highSide{sorted: sorted, sizes: sizes, level: sizes[sorted[n-1]] + 1, start: n, end: n, at: n - 1}
}

// next gives -1 if nobody may give anything any more.
func (s *highSide) next(gives func(member int) bool) int {
	for {
		if s.at < s.start {
			s.descend()
		}
		if s.at < 0 {
			return -1
		}
		m := s.sorted[s.at]
		if gives(m) {
			s.at--
			return m
		}
		s.end--
		s.sorted[s.at], s.sorted[s.end] = s.sorted[s.end], m
		s.at--
	}
}

// descend takes in those who had one less; if nobody was left at the top, those who
// have the most of the others.
func (s *highSide) descend() {
	if s.end <= s.start && s.start > 0 {
		s.level = s.sizes[s.sorted[s.start-1]]
	} else {
		s.level--
	}
	for s.start > 0 && s.sizes[s.sorted[s.start-1]] == s.level {
		s.start--
	}
	s.at = s.end - 1
}
