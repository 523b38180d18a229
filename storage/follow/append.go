package follow

import (
	"errors"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// Append appends the batches of records, of which the last may be incomplete, to a log that follows in a leader epoch. restart
// begins an empty log anew. It gives the bytes that were appended. CORRUPT_MESSAGE: a batch is damaged or does not continue
// the log; what came before it is appended.
func Append(now time.Time, l *log.Log, epoch protocol.LeaderEpoch, records []byte, restart func(at protocol.Offset) error) (appended int64, err error) {
	entries, broken := split(records)
	if len(entries) == 0 {
		return 0, broken
	}
	view := l.View()
	if within(view, entries[0].Batch) {
		if err := restart(entries[0].Batch.BaseOffset()); err != nil {
			return 0, err
		}
	}
	end := l.View().LogEndOffset
	if err := l.Append(now, epoch, entries); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Err != nil {
			if err := l.TruncateTo(end); err != nil { // those after it would leave a hole
				return appended, err
			}
			return appended, protocol.Errorf(protocol.CorruptMessage, "what the leader of %s sent cannot be appended: %v", l.TopicPartition(), e.Err)
		}
		end = e.LastOffset + 1
		appended += int64(len(e.Batch))
	}
	return appended, broken
}

// within tells that an empty log starts inside of a batch: the leader's records were deleted up to there, and the log is
// to begin where the batch does (Partition.appendRecordsToFollowerOrFutureReplica).
func within(view log.View, first record.Batch) bool {
	return view.LogStartOffset == view.LogEndOffset && first.BaseOffset() < view.LogEndOffset && first.LastOffset() >= view.LogEndOffset
}

// split cuts bytes into batches; the last may be incomplete. The error says that what follows is no batch.
func split(bytes []byte) ([]*log.Entry, error) {
	var entries []*log.Entry
	for len(bytes) > 0 {
		batch, rest, err := record.Next(bytes)
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil {
			return entries, protocol.Errorf(protocol.CorruptMessage, "the leader sent what is no batch: %v", err)
		}
		entries = append(entries, &log.Entry{Batch: batch, Origin: log.OriginFollower})
		bytes = rest
	}
	return entries, nil
}
