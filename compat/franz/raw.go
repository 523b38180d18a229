package franz

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// twin keeps the producer that ProduceTwice speaks for: its id and its next sequence.
type twin struct {
	id    int64
	epoch int16
	next  int32
}

// ProduceTwice sends one record as an idempotent batch, and the very same batch again, as a producer does that missed the first
// answer. It returns the offsets of both answers. Each call continues the sequence of the one before.
func (c *Client) ProduceTwice(ctx context.Context, topic string) (first, second int64, err error) {
	// Old enough that requests name topics instead of carrying their ids.
	client, err := c.connect(kgo.MaxVersions(kversion.V3_0_0()))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	if c.twin == nil {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return 0, 0, err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return 0, 0, err
		}
		c.twin = &twin{id: resp.ProducerID, epoch: resp.ProducerEpoch}
	}
	batch := oneRecordBatch(c.twin)
	c.twin.next++
	offsets := [2]int64{}
	for i := range offsets {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = batch
		reqTopic := kmsg.NewProduceRequestTopic()
		reqTopic.Topic = topic
		reqTopic.Partitions = append(reqTopic.Partitions, part)
		req := kmsg.NewPtrProduceRequest()
		req.Acks = -1
		req.TimeoutMillis = 30_000
		req.Topics = append(req.Topics, reqTopic)
		answer, err := produceRaw(ctx, client, req)
		if err != nil {
			return 0, 0, err
		}
		offsets[i] = answer
	}
	return offsets[0], offsets[1], nil
}

// oneRecordBatch encodes a batch of one record by hand, so that both copies are the same bytes.
func oneRecordBatch(p *twin) []byte {
	value := fmt.Appendf(nil, "twice-%d", p.next)
	record := []byte{0, 0, 0, 1} // attributes, timestamp delta 0, offset delta 0, key length -1
	record = binary.AppendVarint(record, int64(len(value)))
	record = append(append(record, value...), 0)
	now := uint64(time.Now().UnixMilli())
	tail := binary.BigEndian.AppendUint16(nil, 0)   // attributes
	tail = binary.BigEndian.AppendUint32(tail, 0)   // last offset delta
	tail = binary.BigEndian.AppendUint64(tail, now) // base timestamp
	tail = binary.BigEndian.AppendUint64(tail, now) // max timestamp
	tail = binary.BigEndian.AppendUint64(tail, uint64(p.id))
	tail = binary.BigEndian.AppendUint16(tail, uint16(p.epoch))
	tail = binary.BigEndian.AppendUint32(tail, uint32(p.next))
	tail = binary.BigEndian.AppendUint32(tail, 1) // records
	tail = binary.AppendVarint(tail, int64(len(record)))
	tail = append(tail, record...)
	batch := binary.BigEndian.AppendUint64(nil, 0)
	batch = binary.BigEndian.AppendUint32(batch, uint32(len(tail)+9))
	batch = binary.BigEndian.AppendUint32(batch, 0xffffffff) // leader epoch, set by the broker
	batch = append(batch, 2)                                 // magic
	batch = binary.BigEndian.AppendUint32(batch, crc32.Checksum(tail, crc32.MakeTable(crc32.Castagnoli)))
	return append(batch, tail...)
}

// produceRaw sends a produce request of one partition to the only broker and returns the base offset.
func produceRaw(ctx context.Context, client *kgo.Client, req *kmsg.ProduceRequest) (int64, error) {
	brokers := client.SeedBrokers()
	resp, err := brokers[0].RetriableRequest(ctx, req)
	if err != nil {
		return 0, err
	}
	answer := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	return answer.BaseOffset, kerr.ErrorForCode(answer.ErrorCode)
}
