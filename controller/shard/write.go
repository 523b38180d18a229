package shard

import (
	"context"
	"math/bits"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
)

const (
	// watchWait is how long one fetch waits for the high watermark, and watchPause
	// what is waited before the next if that brought nothing.
	watchWait  = 30 * time.Second
	watchPause = 100 * time.Millisecond
)

// batch is decided records on their way into the log, as one atomic unit.
type batch struct {
	offsets
	builder     *record.Builder
	now         time.Time // the latest of the decisions
	timestampMs int64     // of the first
	alone       *alone    // not nil: a batch of a transaction, which has no builder
}

// batchLimit is how many bytes a batch may have before compression.
func (s *shard) batchLimit() int {
	limit := s.manager.MaxBatchBytes()
	if s.manager.options.Codec != compress.None {
		limit -= limit/128 + 128 // what does not compress grows a little
	}
	return limit
}

// write applies a result's records and puts them into batches: those of one
// decision into the same, unless they are divisible. The error is
// RECORD_LIST_TOO_LARGE; nothing was applied then.
func (s *shard) write(now time.Time, result machine.Result) error {
	records := result.Records
	if len(records) == 0 {
		return nil
	}
	unit := len(records)
	if result.Divisible {
		unit = 1
	}
	limit := s.batchLimit()
	for i := 0; i < len(records); i += unit {
		if size := record.HeaderSize + sizeOf(records[i:i+unit], 0, 0); size > limit {
			return protocol.Errorf(protocol.RecordListTooLarge,
				"%d records of %s have %d bytes, but a batch can have %d", unit, s.tp, size, limit)
		}
	}
	if err := s.machine.Apply(s.next, s.epoch, now.UnixMilli(), records); err != nil {
		s.violated("the machine applies what it decided: %v", err)
	}
	for i := 0; i < len(records); i += unit {
		s.add(now, records[i:i+unit], limit)
	}
	return nil
}

// add puts one unit into the open batch, or begins another.
func (s *shard) add(now time.Time, records []machine.Record, limit int) {
	timestampMs := now.UnixMilli()
	if b := s.open; b != nil && b.builder.SizeBytes()+sizeOf(records, timestampMs-b.timestampMs, b.builder.Count()) > limit {
		s.full.push(b)
		s.open = nil
	}
	if s.open == nil {
		options := record.PlainOptions()
		options.Codec = s.manager.options.Codec
		s.open = &batch{builder: record.NewBuilder(options), timestampMs: timestampMs, offsets: offsets{base: s.next}}
	}
	b := s.open
	for _, r := range records {
		b.builder.Append(timestampMs, r.Key, r.Value, nil)
	}
	if now.After(b.now) {
		b.now = now
	}
	s.next += protocol.Offset(len(records))
	b.end = s.next
}

// issue sends the next batch off, unless one is on its way.
func (s *shard) issue() {
	if s.inFlight != nil || s.phase != active {
		return
	}
	var b *batch
	switch {
	case s.full.size() > 0:
		b = s.full.pop()
	case s.open != nil:
		b, s.open = s.open, nil
	default:
		return
	}
	s.inFlight = b
	life, epoch := s.life, s.epoch
	request := replica.AppendRequest{
		Partition: s.tp, Origin: log.OriginCoordinator, LeaderEpoch: &epoch, RequiredAcks: replica.AcksLeader, AllowZstd: true,
	}
	if b.alone != nil {
		request = b.alone.request(s.tp, epoch)
	} else {
		request.Records = b.builder.Build(s.manager.options.Pool)
	}
	s.manager.options.Replicas.Append(b.now, request, func(result replica.AppendResult) {
		s.post(event{run: func() { s.appended(life, b, result) }})
	})
}

