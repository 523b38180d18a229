package log

import (
	"errors"
	"slices"

	"ottla/protocol"
	"ottla/storage/segment"
)

// recoverSegments makes the segments consistent and finds the log's end, as far as the trust asks for.
func (o *opening) recoverSegments() error {
	last := len(o.segments) - 1
	for i := 0; i <= last; i++ {
		// A recovery point exactly at a segment's end may be from when it was active: its indexes were completed
		// later, and are durable only once the recovery point is beyond.
		known := i < last && (o.state.Trust != OtherBoot || o.segments[i+1].Base() < o.state.RecoveryPoint)
		if known {
			if err := o.checkSealed(i); err != nil {
				return err
			}
			continue
		}
		w, err := o.walkSegment(i)
		if err != nil {
			return err
		}
		cut, err := o.holds(i, w)
		if err != nil {
			return err
		}
		if err := o.settleSegment(i, w, cut); err != nil {
			return err
		}
		o.end = w.Next
		if cut {
			break
		}
	}
	s := o.active()
	if o.end < o.state.RecoveryPoint {
		return o.damaged(s, s.Size(), "the log ends at offset %d, but it was durable up to %d", o.end, o.state.RecoveryPoint)
	}
	if o.end < o.state.LogStartOffset {
		return o.startOver()
	}
	return nil
}

// checkSealed looks at the files of a segment whose records are not doubted. After a power cut it makes sure that
// the segment ends where the next one begins.
func (o *opening) checkSealed(i int) error {
	s, next := o.segments[i], o.segments[i+1].Base()
	sane, end, err := s.Sane(o.present[i]), next, error(nil)
	if sane && o.state.Trust == OtherBoot {
		end, err = s.Verify()
		sane = !errors.Is(err, segment.ErrIndex)
	}
	if !sane {
		end, err = o.rebuildSealed(s)
		if o.state.Trust != OtherBoot {
			end = next
		}
	}
	if err != nil {
		return asDamage(err)
	}
	if end != next {
		if gap, err := o.mayHaveGap(i, end, next); err != nil {
			return err
		} else if !gap {
			return o.damaged(s, s.Size(), "its records end at offset %d, but the next segment begins at %d", end, next)
		}
	}
	return o.checkTxns(i, next)
}

// rebuildSealed makes the indexes of a segment anew, and finds its end.
func (o *opening) rebuildSealed(s *segment.Segment) (protocol.Offset, error) {
	w, err := s.Rebuild(segment.Trusting, nil)
	if err != nil {
		return 0, err
	}
	if w.Damage != nil {
		return 0, w.Damage
	}
	o.report.IndexesRebuilt++
	o.report.BatchesScanned += w.Batches
	return w.Next, sealDurably(s)
}

// sealDurably completes the indexes of a segment that lies below the recovery point, where no Flush comes by.
func sealDurably(s *segment.Segment) error {
	if err := s.Seal(); err != nil {
		return err
	}
	return s.SyncIndexes()
}

// asDamage turns a *segment.Damage into what Open returns.
func asDamage(err error) error {
	var damage *segment.Damage
	if errors.As(err, &damage) {
		return &DamagedError{File: damage.File, Position: damage.Position, Reason: damage.Reason}
	}
	return err
}

// checkTxns looks at a .txnindex; a damaged one is compared with the batches later.
func (o *opening) checkTxns(i int, next protocol.Offset) error {
	if o.present[i].TxnIndex < 0 {
		return nil
	}
	_, err := o.segments[i].ReadTxnIndex(next)
	if errors.Is(err, segment.ErrTxnIndex) {
		o.txnsFrom = min(o.txnsFrom, o.segments[i].Base())
		return nil
	}
	return err
}

// mayHaveGap tells whether offsets may be missing after a segment: compaction leaves gaps. A topic may have been
// compacted in the past, which shows within the segment.
func (o *opening) mayHaveGap(i int, end, next protocol.Offset) (bool, error) {
	if next <= end || o.opts.Load().Compact {
		return next > end, nil
	}
	return o.segments[i].Sparse()
}

