package check

import (
	"encoding/binary"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/segment"
)

// Bytes of an entry of each index (OffsetIndex.java, TimeIndex.java).
const (
	offsetEntryBytes = 8
	timeEntryBytes   = 12
)

// indexCheck compares both indexes of a segment with its batches, which come by in their order.
type indexCheck struct {
	s       *segmentCheck
	offsets offsetIndex
	times   timeIndex
	settled bool // what it should be is durable: a start does not make it anew
	sealed  bool // no batch came after the index was completed
	largest int64
	trusted bool // all batches so far were believed
}

// entries are what is left of an index file.
type entries struct {
	file   string
	data   []byte
	at     int64 // position of data in the file
	size   int   // of an entry
	padded bool  // there are zeros at its end, which may be an entry: that of time 0 at the first offset
}

func (e *entries) head() []byte {
	if len(e.data) < e.size {
		return nil
	}
	return e.data[:e.size]
}

func (e *entries) drop() {
	e.data, e.at = e.data[e.size:], e.at+int64(e.size)
}

func (x *indexCheck) tell(name Fault, e *entries, format string, args ...any) {
	x.s.tell(x.settled, name, e.file, e.at, x.s.name, format, args...)
}

func (x *indexCheck) open(s *segmentCheck, last, settled bool) {
	// Apache Kafka does not complete the indexes of the metadata log when it stops.
	*x = indexCheck{s: s, settled: settled, sealed: !last || s.d.clean && !s.strict, largest: -1, trusted: true}
	x.offsets.entries = x.load(Index, segment.IndexSuffix, s.index, offsetEntryBytes)
	x.times.entries = x.load(TimeIndex, segment.TimeIndexSuffix, s.timeIndex, timeEntryBytes)
	x.offsets.lastOffset, x.offsets.pending = s.base-1, protocol.NoOffset
	x.times.lastOffset, x.times.lastTime = s.base-1, -1
	x.offsets.next(x)
	x.times.next(x)
}

// load reads an index without the zeros at its end: Apache Kafka allocates the indexes of an active segment as a whole,
// and a kill leaves them so.
func (x *indexCheck) load(name Fault, suffix string, size int64, entryBytes int) entries {
	e := entries{file: x.s.segmentFile(x.s.base, suffix), size: entryBytes}
	if size < 0 {
		if x.s.log > 0 {
			x.s.note(IndexMissing, e.file, -1, x.s.name, "a start makes it anew")
		}
		return e
	}
	data := x.s.readSmall(x.s.d, e.file)
	if rest := len(data) % entryBytes; rest != 0 {
		e.at = int64(len(data) - rest)
		x.tell(name, &e, "it ends with %d bytes, less than an entry", rest)
		data, e.at = data[:len(data)-rest], 0
	}
	used := len(data)
	for used > 0 && data[used-1] == 0 {
		used--
	}
	used = (used + entryBytes - 1) / entryBytes * entryBytes
	if used < len(data) {
		e.padded = true
		x.s.note(IndexPadded, e.file, int64(used), x.s.name, "%d zero bytes, as in the index of an active segment", len(data)-used)
	}
	e.data = data[:used]
	return e
}

// batch compares the entries that speak of a batch.
func (x *indexCheck) batch(f found) {
	x.offsets.batch(x, f)
	x.times.batch(x, f)
	x.largest = max(x.largest, f.batch.MaxTimestamp())
}

// skip passes a batch that was not believed.
func (x *indexCheck) skip(f found) {
	x.trusted = false
	x.offsets.pending = protocol.NoOffset
	for x.offsets.head() != nil && x.offsets.position < f.position+f.size {
		x.offsets.drop()
		x.offsets.next(x)
	}
	x.times.data = nil
}

// close looks at what no batch has matched. whole tells that the walk saw the whole segment.
func (x *indexCheck) close(whole bool) {
	if !whole || !x.trusted {
		return
	}
	if x.offsets.pending != protocol.NoOffset {
		x.tell(Index, &x.offsets.entries, "the entry before has the offset %d, at which no batch ends", x.offsets.pending)
	}
	if x.offsets.head() != nil {
		x.tell(Index, &x.offsets.entries, "the entry (%d, %d) lies behind the end of the log", x.offsets.offset, x.offsets.position)
	}
	switch {
	case x.times.head() != nil:
		x.tell(TimeIndex, &x.times.entries, "the entry (%d, %d) lies behind the end of the log", x.times.time, x.times.offset)
	case x.s.timeIndex >= 0 && x.sealed && !x.times.doubted && x.largest >= 0 && x.times.lastTime != x.largest && (x.largest > 0 || !x.times.padded):
		// Retention deletes by the last entry (KAFKA-10207).
		x.tell(TimeIndex, &x.times.entries, "the last entry has the timestamp %d, and the largest one of the segment is %d", x.times.lastTime, x.largest)
	}
}

// offsetIndex is the .index: the offset at which a batch ends, and the position where it begins, or where the first of
// those begins that were appended together with it.
type offsetIndex struct {
	entries
	offset       protocol.Offset
	position     int64
	lastOffset   protocol.Offset
	lastPosition int64
	pending      protocol.Offset // of an entry whose batch has come, and its end has not
}

