package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
	"ottla/compat/history"
)

// settle waits until nothing is undecided: transactions that nobody ends are aborted by
// the node itself.
func (r *run) settle(ctx context.Context, client *kgo.Client) error {
	process := r.process.Add(1)
	for began := time.Now(); ; {
		asking, cancel := context.WithTimeout(ctx, 20*time.Second)
		undecided, err := r.bounds(asking, process, client)
		cancel()
		switch {
		case err == nil && undecided == 0:
			return nil
		case time.Since(began) > settleLimit && err != nil:
			return fmt.Errorf("the node does not tell its offsets: %w", err)
		case time.Since(began) > settleLimit:
			r.odd("%s after the last fault %d partitions hold something undecided", settleLimit, undecided)
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// readAll reads all partitions from start to end, as a reader of committed data.
func (r *run) readAll(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	ends, err := admin.ListCommittedOffsets(ctx, topicNames()...)
	if err != nil {
		return fmt.Errorf("the final read: %w", err)
	}
	for _, t := range topics {
		for n := range t.partitions {
			end, ok := ends.Lookup(t.name, n)
			if !ok || end.Err != nil {
				return fmt.Errorf("the end of %s-%d: %w", t.name, n, end.Err)
			}
			if err := r.readOne(ctx, t.name, n, end.Offset); err != nil {
				return err
			}
		}
	}
	harness.Progress("all was read once more")
	return nil
}

func (r *run) readOne(ctx context.Context, topic string, n int32, end int64) error {
	op := history.Op{
		Kind: history.Final, Committed: true, Process: r.process.Add(1), Begin: r.now(), Mark: history.Mark{Partition: partitionOf(topic, n)},
	}
	err := r.follow(ctx, topic, n, end, func(got *kgo.Record) { op.Reads = append(op.Reads, taken(got)) })
	if err == nil {
		r.add(op)
	}
	return err
}

// follow reads a partition from its beginning to its last stable offset, as a reader of committed data.
func (r *run) follow(ctx context.Context, topic string, n int32, end int64, each func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {n: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	// What lies last below the last stable offset is a marker or was committed.
	for at := int64(0); at < end; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("the final read of %s-%d at %d of %d: %w", topic, n, at, end, err)
		}
		fetches.EachRecord(func(got *kgo.Record) {
			if at = got.Offset + 1; !got.Attrs.IsControl() && got.Offset < end {
				each(got)
			}
		})
	}
	return nil
}

// judgeCopy compares the output with the input; what the copiers had not come to is
// allowed at the end of each partition only.
func (r *run) judgeCopy() (copied int, wrong []string) {
	var in, out []int64
	for partition := range topics[input].partitions {
		var here, there []int64
		for i := range r.ops {
			if op := &r.ops[i]; op.Kind == history.Final {
				for _, read := range op.Reads {
					switch op.Mark.Partition {
					case input*mostPartitions + partition:
						here = append(here, read.Value)
					case output*mostPartitions + partition:
						there = append(there, r.sources[read.Value])
					}
				}
			}
		}
		copied += len(there)
		if len(there) < len(here) {
			here = here[:len(there)]
		}
		in, out = append(in, here...), append(out, there...)
	}
	return copied, history.CheckCopy(in, out, 10)
}
