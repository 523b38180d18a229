package shard

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/replica"
)

const (
	// fetchVersion is that of a Fetch which may read from any replica.
	fetchVersion = 17
	// maxDecompressed bounds in bytes what one batch of the log may expand to.
	maxDecompressed = 256 << 20
	// A load that failed, or a write that failed again, is tried again after a
	// pause that doubles from the first to the last of these.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 60 * time.Second
)

// replay is a load under way.
type replay struct {
	retry   time.Time // when to begin; zero: it has begun, or waits
	waits   bool      // for a batch of the life before, which is still on its way
	started bool
	begun   time.Time
	next    protocol.Offset // everything below was applied
	records int64
	bytes   int64
	skipped int64 // records of transactions that the machine does not know
}

// load takes the leadership of an epoch over.
func (s *shard) load(epoch protocol.LeaderEpoch) {
	if s.phase == closed || epoch < s.epoch || epoch == s.epoch && s.phase != idle {
		return
	}
	s.leave(notCoordinator(s.manager.options.Topic, s.partition))
	s.epoch, s.failures = epoch, 0
	if s.machine == nil {
		s.machine = s.manager.options.NewMachine(s.partition)
	}
	s.beginReplay()
}

// beginReplay starts from nothing. What an earlier life sent off must be in the
// log, or refused, before the log is read.
func (s *shard) beginReplay() {
	s.phase = loading
	s.replay = replay{begun: s.clock, waits: s.inFlight != nil}
	if !s.replay.waits {
		s.scheduleStep()
	}
}

func (s *shard) scheduleStep() {
	if !s.scheduled {
		s.scheduled = true
		s.manager.schedule(s)
	}
}

// loadStep reads and applies the next part of the log.
func (s *shard) loadStep() {
	s.scheduled = false
	if s.phase != loading || s.replay.waits || !s.replay.retry.IsZero() {
		return
	}
	finished, err := s.replayNext()
	switch {
	case err != nil:
		s.failLoad(err)
	case finished:
		s.finishLoad()
	default:
		s.scheduleStep()
	}
}

// failLoad leaves the partition without a coordinator until the next try, or
// until the leadership goes to another node.
func (s *shard) failLoad(err error) {
	s.failures++
	pause := s.retryPause()
	s.manager.options.Logger.Log(context.Background(), severity(err), "a coordinator could not be loaded", "partition", s.tp.String(), "epoch", int32(s.epoch),
		"offset", int64(s.replay.next), "retryMs", pause.Milliseconds(), "error", err)
	s.phase = failed
	s.replay = replay{retry: s.clock.Add(pause)}
}

func (s *shard) retryPause() time.Duration {
	return min(firstRetry<<min(s.failures, 10), lastRetry)
}

// finishLoad makes the shard ready for activation. What is not committed yet
// holds the first replies up.
func (s *shard) finishLoad() {
	highWatermark, err := s.manager.options.Replicas.HighWatermark(s.tp)
	if err == nil {
		_, _, err = s.manager.options.Replicas.EpochEnd(s.tp, s.epoch, s.epoch)
	}
	if err != nil {
		s.failLoad(err)
		return
	}
	r := &s.replay
	s.phase = loaded
	s.next, s.written, s.loadedEnd = r.next, r.next, r.next
	s.committed = min(highWatermark, r.next)
	s.machine.Committed(s.committed)
	if r.skipped > 0 {
		s.manager.options.Logger.Warn("records of transactions were skipped", "partition", s.tp.String(), "records", r.skipped)
	}
}

// activate makes the machine the one that decides.
func (s *shard) activate() {
	result, err := s.machine.Activate(machine.Turn{Now: s.clock, Next: s.next}, s.epoch)
	if err != nil {
		s.failLoad(fmt.Errorf("the machine cannot be activated: %w", err))
		return
	}
	s.manager.options.Logger.Info("coordinator loaded", "partition", s.tp.String(), "epoch", int32(s.epoch),
		"records", s.replay.records, "bytes", s.replay.bytes, "ms", s.clock.Sub(s.replay.begun).Milliseconds())
	s.manager.loadTimes.add(s.clock, s.clock.Sub(s.replay.begun))
	s.phase = active
	s.carry(s.clock, result, nil, nil)
	if s.phase == active {
		s.watch()
	}
}

// replayNext applies at most LoadBytes of the log (or one batch). It is finished
// at the end of the log, where only this shard appends.
func (s *shard) replayNext() (finished bool, err error) {
	r := &s.replay
	if !r.started {
		if err := s.startReplay(); err != nil {
			return false, err
		}
	}
	end, err := s.manager.options.Replicas.LogEnd(s.tp)
	if err != nil || r.next >= end {
		return err == nil, err
	}
	content, err := s.read(r.next)
	if err != nil {
		return false, err
	}
	r.bytes += int64(len(content))
	from := r.next
	for len(content) > 0 {
		var b record.Batch
		if b, content, err = record.Next(content); err != nil {
			return false, fmt.Errorf("the batch at offset %d: %w", r.next, err)
		}
		if err := s.applyBatch(b); err != nil {
			return false, fmt.Errorf("the batch at offset %d: %w", b.BaseOffset(), err)
		}
		r.next = b.NextOffset()
	}
	if r.next <= from {
		return false, fmt.Errorf("nothing can be read at offset %d, though the log ends at %d", from, end)
	}
	return false, nil
}

