package franz

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
)

// Hang writes a transactional batch of one record, of a time, to partition 0 of a topic, as a producer whose transaction the
// coordinator knows nothing of: it hangs for good. The broker takes such a batch while it does not verify transactions
// (transaction.partition.verification.enable=false), of a client older than KIP-890.
func (c *Client) Hang(ctx context.Context, topic, transactionalID string, at time.Time) (producer int64, err error) {
	client, err := c.connect(kgo.MaxVersions(kversion.V3_0_0()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &transactionalID, 60_000, -1, -1
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return 0, fmt.Errorf("a producer id for %s: %w", transactionalID, err)
		}
		failed := kerr.ErrorForCode(resp.ErrorCode)
		if failed == nil {
			return resp.ProducerID, write(ctx, client, topic, transactionalID, resp, at)
		}
		if !kerr.IsRetriable(failed) || ctx.Err() != nil {
			return 0, fmt.Errorf("a producer id for %s: %w", transactionalID, failed)
		}
	}
}

func write(ctx context.Context, client *kgo.Client, topic, transactionalID string, producer *kmsg.InitProducerIDResponse, at time.Time) error {
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence = protocol.ProducerID(producer.ProducerID), protocol.ProducerEpoch(producer.ProducerEpoch), 0
	options.Transactional = true
	builder := record.NewBuilder(options)
	builder.Append(at.UnixMilli(), nil, []byte("hangs"), nil)
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = builder.Build(compress.NewPool())
	reqTopic := kmsg.NewProduceRequestTopic()
	reqTopic.Topic, reqTopic.Partitions = topic, []kmsg.ProduceRequestTopicPartition{part}
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis, req.Topics = &transactionalID, -1, 30_000, []kmsg.ProduceRequestTopic{reqTopic}
	_, err := produceRaw(ctx, client, req)
	return err
}
