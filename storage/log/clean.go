package log

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
	dir := l.Dir()
	s, err := segment.CreateCleaned(l.env.Files, dir, base, l.segmentOptions(), modifiedMs)
	if err != nil {
		return nil, fmt.Errorf("cannot begin to compact %s: %w", l.tp, err)
	}
	l.mu.Lock()
	l.cleaned = s
	l.mu.Unlock()
	return s, nil
}

// DropCleaned removes the files of a segment that BeginCleaned made, unless Replace has taken it over.
func (l *Log) DropCleaned(s *segment.Segment) error {
	l.mu.Lock()
	mine := l.cleaned == s
	if mine {
		l.cleaned = nil
	}
	l.mu.Unlock()
	if !mine {
		return nil
	}
	return s.Remove()
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

// Replace puts a segment that SyncCleaned completed in the place of those it was made from, which v shows. The caller
// serialises it as Append. Readers of the old segments go on; their files are removed after file.delete.delay.ms.
//
// ErrSuperseded and an error for want of space leave the log as it was. DropCleaned is good after any error. Any other error
// poisons the log; the next start finishes or undoes what was begun, as Apache Kafka does.
func (l *Log) Replace(now time.Time, v CleanView, cleaned *segment.Segment, old []*segment.Segment) error {
	if err := l.usable(); err != nil {
		return fmt.Errorf("%w: %w", ErrSuperseded, err)
	}
	at := slices.Index(l.segments, old[0])
	if l.truncations != v.truncations || at < 0 || at+len(old) >= len(l.segments) || !slices.Equal(l.segments[at:at+len(old)], old) {
		return ErrSuperseded
	}
	l.sawMs.Store(now.UnixMilli())
	l.touched.Store(true)
	err := cleaned.MoveToSwap()
	if err != nil && noSpace(err) {
		return err // the files are dropped; a start would drop them too, as long as one is .cleaned
	}
	if err == nil {
		err = l.env.FS.SyncDir(l.dir)
	}
	l.mu.Lock()
	l.cleaned = nil // from here on its files may be all that is left
	if err == nil {
		l.segments = slices.Replace(slices.Clone(l.segments), at, at+len(old), cleaned)
		l.publish()
	}
	l.mu.Unlock()
	if err != nil {
		cleaned.Close()
		return l.poison(err)
	}
	if err := l.putInPlace(cleaned, old); err != nil {
		return l.poison(fmt.Errorf("cannot put a compacted segment of %s in place: %w", l.tp, err))
	}
	gone := old[1:] // the snapshot of the first is the new one's
	return l.dropSnapshots(func(at protocol.Offset) bool {
		return slices.ContainsFunc(gone, func(s *segment.Segment) bool { return s.Base() == at })
	})
}

// putInPlace is the rest of the swap. Each step is durable before the next: a start that found the new .log beside an old
// segment of its offsets could not tell which one counts.
func (l *Log) putInPlace(cleaned *segment.Segment, old []*segment.Segment) error {
	for _, s := range old {
		if err := l.doom(s); err != nil {
			return err
		}
	}
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return err
	}
	if err := cleaned.PlaceLog(); err != nil {
		return err
	}
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return err
	}
	if err := cleaned.PlaceIndexes(); err != nil {
		return err
	}
	l.dirStale.Store(true)
	return nil
}
