package replica

import (
	"errors"
	"syscall"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/partition"
)

// copyLimit bounds in bytes what a follower gets at once of records that are
// not committed: they may be truncated under a reader, so they are copied.
const copyLimit = 1 << 20

// position is all that a read depends on. Where it is unchanged, another read
// would find the same.
type position struct {
	view     *partition.View
	bound    protocol.Offset
	logStart protocol.Offset
	gone     bool
}

// position loads the state in the order that the package comment gives.
func (r *Replica) position(req *FetchRequest) position {
	p := position{view: r.view.Load(), gone: r.failure() != nil}
	highWatermark := protocol.Offset(r.highWatermark.Load())
	view := r.log().View()
	p.logStart = view.LogStartOffset
	switch {
	case req.Replica >= 0 || req.Replica == Debugging:
		p.bound = view.LogEndOffset
	case req.ReadCommitted:
		p.bound = min(lastStable(highWatermark, view), view.LogEndOffset)
	default:
		p.bound = min(highWatermark, view.LogEndOffset)
	}
	return p
}

// leaderOnly tells whether a fetch must go to the leader: a follower's, and a
// consumer's of a version that knows no reading from followers (KIP-392).
func leaderOnly(req *FetchRequest) bool {
	return req.Replica >= 0 || req.Replica == Consumer && req.Version < 11
}

// read answers one partition of a fetch with what is there now: whole batches up
// to maxBytes, the first even beyond if atLeastOne. The caller releases the
// region.
func (r *Replica) read(req *FetchRequest, part *FetchPartition, at position, maxBytes int, atLeastOne bool) FetchResult {
	result, err := r.tryRead(req, part, at, maxBytes, atLeastOne)
	if err != nil {
		result.Records.Release()
		r.readFailed(err)
		failure := failedFetch(clientError(err))
		failure.CurrentLeader = currentLeader(at.view, err)
		return failure
	}
	return result
}

// readFailed takes the directory offline if the disk cannot read it.
func (r *Replica) readFailed(err error) {
	if errors.Is(err, syscall.EIO) {
		r.manager.failDirectory(r, err)
	}
}

func failedFetch(err error) FetchResult {
	return FetchResult{
		Err: err, HighWatermark: protocol.NoOffset, LastStableOffset: protocol.NoOffset,
		LogStartOffset: protocol.NoOffset, PreferredReadReplica: protocol.NoNode,
	}
}

func (r *Replica) tryRead(req *FetchRequest, part *FetchPartition, at position, maxBytes int, atLeastOne bool) (FetchResult, error) {
	result := failedFetch(nil)
	if err := r.admitFetch(req, part, at.view); err != nil {
		return result, err
	}
	// The high watermark is loaded before the log's view: see the package comment.
	highWatermark := protocol.Offset(r.highWatermark.Load())
	view := r.log().View()
	result.HighWatermark = min(highWatermark, view.LogEndOffset)
	result.LastStableOffset = lastStable(result.HighWatermark, view)
	result.LogStartOffset = view.LogStartOffset
	if result.PreferredReadReplica = r.nearest(req, part, at.view); result.PreferredReadReplica != protocol.NoNode {
		return result, nil
	}
	if part.LastFetchedEpoch != protocol.NoLeaderEpoch {
		diverging, err := r.diverging(part, view.LogStartOffset)
		if err != nil || diverging != nil {
			result.Diverging = diverging
			return result, err
		}
	}
	if part.Offset < view.LogStartOffset || part.Offset > view.LogEndOffset {
		return result, outOfRange(part.Offset, view.LogStartOffset, view.LogEndOffset)
	}
	if req.ReadCommitted && req.Replica == Consumer {
		result.Aborted = []wire.AbortedTransaction{}
	}
	if part.Offset >= at.bound || maxBytes == 0 && !atLeastOne {
		return result, nil
	}
	return r.readRecords(req, part, at, maxBytes, atLeastOne, result)
}

func outOfRange(offset, start, end protocol.Offset) error {
	return protocol.Errorf(protocol.OffsetOutOfRange, "offset %d is not in the log, which goes from %d to %d", offset, start, end)
}

// admitFetch asks the core's view whether the request may read here.
func (r *Replica) admitFetch(req *FetchRequest, part *FetchPartition, view *partition.View) error {
	if err := r.failure(); err != nil {
		return err
	}
	if err := view.CheckRead(part.CurrentLeaderEpoch, leaderOnly(req)); err != nil {
		return err
	}
	if req.Replica >= 0 {
		return view.CheckFollower(req.Replica, part.CurrentLeaderEpoch)
	}
	return nil
}

// diverging compares the epoch of the reader's last record with ours (KIP-595):
// where our log has another history the reader is told the end of the last
// epoch that may be common.
func (r *Replica) diverging(part *FetchPartition, logStart protocol.Offset) (*wire.EpochEndOffset, error) {
	epoch, end := r.log().EpochEnd(part.LastFetchedEpoch)
	if epoch == protocol.NoLeaderEpoch || end == protocol.NoOffset {
		return nil, protocol.Errorf(protocol.OffsetOutOfRange,
			"the end of the last fetched epoch %d is not known", part.LastFetchedEpoch)
	}
	if part.Offset < logStart {
		return nil, outOfRange(part.Offset, logStart, r.log().View().LogEndOffset)
	}
	if epoch < part.LastFetchedEpoch || end < part.Offset {
		return &wire.EpochEndOffset{Epoch: epoch, EndOffset: end}, nil
	}
	return nil, nil
}

// readRecords fetches the bytes. What is committed is given as it lies in the
// file. What is not (a follower may have it) could be truncated while it is
// being sent, so it is copied.
func (r *Replica) readRecords(req *FetchRequest, part *FetchPartition, at position, maxBytes int, atLeastOne bool, result FetchResult) (FetchResult, error) {
	committed := min(at.bound, result.HighWatermark)
	end := part.Offset
	if part.Offset < committed {
		read, err := onLog(r, func(l *log.Log) (log.Read, error) { return l.Read(part.Offset, maxBytes, committed, atLeastOne) })
		if err != nil {
			return result, err
		}
		result.Records, end = read.Region, read.NextOffset
	}
	if result.Records.Len() == 0 && at.bound > committed {
		records, err := r.copyUncommitted(part.Offset, min(maxBytes, copyLimit), at.bound, atLeastOne)
		if err != nil {
			return result, err
		}
		result.Records = records
	}
	if result.Aborted != nil && result.Records.Len() > 0 {
		aborted, err := onLog(r, func(l *log.Log) ([]wire.AbortedTransaction, error) { return l.AbortedIn(part.Offset, end) })
		if err != nil {
			return result, err
		}
		result.Aborted = aborted
	}
	return result, nil
}

// copyUncommitted reads into memory. A truncation in the meantime means that the
// role has changed; the reader comes again and learns so.
func (r *Replica) copyUncommitted(from protocol.Offset, maxBytes int, bound protocol.Offset, atLeastOne bool) (wire.Region, error) {
	read, err := onLog(r, func(l *log.Log) (log.Read, error) { return l.Read(from, maxBytes, bound, atLeastOne) })
	if err != nil {
		return wire.Region{}, err
	}
	bytes, err := read.Region.ReadAll()
	read.Region.Release()
	if errors.Is(err, wire.ErrStaleRegion) {
		return wire.Region{}, protocol.Errorf(protocol.NotLeaderOrFollower, "the log of %s was truncated during the read", r.tp)
	}
	return wire.Region{Bytes: bytes}, err
}
