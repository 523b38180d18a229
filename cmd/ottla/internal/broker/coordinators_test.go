package broker

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/schema"
	"ottla/storage/logdir"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

var now = time.UnixMilli(1_800_000_000_000)

// ledger is a machine that says where it is, and remembers what it was told.
type ledger struct {
	partition int32
	events    *[]string
	epoch     protocol.LeaderEpoch
}

func (l *ledger) Restore(protocol.Offset, protocol.LeaderEpoch, int64, []machine.Record) error {
	return nil
}

func (l *ledger) Apply(protocol.Offset, protocol.LeaderEpoch, int64, []machine.Record) error {
	return nil
}
func (l *ledger) Committed(protocol.Offset) {}
func (l *ledger) Resign()                   {}
func (l *ledger) Activate(_ machine.Turn, epoch protocol.LeaderEpoch) (machine.Result, error) {
	l.epoch = epoch
	return machine.Result{}, nil
}

func (l *ledger) Handle(_ machine.Turn, request any) (machine.Result, error) {
	if deleted, ok := request.([]*metadata.Topic); ok {
		for _, topic := range deleted {
			*l.events = append(*l.events, fmt.Sprintf("%d: %s is gone", l.partition, topic.Name))
		}
		return machine.Result{}, nil
	}
	return machine.Result{
		Reply: fmt.Sprintf("partition %d, epoch %d", l.partition, l.epoch), Records: []machine.Record{{Key: []byte("k")}},
	}, nil
}
func (l *ledger) Tick(machine.Turn) (machine.Result, error) { return machine.Result{}, nil }
func (l *ledger) NextDeadline() time.Time                   { return time.Time{} }

// bench is an Applier over real replicas with coordinators of ledgers.
type bench struct {
	t       *testing.T
	applier *Applier
	shards  *shard.Manager
	image   *metadata.Image
	offset  protocol.Offset
	events  []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, image: metadata.Empty()}
	properties, err := config.FromOverrides([]string{
		"process.roles=broker,controller", "node.id=1", "listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
		"controller.listener.names=CONTROLLER", "controller.quorum.voters=1@localhost:9093", "log.dirs=/data",
	})
	b.must(err)
	node, _, err := config.Broker(properties)
	b.must(err)
	disk := vfs.NewMem(func() uint64 { return 4 })
	b.must(disk.MkdirAll("/data"))
	b.must(logdir.WriteMetaProperties(disk, "/data", logdir.MetaProperties{ClusterID: "c", NodeID: 1, DirectoryID: protocol.DirectoryID{9}}))
	pool := compress.NewPool()
	options := NewTopicOptions(node, b.image)
	logger := slog.New(slog.DiscardHandler)
	logs, _, err := store.Open(now, store.Options{
		FS: disk, Dirs: []string{"/data"}, MetadataDir: "/data", NodeID: 1, Pool: pool, Files: segment.NewFileCache(disk, 100),
		Random: func() uint64 { return 4 }, DisableBackgroundFlush: true, LogOptions: options.Of,
	})
	b.must(err)
	replicas := replica.New(now, replica.Options{NodeID: 1, Store: logs, Pool: pool})
	t.Cleanup(func() {
		b.shards.Close(now)
		_ = replicas.Close(now)
		_ = logs.Close(now, false, -1)
	})
	b.shards = shard.New(shard.Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: replicas, Pool: pool,
		NewMachine: func(p int32) machine.Machine { return &ledger{partition: p, events: &b.events} },
	})
	directories := NewDirectoryReports(1, func() protocol.BrokerEpoch { return 1 }, func(kmsg.Request, func(kmsg.Response, error)) {}, func() {})
	b.applier = NewApplier(1, options, replicas, logs, directories, inOrder, logger)
	b.applier.Coordinate(&Coordinators{
		Topic: protocol.ConsumerOffsetsTopic, Shards: b.shards, TopicsDeleted: func(topics []*metadata.Topic) any { return topics },
	})
	return b
}

