package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"

	"ottla/compat/serve"
	"ottla/compat/suite"
)

// ReadInGroup reads as a member of a group.
func (c *client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	if o.Seek != "" {
		return nil, errors.New("a kafka-go reader in a group cannot be moved")
	}
	connections := &suite.Lines{}
	session := time.Duration(o.SessionMs) * time.Millisecond
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{c.addr}, GroupID: o.Group, Topic: o.Topic, Dialer: &kafka.Dialer{DialFunc: connections.DialContext},
		SessionTimeout: session, HeartbeatInterval: session / 10, JoinGroupBackoff: 100 * time.Millisecond,
		StartOffset: kafka.FirstOffset, MinBytes: 1, MaxBytes: 10_000_000, MaxWait: 500 * time.Millisecond,
		ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: 100 * time.Millisecond,
		ErrorLogger: kafka.LoggerFunc(func(text string, args ...any) { fmt.Fprintf(os.Stderr, o.Group+": "+text+"\n", args...) }),
	})
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-reading.Done():
		}
	}()
	records, err := readInGroup(ctx, fetch(reading, r), r, o)
	if o.Die && err == nil {
		connections.Kill()
		go func() { _ = r.Close() }() // tries to leave, and cannot
		return records, nil
	}
	return records, errors.Join(err, r.Close())
}

// fetch reads ahead, so that what is there already is committed together.
func fetch(reading context.Context, r *kafka.Reader) <-chan kafka.Message {
	messages := make(chan kafka.Message, 100)
	go func() {
		defer close(messages)
		for reading.Err() == nil {
			m, err := r.FetchMessage(reading)
			if err != nil { // it passes: the reader connects and joins again
				continue
			}
			select {
			case messages <- m:
			case <-reading.Done():
			}
		}
	}()
	return messages
}

func readInGroup(ctx context.Context, messages <-chan kafka.Message, r *kafka.Reader, o suite.MemberOptions) ([]suite.Record, error) {
	var records []suite.Record
	for o.Count == 0 || len(records) < o.Count {
		m, ok := <-messages
		if !ok {
			return records, ctx.Err()
		}
		before := len(records)
		records = append(records, record(m))
		for more := len(messages); more > 0 && (o.Count == 0 || len(records) < o.Count); more-- {
			records = append(records, record(<-messages))
		}
		var commit []kafka.Message
		for partition, position := range serve.Due(o, records, before) {
			commit = append(commit, kafka.Message{Topic: o.Topic, Partition: int(partition), Offset: position - 1})
		}
		if len(commit) > 0 {
			// One that fails is made good by the next, or the partitions are another's by then.
			if err := r.CommitMessages(ctx, commit...); err != nil {
				fmt.Fprintln(os.Stderr, "a commit failed:", err)
			}
		}
		if o.OnRecord != nil {
			o.OnRecord(len(records))
		}
	}
	return records, nil
}
