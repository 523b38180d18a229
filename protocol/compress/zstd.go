package compress

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// zstdMaxWindowBytes is what Kafka's decoder accepts (window log 27): a Java
// producer at level 22 declares as much for the smallest batch. No window is
// allocated here, since the output is the window.
const zstdMaxWindowBytes = 128 << 20

// zstdMaxRatio is more than any frame expands to: no block takes less than four
// bytes with its header, nor gives more than 128 KiB.
const zstdMaxRatio = 32 << 10

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

// decompressZstd decodes into the spare capacity and, when that was too small,
// again into four times as much. (The streaming reader would allocate a window
// by what the header claims; DecodeAll without the cap limit would allocate
// the claimed content size.)
func (p *Pool) decompressZstd(out *output, src []byte) error {
	decoder, err := p.zstdDecoder()
	if err != nil {
		return err
	}
	defer p.zstdReaders.Put(decoder)
	room := max(cap(out.bytes)-len(out.bytes), zstdGuess(src))
	most := min(out.left(), len(src)*zstdMaxRatio)
	for {
		room = min(room, most)
		out.bytes = slices.Grow(out.bytes, room)
		end := len(out.bytes) + min(cap(out.bytes)-len(out.bytes), out.left())
		decoded, err := decoder.DecodeAll(src, out.bytes[:len(out.bytes):end])
		if len(decoded) > end { // the library may overshoot within one block
			decoded, err = out.bytes, zstd.ErrDecoderSizeExceeded
		}
		tooSmall := errors.Is(err, zstd.ErrDecoderSizeExceeded)
		switch {
		case tooSmall && room < most:
			room *= 4
			continue
		case tooSmall && most == out.left():
			return ErrTooLarge
		}
		out.adopt(decoded)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil
	}
}

// zstdGuess is the first room to decode into: the size that the first frame
// declares if that is credible, else the usual guess.
func zstdGuess(src []byte) int {
	guess := firstGuess(len(src))
	var header zstd.Header
	if err := header.Decode(src); err == nil && header.HasFCS && header.FrameContentSize <= uint64(64*len(src)) {
		guess = max(guess, int(header.FrameContentSize))
	}
	return guess
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
