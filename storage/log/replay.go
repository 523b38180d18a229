package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/producer"
	"ottla/storage/replay"
	"ottla/storage/vfs"
)

// recoverProducers loads the newest usable snapshot and replays the batches after it; on the way it compares the
// .txnindex files that are in doubt, and writes the snapshots that should be there and are not.
func (o *opening) recoverProducers() error {
	if err := o.sortSnapshots(); err != nil {
		return err
	}
	r := o.replay(o.end, &o.report.SnapshotsDropped)
	r.TxnsFrom = o.txnsFrom
	// Apache Kafka makes sure of a snapshot at the last two segments, and at the end.
	for _, s := range o.segments[max(0, len(o.segments)-2):] {
		r.Wanted = append(r.Wanted, s.Base())
	}
	if err := r.Run(); err != nil {
		return asDamage(err)
	}
	o.report.IndexesRebuilt += r.Rewritten
	o.report.BatchesScanned += r.Batches
	return o.storeProducers(r.Bytes)
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
	return o.dropTorn()
}

// dropTorn removes snapshots that a process which died has left half-written, and the replay may not come to: those beyond what
// is durable, and those of the last two segments, which a start writes. The replay begins with the newest.
func (o *opening) dropTorn() (err error) {
	from := min(o.state.RecoveryPoint, o.segments[max(0, len(o.segments)-2)].Base())
	all := slices.Clone(o.snapshots)
	for i, at := range all {
		loaded := i == len(all)-1 && at <= o.txnsFrom
		if err == nil && o.state.Trust != Clean && at >= from && !loaded {
			_, err = stored{o.Log, &o.report.SnapshotsDropped}.Read(at)
		}
	}
	return err
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

// replay is one up to end; it counts the snapshots that were damaged.
func (l *Log) replay(end protocol.Offset, dropped *int) *replay.Replay {
	return &replay.Replay{
		Segments: l.segments, Producers: l.producers, Snapshots: stored{l, dropped}, To: end, TxnsFrom: replay.Never, NowMs: l.nowMs(),
	}
}

// stored lends the snapshots to a replay.
type stored struct {
	*Log
	dropped *int
}

// Offsets lists them.
func (s stored) Offsets() []protocol.Offset { return s.snapshots }

// Store writes the present state.
func (s stored) Store(at protocol.Offset) error { return s.storeSnapshot(at) }

// Read reads a snapshot; a damaged one is removed, and nil returned.
func (s stored) Read(at protocol.Offset) ([]producer.Producer, error) {
	data, err := vfs.ReadFile(s.env.FS, s.snapshotName(at))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read a producer snapshot: %w", err)
	}
	producers, err := producer.ReadSnapshot(data)
	if err == nil {
		return producers, nil
	}
	s.logger.Warn("a producer snapshot is damaged and is removed", "partition", s.tp.String(),
		"file", path.Base(s.snapshotName(at)), "error", err)
	*s.dropped++
	return nil, s.removeSnapshot(at)
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
	if err := l.replay(end, &dropped).Run(); err != nil {
		return l.poison(asDamage(err))
	}
	l.producers.Replicated(l.highWatermark)
	l.publish()
	return nil
}
