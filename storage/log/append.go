package log

import (
	"errors"
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/producer"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// Origin tells who appends, which decides the checks (AppendOrigin.java).
type Origin int8

const (
	OriginClient      Origin = iota // a producer's batch: sequences and epochs are checked
	OriginCoordinator               // this node's group, transaction or share coordinator
	OriginMarker                    // a transaction marker (WriteTxnMarkers)
	OriginFollower                  // bytes from the leader: offsets are theirs and must fit
	OriginRaft                      // the metadata log's leader
)

// Entry is one batch to append and what became of it.
type Entry struct {
	Batch  record.Batch
	Info   record.Info // of a client's batch, from record.Validate; its MaxTimestamp is written into the header
	Origin Origin
	// TransactionVersion is that of the coordinator that sends a marker: 2 makes the marker's epoch be beyond the
	// producer's. 0 and 1 are alike (KIP-890).
	TransactionVersion int8
	Guard              Guard // of BeginVerification, for the first batch of a transaction

	Err             error           // why nothing was written: a *protocol.Error, or *UnexpectedOffsetError of a follower
	FirstOffset     protocol.Offset // of a duplicate: the original's
	LastOffset      protocol.Offset
	LogAppendTimeMs int64 // -1 unless the topic stamps the append time; of a duplicate: the original's timestamp
	Duplicate       bool  // had been appended before; not written again

	aborted *segment.AbortedTxn
}

// UnexpectedOffsetError says that a batch of the leader does not continue a follower's log.
type UnexpectedOffsetError struct {
	First, Last protocol.Offset // of the batch
	End         protocol.Offset // of the log
}

func (e *UnexpectedOffsetError) Error() string {
	return fmt.Sprintf("the leader sent offsets %d to %d, but the log ends at %d", e.First, e.Last, e.End)
}

// Append writes the entries' batches in order. Batches are stamped in place (offsets, leader epoch, timestamp
// type and maximum), except a follower's, which must continue the log. Faults of an entry stand in its Err.
//
// The returned error is the environment's. The entries that were not written then have KAFKA_STORAGE_ERROR as Err;
// those before them stand. ENOSPC and EDQUOT leave the log as it was and usable; any other error poisons it.
//
// The bytes are not kept.
func (l *Log) Append(now time.Time, epoch protocol.LeaderEpoch, entries []*Entry) error {
	if err := l.usable(); err != nil {
		failEntries(entries, err)
		return err
	}
	l.sawMs.Store(now.UnixMilli())
	l.touched.Store(true)
	a := appender{Log: l, opts: l.opts.Load(), now: now, epoch: epoch, next: l.end, entries: entries}
	a.mark()
	for i, e := range entries {
		e.Err, e.Duplicate, e.aborted, e.LogAppendTimeMs = nil, false, nil, -1
		e.FirstOffset, e.LastOffset = protocol.NoOffset, protocol.NoOffset
		if err := a.add(e); err != nil {
			return a.abandon(err)
		}
		if len(l.group) == 0 {
			a.settled = i + 1 // nothing before it waits to be written
		}
	}
	if err := a.write(len(entries)); err != nil {
		return a.abandon(err)
	}
	a.mu.Lock()
	a.producers.Commit()
	a.mu.Unlock()
	return nil
}

func failEntries(entries []*Entry, err error) {
	for _, e := range entries {
		e.Err = protocol.Errorf(protocol.KafkaStorageError, "%v", err)
	}
}

// appender is one call of Append. Batches gather in Log.group and Log.vector until they are written together.
type appender struct {
	*Log
	opts    *Options
	now     time.Time
	epoch   protocol.LeaderEpoch
	next    protocol.Offset // base offset of the next batch
	bytes   int64           // gathered
	entries []*Entry
	settled int // entries before this one are decided and written
}

func (a *appender) mark() {
	a.mu.Lock()
	a.producers.Mark()
	a.mu.Unlock()
}

// abandon takes back what was gathered.
func (a *appender) abandon(err error) error {
	a.mu.Lock()
	a.producers.Rollback()
	a.producers.Replicated(a.highWatermark) // what was told meanwhile
	a.mu.Unlock()
	a.forget()
	failEntries(a.entries[a.settled:], err)
	return err
}

func (a *appender) forget() {
	clear(a.vector) // the bytes belong to somebody else
	clear(a.group)
	a.vector, a.group, a.bytes = a.vector[:0], a.group[:0], 0
}

// add judges, stamps and gathers one entry. The error is the environment's.
func (a *appender) add(e *Entry) error {
	b := e.Batch
	if e.Err = a.checkSize(e); e.Err != nil {
		return nil
	}
	var marker *producer.Marker
	if b.IsControl() && b.HasProducerID() {
		m, err := producer.ReadMarker(b)
		if err != nil {
			e.Err = protocol.Errorf(protocol.InvalidRecord, "a control batch is no transaction marker: %v", err)
			return nil
		}
		marker = &m
	}
	e.Err = a.judge(e, marker)
	if full := a.takeSpace(e); full != nil {
		if e.Origin == OriginFollower {
			return full // what it copies can wait
		}
		e.Err = protocol.Errorf(protocol.KafkaStorageError, "%v", full)
	}
	if e.Err != nil || e.Duplicate {
		return nil
	}
	a.stamp(e)
	if err := a.makeRoom(e); err != nil {
		return err
	}
	if err := a.enterEpoch(b); err != nil {
		return err
	}
	a.apply(e, marker)
	a.group = append(a.group, e)
	a.vector = append(a.vector, b)
	a.bytes += int64(len(b))
	e.FirstOffset, e.LastOffset = b.BaseOffset(), b.LastOffset()
	a.next = b.NextOffset()
	return nil
}

func (a *appender) checkSize(e *Entry) error {
	size := len(e.Batch)
	if e.Origin == OriginFollower {
		return nil // the leader accepted it, perhaps under other limits
	}
	if limit := a.opts.MaxMessageBytes; limit > 0 && size > limit {
		return protocol.Errorf(protocol.MessageTooLarge,
			"the batch has %d bytes, but max.message.bytes of %s allows %d", size, a.tp, limit)
	}
	if e.Origin != OriginRaft && int64(size) > a.opts.SegmentBytes {
		return protocol.Errorf(protocol.RecordListTooLarge,
			"the batch has %d bytes, but segment.bytes of %s is %d", size, a.tp, a.opts.SegmentBytes)
	}
	return nil
}

// judge is what the producer state, or for a follower the leader's order, says of an entry.
func (a *appender) judge(e *Entry, marker *producer.Marker) error {
	b := e.Batch
	if e.Origin == OriginFollower {
		return a.judgeFollower(b)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if marker != nil {
		return a.producers.CheckMarker(b, *marker, e.TransactionVersion)
	}
	who := producer.Coordinator
	if e.Origin == OriginClient {
		who = producer.Client
	}
	verify := a.opts.VerifyTransactions && !b.IsControl() && e.Origin != OriginRaft
	original, duplicate, err := a.producers.Check(b, who, verify, e.Guard)
	if err != nil || !duplicate {
		return err
	}
	e.Duplicate = true
	e.FirstOffset, e.LastOffset, e.LogAppendTimeMs = original.FirstOffset(), original.LastOffset, original.TimestampMs
	return nil
}

func (a *appender) judgeFollower(b record.Batch) error {
	if err := b.CheckCRC(); err != nil {
		return protocol.Errorf(protocol.CorruptMessage, "a batch from the leader is damaged: %v", err)
	}
	if b.BaseOffset() < a.next || b.LastOffsetDelta() < 0 {
		return &UnexpectedOffsetError{b.BaseOffset(), b.LastOffset(), a.next}
	}
	if b.PartitionLeaderEpoch() > a.epoch {
		return protocol.Errorf(protocol.UnknownLeaderEpoch,
			"a batch of leader epoch %d came from the leader of epoch %d", b.PartitionLeaderEpoch(), a.epoch)
	}
	return nil
}

// stamp writes into the batch what the log decides.
func (a *appender) stamp(e *Entry) {
	b := e.Batch
	if e.Origin == OriginFollower {
		return
	}
	b.SetBaseOffset(a.next)
	b.SetPartitionLeaderEpoch(a.epoch)
	switch {
	case e.Origin == OriginRaft:
	case a.opts.LogAppendTime:
		e.LogAppendTimeMs = a.now.UnixMilli()
		b.SetLogAppendTime(e.LogAppendTimeMs)
	case e.Origin == OriginClient && e.Info.Count > 0:
		b.SetMaxTimestamp(record.CreateTime, e.Info.MaxTimestamp)
	}
	if b.BaseOffset() != a.next {
		panic(fmt.Sprintf("log: a batch of %s got offset %d instead of %d", a.tp, b.BaseOffset(), a.next))
	}
}

// makeRoom rolls if the batch does not go into the active segment, after writing what was gathered for it.
func (a *appender) makeRoom(e *Entry) error {
	b := e.Batch
	full, err := a.wantsRoll(b)
	if err != nil || !full {
		return err
	}
	if err := a.write(a.indexOf(e)); err != nil {
		return err
	}
	// Without what was gathered the segment may be empty, and an empty one is not rolled.
	if full, err = a.wantsRoll(b); err != nil || !full {
		return err
	}
	base := b.BaseOffset()
	if base < a.end {
		panic(fmt.Sprintf("log: %s would roll at %d, before its end %d", a.tp, base, a.end))
	}
	return a.roll(base, a.now.UnixMilli())
}

func (a *appender) indexOf(e *Entry) int {
	for i := a.settled; ; i++ {
		if a.entries[i] == e {
			return i
		}
	}
}

// wantsRoll is LogSegment.shouldRoll, counting what was gathered as if it were written.
func (a *appender) wantsRoll(b record.Batch) (bool, error) {
	active := a.active()
	if active.Size() == 0 && a.bytes == 0 {
		return !active.Fits(b.LastOffset()), nil
	}
	if active.Full(int64(len(b))+a.bytes, len(a.vector), b.LastOffset(), a.opts.SegmentBytes) {
		return true, nil
	}
	if active.Size() == 0 {
		first := a.vector[0]
		return record.Batch(first).MaxTimestamp() >= 0 &&
			a.tooOld(b.MaxTimestamp()-record.Batch(first).MaxTimestamp()), nil
	}
	waitedMs, err := active.WaitedMs(a.now.UnixMilli(), b.MaxTimestamp())
	if err != nil {
		return false, a.poison(err)
	}
	return a.tooOld(waitedMs), nil
}

func (a *appender) tooOld(waitedMs int64) bool {
	age := a.opts.SegmentAge
	if a.opts.Compact && a.opts.MaxCompactionLag > 0 {
		age = min(age, a.opts.MaxCompactionLag) // or what is in it could not be compacted in time (LogConfig.maxSegmentMs)
	}
	return waitedMs > (age - a.jitter).Milliseconds()
}

// enterEpoch puts the batch's leader epoch into the cache and its file before anyone can read the batch.
func (a *appender) enterEpoch(b record.Batch) error {
	return a.assignEpoch(b.PartitionLeaderEpoch(), b.BaseOffset())
}

func (a *appender) apply(e *Entry, marker *producer.Marker) {
	a.mu.Lock()
	done, ended := a.producers.Apply(e.Batch, marker)
	a.mu.Unlock()
	if ended && done.Aborted {
		e.aborted = &segment.AbortedTxn{
			ProducerID: done.ProducerID, FirstOffset: done.FirstOffset,
			LastOffset: done.LastOffset, LastStableOffset: done.LastStableOffset,
		}
	}
}

// write puts what was gathered into the active segment and shows it to readers. Entries before upTo are settled then.
func (a *appender) write(upTo int) error {
	if len(a.vector) > 0 {
		if err := a.writeGathered(); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.producers.Commit()
	if len(a.vector) > 0 {
		a.end = a.next
		a.publish()
	}
	a.producers.Mark()
	a.mu.Unlock()
	a.forget()
	a.settled = upTo
	return nil
}

func (a *appender) writeGathered() error {
	active := a.active()
	// The .txnindex goes first: an entry without its marker is recognised and dropped when the log is opened, a
	// marker without its entry would show aborted records.
	for _, e := range a.group {
		if e.aborted == nil {
			continue
		}
		if err := active.AddAborted(*e.aborted); err != nil {
			return a.takeBack(active, err, true)
		}
	}
	if active.StoreDue() { // left from the last time: a full disk is met here before there is anything to take back
		if err := active.Store(); err != nil {
			return a.takeBack(active, err, true)
		}
	}
	intact, err := active.Append(a.now.UnixMilli(), a.vector)
	if err != nil {
		return a.takeBack(active, err, intact)
	}
	return nil
}

// takeBack decides what a failed write means.
func (a *appender) takeBack(active *segment.Segment, err error, intact bool) error {
	if !intact || !vfs.NoSpace(err) {
		return a.poison(err)
	}
	for _, e := range a.group {
		if e.aborted == nil {
			continue
		}
		if cut := active.DropAborted(a.end); cut != nil {
			return a.poison(errors.Join(err, cut))
		}
		break
	}
	return err
}
