package compress

import (
	"encoding/binary"
	"fmt"

	"github.com/pierrec/lz4/v4"
)

// LZ4 frames (lz4_Frame_format.md), as far as Kafka uses them: one frame, no
// dictionary, blocks that do not depend on each other. The frame is read and
// written here and only blocks by the library, because its frame reader
// allocates buffers by the block size that a header claims (up to 4 MiB), and
// because Kafka's own reader is what decides which frames are good: it ignores
// the content size, the content checksum, and all that follows the end mark.
const (
	lz4Magic          = 0x184D2204
	lz4FlagVersion    = 0x40 // version 1 in the upper two bits
	lz4FlagIndep      = 0x20
	lz4FlagBlockSum   = 0x10
	lz4FlagSize       = 0x08
	lz4FlagContentSum = 0x04
	lz4FlagReserved   = 0x03 // bit 0 says that there is a dictionary
	lz4Plain          = 1 << 31

	lz4BlockCode  = 4 // 64 KiB
	lz4BlockSize  = 64 << 10
	lz4MaxRatio   = 255 // each further byte of a match length adds at most that
	lz4LevelFast  = 9   // Kafka's default level means the fast compressor
	lz4DefaultTop = 9   // the library's highest level; Kafka's go to 17
)

func (p *Pool) compressLZ4(dst []byte, level int, src []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	descriptor := [2]byte{lz4FlagVersion | lz4FlagIndep, lz4BlockCode << 4}
	dst = append(dst, descriptor[0], descriptor[1], byte(xxh32(descriptor[:])>>8))
	compressor, giveBack := p.lz4Compressor(level)
	defer giveBack()
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		sizeAt := len(dst)
		dst = append(dst, make([]byte, 4+len(block))...)
		room := dst[sizeAt+4:]
		// A room as small as the source makes the library give up (0) on what
		// does not shrink; such a block is stored plain.
		n, err := compressor.CompressBlock(block, room)
		if err != nil || n == 0 || n >= len(block) {
			copy(room, block)
			binary.LittleEndian.PutUint32(dst[sizeAt:], uint32(len(block))|lz4Plain)
			continue
		}
		binary.LittleEndian.PutUint32(dst[sizeAt:], uint32(n))
		dst = dst[:sizeAt+4+n]
	}
	return binary.LittleEndian.AppendUint32(dst, 0), nil
}

type lz4BlockCompressor interface {
	CompressBlock(src, dst []byte) (int, error)
}

func (p *Pool) lz4Compressor(level int) (lz4BlockCompressor, func()) {
	if level <= 0 || level == lz4LevelFast {
		fast, _ := p.lz4Fast.Get().(*lz4.Compressor)
		if fast == nil {
			fast = new(lz4.Compressor)
		}
		return fast, func() { p.lz4Fast.Put(fast) }
	}
	high, _ := p.lz4High.Get().(*lz4.CompressorHC)
	if high == nil {
		high = new(lz4.CompressorHC)
	}
	// The library's levels are powers of two from 1<<9.
	high.Level = lz4.CompressionLevel(1 << (8 + min(level, lz4DefaultTop)))
	return high, func() { p.lz4High.Put(high) }
}

var errLZ4Short = fmt.Errorf("%w: it ends too early", ErrCorrupt)

func decompressLZ4(out *output, src []byte) error {
	flags, maxBlock, src, err := readLZ4Header(src)
	if err != nil {
		return err
	}
	for {
		if len(src) < 4 {
			return errLZ4Short
		}
		word := binary.LittleEndian.Uint32(src)
		src = src[4:]
		size := int(word &^ lz4Plain)
		if size == 0 {
			if flags&lz4FlagContentSum != 0 && len(src) < 4 {
				return errLZ4Short
			}
			return nil
		}
		if size > maxBlock {
			return fmt.Errorf("%w: a block of %d bytes where %d are allowed", ErrCorrupt, size, maxBlock)
		}
		if len(src) < size {
			return errLZ4Short
		}
		block := src[:size]
		src = src[size:]
		if flags&lz4FlagBlockSum != 0 {
			if len(src) < 4 {
				return errLZ4Short
			}
			if binary.LittleEndian.Uint32(src) != xxh32(block) {
				return fmt.Errorf("%w: the checksum of a block does not match", ErrCorrupt)
			}
			src = src[4:]
		}
		if err := out.lz4Block(block, word&lz4Plain != 0, maxBlock); err != nil {
			return err
		}
	}
}

// readLZ4Header gives the flags, the largest block in bytes and what follows.
func readLZ4Header(src []byte) (flags byte, maxBlock int, rest []byte, err error) {
	if len(src) < 7 {
		return 0, 0, nil, errLZ4Short
	}
	if binary.LittleEndian.Uint32(src) != lz4Magic {
		return 0, 0, nil, fmt.Errorf("%w: it does not begin with the frame magic", ErrCorrupt)
	}
	flags, blockByte := src[4], src[5]
	if flags&^(lz4FlagBlockSum|lz4FlagSize|lz4FlagContentSum) != lz4FlagVersion|lz4FlagIndep {
		return 0, 0, nil, fmt.Errorf("%w: unsupported frame flags %#x", ErrCorrupt, flags)
	}
	if blockByte&0x8f != 0 || blockByte>>4 < lz4BlockCode {
		return 0, 0, nil, fmt.Errorf("%w: unsupported block size code %#x", ErrCorrupt, blockByte)
	}
	end := 6
	if flags&lz4FlagSize != 0 {
		end += 8
	}
	if len(src) < end+1 {
		return 0, 0, nil, errLZ4Short
	}
	if src[end] != byte(xxh32(src[4:end])>>8) {
		return 0, 0, nil, fmt.Errorf("%w: the checksum of the frame header does not match", ErrCorrupt)
	}
	return flags, 1 << (8 + 2*(blockByte>>4)), src[end+1:], nil
}

func (o *output) lz4Block(block []byte, plain bool, maxBlock int) error {
	if plain {
		return o.write(block)
	}
	// The decoded size is not told. A block holds at most lz4MaxRatio times its
	// size; when that is more than the first guess, it grows into it.
	bound := min(maxBlock, lz4MaxRatio*len(block), o.left())
	for guess := min(bound, max(firstGuess(len(block)), cap(o.bytes)-len(o.bytes))); ; guess = min(bound, 4*guess) {
		room, err := o.reserve(guess)
		if err != nil {
			return err
		}
		n, err := lz4.UncompressBlock(block, room)
		if err == nil {
			o.commit(n)
			return nil
		}
		if guess == bound {
			return o.lz4Failure(block, maxBlock, err)
		}
	}
}

// lz4Failure tells a corrupt block from one that is larger than the limit: the
// library has one error for both. Only for a block that failed at the limit
// does it decode once more, into a buffer of its largest lawful size.
func (o *output) lz4Failure(block []byte, maxBlock int, failure error) error {
	largest := min(maxBlock, lz4MaxRatio*len(block))
	if o.left() < largest {
		spare, _ := o.spares.Get().(*[]byte)
		if spare == nil || cap(*spare) < largest {
			spare = new([]byte)
			*spare = make([]byte, largest)
		}
		defer o.spares.Put(spare)
		if _, err := lz4.UncompressBlock(block, (*spare)[:largest]); err == nil {
			return ErrTooLarge
		}
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, failure)
}
