package log

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/segment"
)

// recoverEpochs loads the leader epochs and makes them fit the log.
func (o *opening) recoverEpochs() error {
	loaded, err := ReadEpochCheckpoint(o.env.FS, path.Join(o.dir, epochFile))
	lost := errors.Is(err, ErrCheckpoint) || errors.Is(err, fs.ErrNotExist) && o.end > o.logStart
	if err != nil && !lost && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	epochs := epochsUpTo(loaded, o.end)
	if !lost && o.state.Trust != Clean && !o.opts.Load().Compact {
		if lost, err = o.epochsContradict(epochs); err != nil {
			return err
		}
	}
	if lost {
		o.report.EpochsRebuilt = true
		if epochs, err = o.epochsOfBatches(); err != nil {
			return err
		}
	} else {
		epochs = o.withSeen(epochs)
	}
	epochs, _ = epochsFrom(epochs, o.logStart)
	if slices.Equal(epochs, loaded) && !lost {
		o.epochs = epochs
		return nil
	}
	return o.writeEpochs(epochs)
}

func (o *opening) writeEpochs(epochs []EpochStart) error {
	o.epochs = epochs
	return WriteEpochCheckpoint(o.env.FS, path.Join(o.dir, epochFile), epochs)
}

// withSeen replaces what the file says of segments that were walked whole, and adds newer epochs met in others.
func (o *opening) withSeen(epochs []EpochStart) []EpochStart {
	epochs = epochsUpTo(epochs, o.seenFrom)
	for _, e := range o.seen {
		if n := len(epochs); n == 0 || e.Epoch > epochs[n-1].Epoch {
			epochs, _ = withEpoch(epochs, e)
		}
	}
	return epochs
}

// epochsContradict looks at the batch where each epoch begins: it must be of that epoch, and the first of it.
func (o *opening) epochsContradict(epochs []EpochStart) (bool, error) {
	for i, e := range epochs {
		if e.Start < o.logStart || e.Start >= o.seenFrom {
			continue
		}
		at := max(holding(o.segments, e.Start), 0)
		wrong := false
		err := o.segments[at].Batches(e.Start, o.segments[at].Size(), func(b segment.Batch) error {
			within := b.Header.BaseOffset() < e.Start && (i > 0 || e.Start > o.logStart)
			wrong = b.Header.PartitionLeaderEpoch() != e.Epoch || within
			return segment.ErrStop
		})
		if wrong || err != nil {
			return wrong, o.asDamage(o.segments[at], err)
		}
	}
	return false, nil
}

// epochsOfBatches walks all batches.
func (o *opening) epochsOfBatches() ([]EpochStart, error) {
	o.seen = nil
	for _, s := range o.segments {
		if err := s.Batches(s.Base(), s.Size(), o.see); err != nil {
			return nil, o.asDamage(s, err)
		}
	}
	return o.withSeenFrom(protocol.Offset(0)), nil
}

func (o *opening) withSeenFrom(base protocol.Offset) []EpochStart {
	o.seenFrom = base
	return o.withSeen(nil)
}
