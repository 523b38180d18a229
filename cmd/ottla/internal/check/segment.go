package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/segment"
)

// knownAttributes are the bits of a batch's attributes that have a meaning.
const knownAttributes = 0x7f

// segmentCheck is the check of one segment.
type segmentCheck struct {
	*logCheck
	segmentFiles
	file    string // the .log
	indexes indexCheck
	aborted []segment.AbortedTxn
	exact   bool // aborted is all of them
	gaps    int
	firstAt protocol.Offset // where the first gap is
}

// checkSegment walks one segment and compares its indexes.
func (l *logCheck) checkSegment(i int) {
	s := &segmentCheck{logCheck: l, segmentFiles: l.segments[i], exact: l.producers.known}
	s.file = l.segmentFile(s.base, segment.LogSuffix)
	l.report.Checked.Files++
	last := i == len(l.segments)-1
	// A recovery point exactly at a segment's end may be from when it was active: its indexes were completed later, and are durable
	// only once the recovery point is beyond.
	settled := l.d.clean || !last && l.sure(l.segments[i+1].base)
	s.indexes.open(s, last, settled)
	reader, err := batches.Open(l.fsys, s.file)
	if err != nil {
		l.cannotRead(l.d, s.file, err)
		l.broken, l.lost = true, true
		l.producers.forget()
		return
	}
	defer reader.Close()
	whole := s.walk(reader, last)
	l.report.Checked.Bytes += reader.Position()
	s.indexes.close(whole)
	if whole {
		s.checkTxnIndex(settled)
	}
	if s.gaps > 0 {
		l.note(OffsetGap, s.file, -1, l.name, "before %s offsets are missing, first at %d, as after compaction", count(int64(s.gaps), "batch"), s.firstAt)
	}
}

// walk visits the batches, and tells whether all of the file was one.
func (s *segmentCheck) walk(reader *batches.Reader, last bool) bool {
	told := reader.Position()
	for {
		f, err := next(reader)
		var stop *batches.Misplaced
		switch {
		case errors.Is(err, io.EOF):
			return true
		case errors.As(err, &stop):
			s.misplaced(reader, stop, last)
			return false
		case err != nil:
			s.cannotRead(s.d, s.file, err)
			s.broken, s.lost = true, true
			s.producers.forget()
			return false
		}
		s.report.Checked.Batches++
		if !s.checkBatch(f) {
			return false
		}
		if reader.Position()-told > progressBytes {
			told = reader.Position()
			s.progress(s.file)
		}
	}
}

const progressBytes = 256 << 20

// misplaced judges a place where no batch stands: a torn tail is what was never made durable.
func (s *segmentCheck) misplaced(reader *batches.Reader, stop *batches.Misplaced, last bool) {
	at := reader.Position()
	torn := !s.sure(s.next)
	if s.strict && !s.fetched {
		// The metadata log is made durable batch by batch where it is voted on: only the last one can be torn.
		torn = torn && last && !reader.ValidBehind()
	}
	if torn {
		s.note(TornTail, s.file, at, s.name, "%s; a start cuts the log off here, at offset %d (%d bytes)", stop.Reason, s.next, reader.Size()-at)
		s.cut = true
		return
	}
	s.fault(BatchFrame, s.file, at, s.name, "%s; what follows, up to byte %d, cannot be read", stop.Reason, reader.Size())
	s.broken, s.lost = true, true
	s.producers.forget()
}

// checkBatch checks one batch; false ends the walk: a start cuts the log off before it.
func (s *segmentCheck) checkBatch(f found) bool {
	refused := s.checkCRC(f)
	if refused == nil {
		refused = s.checkOffsets(f.batch)
	}
	switch {
	case refused != nil && !s.sure(s.next) && (!s.strict || s.fetched):
		s.note(TornTail, s.file, f.position, s.name, "%s; a start cuts the log off here, at offset %d", refused.why, s.next)
		s.cut = true
		return false
	case refused == nil:
		refused = s.checkHeader(f)
	}
	if refused == nil {
		s.checkEpoch(s.file, f)
		refused = s.accept(f)
	}
	if refused != nil {
		s.reject(f, refused)
	}
	return true
}

func (s *segmentCheck) checkCRC(f found) *refusal {
	if f.crc == f.batch.CRC() {
		return nil
	}
	return refuse(BatchCRC, "the checksum of the batch at offset %d is %08x, not %08x", f.batch.BaseOffset(), f.crc, f.batch.CRC())
}

// reject reports a batch, of which nothing is believed then: what comes behind it is not held against it.
func (s *segmentCheck) reject(f found, refused *refusal) {
	s.fault(refused.name, s.file, f.position, s.name, "%s", refused.why)
	s.lost, s.exact = true, false
	s.producers.forget()
	s.broken = s.broken || s.consume != nil
	s.indexes.skip(f)
}

// checkOffsets holds the batch's offsets, which the checksum does not cover, against what came before.
func (s *segmentCheck) checkOffsets(b record.Batch) *refusal {
	base, delta := b.BaseOffset(), b.LastOffsetDelta()
	last := base + protocol.Offset(delta)
	switch {
	case base < s.base || delta < 0 || last < base || last-s.base > 1<<31-1:
		return refuse(BatchOffset, "the batch has the offsets %d to %d, in the segment that begins at %d", base, last, s.base)
	case base < s.next && !s.lost, s.strict && base != s.next && !s.lost:
		return refuse(BatchOffset, "the batch begins at offset %d, but %d is next", base, s.next)
	case base > s.next && !s.lost:
		if s.gaps++; s.gaps == 1 {
			s.firstAt = s.next
		}
		s.sparse = true
	}
	if int64(b.Count()) < int64(delta)+1 {
		s.sparse = true
	}
	return nil
}

