package node

import (
	"time"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/controller/txn"
	"ottla/protocol"
)

// transactions is what a node has for transactions.
type transactions struct {
	shards    *shard.Manager    // the coordinators
	markers   *broker.Markers   // carries out what they decide
	additions *broker.Additions // asks them about what producers write to
	spread    *broker.Spread
}

// Transactions runs the coordinators of transactions on this node.
func (n *Node) Transactions() *shard.Manager { return n.transactions.shards }

// coordinateTransactions makes the coordinators of transactions follow the
// leadership of their partitions.
func (n *Node) coordinateTransactions() {
	t := &n.transactions
	t.spread = broker.NewSpread(protocol.TransactionStateTopic, int(n.config.Int("transaction.state.log.num.partitions")), n.quorum.Image)
	t.shards = shard.New(n.transactionOptions())
	t.markers = broker.NewMarkers(broker.MarkersOptions{
		NodeID: n.config.NodeID, Image: n.quorum.Image, SendTo: n.options.SendTo,
		Submit: t.shards.Submit, ProducerID: n.producerIDs.Next,
		Wake: n.wakes.of(partMarkers), Logger: n.options.Logger,
	})
	t.additions = broker.NewAdditions(broker.AdditionsOptions{
		Image: n.quorum.Image, SendTo: n.options.SendTo, PartitionFor: t.spread.PartitionFor,
		RetryPause: millis(int64(n.config.Int("add.partitions.to.txn.retry.backoff.ms"))),
		RetryMost:  millis(int64(n.config.Int("add.partitions.to.txn.retry.backoff.max.ms"))),
		Wake:       n.wakes.of(partMarkers), Logger: n.options.Logger,
	})
	n.applier.Coordinate(&broker.Coordinators{Topic: protocol.TransactionStateTopic, Shards: t.shards})
}

func (n *Node) transactionOptions() shard.Options {
	machines := txn.Options{
		Settings:      txn.SettingsOf(n.config),
		Version:       func() int16 { return n.quorum.Image().Feature(metadata.TransactionVersionFeature) },
		MaxBatchBytes: func() int { return n.transactions.shards.MaxBatchBytes() - batchOverhead },
	}
	return shard.Options{
		Topic: protocol.TransactionStateTopic, Replicas: n.replicas, Pool: n.pool,
		NewMachine:   func(int32) machine.Machine { return txn.New(machines) },
		OnEffect:     func(partition int32, effect any) { n.transactions.markers.Carry(partition, effect) },
		ReplyTimeout: millis(int64(n.config.Int("request.timeout.ms"))),
		LoadBytes:    int(n.config.Int("transaction.state.log.load.buffer.size")),
		Workers:      n.options.Workers, Wake: n.wakes.of(partTransactions), Logger: n.options.Logger,
	}
}

// batchOverhead is more than the header of a batch.
const batchOverhead = 128

func (n *Node) tickMarkers(now time.Time) {
	n.transactions.markers.Tick(now)
	n.transactions.additions.Tick(now)
}

func (n *Node) markersDeadline(now time.Time) time.Time {
	return earliest(n.transactions.markers.NextDeadline(now), n.transactions.additions.NextDeadline(now))
}
