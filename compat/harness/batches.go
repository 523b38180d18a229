package harness

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// StoredBatch is the header of one record batch as it lies in a segment file (magic 2), decoded here by hand so that the suite
// judges the files without any code of the server.
type StoredBatch struct {
	File          string
	BaseOffset    int64
	LastOffset    int64
	SizeBytes     int
	LeaderEpoch   int32
	Codec         string // none, gzip, snappy, lz4, zstd
	LogAppendTime bool
	Transactional bool
	Control       bool
	BaseTimestamp int64
	MaxTimestamp  int64
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Records       int32
}

// codecs by the low three bits of the attributes.
var codecs = [8]string{"none", "gzip", "snappy", "lz4", "zstd", "codec5", "codec6", "codec7"}

const (
	batchHeaderBytes = 61
	batchPrefixBytes = 12 // base offset and length
)

// StoredBatches reads the headers of all batches in the segment files of one partition, in offset order. A last batch that is
// only partly there yet (the server may be writing) is left out.
func StoredBatches(dataDir, topic string, partition int32) ([]StoredBatch, error) {
	files, err := filepath.Glob(filepath.Join(dataDir, fmt.Sprintf("%s-%d", topic, partition), "*.log"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no segment file of %s-%d in %s", topic, partition, dataDir)
	}
	slices.Sort(files)
	var all []StoredBatch
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		batches, err := parseBatches(file, data)
		if err != nil {
			return nil, err
		}
		all = append(all, batches...)
	}
	return all, nil
}

func parseBatches(file string, data []byte) ([]StoredBatch, error) {
	var batches []StoredBatch
	for pos := 0; len(data)-pos >= batchHeaderBytes; {
		b := data[pos:]
		length := int(binary.BigEndian.Uint32(b[8:]))
		if length == 0 {
			break // preallocated space
		}
		if length < batchHeaderBytes-batchPrefixBytes {
			return nil, fmt.Errorf("%s: batch length %d at byte %d", file, length, pos)
		}
		if batchPrefixBytes+length > len(b) {
			break
		}
		if b[16] != 2 {
			return nil, fmt.Errorf("%s: magic %d at byte %d", file, b[16], pos)
		}
		attributes := binary.BigEndian.Uint16(b[21:])
		base := int64(binary.BigEndian.Uint64(b))
		batches = append(batches, StoredBatch{
			File:          file,
			BaseOffset:    base,
			LastOffset:    base + int64(int32(binary.BigEndian.Uint32(b[23:]))),
			SizeBytes:     batchPrefixBytes + length,
			LeaderEpoch:   int32(binary.BigEndian.Uint32(b[12:])),
			Codec:         codecs[attributes&7],
			LogAppendTime: attributes&8 != 0,
			Transactional: attributes&16 != 0,
			Control:       attributes&32 != 0,
			BaseTimestamp: int64(binary.BigEndian.Uint64(b[27:])),
			MaxTimestamp:  int64(binary.BigEndian.Uint64(b[35:])),
			ProducerID:    int64(binary.BigEndian.Uint64(b[43:])),
			ProducerEpoch: int16(binary.BigEndian.Uint16(b[51:])),
			BaseSequence:  int32(binary.BigEndian.Uint32(b[53:])),
			Records:       int32(binary.BigEndian.Uint32(b[57:])),
		})
		pos += batchPrefixBytes + length
	}
	return batches, nil
}
