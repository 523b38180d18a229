package node

// shares of the memory granted.
const (
	requestShare      = 8
	decompressedShare = 32
)

// The bounds where there is plenty of memory.
const (
	mostRequestBytes      = 256 << 20
	mostDecompressedBytes = 1 << 30
)

// share is what is configured, or else a share of the memory granted, at most so
// much.
func share(configured, granted, part, most int64) int64 {
	switch {
	case configured > 0:
		return configured
	case granted <= 0:
		return most
	}
	return min(most, granted/part)
}
