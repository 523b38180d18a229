package log

import (
	"path"
	"slices"
	"sort"

	"ottla/protocol"
)

// epochFile is the name of the leader epochs' file within a partition's directory.
const epochFile = "leader-epoch-checkpoint"

// withEpoch adds an epoch to the list; entries that contradict it go (LeaderEpochFileCache.assign). changed is false
// if the list says so already.
func withEpoch(epochs []EpochStart, e EpochStart) (list []EpochStart, changed bool) {
	if n := len(epochs); n > 0 && epochs[n-1].Epoch == e.Epoch && e.Start >= epochs[n-1].Start {
		return epochs, false
	}
	keep := len(epochs)
	for keep > 0 && (epochs[keep-1].Epoch >= e.Epoch || epochs[keep-1].Start >= e.Start) {
		keep--
	}
	return append(slices.Clone(epochs[:keep]), e), true
}

// epochsUpTo drops the epochs that begin at or after end.
func epochsUpTo(epochs []EpochStart, end protocol.Offset) []EpochStart {
	keep := len(epochs)
	for keep > 0 && epochs[keep-1].Start >= end {
		keep--
	}
	return slices.Clone(epochs[:keep])
}

// epochsFrom makes the list begin at start: the epoch that holds start begins there now.
func epochsFrom(epochs []EpochStart, start protocol.Offset) (list []EpochStart, changed bool) {
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

// epochEnd is LeaderEpochFileCache.endOffsetFor.
func epochEnd(epochs []EpochStart, asked protocol.LeaderEpoch, end protocol.Offset) (protocol.LeaderEpoch, protocol.Offset) {
	n := len(epochs)
	if asked < 0 || n == 0 || asked > epochs[n-1].Epoch {
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

// EpochEnd gives the largest known epoch not above the asked one and its end offset, or (-1, -1) if unknown
// (LeaderEpochFileCache.endOffsetFor).
func (l *Log) EpochEnd(epoch protocol.LeaderEpoch) (protocol.LeaderEpoch, protocol.Offset) {
	p := l.shown.Load()
	return epochEnd(p.epochs, epoch, p.LogEndOffset)
}

// EpochOf gives the leader epoch that wrote the record at offset, or NoLeaderEpoch.
func (l *Log) EpochOf(offset protocol.Offset) protocol.LeaderEpoch {
	epochs := l.shown.Load().epochs
	i := sort.Search(len(epochs), func(i int) bool { return epochs[i].Start > offset })
	if i == 0 {
		return protocol.NoLeaderEpoch
	}
	return epochs[i-1].Epoch
}

// LatestEpoch gives the newest leader epoch in the cache, or NoLeaderEpoch.
func (l *Log) LatestEpoch() protocol.LeaderEpoch { return l.View().LatestEpoch }

// Epochs lists the leader epochs in the cache.
func (l *Log) Epochs() []EpochStart { return slices.Clone(l.shown.Load().epochs) }

// AssignEpoch records that epoch begins at start: what a new leader does before its first append. It is durable
// when it returns.
func (l *Log) AssignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	return l.assignEpoch(epoch, start)
}

func (l *Log) assignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) error {
	if epoch < 0 || start < 0 {
		return nil // a batch without a leader epoch, as tools write them
	}
	epochs, changed := withEpoch(l.epochs, EpochStart{epoch, start})
	if !changed {
		return nil
	}
	return l.setEpochs(epochs)
}

// setEpochs makes the file durable, then shows the list.
func (l *Log) setEpochs(epochs []EpochStart) error {
	if err := WriteEpochCheckpoint(l.env.FS, path.Join(l.dir, epochFile), epochs); err != nil {
		if noSpace(err) {
			return err
		}
		return l.poison(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs, l.epochsStale = epochs, false
	l.publish()
	return nil
}
