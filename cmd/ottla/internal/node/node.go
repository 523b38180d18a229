package node

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/raft"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/clean"
	"ottla/storage/fetcher"
	"ottla/storage/guard"
	"ottla/storage/log"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// Options is what a node is made of.
type Options struct {
	Config *config.BrokerConfig
	FS     vfs.FS
	Random func() uint64
	// Clock tells the time to those who measure how long the disk takes; nil: nobody measures.
	Clock  func() time.Time
	Logger *slog.Logger
	// Hostname is advertised where the configuration names no host.
	Hostname string
	// Workers runs a task elsewhere (fsync, recovery, removal); nil: inline.
	Workers func(task func())
	// SideBySide runs tasks in any order, perhaps at once, and returns when all
	// are done; nil: one after another.
	SideBySide func(tasks []func())
	// Runner gives who runs the operations on a log directory; alone: the node cannot do without it. nil: whoever calls.
	Runner func(dir string, alone bool) guard.Runner
	// Send sends a request to the active controller; see broker.Send.
	Send broker.Send
	// SendTo sends a request to a broker, this one included; see broker.SendTo. nil:
	// nobody can be reached.
	SendTo broker.SendTo
	// ToQuorum reaches the controllers of a node that is none, for which Send is not
	// used then; nil: nobody does.
	ToQuorum ToQuorum
	// QuorumServes tells what those serve; nil: that is not known.
	QuorumServes QuorumServes
	// FetchFrom reaches the brokers whose partitions are replicated here; nil on a
	// controller.
	FetchFrom FetchFrom
	// MemoryBytes is how much memory this process may use, from which limits are
	// derived; 0: unknown, as much as it likes.
	MemoryBytes int64
	// Settings, if not nil, is told of the configuration with the run-time settings
	// applied: at the start, and when they change. It must not block.
	Settings func(*config.BrokerConfig)
	// KeepReserve keeps a little room in each log directory for a start on a full disk.
	KeepReserve bool
	// Level is what Logger logs, for those who may change it; nil: nobody may.
	Level *slog.LevelVar
	// Fatal is told once, from anywhere, that the node cannot go on.
	Fatal func(error)
	// State is told how far the broker's life has come.
	State func(broker.State)
}

// Node is one node of the cluster: broker and controller in one, or a broker alone.
type Node struct {
	options  Options
	config   *config.BrokerConfig
	pool     *compress.Pool
	prepared *store.Prepared
	wakes    wakes
	spaces   *spaces
	guarded  *guard.FS               // nil without Options.Runner
	runners  map[string]guard.Runner // by directory

	machine  *cluster.Controller
	quorum   *quorum.Quorum
	store    *store.Store
	replicas *replica.Manager
	applier  *broker.Applier
	groups   *shard.Manager
	cleaner  *clean.Cleaner

	transactions transactions

	topicOptions *broker.TopicOptions
	lifecycle    *broker.Lifecycle
	controllers  *broker.ControllerRegistration
	directories  *broker.DirectoryReports
	producerIDs  *broker.ProducerIDs
	channel      *broker.Channel    // to the controllers, nil on one, as these are:
	isr          *broker.ISRChanges // what leaders here wish for
	fetchers     *fetcher.Fetchers  // for followers here
	throttles    *broker.Throttles  // of what followers here and elsewhere fetch
	handler      *api.Handler

	started atomic.Bool
	fresh   bool                                   // the directories were formatted by this start
	report  store.Report                           // what the opening of the directories found
	failed  atomic.Pointer[[]protocol.DirectoryID] // log directories that failed since the start
}

