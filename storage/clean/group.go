package clean

import (
	"math"

	"ottla/protocol"
	"ottla/storage/segment"
)

// grouped splits segments into groups that go into one each (Cleaner.groupSegmentsBySize): together not more than segmentBytes
// and indexBytes for each index, and not more offsets than an index can say. bound is the offset after the last one.
func grouped(segments []*segment.Segment, segmentBytes int64, indexBytes int, bound protocol.Offset) (groups [][]*segment.Segment) {
	for begin := 0; begin < len(segments); {
		first := segments[begin]
		size := first.Size()
		offsets, times := indexSizes(first)
		end := begin + 1
		for ; end < len(segments); end++ {
			s := segments[end]
			moreOffsets, moreTimes := indexSizes(s)
			size, offsets, times = size+s.Size(), offsets+moreOffsets, times+moreTimes
			last := bound - 1 // of s, at most
			if end+1 < len(segments) {
				last = segments[end+1].Base() - 1
			}
			if size > segmentBytes || offsets > indexBytes || times > indexBytes ||
				s.Size() > 0 && last-first.Base() > math.MaxInt32 {
				break
			}
		}
		groups = append(groups, segments[begin:end])
		begin = end
	}
	return groups
}

func indexSizes(s *segment.Segment) (offsets, times int) {
	offsets, times = s.IndexEntries()
	return offsets * segment.OffsetEntryBytes, times * segment.TimeEntryBytes
}
