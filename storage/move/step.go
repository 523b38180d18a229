package move

import (
	"errors"
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
)

// never is an offset that no log reaches.
const never protocol.Offset = 1<<63 - 1

// SourceError is an error met while source was read.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// Step makes the successor agree with source and copies at most maxBytes, but at least one batch if there is one.
// highWatermark is the source's. It gives the bytes that it copied and whether the successor has all that source had
// when it was looked at. The caller serialises it with all other changes of the successor. Errors are the
// environment's, and *SourceError where source cannot be read or holds what cannot be copied.
func Step(now time.Time, source, successor *log.Log, highWatermark protocol.Offset, maxBytes int) (copied int, caughtUp bool, err error) {
	if err := agree(source, successor); err != nil {
		return 0, false, unlessDeleted(err)
	}
	from := source.View()
	if at := successor.View().LogEndOffset; at < from.LogEndOffset {
		copied, err = copyBatches(now, source, successor, max(at, from.LogStartOffset), from.LogEndOffset, maxBytes)
		if err != nil {
			return copied, false, unlessDeleted(err)
		}
	}
	to := successor.View()
	if start := min(from.LogStartOffset, to.LogEndOffset); start > to.LogStartOffset {
		if err := successor.AdvanceLogStart(now, start); err != nil {
			return copied, false, err
		}
	}
	successor.SetHighWatermark(highWatermark)
	return copied, to.LogEndOffset == from.LogEndOffset, nil
}

// unlessDeleted forgives that source has deleted what was about to be read: the next step agrees first.
func unlessDeleted(err error) error {
	if protocol.CodeOf(err) == protocol.OffsetOutOfRange {
		return nil
	}
	return err
}

// agree cuts off what source does not have (any more), by leader epochs as a follower does (KIP-101), and starts over
// where source has deleted what comes next.
func agree(source, successor *log.Log) error {
	for {
		end := common(source, successor)
		if end >= successor.View().LogEndOffset {
			break
		}
		if err := successor.TruncateTo(end); err != nil {
			return err
		}
	}
	view, has := source.View(), successor.View()
	fits := has.LogEndOffset > view.LogStartOffset || view.LogStartOffset == view.LogEndOffset && has.LogEndOffset == view.LogEndOffset
	if fits && has.LogStartOffset <= view.LogStartOffset {
		return nil
	}
	read, err := source.Read(view.LogStartOffset, 0, never, true)
	if err != nil {
		return &SourceError{err}
	}
	read.Region.Release()
	// What a successor has below the source's start nobody can compare any more, so it must fit by its end.
	// What it begins after it can only lack because source has come back: a power cut has undone deletions that the successor had
	// followed.
	// Source may start within a batch, or where compaction has left none.
	if at := min(read.FirstBatchOffset, view.LogStartOffset); !fits && has.LogEndOffset != at || fits && has.LogStartOffset > at {
		return successor.BeginAs(source, at)
	}
	return nil
}

// common gives an offset up to which the successor may have what source has, below its end if it must be cut.
func common(source, successor *log.Log) protocol.Offset {
	from, to := source.View(), successor.View()
	if to.LatestEpoch == protocol.NoLeaderEpoch {
		return min(from.LogEndOffset, to.LogEndOffset)
	}
	epoch, end := source.EpochEnd(to.LatestEpoch)
	if end == protocol.NoOffset {
		return 0 // source knows nothing of that epoch, so nothing is known to be the same
	}
	if epoch < to.LatestEpoch {
		if _, own := successor.EpochEnd(epoch); own != protocol.NoOffset {
			end = min(end, own)
		}
	}
	return min(end, to.LogEndOffset)
}

// copyBatches appends one read's worth of source's batches from at on, up to end.
func copyBatches(now time.Time, source, successor *log.Log, at, end protocol.Offset, maxBytes int) (int, error) {
	read, err := source.Read(at, maxBytes, end, true)
	if err != nil {
		return 0, &SourceError{err}
	}
	if read.Region.Len() == 0 {
		return 0, successor.SkipTo(now, end) // nothing is left of what was there
	}
	bytes, err := read.Region.ReadAll()
	read.Region.Release()
	if errors.Is(err, wire.ErrStaleRegion) {
		return 0, nil // truncated meanwhile; the next step agrees first
	}
	if err != nil {
		return 0, &SourceError{fmt.Errorf("cannot read the log of %s: %w", source.TopicPartition(), err)}
	}
	entries, err := split(bytes)
	if err != nil {
		return 0, &SourceError{fmt.Errorf("the log of %s cannot be copied from offset %d: %w", source.TopicPartition(), at, err)}
	}
	if err := successor.Append(now, source.LatestEpoch(), entries); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Err != nil {
			if err := successor.TruncateTo(entries[0].Batch.BaseOffset()); err != nil { // those after it would leave a hole
				return 0, err
			}
			return 0, &SourceError{fmt.Errorf("the log of %s cannot be copied from offset %d: %w", source.TopicPartition(), at, e.Err)}
		}
	}
	return len(bytes), nil
}

// split cuts bytes into batches that are whole and not damaged.
func split(bytes []byte) ([]*log.Entry, error) {
	var entries []*log.Entry
	for len(bytes) > 0 {
		batch, rest, err := record.Next(bytes)
		if err == nil {
			err = batch.CheckCRC()
		}
		if err != nil && len(entries) > 0 {
			return entries, nil // up to there; the next step meets it again
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, &log.Entry{Batch: batch, Origin: log.OriginFollower})
		bytes = rest
	}
	return entries, nil
}
