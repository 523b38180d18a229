package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/cluster"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/log"
)

// What is particular to a node that is a broker and no controller: it follows the
// metadata of a quorum of other nodes, and its requests to the active controller go
// over the network.

// ToQuorum sends a request to a node of the quorum. done is called once, from
// anywhere, after timeout at the latest.
type ToQuorum func(to raft.Address, req kmsg.Request, timeout time.Duration, done func(kmsg.Response, error))

// QuorumServes tells which versions of an API a node of the quorum serves, if there is a connection to it.
type QuorumServes func(by raft.Address, key protocol.APIKey) (lowest, highest int16, known bool)

// brokerFeatures are those that are the controllers' to carry out: a broker under
// other controllers serves them, and one node in both roles does not yet.
var brokerFeatures = map[string]cluster.Range{
	metadata.ELRVersionFeature: {Min: 0, Max: 1},
}

// served is what this node serves of each feature.
func (n *Node) served() map[string]cluster.Range {
	served := maps.Clone(ServedFeatures)
	if !n.config.Controller {
		maps.Copy(served, brokerFeatures)
	}
	return served
}

// checkRoles refuses the roles that are not served.
func (n *Node) checkRoles() error {
	switch {
	case !n.config.Broker:
		return errors.New("process.roles must have broker: a node that is only a controller is not served yet")
	case !n.config.Controller && n.options.ToQuorum == nil:
		return errors.New("this node is no controller: what it would find in its directories its controllers must say")
	}
	return nil
}

// join makes the channel to the controllers of a node that is none.
func (n *Node) join() {
	if n.config.Controller {
		return
	}
	timeout := millis(int64(n.config.Int("request.timeout.ms")))
	session := millis(int64(n.config.Int("broker.session.timeout.ms")))
	n.channel = &broker.Channel{
		Leader: func() *raft.Address { return n.quorum.Status().LeaderAt },
		SendTo: func(to raft.Address, req kmsg.Request, done func(kmsg.Response, error)) {
			patience := timeout
			switch req.(type) {
			case *kmsg.BrokerHeartbeatRequest, *kmsg.BrokerRegistrationRequest:
				patience = min(timeout, session/2) // a controller that hangs must not cost the session
			}
			n.options.ToQuorum(to, req, patience, done)
		},
		Timeout: timeout, Backoff: channelBackoff, Wake: n.wakes.of(partChannel),
	}
	n.options.Send = n.channel.Send
}

// channelBackoff is Kafka's retry.backoff.ms of such a channel.
const channelBackoff = 50 * time.Millisecond

// observe says how the metadata is followed; nil on a controller.
func (n *Node) observe() *quorum.Observe {
	if n.config.Controller {
		return nil
	}
	o := &quorum.Observe{
		ClusterID:     n.prepared.ClusterID(),
		FetchBytes:    n.config.Int("controller.quorum.fetch.max.bytes"),
		SnapshotBytes: n.config.Int("controller.quorum.fetch.snapshot.max.bytes"),
	}
	o.Listener = n.config.ControllerListenerNames[0]
	o.FetchTimeout = millis(int64(n.config.Int("controller.quorum.fetch.timeout.ms")))
	o.RetryBackoff = millis(int64(n.config.Int("controller.quorum.retry.backoff.ms")))
	o.Random = n.options.Random
	for i, server := range n.config.BootstrapServers {
		o.Bootstrap = append(o.Bootstrap, raft.Address{ID: protocol.NodeID(-2 - i), Host: server.Host, Port: uint16(server.Port)})
	}
	timeout := millis(int64(n.config.Int("controller.quorum.request.timeout.ms")))
	o.Send = func(to raft.Address, req kmsg.Request, done func(kmsg.Response, error)) {
		n.options.ToQuorum(to, req, timeout, done)
	}
	return o
}

// metadataTrust: whoever can fetch the end of the metadata log again looks at all of
// it.
func (n *Node) metadataTrust() log.Trust {
	if !n.config.Controller {
		return log.OtherBoot
	}
	return n.prepared.MetadataTrust()
}

// CaughtUp tells whether the metadata is known, so that Open may follow Begin. A
// quorum that has only just begun has committed nothing but its voters yet.
func (n *Node) CaughtUp() bool {
	image := n.quorum.Image()
	return image != nil && image.MetadataVersion() > 0
}

// Quorum is the one part that is ticked between Begin and Open.
func (n *Node) Quorum() Part {
	return Part{"quorum", n.quorum.Tick, func(time.Time) time.Time { return n.quorum.NextDeadline() }, n.wakes[partQuorum]}
}

