package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/group"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/protocol/server"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/replica"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// fixture is a Handler behind a real server.Server (connections are in memory), on
// a real replica.Manager and store (the disk is in memory), with a metadata Image
// made of records that the test writes. Node 1 is the broker; 2 and 3 exist only
// in the metadata. The controller is a function of the test's.
type fixture struct {
	t        testing.TB
	clock    atomic.Int64 // nanoseconds since 1970
	store    *store.Store
	replicas *replica.Manager
	groups   *shard.Manager

	transactions transactionFixture
	applier      *broker.Applier
	handler      *Handler
	server       *server.Server
	handled      chan *server.Request // each request for which Handle has returned

	mu     sync.Mutex
	image  *metadata.Image
	offset protocol.Offset
	// controller answers what is forwarded or submitted; nil: nobody does.
	controller func(req kmsg.Request) (kmsg.Response, error)
	// asked are the requests that went to the controller, oldest first.
	asked  []kmsg.Request
	errors []string // what was logged at level Error
}

const (
	fixtureClusterID = "fixture-cluster-id-001"
	externalListener = "PLAINTEXT"
	internalListener = "INTERNAL"
)

var fixtureStart = time.UnixMilli(1_800_000_000_000)

// newFixture makes one with three brokers and no topics. change may alter the Node
// before its Handler is made.
func newFixture(t testing.TB, change ...func(*Node)) *fixture {
	t.Helper()
	f := &fixture{t: t, image: metadata.Empty(), handled: make(chan *server.Request, 1000)}
	f.clock.Store(fixtureStart.UnixNano())
	settings, _, err := config.Broker(config.Default())
	f.must(err)
	logger := slog.New(errorLog{slog.DiscardHandler, f})
	f.openStore(settings, logger)
	node := Node{
		ID: 1, ClusterID: fixtureClusterID, Config: settings, Replicas: f.replicas, Groups: f.groups, Image: f.metadata,
		Transactions: f.transactions.shards, TransactionPartition: f.transactions.spread.PartitionFor, Additions: f.transactions.additions,
		KRaftVersion: func() int16 { return 1 },
		Submit:       func(_ time.Time, req kmsg.Request, done func(kmsg.Response, error)) { done(f.ask(req)) },
		Forward:      func(req kmsg.Request, done func(kmsg.Response, error)) { done(f.ask(req)) },
		BrokerEpoch:  func() protocol.BrokerEpoch { return 1 },
		Features: map[string]cluster.Range{
			metadata.MetadataVersionFeature: {Min: int16(metadata.MinMetadataVersion), Max: int16(metadata.MaxMetadataVersion)},
			metadata.KRaftVersionFeature:    {Min: 0, Max: 1},
		},
		Random: f.random(3), Logger: logger, Store: f.store, Level: new(slog.LevelVar),
	}
	node.ProducerIDs = broker.NewProducerIDs(1, node.BrokerEpoch, node.Forward)
	for _, c := range change {
		c(&node)
	}
	f.handler = New(node)
	f.server = server.New(server.HandlerFunc(func(req *server.Request) {
		f.handler.Handle(req)
		f.handled <- req
	}), server.Options{Supported: Supported, Now: f.now, ConnectionClosed: f.handler.ConnectionClosed, Logger: logger})
	t.Cleanup(f.close)
	f.write(featureRecord(metadata.MetadataVersionFeature, int16(metadata.MaxMetadataVersion)),
		brokerRecord(1), brokerRecord(2), brokerRecord(3))
	return f
}

