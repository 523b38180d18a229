// Package compress holds the four codecs of Kafka's record batches behind two
// calls: Pool.Compress and Pool.Decompress, both appending to a slice.
//
// What comes out of Compress can be read by Apache Kafka's Java clients, and
// what those write can be read by Decompress: gzip, Snappy in the framing of
// the xerial library (raw blocks are read too), LZ4 frames and zstd frames.
//
// It is not a general compression library: there are no streams, no
// dictionaries, and nothing is decompressed without a limit.
//
// Callers are record (validation, iteration, conversion) and, through it, the
// logs and the offline tools.
//
// Invariants:
//
//   - Memory follows bytes that really came out, never a length that a header
//     claims; the output never passes the caller's limit.
//   - A Pool belongs to one node. There is no global one, because codecs hold
//     channels, and tests with virtual time must not share those.
//   - No goroutine is started.
//
// Start reading at codec.go, then pool.go; each format has a file of its own.
package compress