// Abandon ends a node that has begun and was not opened. The directories are as they
// were, but for the metadata.
func (n *Node) Abandon(now time.Time) error {
	return errors.Join(n.quorum.Close(now), n.prepared.Close())
}

func (n *Node) tickChannel(now time.Time) {
	if n.channel != nil {
		n.channel.Tick(now)
	}
}

func (n *Node) channelDeadline(now time.Time) time.Time {
	if n.channel == nil {
		return time.Time{}
	}
	return n.channel.NextDeadline(now)
}

// forCluster fills in what the handlers of a broker under other controllers need.
func (n *Node) forCluster(node *api.Node) {
	if n.config.Controller {
		return
	}
	node.Submit, node.Quorum = nil, nil
	node.ForwardFor = func(who broker.Sender, req kmsg.Request, done func(kmsg.Response, error)) {
		broker.Enveloped(who, n.options.Send)(req, done)
	}
	if serves := n.options.QuorumServes; serves != nil {
		node.ControllerServes = func(key protocol.APIKey) (lowest, highest int16, known bool) {
			leader := n.quorum.Status().LeaderAt
			if leader == nil {
				return 0, 0, false
			}
			return serves(*leader, key)
		}
	}
}

// checkFeatures refuses a cluster that has finalized what this node does not serve:
// it could not read all that the others write. The error names the features, and the
// command that lets this node in.
func (n *Node) checkFeatures(image *metadata.Image) error {
	served := n.served()
	levels := map[string]int16{metadata.MetadataVersionFeature: int16(image.MetadataVersion())}
	maps.Copy(levels, image.Features())
	var gaps, down, up []string
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		level, ours := levels[name], served[name]
		switch {
		case level > ours.Max:
			down = append(down, fmt.Sprintf("--feature %s=%d", name, ours.Max))
		case level < ours.Min:
			up = append(up, fmt.Sprintf("--feature %s=%d", name, ours.Min))
		default:
			continue
		}
		gaps = append(gaps, fmt.Sprintf("%s=%d (this node serves %s)", name, level, levelsOf(ours)))
	}
	if len(gaps) == 0 {
		return nil
	}
	var commands []string
	for _, command := range [...]struct {
		word    string
		options []string
	}{{"downgrade", down}, {"upgrade", up}} {
		if len(command.options) > 0 {
			commands = append(commands, fmt.Sprintf("kafka-features.sh --bootstrap-server HOST:PORT %s %s", command.word, strings.Join(command.options, " ")))
		}
	}
	return fmt.Errorf("the cluster has finalized %s; this node can join after: %s", strings.Join(gaps, ", "), strings.Join(commands, "; "))
}

func levelsOf(served cluster.Range) string {
	if served.Min == served.Max {
		return fmt.Sprintf("%d", served.Max)
	}
	return fmt.Sprintf("%d to %d", served.Min, served.Max)
}

// refused ends a node that the controllers will never take as it is.
func (n *Node) refused(code protocol.ErrorCode) {
	switch code {
	case protocol.UnsupportedVersion, protocol.InvalidRegistration:
		err := n.checkFeatures(n.quorum.Image())
		if err == nil {
			err = fmt.Errorf("the controllers refuse this node's features: %s", describeRanges(n.served()))
		}
		n.options.Fatal(err)
	case protocol.InconsistentClusterID:
		n.options.Fatal(fmt.Errorf("the controllers belong to another cluster than this node, whose directories say %s", n.prepared.ClusterID()))
	}
}

func describeRanges(served map[string]cluster.Range) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(served)) {
		all = append(all, name+" "+levelsOf(served[name]))
	}
	return strings.Join(all, ", ")
}

// unregistered ends a node that no controller has taken in time, as Apache Kafka's.
func (n *Node) unregistered(refusal protocol.ErrorCode) {
	because := ""
	switch refusal {
	case protocol.None:
	case protocol.DuplicateBrokerRegistration:
		because = fmt.Sprintf(": another process is registered as broker %d and goes on sending heartbeats", n.config.NodeID)
	default:
		because = ": the last refusal was " + refusal.String()
	}
	n.options.Fatal(fmt.Errorf("no controller has registered this broker within initial.broker.registration.timeout.ms=%d%s",
		n.config.Int("initial.broker.registration.timeout.ms"), because))
}

// underControllers are the options of the life of a broker under other controllers.
func (n *Node) underControllers(options *broker.LifecycleOptions) {
	if n.config.Controller {
		return
	}
	options.OnRefused, options.OnLate = n.refused, n.unregistered
	options.RegistrationTimeout = millis(int64(n.config.Int("initial.broker.registration.timeout.ms")))
}