// appended takes what became of the batch on its way.
func (s *shard) appended(life uint64, b *batch, result replica.AppendResult) {
	s.inFlight = nil
	if life != s.life {
		if s.phase == loading && s.replay.waits {
			s.beginReplay()
		}
		return
	}
	err := result.Err
	if b.alone != nil && err != nil && s.refused(b, err) {
		return
	}
	if err == nil && result.BaseOffset != b.base {
		err = protocol.Errorf(protocol.NotCoordinator, "the records are at offset %d of %s, not at %d: somebody else wrote to it",
			result.BaseOffset, s.tp, b.base)
	}
	if err != nil {
		s.drop(err, b.offsets)
		return
	}
	s.failures = 0
	s.written = b.end
	if b.alone != nil {
		s.taken(b)
	}
	s.advance()
}

// advance looks how far the high watermark is. It counts only if this node
// still leads in the shard's epoch after it was read: a follower's says nothing
// about what this leader wrote.
func (s *shard) advance() {
	replicas := s.manager.options.Replicas
	highWatermark, err := replicas.HighWatermark(s.tp)
	if err == nil {
		_, _, err = replicas.EpochEnd(s.tp, s.epoch, s.epoch)
	}
	if err != nil {
		s.drop(err, noBatch)
		return
	}
	if end := min(highWatermark, s.written); end > s.committed {
		s.committed = end
		s.watchPause = time.Time{}
		s.machine.Committed(end)
		s.releaseCommitted()
	}
	s.watch()
}

// watch waits for the high watermark to move by a fetch for the first record
// that is not committed, if there is one.
func (s *shard) watch() {
	if s.watching || s.committed >= s.written || !s.watchPause.IsZero() {
		return
	}
	s.watching = true
	life := s.life
	s.cancelWatch = s.manager.options.Replicas.Fetch(s.clock, replica.FetchRequest{
		Partitions: []replica.FetchPartition{s.fetchAt(s.committed, 1)}, Replica: replica.Consumer, ReplicaEpoch: -1,
		MinBytes: 1, MaxBytes: 1, MaxWait: watchWait, Version: fetchVersion,
	}, func(results []replica.FetchResult) {
		results[0].Records.Release()
		s.post(event{run: func() { s.watched(life, results[0].Err) }})
	})
}

func (s *shard) watched(life uint64, err error) {
	if life != s.life {
		return
	}
	s.watching, s.cancelWatch = false, nil
	if err != nil {
		s.drop(err, noBatch)
		return
	}
	s.watchPause = s.clock.Add(watchPause) // unless the high watermark did move
	s.advance()
}

func (s *shard) stopWatching() {
	cancel := s.cancelWatch
	s.watching, s.cancelWatch, s.watchPause = false, nil, time.Time{}
	if cancel != nil {
		cancel()
	}
}

// drop ends what cannot be made good: the state is ahead of the log. Everything
// pending is answered, that of the failed batch with its own code, and the log
// is replayed, at once the first time.
func (s *shard) drop(cause error, failedBatch offsets) {
	s.manager.options.Logger.Log(context.Background(), severity(cause), "a coordinator is loaded anew", "partition", s.tp.String(), "epoch", int32(s.epoch), "error", cause)
	why := retriable(cause)
	s.failHeld(why, failedBatch, CoordinatorError(cause))
	s.leave(why)
	s.phase = loading
	s.failures++
	if s.failures == 1 {
		s.beginReplay()
		return
	}
	s.replay.retry = s.clock.Add(s.retryPause())
}

// sizeOf is how many bytes records take in a batch, from the count-th on.
func sizeOf(records []machine.Record, timestampDelta int64, count int) (bytes int) {
	for i, r := range records {
		size := 1 + varintSize(timestampDelta) + varintSize(int64(count+i)) + fieldSize(r.Key) + fieldSize(r.Value) + 1
		bytes += varintSize(int64(size)) + size
	}
	return bytes
}

func fieldSize(field []byte) int {
	if field == nil {
		return 1
	}
	return varintSize(int64(len(field))) + len(field)
}

// varintSize is the length of a zigzag varint.
func varintSize(v int64) int {
	return (bits.Len64(uint64(v<<1^v>>63)|1) + 6) / 7
}
