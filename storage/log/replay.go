package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/producer"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// recoverProducers loads the newest usable snapshot and replays the batches after it; on the way it compares the
// .txnindex files that are in doubt, and writes the snapshots that should be there and are not.
func (o *opening) recoverProducers() error {
	if err := o.sortSnapshots(); err != nil {
		return err
	}
	r := replay{Log: o.Log, to: o.end, txnsFrom: o.txnsFrom, dropped: &o.report.SnapshotsDropped}
	if err := r.load(min(o.end, o.txnsFrom)); err != nil {
		return err
	}
	// Apache Kafka makes sure of a snapshot at the last two segments, and at the end.
	for _, s := range o.segments[max(0, len(o.segments)-2):] {
		r.wanted = append(r.wanted, s.Base())
	}
	if err := r.run(); err != nil {
		return err
	}
	o.report.IndexesRebuilt += r.rewritten
	o.report.BatchesScanned += r.batches
	return o.storeSnapshot(o.end)
}

// sortSnapshots removes the snapshot files that belong to no segment, except the newest beyond the last segment's base
// (ProducerStateManager.removeStraySnapshots), and those outside the log. Unlike Apache Kafka we keep one at or below the
// log's start while its segment is there: without it a producer whose batches were deleted, but not its last marker,
// would be known by epoch and not by sequence, and be refused after a restart (KAFKA-7190).
func (o *opening) sortSnapshots() error {
	newest := protocol.NoOffset
	for _, at := range o.stored {
		if at <= o.end {
			newest = at
		}
	}
	for _, at := range o.stored {
		i := holding(o.segments, at)
		ofSegment := i >= 0 && o.segments[i].Base() == at
		atEnd := at == newest && at > o.active().Base() && o.state.Trust != OtherBoot
		if at <= o.end && (ofSegment || atEnd) {
			o.snapshots = append(o.snapshots, at)
			continue
		}
		o.report.StrayFiles++
		if err := o.removeSnapshot(at); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) removeSnapshot(at protocol.Offset) error {
	l.snapshots = slices.DeleteFunc(l.snapshots, func(o protocol.Offset) bool { return o == at })
	if err := l.env.FS.Remove(l.snapshotName(at)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove a producer snapshot: %w", err)
	}
	return nil
}

// storeSnapshot writes the present state as the snapshot of an offset.
func (l *Log) storeSnapshot(at protocol.Offset) error {
	i, found := slices.BinarySearch(l.snapshots, at)
	if found || at == l.segments[0].Base() && l.producers.Len() == 0 {
		return nil
	}
	l.snapshots = slices.Insert(l.snapshots, i, at)
	return l.writeSnapshot(at, l.producers.AppendSnapshot(nil), false)
}

// replay rebuilds the producer state from a snapshot and the batches after it.
type replay struct {
	*Log
	from, to protocol.Offset
	txnsFrom protocol.Offset
	wanted   []protocol.Offset // segment bases where a snapshot should be
	dropped  *int

	aborted   []segment.AbortedTxn // of the present segment
	batches   int64
	rewritten int
}

// load finds the newest usable snapshot at or before limit; without one the state begins empty at the first segment.
func (r *replay) load(limit protocol.Offset) error {
	for i := len(r.snapshots) - 1; i >= 0; i-- {
		at := r.snapshots[i]
		if at > limit {
			continue
		}
		producers, err := r.read(at)
		if err != nil {
			return err
		}
		if producers != nil {
			r.from = at
			r.producers.Load(producers, at, r.nowMs())
			return nil
		}
	}
	r.from = min(r.segments[0].Base(), r.to)
	r.producers.Reset(r.from)
	return nil
}

// read reads a snapshot; a damaged one is removed, and nil returned.
func (r *replay) read(at protocol.Offset) ([]producer.Producer, error) {
	data, err := vfs.ReadFile(r.env.FS, r.snapshotName(at))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read a producer snapshot: %w", err)
	}
	producers, err := producer.ReadSnapshot(data)
	if err == nil {
		return producers, r.endCompacted(producers, at)
	}
	r.logger.Warn("a producer snapshot is damaged and is removed", "partition", r.tp.String(),
		"file", path.Base(r.snapshotName(at)), "error", err)
	*r.dropped++
	return nil, r.removeSnapshot(at)
}

// endCompacted ends the transactions of an older snapshot that compaction has taken away since, with their markers. What
// is undecided is never compacted, so where the first batch is, the transaction is open.
func (r *replay) endCompacted(producers []producer.Producer, at protocol.Offset) error {
	for i := range producers {
		p := &producers[i]
		if p.TxnFirstOffset == protocol.NoOffset || p.TxnFirstOffset < r.segments[0].Base() {
			continue // none, or retention has deleted its first batch
		}
		open := false
		err := r.walk(p.TxnFirstOffset, func(b segment.Batch) error {
			h := b.Header
			if h.ProducerID() != p.ID {
				return nil
			}
			if h.BaseOffset() < at { // one of its batches is left
				open = h.IsTransactional() && !h.IsControl()
			} else { // or its marker; a batch may be of a later one, but not where nothing was compacted yet
				open = h.IsControl() || h.IsTransactional() && at >= r.segments[len(r.segments)-1].Base()
			}
			return segment.ErrStop
		})
		if err != nil {
			return err
		}
		if !open {
			p.TxnFirstOffset = protocol.NoOffset
		}
	}
	return nil
}