// checkHeader looks for what no server writes.
func (s *segmentCheck) checkHeader(f found) *refusal {
	b := f.batch
	id, transactional := b.ProducerID(), b.IsTransactional()
	why := ""
	switch {
	case b.Attributes()&^knownAttributes != 0:
		why = "its attributes have bits without a meaning"
	case !b.Codec().Known():
		why = "its codec does not exist"
	case b.Count() < 0 || int64(b.Count()) > int64(b.LastOffsetDelta())+1:
		why = "it claims more records than it has offsets"
	case b.Count() == 0 && f.size > record.HeaderSize:
		why = "it claims no record, and has some"
	case transactional && id < 0:
		why = "it is part of a transaction and has no producer"
	case id >= 0 && b.ProducerEpoch() < 0:
		why = "it has a producer without an epoch"
	case id >= 0 && b.BaseSequence() < 0 && !transactional:
		why = "it has a producer without a sequence number"
	case b.IsLogAppendTime() && b.MaxTimestamp() < 0:
		why = "its append time is before 1970"
	default:
		return nil
	}
	return refuse(BatchHeader, "the batch at offset %d: %s (attributes %#x, %d records, last offset delta %d, producer %d, epoch %d, sequence %d)",
		b.BaseOffset(), why, uint16(b.Attributes()), b.Count(), b.LastOffsetDelta(), id, b.ProducerEpoch(), b.BaseSequence())
}

// accept takes a batch whose header is in order: its records, and what it does to indexes and producers.
func (s *segmentCheck) accept(f found) *refusal {
	b := f.batch
	if s.consume != nil && f.whole {
		b = bytes.Clone(b)
	}
	s.passSnapshots(b.BaseOffset())
	records, refused := s.checkRecords(f, b)
	if refused != nil {
		s.next = b.NextOffset()
		refused.why = fmt.Sprintf("the batch at offset %d: %s", b.BaseOffset(), refused.why)
		return refused
	}
	s.indexes.batch(f)
	if s.consume != nil {
		s.at = place{s.file, f.position}
		s.consume(b, records)
	}
	s.applyProducer(f, b)
	s.next, s.lost = b.NextOffset(), false
	return nil
}

// refusal is why a batch is not believed.
type refusal struct {
	name Fault
	why  string
}

func refuse(name Fault, format string, args ...any) *refusal {
	return &refusal{name, fmt.Sprintf(format, args...)}
}

// checkRecords reads the records of a batch, and gives them if somebody wants them.
func (s *segmentCheck) checkRecords(f found, b record.Batch) ([]record.Record, *refusal) {
	if !f.whole {
		return nil, s.unread(f, "it has %d bytes", f.size)
	}
	var records []record.Record
	largest, before := record.NoTimestamp, int32(-1)
	for r, err := range record.Records(b, s.pool, s.options.MaxDecompressed) {
		switch {
		case errors.Is(err, compress.ErrTooLarge):
			return nil, s.unread(f, "they expand to more than %d bytes", s.options.MaxDecompressed)
		case err != nil:
			return nil, refuse(BatchRecords, "%v", err)
		case r.OffsetDelta <= before || r.OffsetDelta > b.LastOffsetDelta():
			return nil, refuse(BatchRecords, "a record has the offset delta %d after %d, of %d", r.OffsetDelta, before, b.LastOffsetDelta())
		}
		s.report.Checked.Records++
		before, largest = r.OffsetDelta, max(largest, r.Timestamp)
		if b.IsControl() {
			if err := s.checkControl(r); err != nil {
				return nil, refuse(BatchControl, "the control record at offset %d: %v", r.Offset, err)
			}
		}
		if s.consume != nil {
			records = append(records, r)
		}
	}
	if b.Count() > 0 && !b.IsLogAppendTime() && largest != b.MaxTimestamp() {
		return nil, refuse(BatchTimestamp, "the header's largest timestamp is %d, that of its records %d", b.MaxTimestamp(), largest)
	}
	return records, nil
}

// unread notes records beyond a limit. Whoever wants the records can say nothing of the log then.
func (s *segmentCheck) unread(f found, format string, args ...any) *refusal {
	s.note(NotRead, s.file, f.position, s.name, "the records of the batch at offset %d were not read: %s", f.batch.BaseOffset(), fmt.Sprintf(format, args...))
	s.broken = s.broken || s.consume != nil
	return nil
}

// checkControl reads a control record: the end of a transaction in a partition, Raft's in the metadata log.
func (s *segmentCheck) checkControl(r record.Record) error {
	kind, err := record.ParseControlKey(r.Key)
	switch {
	case err != nil:
	case kind.IsMarker() && !s.strict:
		_, err = record.ParseEndTxnMarker(r.Key, r.Value)
	case s.strict && !kind.IsMarker():
		err = parseQuorumControl(kind, r.Value)
	default:
		err = fmt.Errorf("its type, %s, does not belong here", kind)
	}
	return err
}

// parseQuorumControl reads the control records of KRaft.
func parseQuorumControl(kind record.ControlType, value []byte) (err error) {
	switch kind {
	case record.ControlLeaderChange:
		_, err = record.ParseLeaderChange(value)
	case record.ControlSnapshotHeader:
		_, err = record.ParseSnapshotHeader(value)
	case record.ControlSnapshotFooter:
		_, err = record.ParseSnapshotFooter(value)
	case record.ControlKRaftVersion:
		_, err = record.ParseKRaftVersion(value)
	case record.ControlKRaftVoters:
		_, err = record.ParseVoters(value)
	default:
		err = errors.New("its type is not known")
	}
	return err
}
