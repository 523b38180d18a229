package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// opening is one Open.
type opening struct {
	*Log
	state   OpenState
	report  Recovery
	found   segment.Directory
	present []segment.Present // of Log.segments, as found
	stored  []protocol.Offset // snapshot files found
	resumed bool              // the last segment was walked from its last index entry only

	seen     []checkpoint.EpochStart // leader epochs met in walked batches
	seenFrom protocol.Offset         // base of the first segment walked from its start
	txnsFrom protocol.Offset         // base of the first segment whose .txnindex is to be compared with its batches
}

// never is an offset that no log reaches.
const never protocol.Offset = 1<<63 - 1

// Open opens an existing directory and repairs what may be repaired. A *DamagedError means that durable bytes
// are damaged: none of them was cut, and the partition must go offline.
func Open(env Env, dir string, tp protocol.TopicPartition, opts Options, state OpenState) (*Log, Recovery, error) {
	o := &opening{Log: newLog(env, dir, tp, opts), state: state, seenFrom: never, txnsFrom: never}
	o.report.CutAt = protocol.NoOffset
	o.dirStale.Store(state.Trust != Clean) // what a process that died did not sync is ours to sync
	o.sawMs.Store(state.Now.UnixMilli())
	if state.Now.IsZero() {
		o.sawMs.Store(0)
	}
	err := o.run()
	if err != nil {
		o.Abandon()
		var damaged *DamagedError
		if !errors.As(err, &damaged) {
			err = fmt.Errorf("cannot open the log of %s: %w", tp, err)
		}
		return nil, o.report, err
	}
	for _, s := range o.segments {
		s.Rest()
	}
	o.report.Segments = len(o.segments)
	offsets, _ := o.active().IndexEntries()
	padded := len(o.present) == len(o.segments) && int64(offsets)*8 != o.present[len(o.present)-1].Index
	doubted := state.Trust != Clean && !o.empty() || state.Trust == Clean && o.dirStale.Load()
	ahead := o.durableEnd < o.end // an empty log that begins above its recovery point, too, is to be settled by a clean stop
	o.touched.Store(doubted || o.report.NoteWorthy() || padded || ahead)
	return o.Log, o.report, nil
}

// empty tells that the directory is as Create makes it. If a process died that had not synced it yet, store.Close does.
func (o *opening) empty() bool {
	return len(o.present) == 1 && len(o.segments) == 1 && len(o.stored) == 0 && o.present[0].Empty()
}

func (o *opening) run() error {
	found, err := segment.ReadDirectory(o.env.FS, o.dir, MetadataFile, epochFile)
	if err != nil {
		return err
	}
	stray, err := segment.Tidy(o.env.Files, o.dir, found.Entries)
	o.stray(stray)
	if err != nil {
		return asDamage(err)
	}
	if stray > 0 {
		if found, err = segment.ReadDirectory(o.env.FS, o.dir, MetadataFile, epochFile); err != nil {
			return err
		}
	}
	o.found = found
	if err := o.list(found.Entries); err != nil {
		return err
	}
	if len(o.segments) == 0 {
		if err := o.beginEmpty(); err != nil {
			return err
		}
	} else if err := o.recoverSegments(); err != nil {
		return err
	}
	o.logStart = max(o.state.LogStartOffset, o.segments[0].Base())
	o.highWatermark = o.logStart
	o.durableEnd = min(o.state.RecoveryPoint, o.end)
	if o.state.Trust == Clean {
		o.durableEnd = o.end
	}
	if err := o.recoverEpochs(); err != nil {
		return err
	}
	if err := o.recoverProducers(); err != nil {
		return err
	}
	o.readTopicID()
	o.jitter = o.newJitter()
	o.publish()
	return nil
}

func (o *opening) stray(files int) {
	o.report.StrayFiles += files
	if files > 0 {
		o.dirStale.Store(true)
	}
}

// list finds the segments and snapshots, and removes index files without a .log.
func (o *opening) list(entries []vfs.Entry) error {
	listed, orphans := segment.List(entries)
	for _, name := range orphans {
		o.stray(1)
		if err := o.env.FS.Remove(path.Join(o.dir, name)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if base, suffix, ok := segment.ParseName(e.Name); ok && !e.Dir && suffix == snapshotSuffix {
			o.stored = append(o.stored, base)
		}
	}
	slices.Sort(o.stored)
	for _, s := range listed {
		o.segments = append(o.segments, segment.Open(o.env.Files, o.dir, s.Base, o.segmentOptions(), s.Present))
		o.present = append(o.present, s.Present)
	}
	return nil
}

// beginEmpty makes the first segment of a directory that has none.
func (o *opening) beginEmpty() error {
	if rp := o.state.RecoveryPoint; rp > o.state.LogStartOffset {
		return &DamagedError{File: o.dir, Reason: fmt.Sprintf(
			"there are no segments, but records from %d to %d were durable", o.state.LogStartOffset, rp)}
	}
	return o.restartAt(o.state.LogStartOffset)
}

// restartAt makes an empty segment the whole log.
func (o *opening) restartAt(offset protocol.Offset) error {
	fresh, err := segment.Create(o.env.Files, o.dir, offset, o.segmentOptions(), o.nowMs())
	if err != nil {
		return err
	}
	o.dirStale.Store(true)
	o.segments, o.end = []*segment.Segment{fresh}, offset
	return nil
}

func (o *opening) readTopicID() {
	data, err := o.found.Content(MetadataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		o.topicID, err = checkpoint.ParseTopicID(data)
	}
	if err != nil {
		o.report.TopicIDLost = true
		o.logger.Warn("the topic id of a partition cannot be read", "partition", o.tp.String(), "error", err)
	}
}

func (o *opening) damaged(s *segment.Segment, position int64, format string, args ...any) error {
	return &DamagedError{File: s.LogName(), Position: position, Reason: fmt.Sprintf(format, args...)}
}
