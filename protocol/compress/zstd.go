package compress

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// zstdMaxWindowBytes is what Kafka's decoder accepts (window log 27): a Java
// producer at level 22 declares as much for the smallest batch. No window is
// allocated here, since the output is the window.
const zstdMaxWindowBytes = 128 << 20

// zstdDefaultLevel is Kafka's.
const zstdDefaultLevel = 3

func (p *Pool) compressZstd(dst []byte, level int, src []byte) ([]byte, error) {
	if level == 0 {
		level = zstdDefaultLevel
	}
	speed := zstd.EncoderLevelFromZstd(level)
	pool := &p.zstdWriters[speed]
	encoder, _ := pool.Get().(*zstd.Encoder)
	if encoder == nil {
		var err error
		encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dst, fmt.Errorf("cannot make a zstd encoder: %w", err)
		}
	}
	dst = encoder.EncodeAll(src, dst)
	pool.Put(encoder)
	return dst, nil
}

// decompressZstd decodes whole frames into a buffer that cannot grow. The
// library offers no better bound: its streaming reader allocates a window by
// what the header claims, DecodeAll otherwise the claimed content size, and
// its size limit refuses windows above it, which is what Java declares for the
// smallest batch. The buffer's size follows the blocks that are really there.
// One block more than the limit fits, because the library has no error of its
// own for a block that does not: so with that much room every error but one
// means a corrupt input, and what passed the limit shows.
func (p *Pool) decompressZstd(out *output, src []byte) error {
	decoder, err := p.zstdDecoder()
	if err != nil {
		return err
	}
	defer p.zstdReaders.Put(decoder)
	scratch := p.Buffer()
	defer p.Return(scratch)
	most := min(zstdBound(src), out.left()+zstdMaxBlock)
	room := min(most, max(zstdCredible*len(src)+zstdMaxBlock, cap(*scratch)))
	for {
		*scratch = slices.Grow((*scratch)[:0], room)
		decoded, err := decoder.DecodeAll(src, (*scratch)[:0:room])
		if err != nil && room < most && !errors.Is(err, io.ErrUnexpectedEOF) {
			room = most
			continue
		}
		overrun := errors.Is(err, zstd.ErrDecoderSizeExceeded) // or claimed, against what its blocks can give
		if len(decoded) > out.left() || overrun && most == out.left()+zstdMaxBlock {
			return ErrTooLarge
		}
		if writeErr := out.write(decoded); writeErr != nil {
			return writeErr
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil
	}
}

// Of the format (RFC 8878): the most that a block gives, the size of a block's
// header, and the block types.
const (
	zstdMaxBlock        = 128 << 10
	zstdBlockHeaderSize = 3
	zstdChecksumSize    = 4
	zstdBlockRaw        = 0
	zstdBlockRLE        = 1
)

// zstdCredible is the ratio of sizes up to which room is made at once; more
// must show in a first attempt.
const zstdCredible = 32

// zstdBound adds up the most that the blocks of all frames can give, at least
// one byte. Where the input is not whole it counts one block more.
func zstdBound(src []byte) int {
	bound := 1
	for len(src) > 0 {
		var header zstd.Header
		rest, err := header.DecodeAndStrip(src)
		if err != nil {
			return bound + zstdMaxBlock
		}
		if header.Skippable {
			if int64(header.SkippableSize) > int64(len(rest)) {
				return bound + zstdMaxBlock
			}
			src = rest[header.SkippableSize:]
			continue
		}
		most := zstdMaxBlock
		if header.HasFCS && header.FrameContentSize < zstdMaxBlock {
			most = int(header.FrameContentSize)
		}
		size, after, whole := zstdFrameBound(rest, most)
		bound += size
		if !whole {
			return bound + zstdMaxBlock
		}
		if header.HasCheckSum {
			after = after[min(zstdChecksumSize, len(after)):]
		}
		src = after
	}
	return bound
}

// zstdFrameBound adds up the blocks of one frame, of which none gives more
// than most.
func zstdFrameBound(src []byte, most int) (size int, after []byte, whole bool) {
	for len(src) >= zstdBlockHeaderSize {
		word := int(src[0]) | int(src[1])<<8 | int(src[2])<<16
		last, kind, length := word&1 == 1, word>>1&3, word>>3
		taken := length
		switch kind {
		case zstdBlockRaw:
			size += length
		case zstdBlockRLE:
			size, taken = size+length, 1
		default:
			size += most
		}
		src = src[zstdBlockHeaderSize:]
		if taken > len(src) {
			return size, nil, false
		}
		src = src[taken:]
		if last {
			return size, src, true
		}
	}
	return size, nil, false
}

func (p *Pool) zstdDecoder() (*zstd.Decoder, error) {
	if decoder, _ := p.zstdReaders.Get().(*zstd.Decoder); decoder != nil {
		return decoder, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdMaxWindowBytes), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("cannot make a zstd decoder: %w", err)
	}
	return decoder, nil
}
