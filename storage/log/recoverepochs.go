package log

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
)

// recoverEpochs loads the leader epochs and makes them fit the log.
func (o *opening) recoverEpochs() error {
	loaded, err := checkpoint.ReadEpochs(o.env.FS, path.Join(o.dir, epochFile))
	lost := errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, fs.ErrNotExist) && o.end > o.logStart
	if err != nil && !lost && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	epochs := checkpoint.EpochsUpTo(loaded, o.end)
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
	epochs, _ = checkpoint.EpochsFrom(epochs, o.logStart)
	o.epochs = epochs
	if slices.Equal(epochs, loaded) && !lost {
		return nil
	}
	return checkpoint.WriteEpochs(o.env.FS, path.Join(o.dir, epochFile), epochs)
}

// withSeen replaces what the file says of segments that were walked whole, and adds newer epochs met in others.
func (o *opening) withSeen(epochs []checkpoint.EpochStart) []checkpoint.EpochStart {
	epochs = checkpoint.EpochsUpTo(epochs, o.seenFrom)
	for _, e := range o.seen {
		if n := len(epochs); n == 0 || e.Epoch > epochs[n-1].Epoch {
			epochs, _ = checkpoint.WithEpoch(epochs, e)
		}
	}
	return epochs
}

// epochsContradict looks at the batches on both sides of each epoch's beginning: it must be the first of its epoch, and
// the one before it be of the epoch before.
func (o *opening) epochsContradict(epochs []checkpoint.EpochStart) (bool, error) {
	if len(epochs) > 0 && epochs[0].Start > o.logStart || len(epochs) == 0 && o.end > o.logStart {
		return true, nil
	}
	for i, e := range epochs {
		if e.Start < o.logStart || e.Start >= o.seenFrom {
			continue
		}
		base, epoch, err := o.batchAt(e.Start)
		if err != nil || epoch != e.Epoch || base < e.Start && e.Start > o.logStart {
			return true, err
		}
		if i == 0 || e.Start <= o.segments[0].Base() {
			continue
		}
		if _, before, err := o.batchAt(e.Start - 1); err != nil || before != epochs[i-1].Epoch {
			return true, err
		}
	}
	return false, nil
}

// batchAt tells base offset and leader epoch of the batch that holds an offset.
func (o *opening) batchAt(offset protocol.Offset) (protocol.Offset, protocol.LeaderEpoch, error) {
	base, epoch := protocol.NoOffset, protocol.NoLeaderEpoch
	s := o.segments[max(holding(o.segments, offset), 0)]
	err := s.Batches(offset, s.Size(), func(b segment.Batch) error {
		base, epoch = b.Header.BaseOffset(), b.Header.PartitionLeaderEpoch()
		return segment.ErrStop
	})
	return base, epoch, asDamage(err)
}

// epochsOfBatches walks all batches.
func (o *opening) epochsOfBatches() ([]checkpoint.EpochStart, error) {
	o.seen = nil
	for _, s := range o.segments {
		if err := s.Batches(s.Base(), s.Size(), o.see); err != nil {
			return nil, asDamage(err)
		}
	}
	o.seenFrom = 0
	return o.withSeen(nil), nil
}
