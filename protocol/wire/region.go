package wire

import (
	"fmt"
	"io"
)

// RegionSource is a pinned file that holds record bytes: a segment. It stays
// readable until Release.
type RegionSource interface {
	io.ReaderAt
	// Fd gives the descriptor for sendfile; ok is false where there is none, as
	// on the in-memory disk, and the bytes are read through ReadAt instead.
	Fd() (fd uintptr, ok bool)
	// Generation is bumped by every truncation: bytes of an older generation
	// may have been replaced.
	Generation() uint64
	// Release unpins the file. It is called once for each Region.
	Release()
}

// Region is a stretch of record bytes: in memory (Bytes), or a range of a
// pinned file (Source, Position, Length, and the file's Generation when the
// range was chosen). The zero Region is empty. Whoever holds a Region must call
// Release once; copies of a Region share that one release.
type Region struct {
	Bytes      []byte
	Source     RegionSource
	Position   int64 // first byte in the file
	Length     int64 // in bytes; only with a Source
	Generation uint64
}

// Len gives the number of record bytes.
func (r Region) Len() int64 {
	if r.Source != nil {
		return r.Length
	}
	return int64(len(r.Bytes))
}

// Release unpins the file. It does nothing for bytes in memory.
func (r Region) Release() {
	if r.Source != nil {
		r.Source.Release()
	}
}

// Stale tells that the file was truncated since the region was chosen, so its
// bytes must not be trusted.
func (r Region) Stale() bool {
	return r.Source != nil && r.Source.Generation() != r.Generation
}

// ReadAll gives the bytes of the region, from memory or by reading the file. It
// fails with ErrStaleRegion if the file was truncated meanwhile. The region is
// still to be released.
func (r Region) ReadAll() ([]byte, error) {
	if r.Source == nil {
		return r.Bytes, nil
	}
	bytes := make([]byte, r.Length)
	if err := r.ReadAt(bytes, 0); err != nil {
		return nil, err
	}
	return bytes, nil
}

// ReadAt fills p with the region's bytes from offset on. It fails if they are
// not all there, and with ErrStaleRegion if the file was truncated meanwhile.
func (r Region) ReadAt(p []byte, offset int64) error {
	if offset < 0 || offset+int64(len(p)) > r.Len() {
		return fmt.Errorf("a read of %d bytes at %d leaves a region of %d bytes", len(p), offset, r.Len())
	}
	if r.Source == nil {
		copy(p, r.Bytes[offset:])
		return nil
	}
	if r.Stale() {
		return ErrStaleRegion
	}
	n, err := r.Source.ReadAt(p, r.Position+offset)
	if r.Stale() {
		return ErrStaleRegion
	}
	if n < len(p) {
		return fmt.Errorf("reading %d record bytes at %d of a segment gave %d: %w", len(p), r.Position+offset, n, shortRead(err))
	}
	return nil
}

func shortRead(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.ReaderAt returns io.EOF bare
		return io.ErrUnexpectedEOF
	}
	return err
}
