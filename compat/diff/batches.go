package diff

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// someTime is when all records of the stories were made, in Unix milliseconds.
const someTime = 1_700_000_000_000

// batch describes a record batch; what is zero is right.
type batch struct {
	values         []string // of the records
	keys           bool     // the values are keys, too
	attributes     int16
	magic          int8  // 2 if 0
	base           int64 // of offsets
	lastDelta      int32 // added to what is right
	count          int32 // added to what is right
	producer       int64 // none if 0
	epoch          int16
	sequence       int32
	timestamp      int64 // of the first record; someTime if 0
	wrongChecksum  bool
	garbage        bool // instead of records
	deltas         []int32
	trailing, drop int // bytes behind the batch, or missing from it
}

func of(values ...string) batch { return batch{values: values} }

// from makes it a batch of an idempotent producer.
func (b batch) from(producer int64, epoch int16, sequence int32) batch {
	b.producer, b.epoch, b.sequence = producer, epoch, sequence
	return b
}

func (b batch) with(change func(*batch)) batch {
	change(&b)
	return b
}

func (b batch) bytes() []byte {
	var records []byte
	for i, value := range b.values {
		delta := int32(i)
		if len(b.deltas) > i {
			delta = b.deltas[i]
		}
		r := kmsg.Record{OffsetDelta: delta, TimestampDelta64: int64(i), Value: []byte(value)}
		if b.keys {
			r.Key = []byte(value)
		}
		encoded := r.AppendTo(nil)
		r.Length = int32(len(encoded) - 1) // a length of 0 takes a byte
		records = append(records, r.AppendTo(nil)...)
	}
	if b.garbage {
		records = []byte("no records at all")
	}
	time := b.timestamp
	if time == 0 {
		time = someTime
	}
	out := kmsg.RecordBatch{
		FirstOffset: b.base, Magic: 2, PartitionLeaderEpoch: -1, Attributes: b.attributes,
		LastOffsetDelta: int32(len(b.values)) - 1 + b.lastDelta, FirstTimestamp: time, MaxTimestamp: time + int64(len(b.values)) - 1,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(b.values)) + b.count, Records: records,
	}
	if b.magic != 0 {
		out.Magic = b.magic
	}
	if b.producer != 0 {
		out.ProducerID, out.ProducerEpoch, out.FirstSequence = b.producer, b.epoch, b.sequence
	}
	encoded := out.AppendTo(nil)
	binary.BigEndian.PutUint32(encoded[8:], uint32(len(encoded)-12))
	checksum := crc32.Checksum(encoded[21:], crc32.MakeTable(crc32.Castagnoli))
	if b.wrongChecksum {
		checksum++
	}
	binary.BigEndian.PutUint32(encoded[17:], checksum)
	return append(encoded[:len(encoded)-b.drop], make([]byte, b.trailing)...)
}

// producing is a request with the bytes of one partition. From version 13 on the topic goes by its id.
func (t *Teller) producing(version int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	in := kmsg.NewProduceRequestTopic()
	in.Topic = topic
	if version >= 13 {
		in.Topic, in.TopicID = "", t.idOf(topic)
	}
	in.Partitions = []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: records}}
	req.Topics = append(req.Topics, in)
	req.SetVersion(version)
	return req
}
