package api

import (
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/storage/replica"
	"ottla/storage/store"
)

// Node is what the handlers work on; package node fills it. Its fields are set
// before the first request and not changed after. Functions may be called from
// anywhere.
type Node struct {
	ID        protocol.NodeID
	ClusterID string
	Config    *config.BrokerConfig
	// Replicas is nil on a node that is no broker; such a node has no listener of
	// scope OnBroker.
	Replicas *replica.Manager
	// Groups are the coordinators of groups; nil: none, and their APIs are not
	// advertised.
	Groups *shard.Manager
	// Transactions are the coordinators of transactions; nil: none, and their APIs
	// are not advertised. TransactionPartition tells which of them has an id.
	Transactions         *shard.Manager
	TransactionPartition func(transactionalID string) int32
	// Additions asks them about what producers write to.
	Additions *broker.Additions
	// Image is the metadata of the moment; never nil once a listener is open.
	Image func() *metadata.Image
	// Store is all logs of the node; nil as Replicas.
	Store *store.Store
	// Quorum is how the metadata's quorum stands; nil on a node without controller.
	Quorum func() quorum.Status
	// Level is what the node logs; nil: it cannot be changed, nor is it told.
	Level *slog.LevelVar
	// KRaftVersion is the finalized kraft.version, which is in no Image; nil: 0.
	KRaftVersion func() int16

	// Submit gives a request to the controller core of this node, for those that
	// came in on a controller listener. done is called once, from anywhere: with a
	// response, or with an error (NOT_CONTROLLER if this node is not active).
	Submit func(now time.Time, req kmsg.Request, done func(kmsg.Response, error))
	// Forward sends a request to the active controller through the channel between
	// nodes, for those that came in on a broker's listener. done as in Submit.
	Forward func(req kmsg.Request, done func(kmsg.Response, error))
	// ForwardFor is Forward where the controller is another node, which is told
	// whose request it is; nil: Forward.
	ForwardFor func(who broker.Sender, req kmsg.Request, done func(kmsg.Response, error))
	// ControllerServes tells which versions of an API the active controller serves, if it is known; nil: those of this build.
	ControllerServes func(key protocol.APIKey) (lowest, highest int16, known bool)

	// ControllerID is the leader of the quorum as far as this node knows, -1 for
	// none; nil: -1. Only those on a controller listener are told.
	ControllerID func() protocol.NodeID

	ProducerIDs *broker.ProducerIDs
	// BrokerEpoch is the epoch of this broker's registration, -1 before.
	BrokerEpoch func() protocol.BrokerEpoch
	// Features is what this build serves of each feature; also what ApiVersions
	// tells as supported. Finalized features that are not in it are not told.
	Features map[string]cluster.Range

	Random    func() uint64
	Authorize Authorizer   // nil: Permissive
	Logger    *slog.Logger // nil: silent
}

// finalizedFeatures gives the finalized levels that this build serves, by name,
// and kraft.version. Level 0 is not told, as by Apache Kafka.
func (n *Node) finalizedFeatures(image *metadata.Image) map[string]int16 {
	levels := map[string]int16{}
	for name, level := range image.Features() {
		if served, ok := n.Features[name]; ok && level > 0 && level <= served.Max {
			levels[name] = level
		}
	}
	if n.KRaftVersion != nil {
		if level := n.KRaftVersion(); level > 0 {
			levels[metadata.KRaftVersionFeature] = level
		}
	}
	return levels
}
