package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"ottla/compat/suite"
)

// client speaks to one address; every call opens connections of its own and closes them.
type client struct{ addr string }

// Name is the column's name.
func (c *client) Name() string { return "kafka-go" }

// Close does nothing: every call closes what it opened.
func (c *client) Close() error { return nil }

var codecs = map[string]kafka.Compression{"": 0, "none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}

// place is what a message carries through the writer: its index, and the partition that the balancer picks.
type place struct{ index, partition int }

func toPlace(m kafka.Message, _ ...int) int { return m.WriterData.(place).partition }

// metadataTTL is how old metadata may be; the library gives a request for it no longer than that.
const metadataTTL = 10 * time.Second

func (c *client) writer(o suite.ProduceOptions, transport *kafka.Transport) (*kafka.Writer, error) {
	codec, ok := codecs[o.Codec]
	if !ok {
		return nil, fmt.Errorf("codec %q", o.Codec)
	}
	w := &kafka.Writer{
		Addr: kafka.TCP(c.addr), Topic: o.Topic, Transport: transport, Balancer: kafka.BalancerFunc(toPlace), Compression: codec,
		RequiredAcks: kafka.RequireAll, AllowAutoTopicCreation: true,
		MaxAttempts: 100, ReadTimeout: 100 * time.Second, WriteTimeout: 100 * time.Second, BatchSize: 10_000,
		BatchTimeout: max(time.Duration(o.LingerMs), 1) * time.Millisecond, BatchBytes: int64(max(o.BatchBytes, o.MaxRequestBytes)),
	}
	switch o.Acks {
	case "0":
		w.RequiredAcks = kafka.RequireNone
	case "1":
		w.RequiredAcks = kafka.RequireOne
	}
	if o.OneByOne {
		w.BatchSize = 1
	}
	return w, nil
}

func message(r suite.Record, index int) kafka.Message {
	m := kafka.Message{Key: r.Key, Value: r.Value, WriterData: place{index, int(r.Partition)}}
	if r.Timestamp != 0 {
		m.Time = time.UnixMilli(r.Timestamp)
	}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return m
}

// Produce sends the records and waits for all acknowledgements.
func (c *client) Produce(ctx context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	if o.Idempotent {
		return nil, errors.New("kafka-go has no idempotent producer")
	}
	transport := &kafka.Transport{MetadataTTL: metadataTTL}
	defer transport.CloseIdleConnections()
	w, err := c.writer(o, transport)
	if err != nil {
		return nil, err
	}
	acks := make([]suite.Ack, len(records))
	var mu sync.Mutex
	w.Completion = func(messages []kafka.Message, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			to := m.WriterData.(place)
			acks[to.index] = suite.Ack{Partition: int32(to.partition), Offset: m.Offset, Timestamp: m.Time.UnixMilli()}
			if err != nil {
				acks[to.index].Offset = -1
				if acks[to.index].Err = errorName(err); acks[to.index].Err == "" {
					acks[to.index].Err = err.Error()
				}
			}
		}
	}
	messages := make([]kafka.Message, len(records))
	for i, r := range records {
		messages[i] = message(r, i)
	}
	if o.OneByOne {
		for _, m := range messages {
			if err = write(ctx, w, m); err != nil {
				break
			}
		}
	} else {
		err = write(ctx, w, messages...)
	}
	var each kafka.WriteErrors // Completion was told
	if err != nil && !errors.As(err, &each) {
		return nil, err
	}
	return acks, w.Close()
}

