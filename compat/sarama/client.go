package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"ottla/compat/suite"
)

// client speaks to one address; every call opens connections of its own and closes them.
type client struct{ addr string }

// Name is the column's name.
func (c *client) Name() string { return "sarama" }

// Close does nothing: every call closes what it opened.
func (c *client) Close() error { return nil }

func settings() *sarama.Config {
	s := sarama.NewConfig()
	s.Version = sarama.MaxVersion
	s.Metadata.Retry.Backoff = 50 * time.Millisecond
	s.Metadata.Retry.Max = 20
	s.Net.ReadTimeout, s.Net.WriteTimeout = 100*time.Second, 100*time.Second // what a busy machine is slow to answer would be sent again
	s.Admin.Timeout = 100 * time.Second
	s.Producer.Partitioner = sarama.NewManualPartitioner
	s.Producer.Return.Successes = true
	s.Producer.Return.Errors = true
	s.Producer.Retry.Max = 600 // of 100 ms: the partitions of a new topic may need some time on a busy machine
	s.Consumer.Return.Errors = true
	s.Consumer.Retry.Backoff = 100 * time.Millisecond
	s.Consumer.Offsets.AutoCommit.Enable = false
	return s
}

var codecs = map[string]sarama.CompressionCodec{
	"": sarama.CompressionNone, "none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func producerSettings(o suite.ProduceOptions) (*sarama.Config, error) {
	s := settings()
	codec, ok := codecs[o.Codec]
	if !ok {
		return nil, fmt.Errorf("codec %q", o.Codec)
	}
	s.Producer.Compression = codec
	switch o.Acks {
	case "0":
		s.Producer.RequiredAcks = sarama.NoResponse
	case "1":
		s.Producer.RequiredAcks = sarama.WaitForLocal
	default:
		s.Producer.RequiredAcks = sarama.WaitForAll
	}
	s.Producer.Idempotent = o.Idempotent
	s.Net.MaxOpenRequests = 1 // keeps the order when something is sent again; idempotence demands it
	s.Producer.Flush.Frequency = time.Duration(o.LingerMs) * time.Millisecond
	s.Producer.Flush.Bytes = o.BatchBytes
	if limit := max(o.BatchBytes, o.MaxRequestBytes); o.MaxRequestBytes > 0 && limit > 0 {
		s.Producer.MaxMessageBytes = limit
	}
	return s, nil
}

func message(topic string, r suite.Record, index int) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Metadata: index}
	if r.Key != nil {
		m.Key = sarama.ByteEncoder(r.Key)
	}
	if r.Value != nil {
		m.Value = sarama.ByteEncoder(r.Value)
	}
	if r.Timestamp != 0 {
		m.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return m
}

func ackOf(m *sarama.ProducerMessage, err error) suite.Ack {
	ack := suite.Ack{Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp.UnixMilli()}
	if err != nil {
		ack.Offset = -1
		if ack.Err = errorName(err); ack.Err == "" {
			ack.Err = err.Error()
		}
	}
	return ack
}

// collect hands each record's end to done until the producer is closed.
func collect(p sarama.AsyncProducer, done func(index int, ack suite.Ack)) (wait func()) {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		successes, failures := p.Successes(), p.Errors()
		for successes != nil || failures != nil {
			select {
			case m, ok := <-successes:
				if !ok {
					successes = nil
					continue
				}
				done(m.Metadata.(int), ackOf(m, nil))
			case e, ok := <-failures:
				if !ok {
					failures = nil
					continue
				}
				done(e.Msg.Metadata.(int), ackOf(e.Msg, e.Err))
			}
		}
	}()
	return func() { <-finished }
}

// Produce sends the records and waits for all acknowledgements.
func (c *client) Produce(_ context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	s, err := producerSettings(o)
	if err != nil {
		return nil, err
	}
	producer, err := sarama.NewAsyncProducer([]string{c.addr}, s)
	if err != nil {
		return nil, err
	}
	acks := make([]suite.Ack, len(records))
	one := make(chan struct{}, 1)
	wait := collect(producer, func(i int, ack suite.Ack) {
		acks[i] = ack
		if o.OneByOne {
			one <- struct{}{}
		}
	})
	for i, r := range records {
		producer.Input() <- message(o.Topic, r, i)
		if o.OneByOne {
			<-one
		}
	}
	producer.AsyncClose()
	wait()
	return acks, nil
}

// Stream produces until stop is closed. Records that wait while the server is away are sent again by the library.
func (c *client) Stream(_ context.Context, o suite.StreamOptions, stop <-chan struct{}) ([]suite.Ack, error) {
	s, err := producerSettings(o.ProduceOptions)
	if err != nil {
		return nil, err
	}
	// A busy machine takes minutes for a restart. Whatever the producer's own retries are, it gives up what it has to send again when it does
	// not find the leader by the client's (async_producer.go, retryBatch and updateLeader).
	s.Producer.Retry.Max, s.Producer.Retry.Backoff = 10000, 50*time.Millisecond
	s.Metadata.Retry.Max, s.Metadata.Retry.Backoff = 10000, 50*time.Millisecond
	producer, err := sarama.NewAsyncProducer([]string{c.addr}, s)
	if err != nil {
		return nil, err
	}
	byIndex := map[int]suite.Ack{}
	window := make(chan struct{}, max(o.Window, 1))
	wait := collect(producer, func(i int, ack suite.Ack) {
		byIndex[i] = ack
		<-window
		if o.OnAck != nil {
			o.OnAck(len(byIndex))
		}
	})
	sent := 0
	for open := true; open; {
		select {
		case <-stop:
			open = false
		case window <- struct{}{}:
			producer.Input() <- message(o.Topic, suite.Record{Value: []byte(o.Prefix + strconv.Itoa(sent))}, sent)
			sent++
		}
	}
	producer.AsyncClose()
	wait()
	acks := make([]suite.Ack, sent)
	for i := range acks {
		acks[i] = byIndex[i]
	}
	return acks, nil
}
