package wire

import (
	"encoding/binary"

	"ottla/protocol"
)

// Record bytes in memory below this size are copied among the small fields: a
// write of their own would cost more.
const inlineRecordBytes = 4 << 10

// fetchEncoder writes a Fetch response into one growing buffer and remembers
// where the record bytes belong.
type fetchEncoder struct {
	version  int16
	flexible bool
	buffer   []byte
	cuts     []cut
}

// cut says that a region follows the buffer's first at bytes.
type cut struct {
	at     int
	region *Region
}

// Chunks encodes the response: small fields and regions alternating, the 4-byte
// length included. The regions still belong to r and are released by whoever
// holds r, after the last chunk was written.
func (r *FetchResponse) Chunks(correlationID int32) []Chunk {
	e := fetchEncoder{version: r.Version, flexible: r.Version >= 12, buffer: make([]byte, 0, r.sizeHint())}
	e.buffer = append(e.buffer, 0, 0, 0, 0)
	e.buffer = appendResponseHeader(e.buffer, correlationID, protocol.Fetch, r.Version)
	e.response(r)
	total := int64(len(e.buffer) - LengthBytes)
	for _, c := range e.cuts {
		total += c.region.Len()
	}
	binary.BigEndian.PutUint32(e.buffer, uint32(total))
	return e.chunks()
}

func (r *FetchResponse) sizeHint() int {
	size := 64 + 64*len(r.NodeEndpoints)
	for i := range r.Topics {
		size += 32 + len(r.Topics[i].Topic) + 96*len(r.Topics[i].Partitions)
	}
	return size
}

func (e *fetchEncoder) chunks() []Chunk {
	chunks := make([]Chunk, 0, 2*len(e.cuts)+1)
	from := 0
	for _, c := range e.cuts {
		chunks = append(chunks, Chunk{Bytes: e.buffer[from:c.at]}, Chunk{Region: c.region})
		from = c.at
	}
	if from < len(e.buffer) {
		chunks = append(chunks, Chunk{Bytes: e.buffer[from:]})
	}
	return chunks
}

func (e *fetchEncoder) response(r *FetchResponse) {
	e.int32(r.ThrottleMs)
	if e.version >= 7 {
		e.int16(int16(r.ErrorCode))
		e.int32(r.SessionID)
	}
	e.count(len(r.Topics))
	for i := range r.Topics {
		e.topic(&r.Topics[i])
	}
	if !e.flexible {
		return
	}
	if e.version < 16 || len(r.NodeEndpoints) == 0 {
		e.noTags()
		return
	}
	e.uvarint(1)
	e.tag(0, func() {
		e.count(len(r.NodeEndpoints))
		for i := range r.NodeEndpoints {
			e.endpoint(&r.NodeEndpoints[i])
		}
	})
}

func (e *fetchEncoder) endpoint(n *NodeEndpoint) {
	e.int32(int32(n.ID))
	e.string(n.Host)
	e.int32(n.Port)
	if n.Rack == nil {
		e.uvarint(0)
	} else {
		e.string(*n.Rack)
	}
	e.noTags()
}

func (e *fetchEncoder) topic(t *FetchTopic) {
	if e.version >= 13 {
		e.buffer = append(e.buffer, t.TopicID[:]...)
	} else {
		e.string(t.Topic)
	}
	e.count(len(t.Partitions))
	for i := range t.Partitions {
		e.partition(&t.Partitions[i])
	}
	if e.flexible {
		e.noTags()
	}
}

func (e *fetchEncoder) partition(p *FetchPartition) {
	e.int32(p.Partition)
	e.int16(int16(p.ErrorCode))
	e.int64(int64(p.HighWatermark))
	e.int64(int64(p.LastStableOffset))
	if e.version >= 5 {
		e.int64(int64(p.LogStartOffset))
	}
	e.aborted(p.AbortedTransactions)
	if e.version >= 11 {
		e.int32(int32(p.PreferredReadReplica))
	}
	e.records(&p.Records)
	if e.flexible {
		e.partitionTags(p)
	}
}

func (e *fetchEncoder) aborted(transactions []AbortedTransaction) {
	switch {
	case transactions != nil:
		e.count(len(transactions))
	case e.flexible:
		e.uvarint(0)
	default:
		e.int32(-1)
	}
	for _, t := range transactions {
		e.int64(int64(t.ProducerID))
		e.int64(int64(t.FirstOffset))
		if e.flexible {
			e.noTags()
		}
	}
}

// records writes the length, and the bytes or the place where they belong. No
// records are written as empty, never as null, as Apache Kafka does.
func (e *fetchEncoder) records(r *Region) {
	size := r.Len()
	if e.flexible {
		e.uvarint(uint32(size) + 1)
	} else {
		e.int32(int32(size))
	}
	switch {
	case size == 0:
	case r.Source == nil && size <= inlineRecordBytes:
		e.buffer = append(e.buffer, r.Bytes...)
	default:
		e.cuts = append(e.cuts, cut{len(e.buffer), r})
	}
}

// partitionTags leaves out what equals the default, as Apache Kafka does.
func (e *fetchEncoder) partitionTags(p *FetchPartition) {
	diverging := p.DivergingEpoch != nil && *p.DivergingEpoch != EpochEndOffset{-1, -1}
	leader := p.CurrentLeader != nil && *p.CurrentLeader != LeaderIDAndEpoch{-1, -1}
	snapshot := p.SnapshotID != nil && *p.SnapshotID != SnapshotID{-1, -1}
	count := uint32(0)
	for _, present := range [...]bool{diverging, leader, snapshot} {
		if present {
			count++
		}
	}
	e.uvarint(count)
	if diverging {
		e.tag(0, func() { e.int32(int32(p.DivergingEpoch.Epoch)); e.int64(int64(p.DivergingEpoch.EndOffset)); e.noTags() })
	}
	if leader {
		e.tag(1, func() { e.int32(int32(p.CurrentLeader.ID)); e.int32(int32(p.CurrentLeader.Epoch)); e.noTags() })
	}
	if snapshot {
		e.tag(2, func() { e.int64(int64(p.SnapshotID.EndOffset)); e.int32(int32(p.SnapshotID.Epoch)); e.noTags() })
	}
}

// tag writes a tagged field: number, size, and what content writes.
func (e *fetchEncoder) tag(number uint32, content func()) {
	e.uvarint(number)
	before := e.buffer
	e.buffer = nil
	content()
	inner := e.buffer
	e.buffer = before
	e.uvarint(uint32(len(inner)))
	e.buffer = append(e.buffer, inner...)
}

func (e *fetchEncoder) count(n int) {
	if e.flexible {
		e.uvarint(uint32(n) + 1)
		return
	}
	e.int32(int32(n))
}

func (e *fetchEncoder) string(s string) {
	if e.flexible {
		e.uvarint(uint32(len(s)) + 1)
	} else {
		e.int16(int16(len(s)))
	}
	e.buffer = append(e.buffer, s...)
}

func (e *fetchEncoder) int16(v int16) { e.buffer = binary.BigEndian.AppendUint16(e.buffer, uint16(v)) }

func (e *fetchEncoder) int32(v int32) { e.buffer = binary.BigEndian.AppendUint32(e.buffer, uint32(v)) }

func (e *fetchEncoder) int64(v int64)    { e.buffer = binary.BigEndian.AppendUint64(e.buffer, uint64(v)) }
func (e *fetchEncoder) uvarint(v uint32) { e.buffer = binary.AppendUvarint(e.buffer, uint64(v)) }
func (e *fetchEncoder) noTags()          { e.buffer = append(e.buffer, 0) }
