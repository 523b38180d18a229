package clean

import (
	"fmt"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/segment"
)

// reader reads a segment's .log in chunks of whole batches.
type reader struct {
	buffer   []byte
	source   *segment.Segment
	position int64
	next     protocol.Offset // the next batch begins there or later
	end      protocol.Offset // of the segment
}

// start turns to a segment, which ends at an offset.
func (r *reader) start(s *segment.Segment, position int64, end protocol.Offset) {
	r.source, r.position, r.next, r.end = s, position, s.Base(), end
}

// left is how many bytes were not read yet.
func (r *reader) left() int64 { return r.source.Size() - r.position }

// chunk gives the next whole batches, at least one. They are good until the next call. A batch that does not fit the buffer gets
// one of its own.
func (r *reader) chunk() ([]byte, error) {
	bytes := r.buffer[:min(int64(len(r.buffer)), r.left())]
	if err := r.source.ReadAt(bytes, r.position); err != nil {
		return nil, err
	}
	whole := 0
	for {
		size, ok := record.SizeOf(bytes[whole:])
		if !ok && (len(bytes)-whole >= record.LogOverhead || int64(len(bytes)) == r.left()) {
			return nil, r.damage("no batch begins at byte %d", r.position+int64(whole))
		}
		if ok && whole+size <= len(bytes) {
			if whole += size; whole < len(bytes) {
				continue
			}
		}
		if whole > 0 {
			r.position += int64(whole)
			return bytes[:whole], nil
		}
		if int64(size) > r.left() {
			return nil, r.damage("a batch of %d bytes has only %d left at byte %d", size, r.left(), r.position)
		}
		bytes = make([]byte, max(size, record.HeaderSize))
		if err := r.source.ReadAt(bytes, r.position); err != nil {
			return nil, err
		}
	}
}

func (r *reader) damage(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s", r.source.LogName(), fmt.Sprintf(format, args...))
}

// take takes the first batch off a chunk, after a look at its checksum, and at its offset, of which the checksum knows nothing: a wrong
// one would have every older record of its keys removed.
func (r *reader) take(chunk []byte) (record.Batch, []byte, error) {
	b, rest, err := record.Next(chunk)
	if err == nil {
		err = b.CheckCRC()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s is damaged: %w", r.source.LogName(), err)
	}
	if b.BaseOffset() < r.next || b.NextOffset() > r.end {
		return nil, nil, r.damage("a batch has the offsets %d to %d, where they are between %d and %d", b.BaseOffset(), b.LastOffset(), r.next, r.end-1)
	}
	r.next = b.NextOffset()
	return b, rest, nil
}
