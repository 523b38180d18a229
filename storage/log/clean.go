package log

import (
	"errors"
	"fmt"
	"syscall"

	"ottla/protocol"
	"ottla/storage/segment"
)

// CleanView is what compaction needs to know of a log, all of one moment.
type CleanView struct {
	View
	HighWatermark    protocol.Offset
	LastStableOffset protocol.Offset
	Segments         []*segment.Segment // by base offset; the last one takes appends and is not to be touched

	truncations uint64
}

// CleanView looks at a log for storage/clean. It fails if the log is closed or poisoned.
func (l *Log) CleanView() (CleanView, error) {
	if err := l.usable(); err != nil {
		return CleanView{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.shown.Load()
	v := CleanView{
		View: p.View, HighWatermark: l.highWatermark, LastStableOffset: l.highWatermark,
		Segments: p.segments, truncations: p.truncations,
	}
	if first := p.FirstUnstableOffset; first != protocol.NoOffset {
		v.LastStableOffset = min(v.LastStableOffset, first)
	}
	return v, nil
}

// LastRecord is what the newest batch of a producer is: the one that ends at DataOffset, or, where that is NoOffset, a
// marker of the epoch.
type LastRecord struct {
	DataOffset protocol.Offset
	Epoch      protocol.ProducerEpoch
}

// LastRecords tells for each producer which batch must stay so that its sequence or epoch is not forgotten
// (UnifiedLog.lastRecordsOfActiveProducers).
func (l *Log) LastRecords() map[protocol.ProducerID]LastRecord {
	l.mu.Lock()
	producers := l.producers.Producers()
	l.mu.Unlock()
	last := make(map[protocol.ProducerID]LastRecord, len(producers))
	for i := range producers {
		p := &producers[i]
		r := LastRecord{protocol.NoOffset, p.Epoch}
		if batches := p.Batches(); len(batches) > 0 {
			r.DataOffset = batches[len(batches)-1].LastOffset
		}
		last[p.ID] = r
	}
	return last
}

// TakeCut gives the lowest offset that the log was truncated to since the last call; a huge one if it was not. What was
// compacted beyond it is not there any more.
func (l *Log) TakeCut() protocol.Offset {
	return protocol.Offset(never) - protocol.Offset(l.spared.Swap(0))
}

// noteCut remembers a truncation for TakeCut.
func (l *Log) noteCut(end protocol.Offset) {
	if spared := int64(never - end); spared > l.spared.Load() {
		l.spared.Store(spared)
	}
}

// MaxDecompressed bounds what one batch may expand to, in bytes.
func (l *Log) MaxDecompressed() int { return l.decompressed() }

// ErrSuperseded says that what was compacted is not in the log any more: it was truncated, its segments were deleted, or
// it is closed. What was made is of no use.
var ErrSuperseded = errors.New("the log changed while it was compacted")

// Superseded tells that Replace with what was made from v would fail.
func (l *Log) Superseded(v CleanView) bool {
	return l.closed.Load() || l.failed.Load() != nil || l.shown.Load().truncations != v.truncations
}

// BeginCleaned makes an empty segment in .cleaned files, to be filled with what is to stay of segments from base on. It
// follows the log when its directory is renamed. End it with Replace or DropCleaned. Only one at a time.
func (l *Log) BeginCleaned(base protocol.Offset, modifiedMs int64) (*segment.Segment, error) {
	l.flushing.Lock() // a rename of the directory waits
	defer l.flushing.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	if full := l.env.Space.Affords(min(l.opts.Load().SegmentBytes, l.Size())); full != nil {
		return nil, fmt.Errorf("cannot compact %s yet: %w", l.tp, full)
	}
	if l.swapWaits.Load() {
		return nil, fmt.Errorf("cannot compact %s yet: what was compacted before is not wholly in place: %w", l.tp, syscall.ENOSPC)
	}
	s, err := l.making.Begin(l.env.Files, l.Dir(), base, l.segmentOptions(), modifiedMs, l.syncUndo)
	if err != nil {
		return nil, fmt.Errorf("cannot begin to compact %s: %w", l.tp, err)
	}
	return s, nil
}

// DropCleaned removes the files of a segment that BeginCleaned made, unless Replace has taken it over. Those that cannot be removed
// go before the next is begun. If the order in which they go cannot be made durable the log is poisoned.
func (l *Log) DropCleaned(s *segment.Segment) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if l.making.Segment() != s {
		return nil
	}
	return l.making.Drop(l.syncUndo)
}

func (l *Log) syncUndo() error {
	if err := l.env.FS.SyncDir(l.Dir()); err != nil {
		return l.poison(fmt.Errorf("cannot undo the compaction of %s: %w", l.tp, err))
	}
	return nil
}

// SyncCleaned completes the segment and makes it durable, so that Replace can follow.
func (l *Log) SyncCleaned(s *segment.Segment) error {
	if err := errors.Join(s.Seal(), s.SyncLog(), s.SyncIndexes()); err != nil {
		return fmt.Errorf("cannot make a compacted segment of %s durable: %w", l.tp, err)
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if err := l.env.FS.SyncDir(l.Dir()); err != nil {
		return fmt.Errorf("cannot make a compacted segment of %s durable: %w", l.tp, err)
	}
	return nil
}
