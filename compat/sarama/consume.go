package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"ottla/compat/suite"
)

func record(m *sarama.ConsumerMessage) suite.Record {
	r := suite.Record{Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp.UnixMilli(), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, suite.Header{Key: string(h.Key), Value: h.Value})
	}
	return r
}

// reading is a consumer of partitions under way: what each of them reads comes together.
type reading struct {
	consumer   sarama.Consumer
	partitions []sarama.PartitionConsumer
	messages   chan *sarama.ConsumerMessage
	errors     chan *sarama.ConsumerError
	done       chan struct{}
}

func (r *reading) close() {
	close(r.done)
	for _, p := range r.partitions {
		p.AsyncClose()
	}
	_ = r.consumer.Close() // what it still had to say is of no use
}

func (r *reading) start(o suite.ConsumeOptions) error {
	for partition, offset := range o.From {
		p, err := r.consumer.ConsumePartition(o.Topic, partition, offset)
		if errors.Is(err, sarama.ErrOffsetOutOfRange) && o.Reset != "" && o.Reset != "none" {
			offset = suite.Earliest
			if o.Reset == "latest" {
				offset = suite.Latest
			}
			p, err = r.consumer.ConsumePartition(o.Topic, partition, offset)
		}
		if err != nil {
			return fmt.Errorf("consume %s-%d from %d: %w", o.Topic, partition, offset, err)
		}
		r.partitions = append(r.partitions, p)
		go func() {
			for m := range p.Messages() {
				select {
				case r.messages <- m:
				case <-r.done:
				}
			}
		}()
		go func() {
			for e := range p.Errors() {
				select {
				case r.errors <- e:
				case <-r.done:
				}
			}
		}()
	}
	return nil
}

// Consume reads as told by the options.
func (c *client) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	s := settings()
	if o.ReadCommitted {
		s.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if o.MaxWaitMs > 0 {
		s.Consumer.MaxWaitTime = time.Duration(o.MaxWaitMs) * time.Millisecond
		s.Net.ReadTimeout = s.Consumer.MaxWaitTime + 100*time.Second
	}
	if o.MaxFetchBytes > 0 {
		s.Consumer.Fetch.Default = int32(o.MaxFetchBytes)
	}
	connected, err := sarama.NewClient([]string{c.addr}, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connected.Close() }()
	left, err := ends(connected, o)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(connected)
	if err != nil {
		return nil, err
	}
	r := &reading{
		consumer: consumer, messages: make(chan *sarama.ConsumerMessage), errors: make(chan *sarama.ConsumerError), done: make(chan struct{}),
	}
	defer r.close()
	if err := r.start(o); err != nil {
		return nil, err
	}
	return r.read(ctx, o, left)
}

// ends finds where reading without a count stops: the end offsets, of partitions that have anything to read.
func ends(connected sarama.Client, o suite.ConsumeOptions) (map[int32]int64, error) {
	if o.Count > 0 || o.UntilValue != "" {
		return nil, nil
	}
	left := map[int32]int64{}
	for partition, from := range o.From {
		end, err := connected.GetOffset(o.Topic, partition, sarama.OffsetNewest)
		if err != nil {
			return nil, err
		}
		start, err := connected.GetOffset(o.Topic, partition, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		if from != suite.Latest && max(from, start) < end {
			left[partition] = end
		}
	}
	return left, nil
}

func (r *reading) read(ctx context.Context, o suite.ConsumeOptions, left map[int32]int64) ([]suite.Record, error) {
	var records []suite.Record
	for len(left) > 0 || o.UntilValue != "" || len(records) < o.Count {
		select {
		case m := <-r.messages:
			records = append(records, record(m))
			if o.OnRecord != nil {
				o.OnRecord(len(records))
			}
			if o.UntilValue != "" && string(m.Value) == o.UntilValue {
				return records, nil
			}
			if end, ok := left[m.Partition]; ok && m.Offset+1 >= end {
				delete(left, m.Partition)
			}
		case e := <-r.errors:
			if errors.Is(e.Err, sarama.ErrOffsetOutOfRange) { // others pass: the library connects again
				return records, e.Err
			}
		case <-ctx.Done():
			return records, ctx.Err()
		}
	}
	return records, nil
}
