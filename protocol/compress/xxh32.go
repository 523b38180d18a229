package compress

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH32 (xxhash_spec.md).
const (
	xxhPrime1 uint32 = 0x9E3779B1
	xxhPrime2 uint32 = 0x85EBCA77
	xxhPrime3 uint32 = 0xC2B2AE3D
	xxhPrime4 uint32 = 0x27D4EB2F
	xxhPrime5 uint32 = 0x165667B1
)

// xxh32 is the checksum inside LZ4 frames, with seed 0.
func xxh32(data []byte) uint32 {
	sum := xxhPrime5
	length := uint32(len(data))
	if len(data) >= 16 {
		// Variables, because constants may not overflow.
		prime1, prime2 := xxhPrime1, xxhPrime2
		lanes := [4]uint32{prime1 + prime2, prime2, 0, -prime1}
		for len(data) >= 16 {
			for i := range lanes {
				word := binary.LittleEndian.Uint32(data[4*i:])
				lanes[i] = bits.RotateLeft32(lanes[i]+word*xxhPrime2, 13) * xxhPrime1
			}
			data = data[16:]
		}
		sum = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	sum += length
	for ; len(data) >= 4; data = data[4:] {
		sum = bits.RotateLeft32(sum+binary.LittleEndian.Uint32(data)*xxhPrime3, 17) * xxhPrime4
	}
	for _, b := range data {
		sum = bits.RotateLeft32(sum+uint32(b)*xxhPrime5, 11) * xxhPrime1
	}
	sum ^= sum >> 15
	sum *= xxhPrime2
	sum ^= sum >> 13
	sum *= xxhPrime3
	return sum ^ sum>>16
}