func (f *fixture) openStore(settings *config.BrokerConfig, logger *slog.Logger) {
	f.t.Helper()
	disk := vfs.NewMem(f.random(1))
	f.must(disk.MkdirAll("/data"))
	f.must(logdir.WriteMetaProperties(disk, "/data", logdir.MetaProperties{ClusterID: fixtureClusterID, NodeID: 1, DirectoryID: protocol.DirectoryID{9}}))
	options := broker.NewTopicOptions(settings, f.metadata())
	var err error
	f.store, _, err = store.Open(f.now(), store.Options{
		FS: disk, Dirs: []string{"/data"}, NodeID: 1, Pool: compress.NewPool(), Random: f.random(2), DisableBackgroundFlush: true,
		LogOptions: options.Of,
	})
	f.must(err)
	f.replicas = replica.New(f.now(), replica.Options{
		NodeID: 1, Store: f.store, Pool: compress.NewPool(), QueueBatches: 3,
		Known: func(tp protocol.TopicPartition) bool { return f.metadata().Partition(tp) != nil },
	})
	f.groups = shard.New(shard.Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: f.replicas, Pool: compress.NewPool(), Logger: logger,
		NewMachine: func(int32) machine.Machine {
			return group.New(group.Options{Settings: group.SettingsOf(f.handler.node.Config), Random: f.random(4), Image: f.metadata})
		},
	})
	f.openTransactions(settings, logger)
	none := func(kmsg.Request, func(kmsg.Response, error)) {}
	reports := broker.NewDirectoryReports(1, func() protocol.BrokerEpoch { return 1 }, none, func() {})
	f.applier = broker.NewApplier(1, options, f.replicas, f.store, reports, func(tasks []func()) {
		for _, task := range tasks {
			task()
		}
	}, logger)
	f.applier.Coordinate(&broker.Coordinators{Topic: protocol.TransactionStateTopic, Shards: f.transactions.shards})
	f.applier.Coordinate(&broker.Coordinators{
		Topic: protocol.ConsumerOffsetsTopic, Shards: f.groups,
		TopicsDeleted: func(topics []*metadata.Topic) any {
			var event group.TopicsDeleted
			for _, topic := range topics {
				event.Topics = append(event.Topics, group.DeletedTopic{Name: topic.Name, ID: topic.ID})
			}
			return event
		},
	})
}

func (f *fixture) close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // whoever still waits is cut
	_ = f.server.Close(ended)
	f.groups.Close(f.now())
	f.transactions.close()
	_ = f.replicas.Close(f.now())
	_ = f.store.Close(f.now(), false, -1)
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) random(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 1))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

func (f *fixture) now() time.Time { return time.Unix(0, f.clock.Load()) }

// pass lets time pass and does what is due then.
func (f *fixture) pass(d time.Duration) {
	f.clock.Add(int64(d))
	f.replicas.Tick(f.now())
	f.settle()
}

// settle lets the coordinators do what is due, until nothing is.
func (f *fixture) settle() {
	for at := f.groups.NextDeadline(); !at.IsZero() && !at.After(f.now()); at = f.groups.NextDeadline() {
		f.groups.Tick(f.now())
	}
}

func (f *fixture) metadata() *metadata.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.image
}

// ask is the way to the controller.
func (f *fixture) ask(req kmsg.Request) (kmsg.Response, error) {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	controller := f.controller
	f.mu.Unlock()
	if controller == nil {
		return nil, errors.New("there is no controller")
	}
	return controller(req)
}

// write publishes a new Image with the records, and lets the replicas follow it.
func (f *fixture) write(records ...schema.MetadataRecord) {
	f.t.Helper()
	before := f.metadata()
	delta := metadata.NewDelta(before)
	for _, r := range records {
		f.must(delta.Replay(f.offset, 1, r))
		f.offset++
	}
	after := delta.Build(metadata.Provenance{Offset: f.offset - 1, Epoch: 1, TimestampMs: f.now().UnixMilli()})
	f.mu.Lock()
	f.image = after
	f.mu.Unlock()
	f.applier.Apply(f.now(), before, after)
}

func featureRecord(name string, level int16) *schema.FeatureLevelRecord {
	r := schema.NewFeatureLevelRecord()
	r.Name, r.FeatureLevel = name, level
	return r
}

// brokerRecord registers a broker that is not fenced, with two listeners, at
// external-N:9092 and internal-N:9094, in rack-N.
func brokerRecord(id protocol.NodeID) *schema.RegisterBrokerRecord {
	digit := string(rune('0' + id))
	rack := "rack-" + digit
	r := schema.NewRegisterBrokerRecord()
	r.BrokerID, r.BrokerEpoch, r.Fenced, r.Rack = id, protocol.BrokerEpoch(id), false, &rack
	r.EndPoints = []schema.BrokerEndpoint{
		{Name: externalListener, Host: "external-" + digit, Port: 9092},
		{Name: internalListener, Host: "internal-" + digit, Port: 9094},
	}
	r.LogDirs = []protocol.UUID{{9}}
	return r
}

// topicSpec describes a topic for topic.
type topicSpec struct {
	partitions int               // 0: 1
	leader     protocol.NodeID   // 0: node 1
	replicas   []protocol.NodeID // nil: the leader alone
	epoch      protocol.LeaderEpoch
	configs    map[string]string
}

