package compress

import (
	"errors"
	"fmt"
	"sync"
)

var (
	// ErrTooLarge says that the output would have passed the caller's limit.
	ErrTooLarge = errors.New("the decompressed data is larger than allowed")
	// ErrCorrupt says that the input is not what the codec writes.
	ErrCorrupt = errors.New("the compressed data is corrupt")
	// ErrTruncated is the ErrCorrupt of an input that ends too early. Apache
	// Kafka answers it with another error code, so it is told apart.
	ErrTruncated = fmt.Errorf("%w: it ends too early", ErrCorrupt)
)

// Pool holds encoders, decoders and buffers for reuse. It belongs to one node
// and is safe for concurrent use.
type Pool struct {
	gzipWriters [11]sync.Pool // by level + 1
	gzipReaders sync.Pool
	lz4Fast     sync.Pool
	lz4High     sync.Pool
	zstdWriters [5]sync.Pool // by the library's level
	zstdReaders sync.Pool
	scratch     sync.Pool
}

// NewPool makes an empty Pool.
func NewPool() *Pool { return &Pool{} }

// Compress appends src, compressed, to dst. Level 0 is Kafka's default of the
// codec (gzip -1, lz4 9, zstd 3); levels outside the codec's range are brought
// into it. For None it appends src as it is. The error is that of an unknown
// codec.
func (p *Pool) Compress(dst []byte, codec Codec, level int, src []byte) ([]byte, error) {
	panic("todo")
}

// Decompress appends what src expands to, at most limit bytes, to dst. It
// fails with ErrTooLarge when there would be more, before allocating it, and
// with an error that wraps ErrCorrupt or ErrTruncated for bad input. Beside an
// error it returns dst with what came out before it: Kafka reads records while
// it decompresses, so the first fault of the two is the one to report.
func (p *Pool) Decompress(dst []byte, codec Codec, src []byte, limit int) ([]byte, error) {
	panic("todo")
}
