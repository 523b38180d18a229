package api

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
	"ottla/protocol/server"
	"ottla/protocol/wire"
)

const (
	plain      = "PLAINTEXT"
	other      = "OTHER"
	controller = "CONTROLLER"
)

// testCluster is one node with a real controller core behind its handler: requests
// come in as bytes on in-memory connections, those for the controller travel on
// through its own listener, and what it decides is applied at once.
type testCluster struct {
	t       *testing.T
	handler *Handler
	server  *server.Server

	mu         sync.Mutex
	controller *cluster.Controller
	next       protocol.Offset
	now        time.Time
	forwarded  []kmsg.Request // to the controller, in order
	forwardErr error          // the answer to whatever is forwarded
	submitErr  error          // the answer to whatever is submitted
	held       chan struct{}  // if set, forwarding waits for it

	conns   map[string]net.Conn
	holding sync.WaitGroup // forwarded requests that are held
}

func newTestCluster(t *testing.T, authorizer Authorizer, properties ...string) *testCluster {
	t.Helper()
	given, err := config.FromOverrides(properties)
	if err != nil {
		t.Fatal(err)
	}
	settings, _, err := config.Broker(config.Layer(config.Default(), given))
	if err != nil {
		t.Fatal(err)
	}
	var seed atomic.Uint64 // drawn from by several connections at once
	random := func() uint64 { return seed.Add(0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 >> 11 }
	features := map[string]cluster.Range{metadata.MetadataVersionFeature: {Min: int16(metadata.MinMetadataVersion), Max: int16(metadata.MaxMetadataVersion)}}
	f := &testCluster{t: t, now: time.UnixMilli(1_800_000_000_000), next: 1, conns: map[string]net.Conn{}, controller: cluster.New(cluster.Options{
		NodeID: 1, ClusterID: "cluster", Config: settings, SessionTimeout: 9 * time.Second, Random: random, Features: features,
	})}
	level := schema.NewFeatureLevelRecord()
	level.Name, level.FeatureLevel = metadata.MetadataVersionFeature, int16(metadata.MaxMetadataVersion)
	if err := f.controller.Restore(0, 0, -1, []machine.Record{{Value: schema.EncodeMetadata(level, 0)}}); err != nil {
		t.Fatal(err)
	}
	result, err := f.controller.Activate(machine.Turn{Now: f.now, Next: f.next}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.apply(result)
	f.handler = New(Node{
		ID: 1, ClusterID: "cluster", Config: settings, Features: features, Random: random, Authorize: authorizer,
		Image: f.image, Submit: f.submit, Forward: f.forward, ControllerID: func() protocol.NodeID { return 1 },
	})
	f.server = server.New(f.handler, server.Options{Supported: Supported})
	t.Cleanup(func() {
		for _, conn := range f.conns {
			_ = conn.Close()
		}
		_ = f.server.Close(context.Background())
	})
	return f
}

func (f *testCluster) apply(result machine.Result) {
	if len(result.Records) == 0 {
		return
	}
	if err := f.controller.Apply(f.next, 1, f.now.UnixMilli(), result.Records); err != nil {
		panic(err)
	}
	f.next += protocol.Offset(len(result.Records))
}

func (f *testCluster) image() *metadata.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.controller.Image()
}

func (f *testCluster) submit(_ time.Time, req kmsg.Request, done func(kmsg.Response, error)) {
	f.mu.Lock()
	if err := f.submitErr; err != nil {
		f.mu.Unlock()
		done(nil, err)
		return
	}
	result, err := f.controller.Handle(machine.Turn{Now: f.now, Next: f.next}, cluster.Request{Message: req})
	if err == nil {
		f.apply(result)
	}
	f.mu.Unlock()
	resp, _ := result.Reply.(kmsg.Response)
	done(resp, err)
}

// forward stands for the channel between nodes: the request becomes bytes and comes
// in on the controller's listener.
func (f *testCluster) forward(req kmsg.Request, done func(kmsg.Response, error)) {
	f.mu.Lock()
	f.forwarded = append(f.forwarded, req)
	err, held := f.forwardErr, f.held
	f.mu.Unlock()
	if held != nil {
		f.holding.Go(func() {
			<-held
			done(f.exchange("forward", controller, req), nil)
		})
		return
	}
	if err != nil {
		done(nil, err)
		return
	}
	done(f.exchange("forward", controller, req), nil)
}

// exchange sends a request on the connection of a name, made when first needed, and
// reads the response.
func (f *testCluster) exchange(name, listener string, req kmsg.Request) kmsg.Response {
	f.t.Helper()
	f.mu.Lock()
	conn := f.conns[name]
	if conn == nil {
		scope := protocol.OnBroker
		if listener == controller {
			scope = protocol.OnController
		}
		var far net.Conn
		conn, far = server.NewPipe()
		f.server.ServeConn(far, server.Listener{Name: listener, Protocol: "PLAINTEXT", Scope: scope})
		f.conns[name] = conn
	}
	f.mu.Unlock()
	if _, err := conn.Write(wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: 7}, req)); err != nil {
		f.t.Error(err)
		return nil
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		f.t.Errorf("%T version %d on %s: %v", req, req.GetVersion(), listener, err)
		return nil
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		f.t.Error(err)
		return nil
	}
	_, resp, err := wire.ReadResponse(frame, req)
	if err != nil {
		f.t.Errorf("%T version %d: %v", req, req.GetVersion(), err)
		return nil
	}
	return resp
}

