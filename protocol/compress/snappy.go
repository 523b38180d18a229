package compress

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/golang/snappy"
)

// The framing of the xerial library, which Kafka's Java clients write: a magic
// of eight bytes, two version numbers, then blocks, each with its compressed
// size in four bytes (big endian) before it.
const (
	xerialHeaderSize = 16
	xerialVersion    = 1
	xerialBlockSize  = 32 << 10
)

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// snappyMaxRatio is more than any Snappy block expands to: the best it can do
// is a copy of 64 bytes in 3.
const snappyMaxRatio = 22

func compressSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	for len(src) > 0 {
		block := src[:min(len(src), xerialBlockSize)]
		src = src[len(block):]
		dst = appendSnappyBlock(dst, block)
	}
	return dst
}

func appendSnappyBlock(dst, block []byte) []byte {
	sizeAt := len(dst)
	bound := snappy.MaxEncodedLen(len(block))
	grown := append(dst, make([]byte, 4+bound)...)
	encoded := snappy.Encode(grown[sizeAt+4:], block)
	binary.BigEndian.PutUint32(grown[sizeAt:], uint32(len(encoded)))
	return grown[:sizeAt+4+len(encoded)]
}

// decompressSnappy reads both framings as SnappyInputStream does: anything
// that does not begin with the magic is one raw block.
func decompressSnappy(out *output, src []byte) error {
	if len(src) == 0 {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	if len(src) < xerialHeaderSize || !bytes.HasPrefix(src, xerialMagic) {
		return out.snappyBlock(src)
	}
	src = src[xerialHeaderSize:] // the versions are not looked at, as in Java
	for len(src) >= 4 {
		if bytes.HasPrefix(src, xerialMagic[:4]) { // a stream appended to a stream
			if len(src) < xerialHeaderSize || !bytes.HasPrefix(src, xerialMagic) {
				return fmt.Errorf("%w: a broken header between blocks", ErrCorrupt)
			}
			src = src[xerialHeaderSize:]
			continue
		}
		size := int64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size > int64(len(src)) {
			return fmt.Errorf("%w: a block of %d bytes where %d are left", ErrCorrupt, size, len(src))
		}
		if err := out.snappyBlock(src[:size]); err != nil {
			return err
		}
		src = src[size:]
	}
	return nil
}

func (o *output) snappyBlock(block []byte) error {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if size > snappyMaxRatio*len(block) {
		return fmt.Errorf("%w: a block of %d bytes claims to hold %d", ErrCorrupt, len(block), size)
	}
	room, err := o.reserve(size)
	if err != nil {
		return err
	}
	if _, err := snappy.Decode(room, block); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	o.commit(size)
	return nil
}
