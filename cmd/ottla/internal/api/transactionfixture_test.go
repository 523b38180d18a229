package api

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/shard"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/compress"
	"ottla/protocol/schema"
	"ottla/protocol/server"
)

// transactionFixture has the coordinators of transactions, and what carries out
// what they decide over a connection of the node to itself.
type transactionFixture struct {
	f         *fixture
	shards    *shard.Manager
	markers   *broker.Markers
	additions *broker.Additions
	spread    *broker.Spread
	version   int16 // transaction.version
	holdback  bool  // nothing is sent between brokers

	loop  *server.Server
	mu    sync.Mutex
	peers map[int16]*client.Client
	wake  chan struct{}
	ended chan struct{}
}

// statePartitions is how many partitions __transaction_state has in tests.
const statePartitions = 3

func (f *fixture) openTransactions(settings *config.BrokerConfig, logger *slog.Logger) {
	t := &f.transactions
	t.f, t.version, t.peers = f, 2, map[int16]*client.Client{}
	t.wake, t.ended = make(chan struct{}, 1), make(chan struct{})
	t.spread = broker.NewSpread(protocol.TransactionStateTopic, int(settings.Int("transaction.state.log.num.partitions")), f.metadata)
	machines := txn.Options{Settings: txn.SettingsOf(settings), Version: func() int16 { return t.version }}
	t.shards = shard.New(shard.Options{
		Topic: protocol.TransactionStateTopic, Replicas: f.replicas, Pool: compress.NewPool(), Logger: logger,
		NewMachine: func(int32) machine.Machine { return txn.New(machines) },
		OnEffect:   func(partition int32, effect any) { t.markers.Carry(partition, effect) },
	})
	wake := func() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	t.markers = broker.NewMarkers(broker.MarkersOptions{
		NodeID: 1, Image: f.metadata, SendTo: t.sendTo, Submit: t.shards.Submit, Wake: wake, Logger: slog.New(slog.DiscardHandler),
		ProducerID: func(done func(protocol.ProducerID, error)) { f.handler.node.ProducerIDs.Next(done) },
	})
	t.additions = broker.NewAdditions(broker.AdditionsOptions{
		Image: f.metadata, SendTo: t.sendTo, PartitionFor: t.spread.PartitionFor, RetryPause: 20 * time.Millisecond, RetryMost: 0,
		Wake: wake, Logger: slog.New(slog.DiscardHandler),
	})
	t.loop = server.New(server.HandlerFunc(func(req *server.Request) { f.handler.Handle(req) }), server.Options{Supported: Supported, Now: f.now})
	go t.pump()
}

func (t *transactionFixture) pump() {
	defer close(t.ended)
	for range t.wake {
		t.markers.Tick(t.f.now())
		t.additions.Tick(t.f.now())
	}
}

func (t *transactionFixture) sendTo(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	if to != 1 || t.holdback {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	peer := t.peers[req.Key()]
	if peer == nil {
		peer = client.New(func() (net.Conn, error) {
			near, far := server.NewPipe()
			t.loop.ServeConn(far, server.Listener{Name: externalListener, Protocol: "PLAINTEXT", Scope: protocol.OnBroker})
			return near, nil
		}, client.Options{})
		t.peers[req.Key()] = peer
	}
	peer.Send(req, 0, done)
}

func (t *transactionFixture) close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.loop.Close(ended)
	for _, peer := range t.peers {
		peer.Close()
	}
	close(t.wake)
	<-t.ended
	t.shards.Close(t.f.now())
}

// coordinateTransactions creates __transaction_state, led by node 1, and waits
// until its partitions are loaded.
func (f *fixture) coordinateTransactions() {
	f.t.Helper()
	id := topicID(protocol.TransactionStateTopic)
	created := schema.NewTopicRecord()
	created.Name, created.TopicID = protocol.TransactionStateTopic, id
	records := []schema.MetadataRecord{created}
	for n := range statePartitions {
		records = append(records, partitionRecord(id, int32(n), topicSpec{leader: 1, replicas: []protocol.NodeID{1}}))
	}
	f.write(records...)
	for len(f.transactions.shards.Partitions()) < statePartitions {
		f.transactions.shards.Tick(f.now())
	}
	for _, active, _ := f.transactions.shards.Counts(); active < statePartitions; _, active, _ = f.transactions.shards.Counts() {
		f.transactions.shards.Tick(f.now())
	}
}
