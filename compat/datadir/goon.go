package datadir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GoOn goes on where another server has left a directory: records with every codec, commits to the groups there are, a new topic, a
// deleted one, other settings, more partitions, records deleted, transactions, and the end of one that the other server left open.
func GoOn(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryTimeout(time.Minute))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"topics", func() error { return changeTopics(ctx, admin) }},
		{"records", func() error { return moreRecords(ctx, addr) }},
		{"commits", func() error { return commits(ctx, admin) }},
		{"transactions", func() error { return Transactions(ctx, addr, "gone-on") }},
		{"the open transaction", func() error { return EndOpen(ctx, addr, "open-long") }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("go on with %s: %w", step.what, err)
		}
	}
	return nil
}

func changeTopics(ctx context.Context, admin *kadm.Client) error {
	retention := "999999999999"
	created, err := admin.CreateTopics(ctx, 3, 1, map[string]*string{"retention.ms": &retention}, "created-by-ottla")
	if err != nil {
		return err
	}
	deleted, err := admin.DeleteTopics(ctx, "gets-deleted-later")
	if err != nil {
		return err
	}
	value := "123456"
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value}, {Op: kadm.DeleteConfig, Name: "flush.ms"},
	}, "configured")
	if err != nil {
		return err
	}
	for _, one := range altered {
		err = errors.Join(err, one.Err)
	}
	more, e := admin.CreatePartitions(ctx, 2, "grown")
	if e != nil {
		return e
	}
	trimmed, e := admin.DeleteRecords(ctx, kadm.Offsets{"trimmed": {0: {Topic: "trimmed", Partition: 0, At: 31}}})
	return errors.Join(err, created.Error(), deleted.Error(), more.Error(), e, trimmed.Error())
}

func moreRecords(ctx context.Context, addr string) error {
	for _, codec := range []struct {
		topic string
		codec kgo.CompressionCodec
	}{
		{"codec-none", kgo.NoCompression()},
		{"codec-gzip", kgo.GzipCompression()},
		{"codec-snappy", kgo.SnappyCompression()},
		{"codec-lz4", kgo.Lz4Compression()},
		{"codec-zstd", kgo.ZstdCompression()},
		{"converted", kgo.Lz4Compression()},
		{"append-time", kgo.NoCompression()},
		{"recreated", kgo.NoCompression()},
		{"trimmed", kgo.NoCompression()},
		{"emptied", kgo.NoCompression()},
		{"compacted", kgo.NoCompression()},
		{"grown", kgo.ZstdCompression()},
		{"created-by-ottla", kgo.SnappyCompression()},
	} {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(codec.codec), kgo.UnknownTopicRetries(20))
		if err != nil {
			return err
		}
		err = produce(ctx, client, codec.topic)
		client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", codec.topic, err)
		}
	}
	return nil
}

func produce(ctx context.Context, client *kgo.Client, topic string) error {
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "key-%d", i%20), Value: fmt.Appendf(nil, "gone on %d", i),
			Headers:   []kgo.RecordHeader{{Key: "by", Value: []byte("ottla")}, {Key: "null"}},
			Timestamp: time.UnixMilli(1_700_100_000_000 + int64(i)*61_000),
		})
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func commits(ctx context.Context, admin *kadm.Client) error {
	for _, group := range []string{"g-classic", "g-offsets-only", "g-new"} {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: "codec-gzip", Partition: 1, At: 77, LeaderEpoch: -1, Metadata: "gone on"})
		answered, err := admin.CommitOffsets(ctx, group, offsets)
		if err = errors.Join(err, answered.Error()); err != nil {
			return fmt.Errorf("%s: %w", group, err)
		}
	}
	return nil
}

// Transactions runs two transactions of an id, one of which is aborted.
func Transactions(ctx context.Context, addr, id string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(id))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: "transactions", Value: []byte(id)}, &kgo.Record{Topic: "transactions", Partition: 1, Value: []byte(id)}).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, how); err != nil {
			return err
		}
	}
	return nil
}

// EndOpen ends an open transaction as its producer would that comes back: by initializing its id.
func EndOpen(ctx context.Context, addr, id string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Minute))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		request := kmsg.NewPtrInitProducerIDRequest()
		request.TransactionalID, request.TransactionTimeoutMillis = &id, 60_000
		request.ProducerID, request.ProducerEpoch = -1, -1
		response, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		switch response.ErrorCode {
		case 0:
			return nil
		case 14, 15, 16, 51: // the coordinator loads, is elsewhere, or writes the markers
			time.Sleep(50 * time.Millisecond)
		default:
			return fmt.Errorf("InitProducerId for %s: error %d", id, response.ErrorCode)
		}
	}
}

// UntilStable waits until no transaction of a topic is open any more but those behind the offsets given, by partition, or ctx ends.
func UntilStable(ctx context.Context, addr string, ended ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for {
		listed, err := admin.ListTransactions(ctx, nil, nil)
		if err != nil {
			return err
		}
		open := ""
		for _, id := range ended {
			if one, ok := listed[id]; ok && one.State != "CompleteAbort" && one.State != "CompleteCommit" && one.State != "Empty" {
				open = id + " is " + one.State
			}
		}
		if open == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: the transaction %s", ctx.Err(), open)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
