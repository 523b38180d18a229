package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Snapshot is what a server shows, a fact a line, sorted: topics, their configuration and offsets, every record with everything that
// belongs to it, which of them read_committed shows, groups and their committed offsets, transactions.
type Snapshot []string

// compacted are topics from which records may vanish at any time: of them only the last value of each key is taken down.
const compacted = "compacted"

// Leaving is a topic, and a transactional id, that is left out of snapshots: what is written to it when the server dies is judged
// otherwise (CheckAcked). So is the group that commits offsets with it.
const (
	Leaving      = "under-kill"
	leavingGroup = "g-under-kill"
)

// Take takes down what the server at an address shows.
func Take(ctx context.Context, addr string) (Snapshot, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	t := &taker{ctx: ctx, client: client, admin: kadm.NewClient(client)}
	for _, part := range []func() error{t.topics, t.groups, t.transactions} {
		if err := part(); err != nil {
			return nil, fmt.Errorf("look at %s: %w", addr, err)
		}
	}
	slices.Sort(t.lines)
	return t.lines, nil
}

// Counts says in words how much a snapshot holds.
func (s Snapshot) Counts() string {
	counts := map[string]int{}
	for _, line := range s {
		kind, _, _ := strings.Cut(line, " ")
		counts[kind]++
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	return strings.Join(words, ", ")
}

// Count is how many lines of a kind there are.
func (s Snapshot) Count(kind string) int {
	n := 0
	for _, line := range s {
		if strings.HasPrefix(line, kind+" ") {
			n++
		}
	}
	return n
}

// Differences lists what is in one of two snapshots and not in the other: "-" was before, "+" is after.
func Differences(before, after Snapshot) []string {
	var out []string
	for _, line := range before {
		if _, found := slices.BinarySearch(after, line); !found {
			out = append(out, "- "+line)
		}
	}
	for _, line := range after {
		if _, found := slices.BinarySearch(before, line); !found {
			out = append(out, "+ "+line)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(a[2:], b[2:]) })
	return out
}

type taker struct {
	ctx    context.Context
	client *kgo.Client
	admin  *kadm.Client
	lines  []string
}

func (t *taker) line(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *taker) topics() error {
	details, err := t.admin.ListTopics(t.ctx)
	if err != nil {
		return err
	}
	names := details.Names()
	starts, err := t.admin.ListStartOffsets(t.ctx, names...)
	if err != nil {
		return err
	}
	ends, err := t.admin.ListEndOffsets(t.ctx, names...)
	if err != nil {
		return err
	}
	stable, err := t.admin.ListCommittedOffsets(t.ctx, names...)
	if err != nil {
		return err
	}
	for _, topic := range details.Sorted() {
		t.line("topic %s %s partitions %d", topic.Topic, topic.ID, len(topic.Partitions))
		if topic.Topic == Leaving {
			continue
		}
		for _, p := range topic.Partitions.Sorted() {
			start, _ := starts.Lookup(topic.Topic, p.Partition)
			end, _ := ends.Lookup(topic.Topic, p.Partition)
			lso, _ := stable.Lookup(topic.Topic, p.Partition)
			if err := errors.Join(p.Err, start.Err, end.Err, lso.Err); err != nil {
				return fmt.Errorf("%s-%d: %w", topic.Topic, p.Partition, err)
			}
			t.line("offsets %s-%d from %d to %d, stable to %d", topic.Topic, p.Partition, start.Offset, end.Offset, lso.Offset)
			if err := t.partition(topic.Topic, p.Partition, start.Offset, end.Offset, lso.Offset); err != nil {
				return fmt.Errorf("%s-%d: %w", topic.Topic, p.Partition, err)
			}
		}
	}
	configs, err := t.admin.DescribeTopicConfigs(t.ctx, names...)
	if err != nil {
		return err
	}
	for _, topic := range configs {
		for _, config := range topic.Configs {
			if config.Source == kmsg.ConfigSourceDynamicTopicConfig {
				t.line("config %s %s=%s", topic.Name, config.Key, config.MaybeValue())
			}
		}
	}
	return nil
}

func (t *taker) partition(topic string, partition int32, start, end, stable int64) error {
	all, err := Read(t.ctx, t.client, topic, partition, start, end, kgo.ReadUncommitted())
	if err != nil {
		return err
	}
	if strings.HasPrefix(topic, compacted) {
		last := map[string]string{}
		for _, r := range all {
			last[string(r.Key)] = fmt.Sprintf("%q at %d", r.Value, r.Timestamp.UnixMilli())
		}
		for key, value := range last {
			if value[0] != '"' || !strings.HasPrefix(value, `"" at`) { // a tombstone vanishes in the end
				t.line("last %s-%d %q is %s", topic, partition, key, value)
			}
		}
		return nil
	}
	for _, r := range all {
		t.line("record %s-%d at %d time %d type %d control %v transactional %v producer %d %d key %s value %s headers %q",
			topic, partition, r.Offset, r.Timestamp.UnixMilli(), r.Attrs.TimestampType(), r.Attrs.IsControl(), r.Attrs.IsTransactional(),
			r.ProducerID, r.ProducerEpoch, bytesOrNull(r.Key), bytesOrNull(r.Value), r.Headers)
	}
	committed, err := Read(t.ctx, t.client, topic, partition, start, stable, kgo.ReadCommitted())
	if err != nil {
		return err
	}
	var offsets []int64
	for _, r := range committed {
		if !r.Attrs.IsControl() {
			offsets = append(offsets, r.Offset)
		}
	}
	t.line("committed %s-%d %v", topic, partition, offsets)
	return nil
}

func bytesOrNull(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// Read reads a partition from one offset to another, control records too.
func Read(ctx context.Context, client *kgo.Client, topic string, partition int32, from, to int64, level kgo.IsolationLevel) ([]*kgo.Record, error) {
	var all []*kgo.Record
	for from < to {
		request := kmsg.NewPtrFetchRequest()
		request.ReplicaID, request.MaxWaitMillis, request.MinBytes, request.MaxBytes, request.SessionEpoch = -1, 1000, 1, 8<<20, -1
		if level == kgo.ReadCommitted() {
			request.IsolationLevel = 1
		}
		asked := kmsg.NewFetchRequestTopic()
		asked.Topic = topic
		one := kmsg.NewFetchRequestTopicPartition()
		one.Partition, one.FetchOffset, one.PartitionMaxBytes, one.CurrentLeaderEpoch = partition, from, 8<<20, -1
		asked.Partitions = append(asked.Partitions, one)
		request.Topics = append(request.Topics, asked)
		response, err := pinned{client.Broker(1)}.fetch(ctx, request)
		if err != nil {
			return nil, err
		}
		got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			KeepControlRecords: true, Offset: from, IsolationLevel: level, Topic: topic, Partition: partition,
		}, response, kgo.DefaultDecompressor(), nil)
		if got.Err != nil {
			return nil, got.Err
		}
		all = append(all, got.Records...)
		if next <= from {
			return nil, fmt.Errorf("nothing can be read from offset %d on, up to %d", from, to)
		}
		from = next
	}
	return all, nil
}

