package record

import (
	"fmt"

	"ottla/protocol/compress"
)

// frame is where the parts of one record lie in its payload.
type frame struct {
	attributes      int8
	timestampDelta  int64
	offsetDelta     int32
	key, value      span
	headerCount     int32
	headersAt, next int
}

// span is a slice of the payload; a negative size is null.
type span struct {
	at   int
	size int32
}

func (s span) isNull() bool { return s.size < 0 }

// of cuts the span out of the payload it was read from.
func (s span) of(payload []byte) []byte {
	if s.size < 0 {
		return nil
	}
	return payload[s.at : s.at+int(s.size) : s.at+int(s.size)]
}

// faultKind tells how a record is broken. Apache Kafka gives some of them
// other codes than others, and says other words for compressed batches.
type faultKind uint8

const (
	noFault          faultKind = iota
	faultCut                   // the payload ends before the record
	faultLeft                  // the payload goes on after the last record
	faultSizeVarint            // the size of the record has too many bytes
	faultSize                  // the size cannot be: a is it, b what is left
	faultNegative              // the size is negative: a
	faultTooLarge              // the size a is over the limit b
	faultSizeLies              // the record is not as long as its size a says, but b
	faultStructure             // a number or length within the record
	faultSkip                  // a length within the record passes the payload by a
	faultHeaders               // the number of headers is negative: a
	faultManyHeaders           // the number of headers a is more than there are bytes
	faultHeaderKey             // a header's key is null: its length is a
)

// fault is one broken record; the zero fault is none.
type fault struct {
	kind faultKind
	a, b int
}

// structureCut marks the faultStructure that came from the end of the payload.
const structureCut = 1

var (
	faultStructureCut  = fault{faultStructure, structureCut, 0}
	faultStructureLong = fault{faultStructure, 0, 0}
)

// isCut tells the faults that more payload might have cured.
func (f fault) isCut() bool {
	return f.kind == faultCut || f.kind == faultSkip || f == faultStructureCut
}

func structureFault(next int) fault {
	if next == varintCut {
		return faultStructureCut
	}
	return faultStructureLong
}

// Error says it in the words of Apache Kafka (DefaultRecord.java).
func (f fault) Error() string {
	switch f.kind {
	case faultLeft:
		return "Incorrect declared batch size, records still remaining in file"
	case faultSize:
		return fmt.Sprintf("Invalid record size: expected %d bytes in record payload, but instead the buffer has only %d remaining bytes.", f.a, f.b)
	case faultNegative:
		return fmt.Sprintf("Invalid record size: %d is negative.", f.a)
	case faultTooLarge:
		return fmt.Sprintf("Invalid record size: %d exceeds the configured maximum record size of %d.", f.a, f.b)
	case faultSizeLies:
		return fmt.Sprintf("Invalid record size: expected to read %d bytes in record payload, but instead read %d", f.a, f.b)
	case faultStructure:
		return "Found invalid record structure"
	case faultSkip:
		return fmt.Sprintf("Reached end of input stream before skipping all bytes. Remaining bytes:%d", f.a)
	case faultHeaders:
		return fmt.Sprintf("Found invalid number of record headers %d", f.a)
	case faultManyHeaders:
		return fmt.Sprintf("Found invalid number of record headers. %d is larger than the remaining size of the buffer", f.a)
	case faultHeaderKey:
		return fmt.Sprintf("Invalid negative header key size %d", f.a)
	}
	return "Incorrect declared batch size, premature EOF reached"
}

// framer reads the records of one payload. Its rules differ by whether the
// batch was compressed, as those of Apache Kafka do.
type framer struct {
	payload    []byte
	compressed bool
	maxRecord  int // bytes of one record of a compressed batch
}

func newFramer(payload []byte, codec compress.Codec, maxRecord int) framer {
	if maxRecord <= 0 {
		maxRecord = MaxRecordBytes
	}
	return framer{payload, codec != compress.None, maxRecord}
}

// read reads the record at a position. Nothing is allocated. The frame is whole
// beside a faultSizeLies too, with next where the record really ends.
func (r framer) read(at int) (f frame, bad fault) {
	size, at := readVarint(r.payload, at)
	if at < 0 {
		if at == varintTooLong {
			return f, fault{kind: faultSizeVarint}
		}
		return f, fault{kind: faultCut}
	}
	switch left := len(r.payload) - at; {
	case !r.compressed && int(size) > left:
		return f, fault{faultSize, int(size), left}
	case r.compressed && size < 0:
		return f, fault{faultNegative, int(size), 0}
	case r.compressed && int(size) > r.maxRecord:
		return f, fault{faultTooLarge, int(size), r.maxRecord}
	}
	if bad := r.readBody(at, &f); bad.kind != noFault {
		return f, bad
	}
	if f.next-at != int(size) {
		return f, fault{faultSizeLies, int(size), f.next - at}
	}
	return f, fault{}
}

func (r framer) readBody(at int, f *frame) fault {
	if at >= len(r.payload) {
		return faultStructureCut
	}
	f.attributes = int8(r.payload[at])
	if f.timestampDelta, at = readVarlong(r.payload, at+1); at < 0 {
		return structureFault(at)
	}
	if f.offsetDelta, at = readVarint(r.payload, at); at < 0 {
		return structureFault(at)
	}
	var bad fault
	if f.key, at, bad = r.readSpan(at); bad.kind != noFault {
		return bad
	}
	if f.value, at, bad = r.readSpan(at); bad.kind != noFault {
		return bad
	}
	if f.headerCount, at = readVarint(r.payload, at); at < 0 {
		return structureFault(at)
	}
	f.headersAt, f.next = at, at
	if f.headerCount == 0 {
		return fault{}
	}
	return r.skipHeaders(f)
}

func (r framer) readSpan(at int) (span, int, fault) {
	size, at := readVarint(r.payload, at)
	if at < 0 {
		return span{}, at, structureFault(at)
	}
	if size < 0 {
		return span{at, size}, at, fault{}
	}
	if over := int(size) - (len(r.payload) - at); over > 0 {
		if r.compressed {
			return span{}, at, fault{faultSkip, over, 0}
		}
		return span{}, at, faultStructureCut
	}
	return span{at, size}, at + int(size), fault{}
}

func (r framer) skipHeaders(f *frame) fault {
	switch {
	case f.headerCount < 0:
		return fault{faultHeaders, int(f.headerCount), 0}
	case !r.compressed && int(f.headerCount) > len(r.payload)-f.next:
		return fault{faultManyHeaders, int(f.headerCount), 0}
	}
	for range f.headerCount { // each takes bytes, so the payload bounds it
		key, at, bad := r.readSpan(f.next)
		if bad.kind != noFault {
			return bad
		}
		if key.isNull() {
			return fault{faultHeaderKey, int(key.size), 0}
		}
		if _, f.next, bad = r.readSpan(at); bad.kind != noFault {
			return bad
		}
	}
	return fault{}
}

// headers gives the headers of a frame that was read without a fault.
func (r framer) headers(f *frame) []Header {
	if f.headerCount == 0 {
		return nil
	}
	headers := make([]Header, f.headerCount) // skipHeaders found that many
	at := f.headersAt
	for i := range headers {
		var key, value span
		key, at, _ = r.readSpan(at)
		value, at, _ = r.readSpan(at)
		headers[i] = Header{key.of(r.payload), value.of(r.payload)}
	}
	return headers
}
