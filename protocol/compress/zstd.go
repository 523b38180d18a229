package compress

import (
	"errors"
	"fmt"
	"io"

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
	before, left := len(out.bytes), out.left()
	bound, prefix := zstdBound(src, left)
	most := bound + zstdSlack
	if bound > left {
		most = left + zstdMaxBlock + zstdSlack
	}
	room := min(most, max(zstdCredible*len(src)+zstdMaxBlock, cap(out.bytes)-before))
	if bound > left {
		// The library doubles a buffer that a block does not fit in before it looks at the limit. What is too large by its first
		// blocks is found out by these alone, which fit.
		room = most
		out.grow(room)
		decoded, _ := decoder.DecodeAll(src[:prefix], out.bytes[before:before:before+room])
		if len(decoded) > left {
			return ErrTooLarge
		}
	}
	for {
		out.grow(room)
		decoded, err := decoder.DecodeAll(src, out.bytes[before:before:before+room])
		if err != nil && room < most && !errors.Is(err, io.ErrUnexpectedEOF) {
			room = most
			continue
		}
		overrun := errors.Is(err, zstd.ErrDecoderSizeExceeded) // or claimed, against what its blocks can give
		if len(decoded) > left || overrun && bound > left {
			return ErrTooLarge
		}
		out.commit(len(decoded))
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

// zstdSlack is more than the library wants free behind a block.
const zstdSlack = 64

// zstdCredible is the ratio of sizes up to which room is made at once; more
// must show in a first attempt.
const zstdCredible = 32

// zstdBound adds up the most that the blocks of all frames can give, at least
// one byte, until it is more than enough, and says after how many bytes of the
// input that is. Where the input is not whole it counts one block more.
func zstdBound(src []byte, enough int) (bound, taken int) {
	bound = 1
	for rest := src; len(rest) > 0; {
		var header zstd.Header
		after, err := header.DecodeAndStrip(rest)
		if err != nil {
			return bound + zstdMaxBlock, len(src)
		}
		rest = after
		if header.Skippable {
			if int64(header.SkippableSize) > int64(len(rest)) {
				return bound + zstdMaxBlock, len(src)
			}
			rest = rest[header.SkippableSize:]
			continue
		}
		most := zstdMaxBlock
		if header.HasFCS && header.FrameContentSize < zstdMaxBlock {
			most = int(header.FrameContentSize)
		}
		for last := false; !last; {
			var size int
			var whole bool
			size, rest, last, whole = zstdBlock(rest, most)
			bound += size
			switch {
			case !whole:
				return bound + zstdMaxBlock, len(src)
			case bound > enough:
				return bound, len(src) - len(rest)
			}
		}
		if header.HasCheckSum {
			rest = rest[min(zstdChecksumSize, len(rest)):]
		}
	}
	return bound, len(src)
}

// zstdBlock steps over one block, which gives so much and never more than most.
func zstdBlock(src []byte, most int) (size int, after []byte, last, whole bool) {
	if len(src) < zstdBlockHeaderSize {
		return 0, nil, true, false
	}
	word := int(src[0]) | int(src[1])<<8 | int(src[2])<<16
	last, size = word&1 == 1, word>>3
	taken := size
	switch word >> 1 & 3 {
	case zstdBlockRaw:
	case zstdBlockRLE:
		taken = 1
	default:
		size = most
	}
	if src = src[zstdBlockHeaderSize:]; taken > len(src) {
		return size, nil, last, false
	}
	return size, src[taken:], last, true
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
