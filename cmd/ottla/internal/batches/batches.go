package batches

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"ottla/protocol/record"
	"ottla/storage/vfs"
)

const (
	readBytes = 1 << 20
	// crcFrom is where the bytes begin that the checksum covers.
	crcFrom = 21
	// tornBytes is how far behind a place where no batch stands a torn write can have left whole batches.
	tornBytes = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reader reads a file batch by batch, in one pass. It is used by one goroutine at a time.
type Reader struct {
	file     vfs.File
	size     int64
	position int64

	header [record.HeaderSize]byte
	buffer []byte
	from   int64 // position in the file of buffer[0]
}

// Open opens a file for a walk from its first byte. The caller closes it.
func Open(fsys vfs.FS, name string) (*Reader, error) {
	file, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Reader{file: file, size: size}, nil
}

// Close closes the file.
func (r *Reader) Close() { _ = r.file.Close() } // nothing was written

// Size is that of the file in bytes when it was opened: what is appended meanwhile is not looked at.
func (r *Reader) Size() int64 { return r.size }

// Position is that of the next batch, in bytes from the start of the file.
func (r *Reader) Position() int64 { return r.position }

// Misplaced says why no batch stands at a position, so that the walk cannot go on.
type Misplaced struct{ Reason string }

func (m *Misplaced) Error() string { return m.Reason }

func misplaced(format string, args ...any) error {
	return &Misplaced{Reason: fmt.Sprintf(format, args...)}
}

// Found is a batch in the file.
type Found struct {
	// Header is its first record.HeaderSize bytes, valid until the next one is read.
	Header   record.Batch
	Position int64
	Size     int64 // in bytes
}

// Next gives the next batch; io.EOF at the end, *Misplaced where there is none; other errors are the disk's.
func (r *Reader) Next() (Found, error) {
	left := r.size - r.position
	if left == 0 {
		return Found{}, io.EOF
	}
	if left < record.HeaderSize {
		return Found{}, misplaced("%d bytes are left, less than the header of a batch", left)
	}
	header, err := r.read(r.position, record.HeaderSize)
	if err != nil {
		return Found{}, err
	}
	copy(r.header[:], header)
	claimed, ok := record.SizeOf(header)
	found := Found{Header: r.header[:], Position: r.position, Size: int64(claimed)}
	switch {
	case !ok || claimed < record.HeaderSize:
		return Found{}, misplaced("no batch begins here: its length field says %d", int32(binary.BigEndian.Uint32(header[8:])))
	case found.Header.Magic() != record.Magic2:
		return Found{}, misplaced("the batch has format %d, and only format %d can be read", found.Header.Magic(), record.Magic2)
	case found.Size > left:
		return Found{}, misplaced("a batch claims %d bytes, and the file ends after %d", claimed, left)
	}
	r.position += found.Size
	return found, nil
}

// Load gives the whole batch, valid until something else is read.
func (r *Reader) Load(f Found) (record.Batch, error) { return r.read(f.Position, f.Size) }

// Checksum computes the checksum of a batch, however large, without holding all of it.
func (r *Reader) Checksum(f Found) (uint32, error) {
	var sum uint32
	for from, to := f.Position+crcFrom, f.Position+f.Size; from < to; {
		bytes, err := r.read(from, min(to-from, readBytes))
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, bytes)
		from += int64(len(bytes))
	}
	return sum, nil
}

// Zeros tells whether nothing but zero bytes is left.
func (r *Reader) Zeros() bool {
	for at := r.position; at < r.size; {
		bytes, err := r.read(at, min(r.size-at, readBytes))
		if err != nil {
			return false
		}
		for _, b := range bytes {
			if b != 0 {
				return false
			}
		}
		at += int64(len(bytes))
	}
	return true
}

// ValidBehind tells whether a whole valid batch stands anywhere behind the position, within what a torn write can have
// left.
func (r *Reader) ValidBehind() bool {
	rest, err := r.read(r.position, min(r.size-r.position, tornBytes))
	if err != nil {
		return false
	}
	for at := 1; at+record.HeaderSize <= len(rest); at++ {
		if rest[at+16] != record.Magic2 {
			continue
		}
		if batch, _, err := record.Next(rest[at:]); err == nil && batch.CheckCRC() == nil {
			return true
		}
	}
	return false
}

// read gives n bytes of the file.
func (r *Reader) read(position, n int64) ([]byte, error) {
	if begin := position - r.from; begin >= 0 && begin+n <= int64(len(r.buffer)) {
		return r.buffer[begin : begin+n : begin+n], nil
	}
	want := min(max(n, readBytes), r.size-position)
	if int64(cap(r.buffer)) < want {
		r.buffer = make([]byte, want)
	}
	r.buffer = r.buffer[:want]
	got, err := r.file.ReadAt(r.buffer, position)
	r.from, r.buffer = position, r.buffer[:got]
	if int64(got) < n {
		return nil, fmt.Errorf("cannot read at byte %d: %w", position, err)
	}
	return r.buffer[:n:n], nil
}