// write writes messages, and does so again while the topic is being created: the writer leaves that to its user.
func write(ctx context.Context, w *kafka.Writer, messages ...kafka.Message) error {
	for {
		err := w.WriteMessages(ctx, messages...)
		var code kafka.Error
		if err == nil || !errors.As(err, &code) || errors.As(err, &kafka.WriteErrors{}) ||
			code != kafka.LeaderNotAvailable && code != kafka.UnknownTopicOrPartition && code != kafka.NotLeaderForPartition {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func record(m kafka.Message) suite.Record {
	r := suite.Record{Partition: int32(m.Partition), Offset: m.Offset, Timestamp: m.Time.UnixMilli(), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, suite.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

// got is what a reader of one partition has read, or how it ended.
type got struct {
	message kafka.Message
	err     error
}

func (c *client) reader(o suite.ConsumeOptions, partition int32) *kafka.Reader {
	config := kafka.ReaderConfig{
		Brokers: []string{c.addr}, Topic: o.Topic, Partition: int(partition), MinBytes: 1, MaxWait: 500 * time.Millisecond,
		MaxBytes: 10_000_000, OffsetOutOfRangeError: true, ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: 100 * time.Millisecond,
	}
	if o.MaxFetchBytes > 0 {
		config.MaxBytes = o.MaxFetchBytes
	}
	if o.ReadCommitted {
		config.IsolationLevel = kafka.ReadCommitted
	}
	if o.MaxWaitMs > 0 {
		config.MaxWait = time.Duration(o.MaxWaitMs) * time.Millisecond
	}
	return kafka.NewReader(config)
}

// readPartition reads one partition until it is told to stop.
func (c *client) readPartition(ctx context.Context, o suite.ConsumeOptions, partition int32, from int64, to chan<- got) {
	for {
		r := c.reader(o, partition)
		err := r.SetOffset(from)
		for err == nil {
			var m kafka.Message
			if m, err = r.ReadMessage(ctx); err == nil {
				select {
				case to <- got{message: m}:
				case <-ctx.Done():
				}
			}
		}
		_ = r.Close()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, kafka.OffsetOutOfRange) && o.Reset == "earliest":
			from = kafka.FirstOffset
		case errors.Is(err, kafka.OffsetOutOfRange) && o.Reset == "latest":
			from = kafka.LastOffset
		default:
			select {
			case to <- got{err: err}:
			case <-ctx.Done():
			}
			return
		}
	}
}

// Consume reads as told by the options. The library's readers have one partition each.
func (c *client) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	left, err := c.ends(ctx, o)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan got)
	for partition, from := range o.From {
		if left == nil || left[partition] > 0 {
			go c.readPartition(reading, o, partition, from, messages)
		}
	}
	var records []suite.Record
	for len(left) > 0 || o.UntilValue != "" || len(records) < o.Count {
		select {
		case g := <-messages:
			if g.err != nil {
				return records, g.err
			}
			records = append(records, record(g.message))
			if o.OnRecord != nil {
				o.OnRecord(len(records))
			}
			if o.UntilValue != "" && string(g.message.Value) == o.UntilValue {
				return records, nil
			}
			if end, ok := left[int32(g.message.Partition)]; ok && g.message.Offset+1 >= end {
				delete(left, int32(g.message.Partition))
			}
		case <-ctx.Done():
			return records, ctx.Err()
		}
	}
	return records, nil
}

// ends finds where reading without a count stops: the end offsets, of partitions that have anything to read.
func (c *client) ends(ctx context.Context, o suite.ConsumeOptions) (map[int32]int64, error) {
	if o.Count > 0 || o.UntilValue != "" {
		return nil, nil
	}
	var asked []kafka.OffsetRequest
	for _, partition := range slices.Sorted(maps.Keys(o.From)) {
		asked = append(asked, kafka.FirstOffsetOf(int(partition)), kafka.LastOffsetOf(int(partition)))
	}
	answer, err := with(c, func(k *kafka.Client) (*kafka.ListOffsetsResponse, error) {
		return k.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{o.Topic: asked}})
	})
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{}
	for _, p := range answer.Topics[o.Topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		from := o.From[int32(p.Partition)]
		if from != suite.Latest && max(from, p.FirstOffset) < p.LastOffset {
			left[int32(p.Partition)] = p.LastOffset
		}
	}
	return left, nil
}