// New formats the directories if they are empty and this node is the only
// voter, checks and locks them, and reads the metadata log. What it refuses is
// named and left as it was.
func New(now time.Time, options Options) (*Node, error) {
	n := &Node{options: options, config: options.Config, pool: compress.NewPool()}
	n.guard()
	n.wakes = newWakes()
	n.spaces = newSpaces(n)
	if options.SideBySide == nil {
		n.options.SideBySide = oneByOne
	}
	if options.SendTo == nil {
		n.options.SendTo = unreachable
	}
	n.failed.Store(&[]protocol.DirectoryID{})
	if err := n.checkRoles(); err != nil {
		return nil, err
	}
	n.join()
	if err := n.format(now); err != nil {
		return nil, err
	}
	var err error
	if n.prepared, err = store.Prepare(n.storeOptions()); err != nil {
		return nil, err
	}
	n.spaces.release()
	if n.config.Controller {
		n.machine = cluster.New(cluster.Options{
			NodeID: n.config.NodeID, ClusterID: n.prepared.ClusterID(), Config: n.config,
			SessionTimeout: millis(int64(n.config.Int("broker.session.timeout.ms"))), Features: ServedFeatures, Random: options.Random,
			KRaftVersion: func() int16 { return n.quorum.Status().KRaftVersion },
		})
	}
	if n.quorum, err = quorum.Open(now, n.quorumOptions()); err != nil {
		return nil, errors.Join(err, n.prepared.Close())
	}
	return n, nil
}

func unreachable(to protocol.NodeID, _ kmsg.Request, done func(kmsg.Response, error)) {
	done(nil, fmt.Errorf("this node has no way to broker %d", to))
}

func oneByOne(tasks []func()) {
	for _, task := range tasks {
		task()
	}
}

// Start is Begin and Open, for a node that is a controller.
func (n *Node) Start(now time.Time) error {
	if err := n.Begin(now); err != nil {
		return err
	}
	return n.Open(now)
}

// Begin starts the quorum. On a controller the metadata is replayed when it returns;
// any other node must be CaughtUp before Open, for which Quorum is ticked.
func (n *Node) Begin(now time.Time) error {
	if n.config.Controller { // else nothing but the metadata changes before Open
		err := offline.RefuseTiered(n.machine.Image()) // while the directories still say that they were left in order
		if err == nil {
			err = n.prepared.Begin()
		}
		if err != nil {
			return errors.Join(err, n.Abandon(now))
		}
	}
	n.spaces.first()
	if err := n.quorum.Start(now); err != nil {
		return errors.Join(err, n.Abandon(now))
	}
	return nil
}

// Open makes the node ready to be ticked: when it returns, the logs are open and the
// replicas have the roles that the metadata gives them.
func (n *Node) Open(now time.Time) error {
	image := n.quorum.Image()
	if !n.config.Controller {
		if err := errors.Join(offline.RefuseTiered(image), n.checkFeatures(image)); err != nil {
			return errors.Join(err, n.Abandon(now))
		}
	}
	warnUnserved(image, n.served(), n.options.Logger)
	n.topicOptions = broker.NewTopicOptions(n.config, image)
	effective := n.followSettings()
	n.prepared.SetRecoveryParallelism(int(effective.Int("num.recovery.threads.per.data.dir")))
	n.prepared.SetAssigned(func(tp protocol.TopicPartition) protocol.DirectoryID {
		if known := image.Partition(tp); known != nil && known.HasReplica(n.config.NodeID) {
			return known.Directory(n.config.NodeID)
		}
		return protocol.DirectoryID{}
	})
	n.prepared.SetTopicID(func(topic string) protocol.TopicID {
		if known := image.Topic(topic); known != nil {
			return known.ID
		}
		return protocol.TopicID{}
	})
	logs, report, err := n.prepared.Load(now, n.topicOptions.Of)
	if err != nil {
		return errors.Join(err, n.Abandon(now))
	}
	n.store, n.report = logs, report
	n.logReport(report)
	n.clean(effective)
	n.assemble(now)
	n.applier.First(now, image)
	n.started.Store(true)
	n.DirectoryStalled()
	return nil
}