// startReplay empties the machine and finds the start of the log.
func (s *shard) startReplay() error {
	start, err := s.manager.options.Replicas.ListOffset(s.clock, replica.OffsetQuery{
		Partition: s.tp, CurrentLeaderEpoch: s.epoch, TimestampMs: replica.EarliestTimestamp, Replica: replica.Debugging,
	})
	if err != nil {
		return err
	}
	if err := s.machine.Restore(0, 0, 0, nil); err != nil {
		return err
	}
	s.replay.next, s.replay.started = start.Offset, true
	return nil
}

// read gives whole batches from an offset on, also those that are not committed.
func (s *shard) read(from protocol.Offset) ([]byte, error) {
	var result replica.FetchResult
	s.manager.options.Replicas.Fetch(s.clock, replica.FetchRequest{
		Partitions: []replica.FetchPartition{s.fetchAt(from, s.manager.options.LoadBytes)}, Replica: replica.Debugging, ReplicaEpoch: -1,
		MaxBytes: s.manager.options.LoadBytes, Version: fetchVersion,
	}, func(results []replica.FetchResult) { result = results[0] }) // at once, as it waits for nothing
	if result.Err != nil {
		return nil, result.Err
	}
	defer result.Records.Release()
	return result.Records.ReadAll()
}

func (s *shard) fetchAt(from protocol.Offset, maxBytes int) replica.FetchPartition {
	return replica.FetchPartition{
		Partition: s.tp, Offset: from, MaxBytes: maxBytes, CurrentLeaderEpoch: s.epoch,
		LastFetchedEpoch: protocol.NoLeaderEpoch, FollowerLogStart: protocol.NoOffset,
	}
}

// apply hands consecutive records of one timestamp to the machine.
type apply func(base protocol.Offset, timestampMs int64, records []machine.Record) error

func (s *shard) applyBatch(b record.Batch) error {
	if err := b.CheckCRC(); err != nil {
		return err // better no coordinator than one that knows wrong things
	}
	epoch, id, producerEpoch := b.PartitionLeaderEpoch(), b.ProducerID(), b.ProducerEpoch()
	transactional, known := s.machine.(Transactional)
	switch {
	case (b.IsControl() || b.IsTransactional()) && !known:
		s.replay.skipped += int64(b.Count())
		return nil
	case b.IsControl():
		return s.applyControl(b, transactional)
	case b.IsTransactional():
		return s.applyRuns(b, func(base protocol.Offset, timestampMs int64, records []machine.Record) error {
			return transactional.ApplyTransactional(base, epoch, timestampMs, id, producerEpoch, records)
		})
	}
	return s.applyRuns(b, func(base protocol.Offset, timestampMs int64, records []machine.Record) error {
		return s.machine.Apply(base, epoch, timestampMs, records)
	})
}

// applyRuns divides a batch into runs of consecutive offsets (compaction leaves
// gaps) and equal timestamps (decisions that shared a batch keep their own), so
// that a replay makes the calls of Apply that the decisions made. Records below
// the log start are gone.
func (s *shard) applyRuns(b record.Batch, to apply) error {
	if b.Codec() == 0 {
		b = bytes.Clone(b) // who keeps a value shall not keep all that was read with it
	}
	var (
		run         []machine.Record
		base        protocol.Offset
		timestampMs int64
	)
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		s.replay.records += int64(len(run))
		err := to(base, timestampMs, run)
		run = nil
		return err
	}
	for r, err := range record.Records(b, s.manager.options.Pool, maxDecompressed) {
		if err != nil {
			return err
		}
		if r.Offset < s.replay.next {
			continue
		}
		if r.Offset != base+protocol.Offset(len(run)) || r.Timestamp != timestampMs {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(run) == 0 {
			base, timestampMs = r.Offset, r.Timestamp
		}
		run = append(run, machine.Record{Key: r.Key, Value: r.Value})
	}
	return flush()
}

// applyControl hands the marker of a transaction over; other control records
// are of no concern to a coordinator.
func (s *shard) applyControl(b record.Batch, to Transactional) error {
	for r, err := range record.Records(b, s.manager.options.Pool, maxDecompressed) {
		if err != nil {
			return err
		}
		kind, err := record.ParseControlKey(r.Key)
		if err != nil {
			return err
		}
		if !kind.IsMarker() || r.Offset < s.replay.next {
			continue
		}
		marker, err := record.ParseEndTxnMarker(r.Key, r.Value)
		if err != nil {
			return err
		}
		if err := to.ApplyMarker(r.Offset, b.PartitionLeaderEpoch(), r.Timestamp, b.ProducerID(), b.ProducerEpoch(),
			marker.Type == record.ControlCommit, marker.CoordinatorEpoch); err != nil {
			return err
		}
	}
	return nil
}
