package producer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"ottla/protocol"
)

// Sizes in bytes of a .snapshot file (ProducerSnapshot.json, version 1).
const (
	snapshotHeader  = 10 // version int16, crc uint32, count int32
	snapshotEntry   = 46
	snapshotVersion = 1
	crcStart        = 6 // the checksum covers everything after itself
)

// ErrSnapshot says that a .snapshot file is damaged or of another version.
var ErrSnapshot = errors.New("the producer snapshot is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends the state as a .snapshot file holds it. Only the newest batch of each producer is in it.
func (s *State) AppendSnapshot(dst []byte) []byte {
	begin := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s.producers)))
	for _, p := range s.inJavaOrder() {
		dst = p.appendTo(dst)
	}
	binary.BigEndian.PutUint32(dst[begin+2:], crc32.Checksum(dst[begin+crcStart:], castagnoli))
	return dst
}

func (p *Producer) appendTo(dst []byte) []byte {
	last := Batch{LastSequence: -1, LastOffset: protocol.NoOffset}
	if p.count > 0 {
		last = p.batches[p.count-1]
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.ID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(p.Epoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(last.LastSequence))
	dst = binary.BigEndian.AppendUint64(dst, uint64(last.LastOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(last.OffsetDelta))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.LastTimestampMs))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.CoordinatorEpoch))
	return binary.BigEndian.AppendUint64(dst, uint64(p.TxnFirstOffset))
}

// inJavaOrder lists the producers in the order in which Apache Kafka's java.util.HashMap gives them, so that the
// files agree byte for byte: by bucket, within a bucket by age. A table doubles when it is more than three quarters
// full and never shrinks.
func (s *State) inJavaOrder() []*Producer {
	buckets := uint32(16)
	for s.peak > int(buckets/4*3) {
		buckets *= 2
	}
	bucket := func(id protocol.ProducerID) uint32 {
		hash := uint32(uint64(id) ^ uint64(id)>>32)
		return (hash ^ hash>>16) & (buckets - 1)
	}
	list := make([]*Producer, 0, len(s.producers))
	for _, p := range s.producers {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Producer) int {
		return cmp.Or(cmp.Compare(bucket(a.ID), bucket(b.ID)), cmp.Compare(a.order, b.order))
	})
	return list
}

// ReadSnapshot reads a .snapshot file. Errors wrap ErrSnapshot.
func ReadSnapshot(data []byte) ([]Producer, error) {
	if len(data) < snapshotHeader {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrSnapshot, len(data))
	}
	if version := binary.BigEndian.Uint16(data); version != snapshotVersion {
		return nil, fmt.Errorf("%w: its version is %d", ErrSnapshot, version)
	}
	if binary.BigEndian.Uint32(data[2:]) != crc32.Checksum(data[crcStart:], castagnoli) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrSnapshot)
	}
	count := binary.BigEndian.Uint32(data[6:])
	entries := data[snapshotHeader:]
	if len(entries)%snapshotEntry != 0 || uint64(count) != uint64(len(entries)/snapshotEntry) {
		return nil, fmt.Errorf("%w: it claims %d producers in %d bytes", ErrSnapshot, count, len(data))
	}
	producers := make([]Producer, 0, count)
	for ; len(entries) > 0; entries = entries[snapshotEntry:] {
		producers = append(producers, readEntry(entries))
	}
	return producers, nil
}

func readEntry(e []byte) Producer {
	p := Producer{
		ID:               protocol.ProducerID(binary.BigEndian.Uint64(e)),
		Epoch:            protocol.ProducerEpoch(binary.BigEndian.Uint16(e[8:])),
		LastTimestampMs:  int64(binary.BigEndian.Uint64(e[26:])),
		CoordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
		TxnFirstOffset:   max(protocol.NoOffset, protocol.Offset(binary.BigEndian.Uint64(e[38:]))),
	}
	if lastOffset := protocol.Offset(binary.BigEndian.Uint64(e[14:])); lastOffset >= 0 {
		p.add(Batch{
			LastSequence: int32(binary.BigEndian.Uint32(e[10:])), LastOffset: lastOffset,
			OffsetDelta: int32(binary.BigEndian.Uint32(e[22:])), TimestampMs: p.LastTimestampMs,
		})
	}
	return p
}

// Load makes the state that of a snapshot taken at offset end. Producers that have expired at nowMs stay out,
// unless a transaction of theirs is open.
func (s *State) Load(producers []Producer, end protocol.Offset, nowMs int64) {
	s.Reset(end)
	s.Adopt(producers, nowMs)
}

// Adopt adds the producers of a snapshot, taken at this state's End, that the state does not know: a replay that had to
// begin late has not met those whose batches are gone.
func (s *State) Adopt(producers []Producer, nowMs int64) {
	for i := range producers {
		p := producers[i]
		if s.producers[p.ID] != nil || s.expired(&p, nowMs) {
			continue
		}
		s.keep(&p)
		if p.TxnFirstOffset != protocol.NoOffset {
			s.ongoing.add(transaction{p.ID, p.TxnFirstOffset, protocol.NoOffset})
		}
	}
}
