package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/history"
)

// operationLimit ends an operation of a client. A node is never away for as long.
const operationLimit = 60 * time.Second

// producePlain sends small groups of records as an idempotent producer.
func (r *run) producePlain(ctx context.Context, process int32, random *rand.Rand) {
	for epoch := int32(0); !r.stopped() && ctx.Err() == nil; epoch++ {
		client, err := r.client(kgo.RecordDeliveryTimeout(operationLimit))
		if err != nil {
			r.odd("producer: %v", err)
			return
		}
		for !r.stopped() {
			began := r.now()
			var records []*kgo.Record
			var sends []history.Record
			for range 1 + random.IntN(5) {
				record, send := r.record(plain, random.Int32N(topics[plain].partitions), 0)
				records, sends = append(records, record), append(sends, send)
			}
			failed := false
			for _, got := range client.ProduceSync(ctx, records...) {
				for i := range records {
					if records[i] != got.Record {
						continue
					}
					op := history.Op{Process: process, Begin: began, Producer: history.Producer{ID: process, Epoch: epoch}, Sends: sends[i : i+1]}
					if got.Err != nil {
						op.Outcome, failed = history.Unknown, true
					} else {
						op.Sends[0].Offset = got.Record.Offset
					}
					r.add(op)
				}
			}
			if failed {
				break
			}
			r.wait(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		client.Close()
	}
}

// read polls all partitions from their beginning on.
func (r *run) read(ctx context.Context, process int32, committed bool) {
	all := map[string]map[int32]kgo.Offset{}
	for _, t := range topics {
		all[t.name] = map[int32]kgo.Offset{}
		for n := range t.partitions {
			all[t.name][n] = kgo.NewOffset().AtStart()
		}
	}
	level := kgo.ReadUncommitted()
	if committed {
		level = kgo.ReadCommitted()
	}
	client, err := r.client(kgo.ConsumePartitions(all), kgo.FetchIsolationLevel(level), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		r.odd("reader: %v", err)
		return
	}
	defer client.Close()
	for !r.stopped() && ctx.Err() == nil {
		polling, cancel := context.WithTimeout(ctx, time.Second)
		began := r.now()
		op := history.Op{Process: process, Begin: began, Committed: committed}
		client.PollRecords(polling, 500).EachRecord(func(got *kgo.Record) { op.Reads = append(op.Reads, taken(got)) })
		cancel()
		if len(op.Reads) > 0 {
			r.add(op)
		}
	}
}

// commitOffsets commits ever larger offsets for a group, and looks what is committed.
func (r *run) commitOffsets(ctx context.Context, process int32, random *rand.Rand) {
	client, err := r.client()
	if err != nil {
		r.odd("committer: %v", err)
		return
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	const group = "chaos-marks"
	for offset := int64(1); !r.stopped() && ctx.Err() == nil; offset++ {
		asking, cancel := context.WithTimeout(ctx, operationLimit)
		op := history.Op{Kind: history.Commit, Process: process, Begin: r.now(), Mark: history.Mark{Group: 1, Offset: offset}}
		var offsets kadm.Offsets
		offsets.AddOffset(topics[plain].name, 0, offset, -1)
		if err := admin.CommitAllOffsets(asking, group, offsets); err != nil {
			op.Outcome = history.Unknown
		}
		r.add(op)
		if random.IntN(3) == 0 {
			op := history.Op{Kind: history.Fetch, Process: process, Begin: r.now(), Mark: history.Mark{Group: 1, Offset: -1}}
			got, err := admin.FetchOffsets(asking, group)
			if found, ok := got.Lookup(topics[plain].name, 0); err == nil && ok && found.Err == nil {
				op.Mark.Offset = found.At
				r.add(op)
			}
		}
		cancel()
		r.wait(time.Duration(random.IntN(30)) * time.Millisecond)
	}
}

// watch looks at the ends of all partitions.
func (r *run) watch(ctx context.Context, process int32, _ *rand.Rand) {
	client, err := r.client()
	if err != nil {
		r.odd("watcher: %v", err)
		return
	}
	defer client.Close()
	for !r.stopped() && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, _ = r.bounds(asking, process, client) // a node that is away says nothing
		cancel()
		r.wait(300 * time.Millisecond)
	}
}

// bounds looks at the ends of all partitions once, and tells how many hold something
// undecided.
func (r *run) bounds(ctx context.Context, process int32, client *kgo.Client) (undecided int, err error) {
	admin := kadm.NewClient(client)
	incarnation, began := r.incarnation.Load(), r.now()
	stable, err := admin.ListCommittedOffsets(ctx, topicNames()...)
	if err != nil {
		return 0, err
	}
	high, err := admin.ListEndOffsets(ctx, topicNames()...)
	if err != nil {
		return 0, err
	}
	for _, t := range topics {
		for n := range t.partitions {
			s, ok1 := stable.Lookup(t.name, n)
			h, ok2 := high.Lookup(t.name, n)
			if !ok1 || !ok2 || s.Err != nil || h.Err != nil {
				return 0, fmt.Errorf("the ends of %s-%d: %w, %w", t.name, n, s.Err, h.Err)
			}
			if s.Offset < h.Offset {
				undecided++
			}
			if under, same := r.under(s, h, incarnation); same {
				r.add(history.Op{Kind: history.Bound, Process: process, Begin: began, Bounds: history.Bounds{
					Partition: partitionOf(t.name, n), Incarnation: under, LastStable: s.Offset, HighWatermark: h.Offset,
				}})
			}
		}
	}
	return undecided, nil
}

// under tells within what nothing may have gone back when two answers came: one life of the node, or in a cluster one leader epoch.
func (r *run) under(stable, high kadm.ListedOffset, incarnation int32) (under int32, same bool) {
	if r.o.Cluster != nil {
		return high.LeaderEpoch, stable.LeaderEpoch == high.LeaderEpoch
	}
	return incarnation, incarnation == r.incarnation.Load()
}

func topicNames() []string {
	var names []string
	for _, t := range topics {
		names = append(names, t.name)
	}
	return names
}
