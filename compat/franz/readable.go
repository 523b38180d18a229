package franz

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// readableEnd is the offset after the last record that a reader with read_committed is handed below the last stable offset, control
// records among them. They differ where a transaction that is aborted reaches up to the first record of one that is open: those
// records are handed to nobody, and the marker that ends them lies beyond what may be read. From is the first offset of interest.
func (c *Client) readableEnd(ctx context.Context, topic string, partition int32, from, stable int64) (int64, error) {
	end, _, err := c.listOffset(ctx, topic, partition, -1, false)
	if err != nil || end == stable { // nothing is open: an aborted transaction has its marker behind it
		return stable, err
	}
	client, err := c.connect(kgo.MaxVersions(kversion.V3_0_0())) // old enough that requests name topics
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for at := stable - 1; at >= from; {
		first, aborted, err := firstBatch(ctx, client, topic, partition, at)
		if err != nil {
			return 0, err
		}
		if !aborted {
			return at + 1, nil
		}
		at = min(at, first) - 1
	}
	return from, nil
}

// Places in a batch's header (Apache Kafka's DefaultRecordBatch), and bits of its attributes.
const (
	attributesAt  = 21
	producerAt    = 43
	headerBytes   = 61
	transactional = 0x10
	control       = 0x20
)

// firstBatch fetches the batch that holds an offset, and tells its first offset and whether it is of an aborted transaction.
func firstBatch(ctx context.Context, client *kgo.Client, topic string, partition int32, at int64) (first int64, aborted bool, err error) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, at, 1
	reqTopic := kmsg.NewFetchRequestTopic()
	reqTopic.Topic = topic
	reqTopic.Partitions = append(reqTopic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 1000, 1, 1, 1
	req.Topics = append(req.Topics, reqTopic)
	resp, err := client.SeedBrokers()[0].RetriableRequest(ctx, req)
	if err != nil {
		return 0, false, fmt.Errorf("fetch offset %d of %s-%d: %w", at, topic, partition, err)
	}
	topics := resp.(*kmsg.FetchResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return 0, false, fmt.Errorf("fetch offset %d of %s-%d: an answer without the partition", at, topic, partition)
	}
	answer := topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return 0, false, fmt.Errorf("fetch offset %d of %s-%d: %w", at, topic, partition, err)
	}
	batch := answer.RecordBatches
	if len(batch) < headerBytes {
		return 0, false, fmt.Errorf("fetch offset %d of %s-%d: no batch in %d bytes", at, topic, partition, len(batch))
	}
	first = int64(binary.BigEndian.Uint64(batch))
	attributes := binary.BigEndian.Uint16(batch[attributesAt:])
	if attributes&transactional == 0 || attributes&control != 0 {
		return first, false, nil
	}
	producer := int64(binary.BigEndian.Uint64(batch[producerAt:]))
	for _, a := range answer.AbortedTransactions {
		aborted = aborted || a.ProducerID == producer && a.FirstOffset <= first
	}
	return first, aborted, nil
}
