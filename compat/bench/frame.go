package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"
)

// Where fields lie in a batch of format 2.
const (
	crcAt          = 17
	crcFrom        = 21
	producerIDAt   = 43
	epochAt        = 51
	sequenceAt     = 53
	batchOverhead  = 61
	produceVersion = 7 // the last that is framed without compact fields: simplest to write by hand
	correlationAt  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newBatch makes a batch of exactly size bytes, with records of equal length but for the last. Their bytes do not compress.
func newBatch(records, size int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(size)))
	batch := make([]byte, batchOverhead, size)
	for i := range records {
		share := (size - len(batch)) / (records - i)
		batch = append(batch, record(random, i, share)...)
	}
	now := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	batch[16] = 2
	binary.BigEndian.PutUint32(batch[23:], uint32(records-1))
	binary.BigEndian.PutUint64(batch[27:], now)
	binary.BigEndian.PutUint64(batch[35:], now)
	binary.BigEndian.PutUint64(batch[producerIDAt:], 1<<64-1)
	binary.BigEndian.PutUint16(batch[epochAt:], 1<<16-1)
	binary.BigEndian.PutUint32(batch[sequenceAt:], 1<<32-1)
	binary.BigEndian.PutUint32(batch[57:], uint32(records))
	seal(batch)
	return batch
}

func seal(batch []byte) {
	binary.BigEndian.PutUint32(batch[crcAt:], crc32.Checksum(batch[crcFrom:], castagnoli))
}

// record makes one record of exactly size bytes, its own length included.
func record(random *rand.Rand, offsetDelta, size int) []byte {
	for valueSize := size; valueSize > 0; valueSize-- {
		body := []byte{0, 0}
		body = binary.AppendVarint(body, int64(offsetDelta))
		body = append(body, 1) // key length -1
		body = binary.AppendVarint(body, int64(valueSize))
		total := len(body) + valueSize + 1
		if len(binary.AppendVarint(nil, int64(total)))+total != size {
			continue
		}
		out := append(binary.AppendVarint(nil, int64(total)), body...)
		for range valueSize {
			out = append(out, byte(random.Uint32()))
		}
		return append(out, 0) // no headers
	}
	panic(fmt.Sprintf("no record has exactly %d bytes", size))
}

// produceFrame is one framed Produce request of one batch, sent again and again.
type produceFrame struct {
	bytes []byte
	batch []byte // within bytes
	// errorAt is where the response has its error code.
	errorAt int
	records uint32
}

// newProduceFrame frames a request with acks=all.
func newProduceFrame(topic string, partition int32, batch []byte) *produceFrame {
	b := make([]byte, 4, 128+len(batch))
	b = binary.BigEndian.AppendUint16(b, 0) // Produce
	b = binary.BigEndian.AppendUint16(b, produceVersion)
	b = binary.BigEndian.AppendUint32(b, 0) // correlation
	b = appendString(b, "bench")
	b = binary.BigEndian.AppendUint16(b, 0xffff) // transactional id
	b = binary.BigEndian.AppendUint16(b, 0xffff) // acks -1
	b = binary.BigEndian.AppendUint32(b, 30_000)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendString(b, topic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(partition))
	b = binary.BigEndian.AppendUint32(b, uint32(len(batch)))
	at := len(b)
	b = append(b, batch...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return &produceFrame{bytes: b, batch: b[at:], errorAt: 4 + 4 + 2 + len(topic) + 4 + 4, records: binary.BigEndian.Uint32(batch[57:])}
}

// idempotent makes the batch that of a producer.
func (f *produceFrame) idempotent(id int64, epoch int16) {
	binary.BigEndian.PutUint64(f.batch[producerIDAt:], uint64(id))
	binary.BigEndian.PutUint16(f.batch[epochAt:], uint16(epoch))
}

// sequence sets the batch's first sequence; the checksum follows.
func (f *produceFrame) sequence(first uint32) {
	binary.BigEndian.PutUint32(f.batch[sequenceAt:], first&0x7fffffff)
	seal(f.batch)
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}