// walk visits batches from the one that holds an offset on, until segment.ErrStop.
func (r *replay) walk(from protocol.Offset, visit func(segment.Batch) error) error {
	stopped := false
	for _, s := range r.segments[holding(r.segments, from):] {
		err := s.Batches(max(from, s.Base()), s.Size(), func(b segment.Batch) error {
			err := visit(b)
			stopped = errors.Is(err, segment.ErrStop)
			return err
		})
		if err != nil || stopped {
			return asDamage(err)
		}
	}
	return nil
}

func (r *replay) run() error {
	if r.from == r.to && r.txnsFrom == never {
		return nil
	}
	for i := max(holding(r.segments, r.from), 0); i < len(r.segments); i++ {
		s := r.segments[i]
		start := max(s.Base(), r.from)
		if err := r.passSnapshot(s.Base()); err != nil {
			return err
		}
		r.aborted = r.aborted[:0]
		err := s.Batches(start, s.Size(), func(b segment.Batch) error { return r.apply(s, b) })
		if err != nil {
			return asDamage(err)
		}
		if s.Base() >= r.txnsFrom && s.Base() >= r.from {
			if err := r.compareTxns(s); err != nil {
				return err
			}
		}
	}
	r.producers.SetEnd(r.to)
	return nil
}

// passSnapshot takes from a segment's snapshot what the replay cannot know, or writes one that should be there.
func (r *replay) passSnapshot(base protocol.Offset) error {
	if base < r.from {
		return nil
	}
	r.producers.SetEnd(base)
	if slices.Contains(r.snapshots, base) && base > r.from {
		producers, err := r.read(base)
		if err != nil {
			return err
		}
		r.producers.Adopt(producers, r.nowMs())
	}
	if slices.Contains(r.wanted, base) {
		return r.storeSnapshot(base)
	}
	return nil
}

func (r *replay) apply(s *segment.Segment, b segment.Batch) error {
	if b.Header.BaseOffset() >= r.to {
		return segment.ErrStop
	}
	if b.Header.BaseOffset() < r.from {
		return nil
	}
	r.batches++
	batch, marker, err := readMarker(s, b)
	if err != nil {
		return err
	}
	done, ended := r.producers.Apply(batch, marker)
	if ended && done.Aborted {
		r.aborted = append(r.aborted, segment.AbortedTxn{
			ProducerID: done.ProducerID, FirstOffset: done.FirstOffset,
			LastOffset: done.LastOffset, LastStableOffset: done.LastStableOffset,
		})
	}
	return nil
}

// largestMarker bounds the control batches that are read whole: one record of a few bytes.
const largestMarker = 64 << 10

// readMarker reads the transaction marker out of a control batch of a producer.
func readMarker(s *segment.Segment, b segment.Batch) (record.Batch, *producer.Marker, error) {
	if !b.Header.IsControl() || !b.Header.HasProducerID() || b.Size > largestMarker {
		return b.Header, nil, nil
	}
	batch, err := s.Load(b)
	if err != nil {
		return nil, nil, err
	}
	if err := batch.CheckCRC(); err != nil {
		return nil, nil, &segment.Damage{File: s.LogName(), Position: b.Position, Reason: err.Error()} // consumers would wait for it for ever
	}
	marker, err := producer.ReadMarker(batch)
	if err != nil {
		return batch, nil, nil //nolint:nilerr // another kind of control batch: nothing ends with it
	}
	return batch, &marker, nil
}

// compareTxns makes the .txnindex of a segment that of its batches.
func (r *replay) compareTxns(s *segment.Segment) error {
	have, err := s.ReadTxnIndex(r.to)
	if err != nil && !errors.Is(err, segment.ErrTxnIndex) {
		return err
	}
	if err == nil && slices.Equal(have, r.aborted) {
		return nil
	}
	r.rewritten++
	if err := s.WriteTxnIndex(r.aborted); err != nil {
		return err
	}
	return s.SyncIndexes()
}

// reloadProducers makes the producer state that of a log that was cut to end.
func (l *Log) reloadProducers(end protocol.Offset) error {
	if err := l.dropSnapshots(func(at protocol.Offset) bool { return at > end || at < l.segments[0].Base() }); err != nil {
		return l.poison(err)
	}
	// Or a power cut could bring them back beside other batches.
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return l.poison(err)
	}
	var dropped int
	// Readers of the state wait: truncation is rare, and nothing may be appended meanwhile anyway.
	l.mu.Lock()
	defer l.mu.Unlock()
	r := replay{Log: l, to: end, txnsFrom: never, dropped: &dropped}
	err := r.load(end)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return l.poison(err)
	}
	l.producers.Replicated(l.highWatermark)
	l.publish()
	return nil
}
