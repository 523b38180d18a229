package log

import (
	"path"

	"ottla/storage/checkpoint"
	"ottla/storage/epochs"
	"ottla/storage/segment"
)

// recoverEpochs loads the leader epochs and makes them fit the log.
func (o *opening) recoverEpochs() error {
	stored, unread := o.found.Content(epochFile)
	found, err := epochs.Recover(epochs.Log{
		Stored: stored, Unread: unread, Segments: o.segments, Start: o.logStart, End: o.end,
		Doubted: o.state.Trust != Clean && !o.opts.Load().Compact, Walk: o.seen, SeenFrom: o.seenFrom,
	})
	if err != nil {
		return asDamage(err)
	}
	o.epochs, o.epochsAhead = found.Epochs, found.Ahead
	o.report.EpochsRebuilt = found.Rebuilt
	if !found.Stale {
		return nil
	}
	return checkpoint.WriteEpochs(o.env.FS, path.Join(o.dir, epochFile), found.Epochs)
}

// see notes where leader epochs begin.
func (o *opening) see(b segment.Batch) error {
	walk := epochs.Walk(o.seen)
	err := walk.See(b)
	o.seen = walk
	return err
}