// assemble makes the parts that stand on the opened store.
func (n *Node) assemble(now time.Time) {
	incarnation := protocol.NewUUID(n.options.Random)
	n.throttles = broker.NewThrottles(n.config.NodeID)
	n.replicas = replica.New(now, n.replicaOptions())
	n.replicas.Wake = n.wakes.of(partReplicas)
	life := broker.LifecycleOptions{
		NodeID: n.config.NodeID, ClusterID: n.store.ClusterID(), Incarnation: incarnation,
		Endpoints: n.endpoints(n.config.AdvertisedListeners), Features: supportedRanges(n.served()), Rack: n.rack(),
		Directories: n.workingDirectories, Offline: func() []protocol.DirectoryID { return *n.failed.Load() },
		PreviousEpoch:     n.prepared.PreviousBrokerEpoch(),
		MetadataOffset:    func() protocol.Offset { return n.applier.Offset() },
		HeartbeatInterval: millis(int64(n.config.Int("broker.heartbeat.interval.ms"))),
		Send:              n.options.Send, Wake: n.wakes.of(partBroker), OnState: n.options.State, Logger: n.options.Logger,
	}
	n.underControllers(&life)
	n.lifecycle = broker.NewLifecycle(life)
	if n.config.Controller {
		n.controllers = &broker.ControllerRegistration{
			NodeID: n.config.NodeID, Incarnation: incarnation, Endpoints: n.endpoints(n.config.AdvertisedControllers),
			Features: supportedRanges(n.served()), Send: n.options.Send, Wake: n.wakes.of(partBroker), Logger: n.options.Logger,
		}
	}
	n.directories = broker.NewDirectoryReports(n.config.NodeID, n.lifecycle.Epoch, n.options.Send, n.wakes.of(partBroker))
	n.producerIDs = broker.NewProducerIDs(n.config.NodeID, n.lifecycle.Epoch, n.options.Send)
	n.applier = broker.NewApplier(n.config.NodeID, n.topicOptions, n.replicas, n.store, n.directories, n.options.SideBySide, n.options.Logger)
	n.applier.Wake = n.wakes.of(partBroker)
	if !n.config.Controller { // of one node nobody has a copy that could be cut
		n.applier.Incarnation = incarnation
	}
	n.replicate()
	n.applier.Fetchers, n.applier.Throttles = n.fetchers, n.throttles
	n.coordinate()
	n.coordinateTransactions()
	n.handler = api.New(n.apiNode())
}

// onImage follows each committed change. It runs inside the quorum's turn, so
// whoever is told that a topic exists finds its replicas in place.
func (n *Node) onImage(now time.Time, before, after *metadata.Image) {
	if n.started.Load() {
		if !n.config.Controller {
			if err := n.checkFeatures(after); err != nil {
				n.options.Fatal(err)
				return
			}
		}
		n.applier.Apply(now, before, after)
		own := strconv.Itoa(int(n.config.NodeID))
		if !maps.Equal(before.Config(metadata.BrokerConfig, ""), after.Config(metadata.BrokerConfig, "")) ||
			!maps.Equal(before.Config(metadata.BrokerConfig, own), after.Config(metadata.BrokerConfig, own)) {
			n.followSettings()
		}
	}
}

// followSettings passes the run-time settings on to whoever is not reached by the
// topics' options.
func (n *Node) followSettings() *config.BrokerConfig {
	effective, err := n.topicOptions.Node()
	if err != nil {
		n.options.Logger.Warn("the run-time settings of this broker do not go together and are not applied", "error", err)
	}
	n.spaces.set(effective)
	if n.options.Settings != nil {
		n.options.Settings(effective)
	}
	if n.cleaner != nil {
		n.cleaner.Configure(cleanerSettings(effective))
	}
	return effective
}

// Submit hands a request to the controller of this node.
func (n *Node) Submit(now time.Time, req kmsg.Request, done func(kmsg.Response, error)) {
	n.quorum.Submit(now, cluster.Request{Message: req}, func(reply any, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(reply.(kmsg.Response), nil)
	})
}

// Handler answers requests of the listeners.
func (n *Node) Handler() *api.Handler { return n.handler }

// Replicas, Image and Store are for whoever watches a node from within.
func (n *Node) Replicas() *replica.Manager { return n.replicas }

// Image is the last published one; on a controller that does not lead yet, what its directory holds.
func (n *Node) Image() *metadata.Image {
	if image := n.quorum.Image(); image != nil || n.machine == nil {
		return image
	}
	return n.machine.Image()
}

