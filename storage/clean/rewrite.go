package clean

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
)

// beginGroup begins the segment that takes the place of the first group's (Cleaner.cleanSegments).
func (r *round) beginGroup() error {
	group := r.groups[0]
	modified := group[len(group)-1].ModifiedMs()
	target, err := r.log.BeginCleaned(group[0].Base(), modified)
	if err != nil {
		return err
	}
	r.target, r.at = target, 0
	r.filter.last = r.log.LastRecords()
	r.filter.transactions.kept = keeping(target)
	return r.beginSegment()
}

// keeping enters aborted transactions into a segment.
func keeping(target *segment.Segment) func(segment.AbortedTxn) error {
	last := protocol.NoOffset
	return func(a segment.AbortedTxn) error {
		if a.LastOffset <= last {
			return fmt.Errorf("a transaction aborted at %d comes after one aborted at %d", a.LastOffset, last)
		}
		last = a.LastOffset
		return target.AddAborted(a)
	}
}

// beginSegment turns to segment at of the group.
func (r *round) beginSegment() error {
	s := r.groups[0][r.at]
	now, err := r.log.CleanView()
	if err != nil {
		return err
	}
	r.filter.highWatermark = now.HighWatermark
	r.reader.start(s, 0, r.after(s))
	return r.filter.transactions.expect(r.view.Segments, s.Base(), r.after(s))
}

// after is the base of the segment that follows s.
func (r *round) after(s *segment.Segment) protocol.Offset {
	return r.view.Segments[slices.Index(r.view.Segments, s)+1].Base()
}

// rewriteChunk writes what stays of a chunk of the present segment to the target.
func (r *round) rewriteChunk() (moved int64, err error) {
	if r.reader.left() == 0 {
		if r.at++; r.at < len(r.groups[0]) {
			return 0, r.beginSegment()
		}
		return 0, nil
	}
	chunk, err := r.reader.chunk()
	if err != nil {
		return 0, err
	}
	read := int64(len(chunk))
	r.stats.BytesRead += read
	var written int64
	for len(chunk) > 0 {
		var b record.Batch
		if b, chunk, err = r.reader.take(chunk); err != nil {
			return read, err
		}
		r.stats.BatchesRead++
		kept, err := r.filter.apply(b)
		if err != nil {
			return read, fmt.Errorf("%s: %w", r.reader.source.LogName(), err)
		}
		if kept != nil {
			r.stats.BatchesKept++
			r.output = append(r.output, kept)
			written += int64(len(kept))
		}
	}
	err = r.write()
	r.stats.BytesWritten += written
	return read + written, err
}

// write appends the output to the target.
func (r *round) write() error {
	if len(r.output) == 0 {
		return nil
	}
	if r.target.StoreDue() {
		if err := r.target.Store(); err != nil {
			return err
		}
	}
	_, err := r.target.Append(r.target.ModifiedMs(), r.output)
	clear(r.output)
	r.output = r.output[:0]
	return err
}

// endGroup puts the target in the group's place. A single segment of which nothing went stays instead.
func (r *round) endGroup(now time.Time) error {
	group := r.groups[0]
	r.stats.Segments += len(group)
	if len(group) == 1 && r.filter.unchanged && r.target.Size() == group[0].Size() && r.target.AbortedCount() == group[0].AbortedCount() {
		r.stats.Untouched++
		if err := r.abandon(); err != nil {
			return err
		}
	} else if err := r.swap(now, group); err != nil {
		return err
	}
	r.groups, r.at = r.groups[1:], 0
	r.filter.unchanged = true
	r.done = len(r.groups) == 0
	return nil
}

func (r *round) swap(now time.Time, group []*segment.Segment) error {
	if err := r.log.SyncCleaned(r.target); err != nil {
		return err
	}
	var err error
	if ran := r.exclusive(r.log, func() { err = r.log.Replace(now, r.view, r.target, group) }); !ran {
		return log.ErrSuperseded
	}
	if err != nil {
		return err
	}
	r.target.Rest()
	r.target = nil
	r.stats.SegmentsMade++
	return nil
}
