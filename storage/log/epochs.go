package log

import (
	"path"
	"slices"
	"sort"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/vfs"
)

// epochFile is the name of the leader epochs' file within a partition's directory.
const epochFile = "leader-epoch-checkpoint"

// EpochEnd gives the largest known epoch not above the asked one and its end offset, or (-1, -1) if unknown
// (LeaderEpochFileCache.endOffsetFor).
func (l *Log) EpochEnd(epoch protocol.LeaderEpoch) (protocol.LeaderEpoch, protocol.Offset) {
	p := l.shown.Load()
	return checkpoint.EpochEnd(p.epochs, epoch, p.LogEndOffset)
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
func (l *Log) Epochs() []checkpoint.EpochStart { return slices.Clone(l.shown.Load().epochs) }

// AssignEpoch records that epoch begins at start: what a new leader does before its first append. It is durable
// before a batch of the epoch can be read. At the log's end it is only shown now: an epoch without a batch says nothing
// that the next one does not say, a start drops it, and a node with many partitions would wait for its disk twice for each
// of them whenever they get their leaders.
func (l *Log) AssignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if epoch < 0 || start < l.end {
		return l.assignEpoch(epoch, start)
	}
	epochs, changed := checkpoint.WithEpoch(l.epochs, checkpoint.EpochStart{Epoch: epoch, Start: start})
	if !changed {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs, l.epochsAhead = epochs, true
	l.publish()
	return nil
}

func (l *Log) assignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) error {
	if epoch < 0 || start < 0 {
		return nil // a batch without a leader epoch, as tools write them
	}
	epochs, changed := checkpoint.WithEpoch(l.epochs, checkpoint.EpochStart{Epoch: epoch, Start: start})
	if !changed && !l.epochsAhead {
		return nil
	}
	return l.setEpochs(epochs)
}

// setEpochs makes the file durable, then shows the list.
func (l *Log) setEpochs(epochs []checkpoint.EpochStart) error {
	if err := checkpoint.WriteEpochs(l.env.FS, path.Join(l.dir, epochFile), epochs); err != nil {
		if vfs.NoSpace(err) {
			return err
		}
		return l.poison(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs, l.epochsStale, l.epochsAhead = epochs, false, false
	l.publish()
	return nil
}
