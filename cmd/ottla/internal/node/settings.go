package node

import (
	"math"
	"time"

	"ottla/cmd/ottla/internal/api"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
)

// millis converts; Kafka's way to say never is as long as a Duration goes.
func millis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

func (n *Node) storeOptions() store.Options {
	flushCheck := millis(n.config.Long("log.flush.scheduler.interval.ms"))
	if flushCheck > 24*time.Hour {
		flushCheck = 0 // Kafka's default is never; flush.ms of a topic is then looked at with the checkpoints
	}
	return store.Options{
		FS: n.options.FS, Dirs: n.config.LogDirs, MetadataDir: n.config.MetadataLogDir, NodeID: n.config.NodeID,
		Files: segment.NewFileCache(n.options.FS, int(n.config.Int("ottla.open.files.max"))),
		Pool:  n.pool, Logger: n.options.Logger, Random: n.options.Random, Workers: n.options.Workers, Clock: n.options.Clock,
		RecoveryParallelism: int(n.config.Int("num.recovery.threads.per.data.dir")),
		Offline:             n.directoryFailed,
		PartitionOffline: func(tp protocol.TopicPartition) {
			if n.replicas != nil {
				n.replicas.PartitionFailed(tp)
			}
		},
		Wake:                   n.wakes.of(partStore),
		Space:                  n.spaces.of,
		RetentionCheckInterval: millis(n.config.Long("log.retention.check.interval.ms")),
		// One pass writes both checkpoints, as often as the more impatient of the two properties asks.
		CheckpointInterval: millis(min(n.config.Long("log.flush.offset.checkpoint.interval.ms"),
			n.config.Long("log.flush.start.offset.checkpoint.interval.ms"))),
		FlushCheckInterval: flushCheck,
	}
}

func (n *Node) replicaOptions() replica.Options {
	return replica.Options{
		NodeID: n.config.NodeID, Store: n.store, Pool: n.pool,
		MaxDecompressed:    int(share(n.config.Long("ottla.decompressed.batch.bytes"), n.options.MemoryBytes, decompressedShare, mostDecompressedBytes)),
		LagTimeMax:         millis(n.config.Long("replica.lag.time.max.ms")),
		CheckpointInterval: millis(n.config.Long("replica.high.watermark.checkpoint.interval.ms")),
		Known:              func(tp protocol.TopicPartition) bool { return n.quorum.Image().Partition(tp) != nil },
		Brokers: func(id protocol.NodeID) partition.Broker {
			broker := n.quorum.Image().Broker(id)
			if broker == nil {
				return partition.Broker{}
			}
			return partition.Broker{Alive: !broker.Fenced, ShuttingDown: broker.InControlledShutdown, Epoch: broker.Epoch}
		},
		Assign: func(tp protocol.TopicPartition, topic protocol.TopicID, dir protocol.DirectoryID) {
			n.directories.Report(topic, tp.Partition, dir)
		},
		AlterPartition:  n.alterPartition(),
		Rack:            n.rackOf(),
		Throttled:       n.throttles.Leader,
		MoveParallelism: n.moveParallelism(),
		Workers:         n.options.Workers, Logger: n.options.Logger,
	}
}

// rackAware is the only class of a replica.selector.class that there is besides the default.
const rackAware = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

// rackOf tells the racks of brokers that are alive, if consumers are to be told of the replica in theirs (KIP-392).
func (n *Node) rackOf() func(protocol.NodeID) string {
	const key = "replica.selector.class"
	if n.config.IsNull(key) || n.config.String(key) != rackAware {
		return nil
	}
	return func(id protocol.NodeID) string {
		known := n.quorum.Image().Broker(id)
		if known == nil || known.Fenced || known.Rack == nil {
			return ""
		}
		return *known.Rack
	}
}

func (n *Node) moveParallelism() int {
	const key = "num.replica.alter.log.dirs.threads"
	if n.config.IsNull(key) {
		return 0 // as many as there are directories
	}
	return int(n.config.Int(key))
}

func (n *Node) apiNode() api.Node {
	node := api.Node{
		ID: n.config.NodeID, ClusterID: n.store.ClusterID(), Config: n.config, Replicas: n.replicas, Groups: n.groups,
		Transactions: n.transactions.shards, TransactionPartition: n.transactions.spread.PartitionFor, Additions: n.transactions.additions,
		ControllerID: func() protocol.NodeID { return n.quorum.Status().Leader },
		Image:        n.applier.Image, KRaftVersion: func() int16 { return n.quorum.Status().KRaftVersion },
		Submit: n.Submit, Forward: n.options.Send, ProducerIDs: n.producerIDs, BrokerEpoch: n.lifecycle.Epoch,
		Store: n.store, Quorum: n.quorum.Status, Level: n.options.Level,
		Features: n.served(), Random: n.options.Random, Logger: n.options.Logger,
	}
	n.forCluster(&node)
	return node
}

func (n *Node) rack() *string {
	if n.config.IsNull("broker.rack") {
		return nil
	}
	rack := n.config.String("broker.rack")
	return &rack
}

// securityProtocols are the numbers of the wire (SecurityProtocol.java).
var securityProtocols = map[string]int16{
	config.Plaintext: 0, config.SSL: 1, config.SASLPlaintext: 2, config.SASLSSL: 3,
}

// endpoints are listeners as the cluster is told of them. Where no host was
// configured it is this machine's name, as with Kafka.
func (n *Node) endpoints(listeners []config.Listener) []metadata.Endpoint {
	var made []metadata.Endpoint
	for _, l := range listeners {
		made = append(made, metadata.Endpoint{
			Name: l.Name, Host: n.host(l), Port: uint16(l.Port), SecurityProtocol: securityProtocols[l.Protocol],
		})
	}
	return made
}

func (n *Node) host(l config.Listener) string {
	if l.Host == "" {
		return n.options.Hostname
	}
	return l.Host
}

func (n *Node) raftEndpoints() []raft.Endpoint {
	var made []raft.Endpoint
	for _, l := range n.config.AdvertisedControllers {
		made = append(made, raft.Endpoint{Name: l.Name, Host: n.host(l), Port: uint16(l.Port)})
	}
	return made
}

func staticVoters(node *config.BrokerConfig) raft.VoterSet {
	var voters []raft.Voter
	for _, v := range node.QuorumVoters {
		voters = append(voters, raft.Voter{
			ReplicaKey: raft.ReplicaKey{ID: v.ID},
			Endpoints:  []raft.Endpoint{{Name: node.ControllerListenerNames[0], Host: v.Host, Port: uint16(v.Port)}},
		})
	}
	return raft.NewVoterSet(voters...)
}