// walkSegment walks the batches of a segment that are in doubt.
func (o *opening) walkSegment(i int) (segment.Walked, error) {
	s := o.segments[i]
	doubt := segment.Doubt{From: o.state.RecoveryPoint, Dense: !o.opts.Load().Compact}
	switch o.state.Trust {
	case Clean:
		doubt = segment.Trusting
	case SameBoot:
		doubt = segment.Doubt{} // a write may be unfinished, but nothing is lost
	}
	before := o.seen
	if o.state.Trust != OtherBoot {
		w, err := s.Resume(o.present[i], doubt, o.see)
		if o.state.Trust == Clean && w.Next > o.state.RecoveryPoint && o.state.RecoveryPoint > 0 {
			doubt = segment.Doubt{From: o.state.RecoveryPoint} // a clean stop leaves them equal
		} else if err == nil && (w.Damage == nil || w.Batches > 0) {
			o.count(w)
			o.resumed = true
			return w, nil
		}
		if err != nil && !errors.Is(err, segment.ErrIndex) {
			return w, err
		}
		if err != nil {
			o.report.IndexesRebuilt++
		}
	}
	o.seen = before
	if o.state.Trust == OtherBoot {
		o.seenFrom = min(o.seenFrom, s.Base())
	}
	w, err := s.Rebuild(doubt, o.see)
	o.count(w)
	o.report.SegmentsScanned++
	return w, err
}

func (o *opening) count(w segment.Walked) {
	o.report.BatchesScanned += w.Batches
	o.report.BytesChecked += w.Checked
}

// holds decides what becomes of a walked segment and those after it: they stay, or the log is cut at the end of the
// walk, or durable bytes are damaged.
func (o *opening) holds(i int, w segment.Walked) (cut bool, err error) {
	s := o.segments[i]
	rp := o.state.RecoveryPoint
	if w.Damage != nil {
		if o.state.Trust == Clean {
			return false, o.damaged(s, w.Damage.Position, "%s, though the log was closed in order", w.Damage.Reason)
		}
		if w.Next < rp {
			return false, o.damaged(s, w.Damage.Position, "%s, though all before offset %d was durable", w.Damage.Reason, rp)
		}
		return true, nil
	}
	if i == len(o.segments)-1 {
		return false, nil
	}
	next := o.segments[i+1].Base()
	if next == w.Next {
		return false, nil
	}
	if gap, err := o.mayHaveGap(i, w.Next, next); gap || err != nil {
		return false, err
	}
	if w.Next < rp && next > w.Next {
		return false, o.damaged(s, w.End, "the records from offset %d to %d are missing, though all before %d was durable", w.Next, next, rp)
	}
	return true, nil
}

// settleSegment writes what the walk decided. Segments beyond a cut go first, from the last on, so that a crash in
// between leaves the same to be decided again.
func (o *opening) settleSegment(i int, w segment.Walked, cut bool) error {
	s := o.segments[i]
	if cut {
		for _, beyond := range slices.Backward(o.segments[i+1:]) {
			o.report.SegmentsRemoved++
			o.report.BytesCut += beyond.Size()
			if err := o.doom(beyond); err != nil {
				return err
			}
		}
		if o.report.SegmentsRemoved > 0 {
			if err := o.env.FS.SyncDir(o.dir); err != nil {
				return err
			}
		}
		o.segments = o.segments[:i+1]
		o.report.BytesCut += s.Size() - w.End
		o.report.CutAt = w.Next
	}
	// A process that died has written what was aborted before the marker: without the file there was nothing.
	if o.state.Trust == OtherBoot || o.state.Trust == SameBoot && o.present[i].TxnIndex >= 0 {
		o.txnsFrom = min(o.txnsFrom, s.Base())
	}
	if err := o.checkTxns(i, w.Next); err != nil {
		return err
	}
	if i == len(o.segments)-1 {
		if o.resumed && (o.state.Trust == Clean || o.short(w)) {
			return nil // the files are as they should be
		}
		return s.Finish(w)
	}
	if w.Next <= o.state.RecoveryPoint {
		return sealDurably(s)
	}
	return s.Seal()
}

// startOver drops a log that ends before the start that a checkpoint remembers: records up to there were deleted, and
// those after it were not durable.
func (o *opening) startOver() error {
	for _, s := range slices.Backward(o.segments) {
		o.report.SegmentsRemoved++
		o.report.BytesCut += s.Size()
		if err := o.doom(s); err != nil {
			return err
		}
	}
	if err := o.env.FS.SyncDir(o.dir); err != nil {
		return err
	}
	o.report.CutAt = o.state.LogStartOffset
	o.seen, o.seenFrom, o.txnsFrom = nil, 0, never
	return o.restartAt(o.state.LogStartOffset)
}