// topicID is the id that topic gives a name: stable, and none that is reserved.
func topicID(name string) protocol.TopicID {
	id := protocol.TopicID{0: 7}
	copy(id[1:], name)
	return id
}

// topic creates a topic with the id topicID(name).
func (f *fixture) topic(name string, spec topicSpec) protocol.TopicID {
	f.t.Helper()
	if spec.partitions == 0 {
		spec.partitions = 1
	}
	if spec.leader == 0 {
		spec.leader = 1
	}
	if spec.replicas == nil {
		spec.replicas = []protocol.NodeID{spec.leader}
	}
	id := topicID(name)
	var records []schema.MetadataRecord
	for key, value := range spec.configs {
		r := schema.NewConfigRecord()
		r.ResourceType, r.ResourceName, r.Name, r.Value = metadata.TopicConfig, name, key, &value
		records = append(records, r)
	}
	created := schema.NewTopicRecord()
	created.Name, created.TopicID = name, id
	records = append(records, created)
	for n := range spec.partitions {
		records = append(records, partitionRecord(id, int32(n), spec))
	}
	f.write(records...)
	return id
}

func partitionRecord(id protocol.TopicID, n int32, spec topicSpec) *schema.PartitionRecord {
	r := schema.NewPartitionRecord()
	r.PartitionID, r.TopicID, r.Leader, r.LeaderEpoch, r.PartitionEpoch = n, id, spec.leader, spec.epoch, int32(spec.epoch)
	r.Replicas, r.ISR = spec.replicas, spec.replicas
	r.Directories = make([]protocol.UUID, len(spec.replicas))
	for i := range r.Directories {
		r.Directories[i] = protocol.DirectoryID{9}
	}
	return r
}

// deleteTopic removes a topic.
func (f *fixture) deleteTopic(name string) {
	f.t.Helper()
	r := schema.NewRemoveTopicRecord()
	r.TopicID = f.metadata().Topic(name).ID
	f.write(r)
}

// errorLog collects the messages of level Error.
type errorLog struct {
	slog.Handler
	f *fixture
}

func (errorLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l errorLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l errorLog) Handle(_ context.Context, r slog.Record) error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.errors = append(l.f.errors, r.Message)
	return nil
}

// peer is a client on one connection. Not for several goroutines.
type peer struct {
	f        *fixture
	conn     net.Conn
	clientID *string
	last     int32 // correlation id
}

// connect opens a connection to the broker's listener for clients.
func (f *fixture) connect() *peer {
	return f.connectTo(server.Listener{Name: externalListener, Protocol: "PLAINTEXT", Scope: protocol.OnBroker})
}

// connectController opens one to the controller's listener.
func (f *fixture) connectController() *peer {
	return f.connectTo(server.Listener{Name: "CONTROLLER", Protocol: "PLAINTEXT", Scope: protocol.OnController})
}

// connectAs opens one to a listener that serves any of the scopes.
func (f *fixture) connectAs(scope protocol.Scope) *peer {
	if scope&protocol.OnBroker != 0 {
		return f.connect()
	}
	return f.connectController()
}

func (f *fixture) connectTo(listener server.Listener) *peer {
	client, end := server.NewPipe()
	f.server.ServeConn(end, listener)
	id := "test"
	p := &peer{f: f, conn: client, clientID: &id}
	return p
}

// send sends a request in a version, waits until its handler has returned, and
// gives the server's side of it.
func (p *peer) send(req kmsg.Request, version int16) *server.Request {
	p.f.t.Helper()
	req.SetVersion(version)
	p.last++
	p.sendFrame(wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: p.last, ClientID: p.clientID}, req))
	return <-p.f.handled
}

// sendFrame sends bytes as they are.
func (p *peer) sendFrame(frame []byte) {
	p.f.t.Helper()
	_, err := p.conn.Write(frame)
	p.f.must(err)
}

// receive gives the answer to the oldest request that has none yet.
func (p *peer) receive(req kmsg.Request) kmsg.Response {
	p.f.t.Helper()
	frame, err := p.receiveFrame()
	p.f.must(err)
	_, resp, err := wire.ReadResponse(frame, req)
	p.f.must(err)
	return resp
}

