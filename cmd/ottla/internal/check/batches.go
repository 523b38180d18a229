package check

import (
	"slices"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol/record"
)

// largestBatch is how large a batch may be to be held in memory; of a larger one only header and checksum are checked.
// Apache Kafka takes 1 MB by default.
const largestBatch = 64 << 20

// found is a batch: all of it, or only the header if it is larger than largestBatch.
type found struct {
	batch    record.Batch // valid until the next one is read
	position int64
	size     int64
	whole    bool
	crc      uint32 // computed
}

// next gives the next batch of a file, as batches.Reader does.
func next(r *batches.Reader) (found, error) {
	at, err := r.Next()
	if err != nil {
		return found{}, err
	}
	f := found{position: at.Position, size: at.Size, whole: at.Size <= largestBatch}
	if f.whole {
		if f.batch, err = r.Load(at); err == nil {
			f.crc = f.batch.ComputeCRC()
		}
		return f, err
	}
	f.batch = slices.Clone(at.Header)
	f.crc, err = r.Checksum(at)
	return f, err
}
