//go:build compat

package compat

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// tail is a reader that follows a topic from its beginning and keeps what it has read.
type tail struct {
	client    *kgo.Client
	topic     string
	committed bool
	next      map[int32]int64 // where reading goes on
	records   []suite.Record
}

// tail begins to read a topic; with committed, only what committed transactions wrote.
func (t *appT) tail(topic string, committed bool) *tail {
	t.Helper()
	opts := []kgo.Opt{
		kgo.SeedBrokers(t.node.Addr()), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100 * time.Millisecond), kgo.AlwaysRetryEOF(),
	}
	if committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(opts...)
	t.must(err, "connect")
	t.Cleanup(client.Close)
	return &tail{client: client, topic: topic, committed: committed, next: map[int32]int64{}}
}

// read is everything up to the topic's end, by partitions in the order of offsets.
func (r *tail) read(ctx context.Context) ([]suite.Record, error) {
	admin := kadm.NewClient(r.client)
	list := admin.ListEndOffsets
	if r.committed {
		list = admin.ListCommittedOffsets
	}
	ends, err := list(ctx, r.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end of %s: %w", r.topic, err)
	}
	for r.behind(ends) {
		fetches := r.client.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) { // what comes beside an error does not come again
			r.next[record.Partition] = record.Offset + 1
			if !record.Attrs.IsControl() {
				r.records = append(r.records, fromKgo(record))
			}
		})
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.topic, err)
		}
	}
	return r.records, nil
}

func (r *tail) behind(ends kadm.ListedOffsets) bool {
	for p, end := range ends[r.topic] {
		if r.next[p] < end.Offset {
			return true
		}
	}
	return false
}

func fromKgo(r *kgo.Record) suite.Record {
	out := suite.Record{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, suite.Header{Key: h.Key, Value: h.Value})
	}
	return out
}
