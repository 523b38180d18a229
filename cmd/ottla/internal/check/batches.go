package check

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
	// largestBatch is how large a batch may be to be held in memory; of a larger one only header and checksum are
	// checked. Apache Kafka takes 1 MB by default.
	largestBatch = 64 << 20
	// crcFrom is where the bytes begin that the checksum covers.
	crcFrom = 21
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batchReader reads a file batch by batch, in one pass.
type batchReader struct {
	file     vfs.File
	size     int64 // when it was opened: what is appended meanwhile is not looked at
	position int64 // of the next batch

	buffer []byte
	from   int64 // position in the file of buffer[0]
}

func openBatches(fsys vfs.FS, name string) (*batchReader, error) {
	file, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &batchReader{file: file, size: size}, nil
}

func (r *batchReader) close() { _ = r.file.Close() } // nothing was written

// misplaced says why no batch stands at a position, so that the walk cannot go on.
type misplaced struct{ reason string }

func (m *misplaced) Error() string { return m.reason }

// found is a batch: all of it, or only the header if it is larger than largestBatch.
type found struct {
	batch    record.Batch // valid until the next one is read
	position int64
	size     int64
	whole    bool
	crc      uint32 // computed
}

// next gives the next batch; io.EOF at the end, *misplaced where there is none.
func (r *batchReader) next() (found, error) {
	left := r.size - r.position
	if left == 0 {
		return found{}, io.EOF
	}
	header, err := r.read(r.position, min(left, record.HeaderSize))
	if err != nil {
		return found{}, err
	}
	claimed, ok := record.SizeOf(header)
	switch {
	case left < record.HeaderSize:
		return found{}, &misplaced{fmt.Sprintf("%d bytes are left, less than the header of a batch", left)}
	case !ok || claimed < record.HeaderSize:
		return found{}, &misplaced{fmt.Sprintf("no batch begins here: its length field says %d", int32(binary.BigEndian.Uint32(header[8:])))}
	case record.Batch(header).Magic() != record.Magic2:
		return found{}, &misplaced{fmt.Sprintf("the batch has format %d, and only format %d can be read", record.Batch(header).Magic(), record.Magic2)}
	case int64(claimed) > left:
		return found{}, &misplaced{fmt.Sprintf("a batch claims %d bytes, and the file ends after %d", claimed, left)}
	}
	f := found{position: r.position, size: int64(claimed), whole: claimed <= largestBatch}
	if f.whole {
		f.batch, err = r.read(r.position, f.size)
		if err == nil {
			f.crc = f.batch.ComputeCRC()
		}
	} else {
		f.batch = append(record.Batch(nil), header...)
		f.crc, err = r.checksum(r.position+crcFrom, r.position+f.size)
	}
	if err != nil {
		return found{}, err
	}
	r.position += f.size
	return f, nil
}

// read gives n bytes of the file.
func (r *batchReader) read(position, n int64) ([]byte, error) {
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

func (r *batchReader) checksum(from, to int64) (uint32, error) {
	var sum uint32
	for from < to {
		bytes, err := r.read(from, min(to-from, readBytes))
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, bytes)
		from += int64(len(bytes))
	}
	return sum, nil
}

// validBatchBehind tells whether a whole valid batch stands anywhere behind the position, within what a torn write can
// have left.
func (r *batchReader) validBatchBehind() bool {
	rest, err := r.read(r.position, min(r.size-r.position, 16<<20))
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