// pinned sends Fetch in version 12, the last that names topics.
type pinned struct{ broker *kgo.Broker }

type fetch12 struct{ *kmsg.FetchRequest }

func (fetch12) MaxVersion() int16 { return 12 }

func (p pinned) fetch(ctx context.Context, request *kmsg.FetchRequest) (*kmsg.FetchResponseTopicPartition, error) {
	got, err := p.broker.RetriableRequest(ctx, fetch12{request})
	if err != nil {
		return nil, err
	}
	response := got.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, errors.New("the partition is not in the response")
	}
	return &response.Topics[0].Partitions[0], nil
}

func (t *taker) groups() error {
	listed, err := t.admin.ListGroups(t.ctx)
	if err != nil {
		return err
	}
	for _, group := range listed.Sorted() {
		if kind := strings.ToLower(group.GroupType); kind == "share" || kind == "streams" {
			continue // not served by Ottla; Apache Kafka itself is asked for them (java/Shared.java)
		}
		if group.Group == leavingGroup {
			continue
		}
		t.line("group %s %s %s %s", group.Group, group.GroupType, group.ProtocolType, group.State)
		offsets, err := t.admin.FetchOffsets(t.ctx, group.Group)
		if err != nil {
			return fmt.Errorf("offsets of %s: %w", group.Group, err)
		}
		for _, o := range offsets.Sorted() {
			if o.Err != nil {
				return fmt.Errorf("offsets of %s: %w", group.Group, o.Err)
			}
			t.line("offset %s %s-%d at %d epoch %d %q", group.Group, o.Topic, o.Partition, o.At, o.LeaderEpoch, o.Metadata)
		}
	}
	return nil
}

func (t *taker) transactions() error {
	listed, err := t.admin.ListTransactions(t.ctx, nil, nil)
	if err != nil {
		return err
	}
	for _, one := range listed.Sorted() {
		if one.TxnID == Leaving {
			continue
		}
		t.line("transaction %s %s producer %d", one.TxnID, one.State, one.ProducerID)
	}
	return nil
}