func (p *peer) receiveFrame() ([]byte, error) {
	var length [wire.LengthBytes]byte
	if _, err := io.ReadFull(p.conn, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(p.conn, frame)
	return frame, err
}

// request sends a request and gives its answer.
func request[R kmsg.Response](p *peer, req kmsg.Request, version int16) R {
	p.f.t.Helper()
	p.send(req, version)
	resp, ok := p.receive(req).(R)
	if !ok {
		p.f.t.Fatalf("the answer to %T is not the one expected", req)
	}
	if resp.GetVersion() != version {
		p.f.t.Fatalf("the answer to version %d has version %d", version, resp.GetVersion())
	}
	return resp
}

// expectClosed fails unless the connection ends without another byte.
func (p *peer) expectClosed() {
	p.f.t.Helper()
	if frame, err := p.receiveFrame(); err == nil {
		p.f.t.Fatalf("an answer of %d bytes where the connection should have been closed", len(frame))
	}
}

// versions calls test for every version that this build serves of an API.
func versions(t *testing.T, key protocol.APIKey, test func(t *testing.T, version int16)) {
	t.Helper()
	a := find(registry, key)
	if a == nil {
		t.Fatalf("%s is not in the registry", key)
	}
	for v := a.MinVersion; v <= a.MaxVersion; v++ {
		t.Run("v"+string(rune('0'+v/10))+string(rune('0'+v%10)), func(t *testing.T) { test(t, v) })
	}
}

// batchOf makes a batch of plain records with key "key".
func batchOf(values ...string) []byte { return buildBatch(record.PlainOptions(), values...) }

func buildBatch(options record.Options, values ...string) []byte {
	b := record.NewBuilder(options)
	for i, value := range values {
		b.Append(fixtureStart.UnixMilli()+int64(i), []byte("key"), []byte(value), nil)
	}
	return b.Build(compress.NewPool())
}

// denied is an Authorizer that refuses the resources in it, for any operation, and
// notes what it was asked.
type denied struct {
	mu    sync.Mutex
	names map[string]bool
	any   bool // refuses AllowedAny
	asked []authorization
}

type authorization struct {
	operation kmsg.ACLOperation
	kind      kmsg.ACLResourceType
	name      string
}

func deny(names ...string) *denied {
	d := &denied{names: map[string]bool{}}
	for _, name := range names {
		d.names[name] = true
	}
	return d
}

func (d *denied) Allowed(_ Requester, operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, authorization{operation, kind, name})
	return !d.names[name]
}

func (d *denied) AllowedAny(_ Requester, operation kmsg.ACLOperation, kind kmsg.ACLResourceType) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, authorization{operation, kind, "*"})
	return !d.any
}

// wasAsked tells whether the authorizer was asked exactly this.
func (d *denied) wasAsked(operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if a == (authorization{operation, kind, name}) {
			return true
		}
	}
	return false
}

func ptr[T any](value T) *T { return &value }

// withProperty gives the node another configuration.
func withProperty(name, value string) func(*Node) {
	return func(n *Node) {
		settings, _, err := config.Broker(config.Layer(config.Default(), []config.Property{{Name: name, Value: value, Origin: config.FromOverride}}))
		if err != nil {
			panic(err)
		}
		n.Config = settings
	}
}

// appendTransaction writes what a transaction of an opened directory looks like: a
// batch, and then, unless it stays open, the marker of its abort.
func (f *fixture) appendTransaction(topic string, id protocol.ProducerID, open bool) {
	f.t.Helper()
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, 0, 0, true
	tp := protocol.TopicPartition{Topic: topic}
	guard, err := f.replicas.BeginVerification(f.now(), tp, replica.VerificationRequest{ProducerID: id})
	f.must(err)
	f.replicas.Append(f.now(), replica.AppendRequest{
		Partition: tp, Records: buildBatch(o, "transactional"), Origin: log.OriginClient, RequiredAcks: replica.AcksLeader, Guard: guard,
	}, func(result replica.AppendResult) { f.must(result.Err) })
	if !open {
		f.append(topic, log.OriginMarker, record.BuildEndTxnMarker(record.EndTxnMarker{Type: record.ControlAbort}, f.now().UnixMilli(), id, 0))
	}
}

// append appends to partition 0 without the handler.
func (f *fixture) append(topic string, origin log.Origin, batch []byte) {
	f.t.Helper()
	f.replicas.Append(f.now(), replica.AppendRequest{
		Partition: protocol.TopicPartition{Topic: topic}, Records: batch, Origin: origin, RequiredAcks: replica.AcksLeader,
	}, func(result replica.AppendResult) { f.must(result.Err) })
}