// Store is all logs of the node.
func (n *Node) Store() *store.Store { return n.store }

// State tells how far the broker's life has come.
func (n *Node) State() broker.State { return n.lifecycle.State() }

// Leave begins the controlled shutdown; State becomes broker.Stopped.
func (n *Node) Leave() { n.lifecycle.Leave() }

// Release answers everyone who waits for a replica or a coordinator, so that no
// connection is kept open by a long poll. It comes before Stop.
func (n *Node) Release(now time.Time) error {
	n.applier.Close()
	n.groups.Close(now)
	n.transactions.shards.Close(now)
	if n.fetchers != nil {
		n.fetchers.Close()
	}
	return n.replicas.Close(now)
}

// Stop closes everything in order. Nothing may use the node any more. A clean
// stop leaves the markers by which the next start trusts the files.
func (n *Node) Stop(now time.Time, clean bool) error {
	if n.cleaner != nil {
		n.cleaner.Close()
	}
	failures := []error{n.quorum.Close(now)}
	clean = clean && errors.Join(failures...) == nil
	failures = append(failures, n.store.Close(now, clean, n.lifecycle.Epoch()))
	return errors.Join(failures...)
}

func (n *Node) workingDirectories() []protocol.DirectoryID {
	var working []protocol.DirectoryID
	for _, directory := range n.store.Directories() {
		if directory.Offline == nil {
			working = append(working, directory.ID)
		}
	}
	return working
}

// directoryFailed takes a failed directory out of service. Without the
// metadata's directory, or without any, the node cannot go on.
func (n *Node) directoryFailed(directory store.Directory) {
	n.options.Logger.Error("a log directory failed and is offline", "directory", directory.Path, "error", directory.Offline)
	if n.store == nil {
		return // while it is being loaded: Load judges whether the node can start, and the registration leaves it out
	}
	for {
		before := n.failed.Load()
		after := append(append([]protocol.DirectoryID{}, *before...), directory.ID)
		if n.failed.CompareAndSwap(before, &after) {
			break
		}
	}
	if n.replicas != nil {
		n.replicas.DirectoryFailed(directory.ID)
	}
	if n.lifecycle != nil {
		n.lifecycle.Hasten()
	}
	switch {
	case directory.Path == path.Clean(n.config.MetadataLogDir):
		n.options.Fatal(fmt.Errorf("the metadata log directory %s failed: %w", directory.Path, directory.Offline))
	case len(n.workingDirectories()) == 0:
		n.options.Fatal(fmt.Errorf("all log directories failed, the last was %s: %w", directory.Path, directory.Offline))
	}
}

func (n *Node) quorumOptions() quorum.Options {
	env := log.Env{
		FS: n.options.FS, Files: segment.NewFileCache(n.options.FS, 16), Pool: n.pool, Logger: n.options.Logger, Random: n.options.Random,
	}
	metadataDirectory := n.prepared.MetadataDirectory()
	return quorum.Options{
		Env: env, Dir: metadataDirectory.Path, Local: raft.ReplicaKey{ID: n.config.NodeID, Directory: metadataDirectory.ID},
		Trust: n.metadataTrust(), Machine: n.machine, Observe: n.observe(),
		StaticVoters: staticVoters(n.config), Endpoints: n.raftEndpoints(),
		SegmentBytes:   n.config.Long("metadata.log.segment.bytes"),
		SegmentAge:     millis(n.config.Long("metadata.log.segment.ms")),
		SnapshotBytes:  n.config.Long("metadata.log.max.record.bytes.between.snapshots"),
		SnapshotAge:    millis(n.config.Long("metadata.log.max.snapshot.interval.ms")),
		RetentionBytes: n.config.Long("metadata.max.retention.bytes"),
		RetentionAge:   millis(n.config.Long("metadata.max.retention.ms")),
		OnImage:        n.onImage, OnFatal: n.options.Fatal, Wake: n.wakes.of(partQuorum), Logger: n.options.Logger,
	}
}
