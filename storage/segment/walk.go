package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"ottla/protocol"
	"ottla/protocol/record"
)

// Batch is a batch as a walk over a .log file meets it.
type Batch struct {
	// Header is the batch's first record.HeaderSize bytes: enough for the getters of its header, not for its
	// size or payload. It is valid until the next step.
	Header   record.Batch
	Position int64
	Size     int64
}

// Damage says where and why a walk could not go on.
type Damage struct {
	File     string // path
	Position int64
	Reason   string
}

func (d *Damage) Error() string { return fmt.Sprintf("%s, byte %d: %s", d.File, d.Position, d.Reason) }

// walker reads batch headers one after the other. Small batches are read many at a time, of large ones only
// the headers.
type walker struct {
	file io.ReaderAt
	name string
	base protocol.Offset // of the segment
	end  int64           // bytes of the file to walk
	next protocol.Offset // the least base offset that may come next
	buf  []byte          // all of it may be used

	position int64 // of the next batch
	from     int64 // position in the file of held[0]
	held     []byte
	chunk    int // bytes to read next time
	header   [record.HeaderSize]byte
}

const leastChunk = 1 << 10

// cursor is a pooled walker for lookups, with its buffer.
type cursor struct {
	walker
	scratch [scratchBytes]byte
}

func (s *Segment) borrow(position, end int64) *cursor {
	c := s.cache.cursors.Get().(*cursor)
	c.start(s, position, end, c.scratch[:])
	return c
}

func (s *Segment) giveBack(c *cursor) {
	c.file = nil
	s.cache.cursors.Put(c)
}

// start begins a walk at a position of the pinned .log.
func (w *walker) start(s *Segment, position, end int64, buf []byte) {
	w.name = s.log.file.Name()
	w.file, w.base, w.end, w.next, w.buf = s.log.file, s.base, end, s.base, buf
	w.position, w.from, w.held, w.chunk = position, 0, nil, leastChunk
}

// step gives the next batch. At the end it is io.EOF; a *Damage tells that no whole, plausible batch stands at the
// position; other errors are the disk's.
func (w *walker) step() (Batch, error) {
	left := w.end - w.position
	if left == 0 {
		return Batch{}, io.EOF
	}
	if left < record.HeaderSize {
		return Batch{}, w.damage("%d bytes are less than a batch header", left)
	}
	header, err := w.read(w.position, record.HeaderSize)
	if err != nil {
		return Batch{}, err
	}
	copy(w.header[:], header)
	b := Batch{Header: w.header[:], Position: w.position}
	if b.Size, err = w.check(b.Header, left); err != nil {
		return Batch{}, err
	}
	w.position += b.Size
	w.next = b.Header.NextOffset()
	return b, nil
}

func (w *walker) check(header record.Batch, left int64) (int64, error) {
	size := record.LogOverhead + int64(int32(binary.BigEndian.Uint32(header[8:])))
	if size < record.HeaderSize {
		return 0, w.damage("a batch claims %d bytes", size)
	}
	if magic := header.Magic(); magic != record.Magic2 {
		return 0, w.damage("a batch has format %d, not %d", magic, record.Magic2)
	}
	if size > left {
		return 0, w.damage("a batch of %d bytes has only %d left", size, left)
	}
	base, delta := header.BaseOffset(), header.LastOffsetDelta()
	if base < w.next || delta < 0 || base+protocol.Offset(delta)-w.base > 1<<31-1 {
		return 0, w.damage("a batch has offsets %d to %d, after %d in the segment that begins at %d",
			base, base+protocol.Offset(delta), w.next-1, w.base)
	}
	return size, nil
}

func (w *walker) damage(format string, args ...any) error {
	return &Damage{w.name, w.position, fmt.Sprintf(format, args...)}
}

// read gives n bytes of the file at position, n at most len(buf).
func (w *walker) read(position int64, n int) ([]byte, error) {
	if begin := position - w.from; begin >= 0 && begin+int64(n) <= int64(len(w.held)) {
		return w.held[begin:][:n], nil
	}
	if begin := position - w.from; begin >= 0 && begin <= int64(len(w.held)) && len(w.held) > 0 {
		w.chunk = min(2*w.chunk, len(w.buf)) // it goes on where the last read ended
	} else {
		w.chunk = leastChunk
	}
	want := int(min(int64(max(w.chunk, n)), w.end-position))
	got, err := w.file.ReadAt(w.buf[:want], position)
	w.from, w.held = position, w.buf[:got]
	if got < n {
		return nil, fmt.Errorf("cannot read %d bytes at %d: %w", n, position, shortRead(err))
	}
	return w.held[:n], nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const crcFrom = 21 // of a batch; what the checksum covers begins with the attributes

// checkCRC reads the batch that step gave and compares its checksum; a *Damage if it differs.
func (w *walker) checkCRC(b Batch) error {
	stored := b.Header.CRC()
	computed := uint32(0)
	for at, end := b.Position+crcFrom, b.Position+b.Size; at < end; {
		n := int(min(end-at, int64(len(w.buf))))
		if ahead := w.from + int64(len(w.held)) - at; at >= w.from && ahead > 0 {
			n = int(min(int64(n), ahead))
		} else {
			w.chunk = len(w.buf)
		}
		bytes, err := w.read(at, n)
		if err != nil {
			return err
		}
		computed = crc32.Update(computed, castagnoli, bytes)
		at += int64(n)
	}
	if computed != stored {
		return &Damage{w.name, b.Position, fmt.Sprintf("the checksum of the batch at offset %d is %08x, not %08x",
			b.Header.BaseOffset(), computed, stored)}
	}
	return nil
}