// next decodes the entry at the head; those that do not rise are told and dropped.
func (o *offsetIndex) next(x *indexCheck) {
	for o.head() != nil {
		o.offset = x.s.base + protocol.Offset(int32(binary.BigEndian.Uint32(o.data)))
		o.position = int64(int32(binary.BigEndian.Uint32(o.data[4:])))
		if o.offset > o.lastOffset && o.position > o.lastPosition {
			o.lastOffset, o.lastPosition = o.offset, o.position
			return
		}
		x.tell(Index, &o.entries, "the entry (%d, %d) does not rise above the one before it, (%d, %d)", o.offset, o.position, o.lastOffset, o.lastPosition)
		o.drop()
	}
}

func (o *offsetIndex) batch(x *indexCheck, f found) {
	for o.head() != nil && o.position < f.position {
		x.tell(Index, &o.entries, "the entry (%d, %d): no batch begins at that position", o.offset, o.position)
		o.drop()
		o.next(x)
	}
	base, last := f.batch.BaseOffset(), f.batch.LastOffset()
	if o.head() != nil && o.position == f.position {
		if o.offset < base {
			x.tell(Index, &o.entries, "the entry (%d, %d): the batch there begins at offset %d", o.offset, o.position, base)
		} else {
			o.pending = o.offset
		}
		o.drop()
		o.next(x)
	}
	if o.pending != protocol.NoOffset && last >= o.pending {
		if last > o.pending {
			at := o.entries
			at.at -= offsetEntryBytes
			x.tell(Index, &at, "the entry has the offset %d, at which no batch ends", o.pending)
		}
		o.pending = protocol.NoOffset
	}
}

// timeIndex is the .timeindex: the largest timestamp so far, and an offset of the batch that has it.
type timeIndex struct {
	entries
	time, lastTime     int64
	offset, lastOffset protocol.Offset
	doubted            bool
}

func (t *timeIndex) tell(x *indexCheck, format string, args ...any) {
	t.doubted = true
	x.tell(TimeIndex, &t.entries, format, args...)
}

func (t *timeIndex) next(x *indexCheck) {
	for t.head() != nil {
		t.time = int64(binary.BigEndian.Uint64(t.data))
		t.offset = x.s.base + protocol.Offset(int32(binary.BigEndian.Uint32(t.data[8:])))
		if t.time > t.lastTime && t.offset >= t.lastOffset {
			t.lastTime, t.lastOffset = t.time, t.offset
			return
		}
		t.tell(x, "the entry (%d, %d) does not rise above the one before it, (%d, %d)", t.time, t.offset, t.lastTime, t.lastOffset)
		t.drop()
	}
}

func (t *timeIndex) batch(x *indexCheck, f found) {
	largest := f.batch.MaxTimestamp()
	for t.head() != nil && t.offset <= f.batch.LastOffset() {
		switch {
		case t.offset < f.batch.BaseOffset():
			t.tell(x, "the entry (%d, %d): no batch has that offset", t.time, t.offset)
		case t.time != largest:
			t.tell(x, "the entry (%d, %d): the largest timestamp of the batch is %d", t.time, t.offset, largest)
		case t.time < x.largest:
			t.tell(x, "the entry (%d, %d): an earlier batch has the timestamp %d", t.time, t.offset, x.largest)
		}
		t.drop()
		t.next(x)
	}
}

// checkTxnIndex compares the .txnindex with the markers of the segment. Of a compacted segment only what is told of
// transactions that can still be read is right, so nothing is compared there.
func (s *segmentCheck) checkTxnIndex(settled bool) {
	file := s.segmentFile(s.base, segment.TxnIndexSuffix)
	var have []segment.AbortedTxn
	if s.txnIndex >= 0 {
		data := s.readSmall(s.d, file)
		var err error
		if have, err = segment.DecodeTxnIndex(data, s.base, max(s.next, s.base)); err != nil {
			s.tell(settled, TxnIndex, file, -1, s.name, "%v", err)
			return
		}
	}
	if !s.exact || !s.producers.known || s.sparse {
		return
	}
	for i := range max(len(have), len(s.aborted)) {
		switch {
		case i >= len(have):
			t := s.aborted[i]
			s.tell(settled, TxnIndex, file, -1, s.name, "the transaction of producer %d that was aborted at offset %d of %s is not in it", t.ProducerID, t.LastOffset, path.Base(s.file))
			return
		case i >= len(s.aborted) || have[i] != s.aborted[i]:
			t := have[i]
			said := "the log has no such"
			if at := slices.IndexFunc(s.aborted, func(a segment.AbortedTxn) bool { return a.LastOffset == t.LastOffset }); at >= 0 {
				said = describeAborted(s.aborted[at]) + " is that of the log"
			}
			s.tell(settled, TxnIndex, file, int64(i)*txnEntryBytes, s.name, "%s, but %s", describeAborted(t), said)
			return
		}
	}
}
