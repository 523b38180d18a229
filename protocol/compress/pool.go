package compress

import (
	"errors"
	"fmt"
	"runtime"
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
	spares      sync.Pool   // of *[]byte: for decoding what is not kept
	slots       chan []byte // buffers of those who expand something small
	largeMu     sync.Mutex  // held by the one who expands something large
	large       []byte      // that one's buffer
}

// NewPool makes an empty Pool.
func NewPool() *Pool {
	p := &Pool{slots: make(chan []byte, runtime.GOMAXPROCS(0))}
	for range cap(p.slots) {
		p.slots <- nil
	}
	return p
}

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
	out := output{bytes: dst, start: len(dst), limit: max(limit, 0), spares: &p.spares}
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

// What Expand holds: one result of any size, one of up to smallBytes for each
// processor. Buffers up to the kept sizes stay for the next.
const (
	smallBytes     = 4 << 20
	keptSmallBytes = smallBytes + zstdMaxBlock + zstdSlack
	keptLargeBytes = 32 << 20
)

// Expand decompresses src as Decompress does and lends the result, with the
// error that cut it short, to use; for None it lends src itself. It waits for
// its turn: more results at a time than processors would cost memory and save
// no time, and of large ones there is one at a time, so that bombs may cost
// time, and not memory for every connection that sends them. use must not call
// Expand.
func (p *Pool) Expand(codec Codec, src []byte, limit int, use func(data []byte, failure error)) {
	if codec == None {
		use(src, nil)
		return
	}
	if p.expandSmall(codec, src, limit, use) {
		return
	}
	p.largeMu.Lock()
	defer p.largeMu.Unlock()
	data, failure := p.Decompress(p.large[:0], codec, src, limit)
	use(data, failure)
	p.large = kept(data, keptLargeBytes)
}

// expandSmall gives up, false, when the result is larger than smallBytes and may
// be.
func (p *Pool) expandSmall(codec Codec, src []byte, limit int, use func([]byte, error)) bool {
	data := <-p.slots
	defer func() { p.slots <- kept(data, keptSmallBytes) }()
	var failure error
	data, failure = p.Decompress(data[:0], codec, src, min(limit, smallBytes))
	if limit > smallBytes && errors.Is(failure, ErrTooLarge) {
		return false
	}
	use(data, failure)
	return true
}

func kept(buffer []byte, most int) []byte {
	if cap(buffer) > most {
		return nil
	}
	return buffer
}
