package record

import "math/bits"

// The integers inside records are zigzag varints as in Protocol Buffers. The
// readers do what ByteUtils.java does: padded forms are taken, and bits beyond
// the width of the type fall off.

// What readVarint and readVarlong give as the next position on a failure.
const (
	varintCut     = -1 // the data ends within the number
	varintTooLong = -2 // more than 5 or 10 bytes
)

// readVarint reads a 32-bit number at data[at:] and gives the position after
// it, or one of the constants above.
func readVarint(data []byte, at int) (value int32, next int) {
	if at < len(data) && data[at] < 0x80 {
		return int32(data[at]>>1) ^ -int32(data[at]&1), at + 1
	}
	var raw uint32
	for shift := 0; shift <= 28; shift += 7 {
		if at >= len(data) {
			return 0, varintCut
		}
		b := data[at]
		at++
		raw |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return int32(raw>>1) ^ -int32(raw&1), at
		}
	}
	return 0, varintTooLong
}

// readVarlong is readVarint for 64 bits.
func readVarlong(data []byte, at int) (value int64, next int) {
	var raw uint64
	for shift := 0; shift <= 63; shift += 7 {
		if at >= len(data) {
			return 0, varintCut
		}
		b := data[at]
		at++
		raw |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(raw>>1) ^ -int64(raw&1), at
		}
	}
	return 0, varintTooLong
}

func appendVarint(dst []byte, value int64) []byte {
	raw := uint64(value<<1) ^ uint64(value>>63)
	for raw >= 0x80 {
		dst = append(dst, byte(raw)|0x80)
		raw >>= 7
	}
	return append(dst, byte(raw))
}

func varintSize(value int64) int {
	raw := uint64(value<<1) ^ uint64(value>>63)
	return (bits.Len64(raw|1) + 6) / 7
}
