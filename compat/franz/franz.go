package franz

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// Client speaks to one server, or to those of a cluster.
type Client struct {
	Addr string // several are parted by commas
	// Place, if not nil, gives the replicas of the partitions of new topics, of which the first one leads.
	Place func(partition int) []int32

	twin *twin // of ProduceTwice
}

// New returns a client for the server at addr.
func New(addr string) *Client { return &Client{Addr: addr} }

// Name is the column's name.
func (c *Client) Name() string { return "franz-go" }

// Close does nothing: every call closes what it opened.
func (c *Client) Close() error { return nil }

func (c *Client) servers() kgo.Opt { return kgo.SeedBrokers(strings.Split(c.Addr, ",")...) }

func (c *Client) connect(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		c.servers(),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.AlwaysRetryEOF(), // a server that dies in the moment in which it is connected to must not look as if it wanted SASL
	}, opts...)...)
}

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func producerOpts(o suite.ProduceOptions) ([]kgo.Opt, error) {
	codec, ok := codecs[o.Codec]
	if !ok {
		return nil, fmt.Errorf("codec %q", o.Codec)
	}
	opts := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(time.Duration(o.LingerMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.UnknownTopicRetries(20),
	}
	switch o.Acks {
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
		if !o.Idempotent {
			opts = append(opts, kgo.DisableIdempotentWrite())
		}
	}
	if limit := max(o.BatchBytes, o.MaxRequestBytes); limit > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(int32(limit)), kgo.BrokerMaxWriteBytes(int32(limit+(1<<20))))
	}
	return opts, nil
}

func toKgo(topic string, r suite.Record) *kgo.Record {
	out := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
	if r.Timestamp != 0 {
		out.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return out
}

func fromKgo(r *kgo.Record) suite.Record {
	out := suite.Record{
		Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(),
		LogAppend: r.Attrs.TimestampType() == 1, Key: r.Key, Value: r.Value,
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, suite.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

func toAck(r *kgo.Record, err error) suite.Ack {
	ack := suite.Ack{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
	if err != nil {
		ack.Offset = -1
		if ack.Err = suite.ErrorName(err); ack.Err == "" {
			ack.Err = err.Error()
		}
	}
	return ack
}

// Produce sends the records and waits for all acknowledgements.
func (c *Client) Produce(ctx context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	opts, err := producerOpts(o)
	if err != nil {
		return nil, err
	}
	client, err := c.connect(opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	acks := make([]suite.Ack, len(records))
	if o.OneByOne {
		for i, r := range records {
			result := client.ProduceSync(ctx, toKgo(o.Topic, r))[0]
			acks[i] = toAck(result.Record, result.Err)
		}
		return acks, ctx.Err()
	}
	for i, r := range records {
		client.Produce(ctx, toKgo(o.Topic, r), func(r *kgo.Record, err error) { acks[i] = toAck(r, err) })
	}
	if err := client.Flush(ctx); err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	return acks, nil
}

// Stream produces until stop is closed. Records that wait while the server is away are sent again by the client.
func (c *Client) Stream(ctx context.Context, o suite.StreamOptions, stop <-chan struct{}) ([]suite.Ack, error) {
	opts, err := producerOpts(o.ProduceOptions)
	if err != nil {
		return nil, err
	}
	client, err := c.connect(append(opts, kgo.RequestRetries(1000), kgo.RetryBackoffFn(func(int) time.Duration {
		return 50 * time.Millisecond
	}))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var acks []*suite.Ack
	window := make(chan struct{}, max(o.Window, 1))
	acked := make(chan struct{}, max(o.Window, 1))
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for n := 1; ; n++ {
			if _, ok := <-acked; !ok {
				return
			}
			if o.OnAck != nil {
				o.OnAck(n)
			}
		}
	}()
	for i := 0; ; i++ {
		select {
		case <-stop:
			err := client.Flush(ctx)
			close(acked)
			<-counted
			return values(acks), err
		case <-ctx.Done():
			return nil, ctx.Err()
		case window <- struct{}{}:
		}
		if o.PauseMs > 0 {
			<-time.After(time.Duration(o.PauseMs) * time.Millisecond)
		}
		ack := &suite.Ack{}
		acks = append(acks, ack)
		record := suite.Record{Value: []byte(o.Prefix + strconv.Itoa(i))}
		client.Produce(ctx, toKgo(o.Topic, record), func(r *kgo.Record, err error) {
			*ack = toAck(r, err)
			<-window
			acked <- struct{}{}
		})
	}
}

func values(acks []*suite.Ack) []suite.Ack {
	out := make([]suite.Ack, len(acks))
	for i, a := range acks {
		out[i] = *a
	}
	return out
}

// Consume reads as told by the options.
func (c *Client) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	from := map[int32]kgo.Offset{}
	for p, at := range o.From {
		offset := kgo.NewOffset()
		switch {
		case at == suite.Earliest:
			offset = offset.AtStart()
		case at == suite.Latest:
			offset = offset.AtEnd()
		default:
			offset = offset.At(at)
		}
		from[p] = offset
	}
	reset := kgo.NoResetOffset()
	switch o.Reset {
	case "earliest":
		reset = kgo.NewOffset().AtStart()
	case "latest":
		reset = kgo.NewOffset().AtEnd()
	}
	opts := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: from}), kgo.ConsumeResetOffset(reset),
		kgo.KeepControlRecords(), // the last offset may be that of a marker
	}
	if o.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.MaxWaitMs > 0 {
		opts = append(opts, kgo.FetchMaxWait(time.Duration(o.MaxWaitMs)*time.Millisecond))
	}
	if o.MaxFetchBytes > 0 {
		opts = append(opts, kgo.FetchMaxPartitionBytes(int32(o.MaxFetchBytes)))
	}
	end, err := c.ends(ctx, o)
	if err != nil {
		return nil, err
	}
	client, err := c.connect(opts...)
	if err != nil {
		return nil, err
	}
	defer client.CloseAllowingRebalance()
	return poll(ctx, client, o, end)
}

// ends finds where reading without a count stops: the end offsets, of partitions that have anything to read.
func (c *Client) ends(ctx context.Context, o suite.ConsumeOptions) (map[int32]int64, error) {
	if o.Count > 0 || o.UntilValue != "" {
		return nil, nil
	}
	left := map[int32]int64{}
	for p, at := range o.From {
		end, _, err := c.listOffset(ctx, o.Topic, p, suite.Latest, o.ReadCommitted)
		if err != nil {
			return nil, err
		}
		start, _, err := c.listOffset(ctx, o.Topic, p, suite.Earliest, false)
		if err != nil {
			return nil, err
		}
		if o.ReadCommitted && at != suite.Latest && max(at, start) < end {
			if end, err = c.readableEnd(ctx, o.Topic, p, max(at, start), end); err != nil {
				return nil, err
			}
		}
		if at != suite.Latest && max(at, start) < end {
			left[p] = end
		}
	}
	return left, nil
}

func poll(ctx context.Context, client *kgo.Client, o suite.ConsumeOptions, left map[int32]int64) ([]suite.Record, error) {
	var records []suite.Record
	for done := false; !done && (len(left) > 0 || o.Count > len(records) || o.UntilValue != ""); {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return records, fmt.Errorf("fetch %s-%d: %w", errs[0].Topic, errs[0].Partition, errs[0].Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				if o.Count > 0 && len(records) == o.Count {
					return
				}
				records = append(records, fromKgo(r))
				if o.UntilValue != "" && string(r.Value) == o.UntilValue {
					done = true
				}
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
		if o.OnRecord != nil {
			o.OnRecord(len(records))
		}
	}
	return records, nil
}