func inOrder(tasks []func()) {
	for _, task := range tasks {
		task()
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// publish applies the Image that the records lead to.
func (b *bench) publish(records ...schema.MetadataRecord) {
	b.t.Helper()
	delta := metadata.NewDelta(b.image)
	for _, r := range records {
		b.must(delta.Replay(b.offset, 1, r))
		b.offset++
	}
	before := b.image
	b.image = delta.Build(metadata.Provenance{Offset: b.offset - 1, Epoch: 1})
	b.applier.Apply(now, before, b.image)
	for range 10 {
		b.shards.Tick(now)
	}
}

func (b *bench) is(partition int32, want string, code protocol.ErrorCode) {
	b.t.Helper()
	answers := 0
	b.shards.Submit(now, partition, "where", func(reply any, err error) {
		answers++
		if got, _ := reply.(string); got != want || err == nil && code != 0 || err != nil && protocol.CodeOf(err) != code {
			b.t.Errorf("partition %d: %v %v, want %q %v", partition, reply, err, want, code)
		}
	})
	if answers != 1 {
		b.t.Errorf("partition %d: %d answers", partition, answers)
	}
}

func topic(name string, id byte) *schema.TopicRecord {
	r := schema.NewTopicRecord()
	r.Name, r.TopicID = name, protocol.TopicID{id}
	return r
}

func partitionOf(id byte, n int32, replicas ...protocol.NodeID) *schema.PartitionRecord {
	r := schema.NewPartitionRecord()
	r.TopicID, r.PartitionID = protocol.TopicID{id}, n
	r.Replicas, r.ISR, r.Leader, r.LeaderEpoch = replicas, replicas, replicas[0], 0
	return r
}

func leader(id byte, n int32, leader protocol.NodeID, isr ...protocol.NodeID) *schema.PartitionChangeRecord {
	r := schema.NewPartitionChangeRecord()
	r.TopicID, r.PartitionID, r.Leader, r.ISR = protocol.TopicID{id}, n, leader, isr
	return r
}

func removed(id byte) *schema.RemoveTopicRecord {
	r := schema.NewRemoveTopicRecord()
	r.TopicID = protocol.TopicID{id}
	return r
}

func TestCoordinatorsFollowLeadership(t *testing.T) {
	b := newBench(t)
	b.publish(topic("orders", 1), partitionOf(1, 0, 1))
	b.is(0, "", protocol.NotCoordinator)
	b.publish(topic(protocol.ConsumerOffsetsTopic, 2), partitionOf(2, 0, 1), partitionOf(2, 1, 2, 1), partitionOf(2, 2, 2))
	b.is(0, "partition 0, epoch 0", 0)
	b.is(1, "", protocol.NotCoordinator)
	b.is(2, "", protocol.NotCoordinator)
	if got := b.shards.Partitions(); !slices.Equal(got, []int32{0}) {
		t.Errorf("coordinates %v", got)
	}
	b.publish(leader(2, 1, 1, 1))
	b.is(1, "partition 1, epoch 1", 0)
	b.publish(leader(2, 1, 2, 2))
	b.is(1, "", protocol.NotCoordinator)

	b.publish(removed(1))
	if want := []string{"0: orders is gone"}; !slices.Equal(b.events, want) {
		t.Errorf("events %q", b.events)
	}
	b.publish(removed(2))
	b.is(0, "", protocol.NotCoordinator)
	b.publish(topic(protocol.ConsumerOffsetsTopic, 3), partitionOf(3, 0, 1))
	b.is(0, "partition 0, epoch 0", 0)
}

// TestBatchSizeFollowsTopic: what the topic allows is what machines are told.
func TestBatchSizeFollowsTopic(t *testing.T) {
	b := newBench(t)
	b.publish(topic(protocol.ConsumerOffsetsTopic, 2), partitionOf(2, 0, 1))
	if got := b.shards.MaxBatchBytes(); got != 1048588 {
		t.Errorf("by default %d bytes", got)
	}
	for _, step := range []struct {
		name, value string
		want        int
	}{{"max.message.bytes", "5000", 5000}, {"segment.bytes", "2097152", 5000}, {"max.message.bytes", "9000000", 2097152}} {
		r := schema.NewConfigRecord()
		r.ResourceType, r.ResourceName, r.Name, r.Value = int8(metadata.TopicConfig), protocol.ConsumerOffsetsTopic, step.name, &step.value
		b.publish(r)
		if got := b.shards.MaxBatchBytes(); got != step.want {
			t.Errorf("with %s=%s %d bytes, want %d", step.name, step.value, got, step.want)
		}
	}
}

func TestInternalTopic(t *testing.T) {
	properties, err := config.FromOverrides([]string{
		"process.roles=broker,controller", "node.id=1", "listeners=PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names=CONTROLLER",
		"controller.quorum.voters=1@localhost:9093", "log.dirs=/data", "offsets.topic.num.partitions=7", "offsets.topic.replication.factor=1",
		"transaction.state.log.min.isr=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	node, _, err := config.Broker(properties)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		protocol.ConsumerOffsetsTopic:  "7×1 cleanup.policy=compact compression.type=producer segment.bytes=104857600",
		protocol.TransactionStateTopic: "50×3 cleanup.policy=compact compression.type=uncompressed unclean.leader.election.enable=false min.insync.replicas=1 segment.bytes=104857600",
	} {
		made := InternalTopic(node, name)
		got := fmt.Sprintf("%d×%d", made.NumPartitions, made.ReplicationFactor)
		for _, c := range made.Configs {
			got += fmt.Sprintf(" %s=%s", c.Name, *c.Value)
		}
		if made.Topic != name || got != want {
			t.Errorf("%s: %s", made.Topic, got)
		}
	}
}
