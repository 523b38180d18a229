package compress

import (
	"fmt"
	"strconv"
)

// Codec is the way a batch's records are compressed; its number is the one in
// the low three bits of a batch's attributes.
type Codec int8

// The codecs of Apache Kafka 4.4.0.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String gives the name used in compression.type.
func (c Codec) String() string {
	if !c.Known() {
		return "Codec(" + strconv.Itoa(int(c)) + ")"
	}
	return codecNames[c]
}

// Known tells the codecs that exist from the free numbers 5 to 7.
func (c Codec) Known() bool { return c >= None && c <= Zstd }

// ParseCodec reads the name that String gives. Other values of
// compression.type (producer, uncompressed) are not codecs and are refused.
func ParseCodec(name string) (Codec, error) {
	for codec, known := range codecNames {
		if name == known {
			return Codec(codec), nil
		}
	}
	return None, fmt.Errorf("%q is not a compression codec: none, gzip, snappy, lz4 and zstd are", name)
}
