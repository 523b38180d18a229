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
	// ErrUnknownCodec says that the number is none of the codecs.
	ErrUnknownCodec = errors.New("the compression codec does not exist")
)

// Pool holds encoders, decoders and buffers for reuse. It belongs to one node
// and is safe for concurrent use. What it holds idle, the garbage collector
// may take.
type Pool struct {
	gzipWriters [10]sync.Pool // by level; 0 is the library's default, -1
	gzipReaders sync.Pool
	lz4Fast     sync.Pool
	lz4High     sync.Pool
	zstdWriters [5]sync.Pool // by the library's level
	zstdReaders sync.Pool
	buffers     sync.Pool
}

// NewPool makes an empty Pool.
func NewPool() *Pool { return &Pool{} }

// Compress appends src, compressed, to dst. Level 0 is Kafka's default of the
// codec (gzip -1, lz4 9, zstd 3); levels outside the codec's range are brought
// into it. For None it appends src as it is. The error is that of an unknown
// codec.
func (p *Pool) Compress(dst []byte, codec Codec, level int, src []byte) ([]byte, error) {
	switch codec {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return p.compressGzip(dst, level, src)
	case Snappy:
		return compressSnappy(dst, src), nil
	case LZ4:
		return p.compressLZ4(dst, level, src)
	case Zstd:
		return p.compressZstd(dst, level, src)
	}
	return dst, fmt.Errorf("%w: %v", ErrUnknownCodec, codec)
}

// Decompress appends what src expands to, at most limit bytes, to dst. It
// fails with ErrTooLarge when there would be more, before allocating it, and
// with an error that wraps ErrCorrupt for bad input. Beside an error it
// returns dst with what came out before: Kafka reads records while it
// decompresses, so the earlier fault of the two is the one to report.
func (p *Pool) Decompress(dst []byte, codec Codec, src []byte, limit int) ([]byte, error) {
	out := output{bytes: dst, start: len(dst), limit: max(limit, 0)}
	var err error
	switch codec {
	case None:
		err = out.write(src)
	case Gzip:
		err = p.decompressGzip(&out, src)
	case Snappy:
		err = decompressSnappy(&out, src)
	case LZ4:
		err = decompressLZ4(&out, src)
	case Zstd:
		err = p.decompressZstd(&out, src)
	default:
		err = ErrUnknownCodec
	}
	if err != nil {
		err = fmt.Errorf("cannot decompress %v: %w", codec, err)
	}
	return out.bytes, err
}

// keptBufferBytes is the largest scratch buffer that is kept for reuse.
const keptBufferBytes = 8 << 20

// Buffer lends an empty scratch buffer, to be given back with Return. The
// pointer travels with the slice so that returning it allocates nothing.
func (p *Pool) Buffer() *[]byte {
	if buffer, _ := p.buffers.Get().(*[]byte); buffer != nil {
		return buffer
	}
	return new([]byte)
}

// Return takes a buffer of Buffer back; the caller stores the slice as it grew
// in it and keeps nothing that aliases it.
func (p *Pool) Return(buffer *[]byte) {
	if cap(*buffer) > keptBufferBytes {
		return
	}
	*buffer = (*buffer)[:0]
	p.buffers.Put(buffer)
}
