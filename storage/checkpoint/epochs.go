package checkpoint

import (
	"slices"
	"sort"

	"ottla/protocol"
)

// WithEpoch adds an epoch to the list; entries that contradict it go (LeaderEpochFileCache.assign). changed is false
// if the list says so already.
func WithEpoch(epochs []EpochStart, e EpochStart) (list []EpochStart, changed bool) {
	if n := len(epochs); n > 0 && epochs[n-1].Epoch == e.Epoch && e.Start >= epochs[n-1].Start {
		return epochs, false
	}
	keep := len(epochs)
	for keep > 0 && (epochs[keep-1].Epoch >= e.Epoch || epochs[keep-1].Start >= e.Start) {
		keep--
	}
	return append(slices.Clone(epochs[:keep]), e), true
}

// EpochsUpTo drops the epochs that begin at or after end.
func EpochsUpTo(epochs []EpochStart, end protocol.Offset) []EpochStart {
	keep := len(epochs)
	for keep > 0 && epochs[keep-1].Start >= end {
		keep--
	}
	return slices.Clone(epochs[:keep])
}

// EpochsFrom makes the list begin at start: the epoch that holds start begins there now.
func EpochsFrom(epochs []EpochStart, start protocol.Offset) (list []EpochStart, changed bool) {
	drop := 0
	for drop < len(epochs) && epochs[drop].Start <= start {
		drop++
	}
	if drop == 0 || drop == 1 && epochs[0].Start == start {
		return epochs, false
	}
	list = slices.Clone(epochs[drop-1:])
	list[0].Start = start
	return list, true
}

// EpochEnd gives the largest epoch of the list not above the asked one and its end offset, or (-1, -1) if unknown; end is that of
// the log (LeaderEpochFileCache.endOffsetFor).
func EpochEnd(epochs []EpochStart, asked protocol.LeaderEpoch, end protocol.Offset) (protocol.LeaderEpoch, protocol.Offset) {
	n := len(epochs)
	if asked == protocol.NoLeaderEpoch || n == 0 || asked > epochs[n-1].Epoch {
		return protocol.NoLeaderEpoch, protocol.NoOffset
	}
	if asked == epochs[n-1].Epoch {
		return asked, end
	}
	higher := sort.Search(n, func(i int) bool { return epochs[i].Epoch > asked })
	if higher == 0 {
		return asked, epochs[0].Start
	}
	return epochs[higher-1].Epoch, epochs[higher].Start
}
