package replica

import (
	"cmp"
	"errors"
	"math"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/partition"
)

// Append appends one batch. done is called once: after the write for acks 0 and
// 1, when the high watermark has passed the batch for acks=all, or with what
// went wrong. accepted is false if the partition's queue is full: the batch is
// taken all the same, but nothing more should be read from its connection until
// done was called.
func (m *Manager) Append(now time.Time, req AppendRequest, done func(AppendResult)) (accepted bool) {
	a := &pendingAppend{
		now: now, deadline: now.Add(req.Timeout), acks: req.RequiredAcks, epoch: req.LeaderEpoch,
		release: req.Release, abandon: req.Abandon, done: done,
	}
	r, err := m.find(req.Partition, req.TopicID)
	counters := m.trafficOf(r)
	counters.ProduceRequests.Add(1)
	if err != nil {
		counters.Refused(len(req.Records), err)
		a.refuse(nil, err)
		return true
	}
	batch, err := record.OneBatch(req.Records)
	if err != nil {
		counters.Refused(len(req.Records), err)
		a.refuse(nil, err)
		return true
	}
	if err := r.prepare(now, &req, batch, a); err != nil {
		counters.Refused(len(req.Records), err)
		a.refuse(r, err)
		return true
	}
	accepted = r.enqueue(a)
	r.pump(now)
	return accepted
}

// prepare does what needs no lock: it looks at the role, so that the wrong node
// says so first, and validates the batch.
func (r *Replica) prepare(now time.Time, req *AppendRequest, batch record.Batch, a *pendingAppend) error {
	view := r.view.Load()
	switch {
	case view.Role == partition.Offline:
		return protocol.Errorf(protocol.KafkaStorageError, "the log directory of %s is offline", r.tp)
	case view.Role != partition.Leader:
		return protocol.Errorf(protocol.NotLeaderOrFollower, "this node is not the leader of %s", r.tp)
	}
	options := r.published.Load()
	if err := checkSize(options, batch.Size()); err != nil {
		return err
	}
	validation := r.validation(now, req, options)
	info, err := record.Validate(batch, validation)
	if err != nil {
		return err
	}
	converted, err := r.convert(batch, options)
	if err != nil {
		return err
	}
	if len(converted) > 0 {
		// The request's bytes are not needed any more.
		a.releaseOnce()
		batch = converted
		if err := checkSize(options, batch.Size()); err != nil {
			return err
		}
	}
	if validation.TimestampType == record.CreateTime {
		batch.SetMaxTimestamp(record.CreateTime, info.MaxTimestamp) // the other kind is stamped by the log
	}
	a.entry = log.Entry{Batch: batch, Info: info, Origin: req.Origin, TransactionVersion: req.TransactionVersion, Guard: req.Guard}
	return nil
}

// checkSize is made before and after a conversion.
func checkSize(options *log.Options, size int) error {
	if options.MaxMessageBytes > 0 && size > options.MaxMessageBytes {
		return protocol.Errorf(protocol.MessageTooLarge,
			"the batch of %d bytes is larger than max.message.bytes, %d", size, options.MaxMessageBytes)
	}
	if options.SegmentBytes > 0 && int64(size) > options.SegmentBytes {
		return protocol.Errorf(protocol.RecordListTooLarge,
			"the batch of %d bytes is larger than segment.bytes, %d", size, options.SegmentBytes)
	}
	return nil
}

// limitMs gives a limit in milliseconds. A Duration ends at 292 years, the milliseconds of a configuration do not: what is
// as long as that has no limit, as Apache Kafka's largest value has none.
func limitMs(d time.Duration) int64 {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	if ms := d.Milliseconds(); ms < longest {
		return ms
	}
	return math.MaxInt64
}

func (r *Replica) validation(now time.Time, req *AppendRequest, options *log.Options) record.Validation {
	v := record.Validation{
		TopicPartition:  r.tp,
		Now:             now.UnixMilli(),
		Compacted:       options.Compact,
		TimestampType:   record.CreateTime,
		BeforeMaxMs:     limitMs(options.TimestampBeforeMax),
		AfterMaxMs:      limitMs(options.TimestampAfterMax),
		MaxDecompressed: r.manager.options.MaxDecompressed,
		MaxRecordBytes:  cmp.Or(options.MaxRecordBytes, r.manager.options.MaxRecordBytes),
		Pool:            r.manager.options.Pool,
		Origin:          record.FromCoordinator,
		AllowZstd:       true,
	}
	if options.LogAppendTime {
		v.TimestampType = record.LogAppendTime
	}
	if req.Origin == log.OriginClient {
		v.Origin, v.AllowZstd = record.FromClient, req.AllowZstd
	}
	return v
}

// convert rebuilds a batch whose codec is not the topic's. Control batches stay
// as they are. Nil: no need.
func (r *Replica) convert(batch record.Batch, options *log.Options) (record.Batch, error) {
	if options.ProducerCompression || batch.IsControl() || options.Compression == batch.Codec() {
		return nil, nil
	}
	return record.Recompress(batch, options.Compression, options.CompressionLevel, r.manager.options.Pool, r.manager.options.MaxDecompressed)
}

// pendingAppend is a batch on its way through the hand-over queue.
type pendingAppend struct {
	entry    log.Entry
	now      time.Time
	deadline time.Time
	acks     int16
	epoch    *protocol.LeaderEpoch
	err      error // refused before the write
	release  func()
	abandon  func()
	done     func(AppendResult)

	result  AppendResult
	waiting bool // for acks=all, in Replica.acks
}

func (a *pendingAppend) releaseOnce() {
	if a.release != nil {
		a.release()
		a.release = nil
	}
}

// abandonOnce is releaseOnce where a write that was given up may still read the bytes.
func (a *pendingAppend) abandonOnce() {
	if a.release != nil && a.abandon != nil {
		a.abandon()
	}
	a.release = nil
}

// refuse answers a batch that did not get into the log.
func (a *pendingAppend) refuse(r *Replica, err error) {
	a.releaseOnce()
	a.done(refusal(r, err))
}

// refusal makes the answer. As in Apache Kafka the log start offset is told with
// the faults of a record, not with those of role, size, checksum and storage.
func refusal(r *Replica, err error) AppendResult {
	err = clientError(err)
	result := AppendResult{
		Err: err, BaseOffset: protocol.NoOffset, LastOffset: protocol.NoOffset, LogStartOffset: protocol.NoOffset, LogAppendTimeMs: record.NoTimestamp,
	}
	var refused *record.Error
	if errors.As(err, &refused) {
		result.RecordErrors = refused.Records
	}
	if r == nil {
		return result
	}
	result.CurrentLeader = currentLeader(r.view.Load(), err)
	switch protocol.CodeOf(err) {
	case protocol.UnknownTopicOrPartition, protocol.NotLeaderOrFollower, protocol.MessageTooLarge,
		protocol.RecordListTooLarge, protocol.CorruptMessage, protocol.KafkaStorageError:
	default:
		result.LogStartOffset = r.log().View().LogStartOffset
	}
	return result
}