// askOn sends a request on a listener.
func askOn[R kmsg.Response](f *testCluster, listener string, req kmsg.Request) R {
	f.t.Helper()
	resp, ok := f.exchange(listener, listener, req).(R)
	if !ok {
		f.t.FailNow()
	}
	return resp
}

// ask sends a request on the broker's listener PLAINTEXT.
func ask[R kmsg.Response](f *testCluster, req kmsg.Request) R {
	f.t.Helper()
	return askOn[R](f, plain, req)
}

func registration(id int32) *kmsg.BrokerRegistrationRequest {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.Version, req.BrokerID, req.ClusterID, req.IncarnationID = 4, id, "cluster", [16]byte{byte(id)}
	req.LogDirs = [][16]byte{{0xd0, byte(id)}}
	req.Features = []kmsg.BrokerRegistrationRequestFeature{{Name: metadata.MetadataVersionFeature, MinSupportedVersion: 7, MaxSupportedVersion: 33}}
	for i, name := range []string{plain, other} {
		req.Listeners = append(req.Listeners, kmsg.BrokerRegistrationRequestListener{Name: name, Host: "host" + string(rune('0'+id)), Port: uint16(9092 + 1000*i)})
	}
	rack := "rack" + string(rune('0'+id))
	req.Rack = &rack
	return req
}

// register registers a broker, which is then fenced.
func (f *testCluster) register(req *kmsg.BrokerRegistrationRequest) (epoch int64) {
	f.t.Helper()
	resp := askOn[*kmsg.BrokerRegistrationResponse](f, controller, req)
	if resp.ErrorCode != 0 {
		f.t.Fatalf("registration of %d: %v", req.BrokerID, protocol.ErrorCode(resp.ErrorCode))
	}
	return resp.BrokerEpoch
}

// join registers brokers and unfences them.
func (f *testCluster) join(ids ...int32) {
	f.t.Helper()
	for _, id := range ids {
		f.beat(id, f.register(registration(id)))
	}
}

func (f *testCluster) beat(id int32, epoch int64, offline ...[16]byte) *kmsg.BrokerHeartbeatResponse {
	f.t.Helper()
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.Version, req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset, req.OfflineLogDirs = 1, id, epoch, epoch, offline
	resp := askOn[*kmsg.BrokerHeartbeatResponse](f, controller, req)
	if resp.ErrorCode != 0 || resp.IsFenced {
		f.t.Fatalf("heartbeat of %d: %+v", id, resp)
	}
	return resp
}

// assign tells the controller in which directory partition 0 of a topic lies.
func (f *testCluster) assign(id int32, epoch int64, dir [16]byte, topic protocol.TopicID) {
	f.t.Helper()
	req := kmsg.NewPtrAssignReplicasToDirsRequest()
	req.BrokerID, req.BrokerEpoch = id, epoch
	req.Directories = []kmsg.AssignReplicasToDirsRequestDirectory{{ID: dir, Topics: []kmsg.AssignReplicasToDirsRequestDirectoryTopic{{
		TopicID: topic, Partitions: []kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{{Partition: 0}},
	}}}}
	resp := askOn[*kmsg.AssignReplicasToDirsResponse](f, controller, req)
	if resp.ErrorCode != 0 || resp.Directories[0].Topics[0].Partitions[0].ErrorCode != 0 {
		f.t.Fatalf("assigning directories: %+v", resp)
	}
}

func createRequest(version int16, topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.Topics = version, 1000, topics
	return req
}

func newTopic(name string, partitions int32, factor int16, settings ...string) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, factor
	for pair := range slices.Chunk(settings, 2) {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: pair[0], Value: kmsg.StringPtr(pair[1])})
	}
	return topic
}

// create makes topics that must succeed and gives their ids by name.
func (f *testCluster) create(topics ...kmsg.CreateTopicsRequestTopic) map[string]protocol.TopicID {
	f.t.Helper()
	ids := map[string]protocol.TopicID{}
	for _, topic := range ask[*kmsg.CreateTopicsResponse](f, createRequest(7, topics...)).Topics {
		if topic.ErrorCode != 0 {
			f.t.Fatalf("topic %s: %v %s", topic.Topic, protocol.ErrorCode(topic.ErrorCode), deref(topic.ErrorMessage))
		}
		ids[topic.Topic] = topic.TopicID
	}
	return ids
}

func (f *testCluster) setHeld(held chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
}

func (f *testCluster) failForwarding(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forwardErr = err
}

func (f *testCluster) failSubmitting(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitErr = err
}

func (f *testCluster) countForwarded() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.forwarded)
}

// granted is an authorizer that allows everything to those who come in on a
// controller's listener, and to others what it lists as "OPERATION name".
type granted map[string]bool

func allow(rights ...string) granted {
	g := granted{}
	for _, r := range rights {
		g[r] = true
	}
	return g
}

func (g granted) Allowed(who Requester, operation kmsg.ACLOperation, _ kmsg.ACLResourceType, name string) bool {
	if who.Listener == controller || g[operation.String()+" "+name] {
		return true
	}
	if operation != kmsg.ACLOperationDescribe {
		return false
	}
	for _, implying := range []string{"READ", "WRITE", "DELETE", "ALTER"} { // as Kafka's authorizer has it
		if g[implying+" "+name] {
			return true
		}
	}
	return false
}

func (g granted) AllowedAny(Requester, kmsg.ACLOperation, kmsg.ACLResourceType) bool { return false }

// codeOf makes a code of a number, so that failures print its name.
type codeOf = protocol.ErrorCode
