package broker

import (
	"log/slog"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/schema"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// TestReplicasWithoutRoomAreTriedAgain: a topic made while the disk is full has
// its leader as soon as there is room; one that is deleted then may be made anew.
// The directory stays in service all the while, whatever operation finds no room.
func TestReplicasWithoutRoomAreTriedAgain(t *testing.T) {
	for _, full := range []string{"", "leader-epoch-checkpoint", "partition.metadata", "-offset-checkpoint"} {
		t.Run(full, func(t *testing.T) {
			f := newFixture(t)
			f.make("old", 1)
			f.disk.OnOperation(func(op vfs.Operation) error {
				if op.Kind == vfs.OpCreate && strings.Contains(op.Name, full) {
					return syscall.ENOSPC
				}
				return nil
			})
			f.make("new", 2)
			f.make("deleted", 3)
			f.delete("deleted", 3)
			f.delete("old", 1)
			f.make("old", 4)
			f.pass(roomInterval)
			f.disk.OnOperation(nil)
			f.pass(roomInterval)
			f.mustLead("new")
			f.mustLead("old")
			if _, err := f.replicas.Describe(protocol.TopicPartition{Topic: "deleted"}); err == nil {
				t.Error("a deleted topic came back")
			}
			if due := f.applier.NextDeadline(); !due.IsZero() {
				t.Error("something is tried again for ever")
			}
			if d := f.store.Directories()[0]; d.Offline != nil {
				t.Errorf("the directory is offline: %v", d.Offline)
			}
		})
	}
}

type fixture struct {
	t        *testing.T
	disk     *vfs.Mem
	now      time.Time
	offset   protocol.Offset
	image    *metadata.Image
	store    *store.Store
	replicas *replica.Manager
	applier  *Applier
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1)).Uint64
	f := &fixture{t: t, disk: vfs.NewMem(random), now: time.UnixMilli(1_800_000_000_000), image: metadata.Empty()}
	f.must(f.disk.MkdirAll("/data"))
	f.must(logdir.WriteMetaProperties(f.disk, "/data", logdir.MetaProperties{ClusterID: "c", NodeID: 1, DirectoryID: protocol.DirectoryID{9}}))
	settings, _, err := config.Broker(config.Default())
	f.must(err)
	options := NewTopicOptions(settings, f.image)
	f.store, _, err = store.Open(f.now, store.Options{
		FS: f.disk, Dirs: []string{"/data"}, NodeID: 1, Pool: compress.NewPool(), Random: random, DisableBackgroundFlush: true, LogOptions: options.Of,
	})
	f.must(err)
	f.replicas = replica.New(f.now, replica.Options{NodeID: 1, Store: f.store, Pool: compress.NewPool()})
	reports := NewDirectoryReports(1, func() protocol.BrokerEpoch { return 1 }, func(kmsg.Request, func(kmsg.Response, error)) {}, func() {})
	f.applier = NewApplier(1, options, f.replicas, f.store, reports, func(tasks []func()) {
		for _, task := range tasks {
			task()
		}
	}, slog.New(slog.DiscardHandler))
	f.write()
	t.Cleanup(func() {
		_ = f.replicas.Close(f.now)
		_ = f.store.Close(f.now, false, -1)
	})
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) {
	f.now = f.now.Add(d)
	f.applier.Tick(f.now)
}

func (f *fixture) write(records ...schema.MetadataRecord) {
	f.t.Helper()
	delta := metadata.NewDelta(f.image)
	for _, r := range records {
		f.must(delta.Replay(f.offset, 1, r))
		f.offset++
	}
	before := f.image
	f.image = delta.Build(metadata.Provenance{Offset: f.offset, Epoch: 1})
	f.applier.Apply(f.now, before, f.image)
}

func (f *fixture) make(name string, id byte) {
	f.t.Helper()
	topic, p := schema.NewTopicRecord(), schema.NewPartitionRecord()
	topic.Name, topic.TopicID = name, protocol.TopicID{id}
	p.TopicID, p.Leader = topic.TopicID, 1
	p.PartitionID, p.LeaderEpoch, p.PartitionEpoch = 0, 0, 0
	p.Replicas, p.ISR = []protocol.NodeID{1}, []protocol.NodeID{1}
	p.Directories = []protocol.UUID{{9}}
	f.write(topic, p)
}

func (f *fixture) delete(_ string, id byte) {
	f.t.Helper()
	r := schema.NewRemoveTopicRecord()
	r.TopicID = protocol.TopicID{id}
	f.write(r)
}

func (f *fixture) mustLead(topic string) {
	f.t.Helper()
	is, err := f.replicas.Describe(protocol.TopicPartition{Topic: topic})
	if err != nil || is.View.Role != partition.Leader {
		f.t.Errorf("%s: %+v, %v", topic, is, err)
	}
}

// TestLeadsOnceRegistered: what the cluster has given to a process before this one is not led by this one before it has registered;
// then the controller's new leader epoch counts, or where it gave none the old one.
func TestLeadsOnceRegistered(t *testing.T) {
	f := newFixture(t)
	f.applier.Incarnation = protocol.IncarnationID{2}
	f.register(protocol.IncarnationID{1})
	f.make("changed", 1)
	f.make("kept", 2)
	coordinated := protocol.TopicPartition{Topic: "__consumer_offsets"}
	f.make(coordinated.Topic, 3)
	for _, topic := range []string{"changed", "kept"} {
		if is, err := f.replicas.Describe(protocol.TopicPartition{Topic: topic}); err != nil || is.View.Role == partition.Leader {
			t.Errorf("%s before the registration: %+v, %v", topic, is, err)
		}
	}
	change := schema.NewPartitionChangeRecord()
	change.TopicID, change.PartitionID, change.Leader = protocol.TopicID{1}, 0, 1
	f.register(protocol.IncarnationID{2}, change)
	f.mustLead("changed")
	f.mustLead("kept")
	f.mustLead(coordinated.Topic)
	if is, err := f.replicas.Describe(protocol.TopicPartition{Topic: "changed"}); err != nil || is.View.LeaderEpoch != 1 {
		t.Errorf("it leads in %+v, %v", is, err)
	}
}

// register writes that a process has registered as this node, and what else changes with it.
func (f *fixture) register(incarnation protocol.IncarnationID, more ...schema.MetadataRecord) {
	f.t.Helper()
	r := schema.NewRegisterBrokerRecord()
	r.BrokerID, r.BrokerEpoch, r.IncarnationID = 1, protocol.BrokerEpoch(f.offset), incarnation
	f.write(append([]schema.MetadataRecord{r}, more...)...)
}

// TestShownWithItsReplicas sees to it that no client hears of a partition before its leader can take records.
func TestShownWithItsReplicas(t *testing.T) {
	f := newFixture(t)
	asked := 0
	f.applier.sideBySide = func(tasks []func()) {
		asked++
		if f.applier.Image().Topic("a") != nil {
			t.Error("the topic is shown before its replicas are made")
		}
		for _, task := range tasks {
			task()
		}
	}
	f.make("a", 1)
	if asked == 0 || f.applier.Image().Topic("a") == nil || f.applier.Offset() != f.offset {
		t.Errorf("after %d rounds of tasks, offset %d of %d is applied, topic %v", asked, f.applier.Offset(), f.offset, f.applier.Image().Topic("a"))
	}
}
