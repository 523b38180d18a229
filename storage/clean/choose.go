package clean

import (
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/segment"
)

// candidate is a log as the choice sees it (LogToClean).
type candidate struct {
	log     *log.Log
	view    log.CleanView
	options log.Options

	firstDirty protocol.Offset // from here on nothing was compacted yet
	bound      protocol.Offset // the base of the first segment that must not be: what is compacted lies before it
	reset      bool            // the checkpoint was of no use: firstDirty is to be written there

	cleanableBytes int64 // of the segments with something dirty
	totalBytes     int64
	delay          time.Duration // since it should have been compacted by max.compaction.lag.ms
}

// ratio is the share of what is dirty.
func (c *candidate) ratio() float64 {
	if c.totalBytes == 0 {
		return 0
	}
	return float64(c.cleanableBytes) / float64(c.totalBytes)
}

// wanted tells that it is to be compacted now.
func (c *candidate) wanted() bool {
	if c.totalBytes == 0 {
		return false
	}
	return c.delay > 0 && c.cleanableBytes > 0 || c.ratio() > c.options.MinCleanableRatio
}

// examine looks at a log that was compacted up to checkpoint (LogCleanerManager.cleanableOffsets, LogToClean).
func examine(l *log.Log, checkpoint protocol.Offset, now time.Time) (*candidate, error) {
	view, err := l.CleanView()
	if err != nil {
		return nil, err
	}
	c := &candidate{log: l, view: view, options: l.Options(), firstDirty: checkpoint}
	if checkpoint < view.LogStartOffset || checkpoint > view.LogEndOffset {
		c.firstDirty, c.reset = view.LogStartOffset, true
	}
	limit, err := c.uncleanable(now)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the segments of %s: %w", l.TopicPartition(), err)
	}
	limit = max(limit, c.firstDirty)
	c.bound = view.ActiveSegmentBase
	if sealed := c.sealedFrom(limit); len(sealed) > 0 {
		c.bound = sealed[0].Base()
	}
	c.cleanableBytes = bytesOf(between(view.Segments, min(c.firstDirty, c.bound), c.bound))
	var cleanBytes int64
	for _, s := range view.Segments {
		if s.Base() < c.firstDirty {
			cleanBytes += s.Size()
		}
	}
	c.totalBytes = cleanBytes + c.cleanableBytes
	if c.delay, err = c.overdue(now); err != nil {
		return nil, fmt.Errorf("cannot look at the segments of %s: %w", l.TopicPartition(), err)
	}
	return c, nil
}

// uncleanable is the first offset that must not be compacted: of what is undecided or not replicated, of the active
// segment, or of a segment with a timestamp that is too young.
func (c *candidate) uncleanable(now time.Time) (protocol.Offset, error) {
	limit := min(c.view.LastStableOffset, c.view.ActiveSegmentBase)
	if c.options.MinCompactionLag <= 0 {
		return limit, nil
	}
	youngest := now.Add(-c.options.MinCompactionLag).UnixMilli()
	for _, s := range c.sealedFrom(c.firstDirty) {
		if s.Base() >= limit {
			break
		}
		largest, err := s.LoadLargest()
		if err != nil {
			return 0, err
		}
		timestamp := largest.TimestampMs
		if timestamp < 0 {
			timestamp = s.ModifiedMs()
		}
		if timestamp > youngest {
			return s.Base(), nil
		}
	}
	return limit, nil
}

// overdue is how long ago max.compaction.lag.ms was over for the oldest dirty batch that begins a sealed segment
// (LogCleanerManager.maxCompactionDelay).
func (c *candidate) overdue(now time.Time) (time.Duration, error) {
	if c.options.MaxCompactionLag <= 0 {
		return 0, nil
	}
	due := now.Add(-c.options.MaxCompactionLag).UnixMilli()
	oldest := due
	for _, s := range c.sealedFrom(c.firstDirty) {
		first, err := s.FirstTimestamp()
		if err != nil {
			return 0, err
		}
		if first > 0 {
			oldest = min(oldest, first)
		}
	}
	return time.Duration(due-oldest) * time.Millisecond, nil
}

// sealedFrom lists the sealed segments from the one that holds an offset.
func (c *candidate) sealedFrom(from protocol.Offset) []*segment.Segment {
	if from >= c.view.ActiveSegmentBase {
		return nil
	}
	return between(c.view.Segments, from, c.view.ActiveSegmentBase)
}

// between lists the segments from the one that holds from, or the first, to the last that begins before to
// (LogSegments.values).
func between(segments []*segment.Segment, from, to protocol.Offset) []*segment.Segment {
	first, end := 0, 0
	for i, s := range segments {
		if s.Base() <= from {
			first = i
		}
		if s.Base() < to {
			end = i + 1
		}
	}
	if from >= to || first >= end {
		return nil
	}
	return segments[first:end]
}

func bytesOf(segments []*segment.Segment) (sum int64) {
	for _, s := range segments {
		sum += s.Size()
	}
	return sum
}
