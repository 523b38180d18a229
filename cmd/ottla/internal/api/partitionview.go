package api

import (
	"sort"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// partitionView is what clients of one listener are told about a partition.
type partitionView struct {
	code    protocol.ErrorCode
	leader  protocol.NodeID // -1 with LEADER_NOT_AVAILABLE and LISTENER_NOT_FOUND
	offline []int32
}

// view looks at a partition from the request's listener (KRaftMetadataCache). A
// leader that cannot be reached there counts as none.
func (c *call) view(image *metadata.Image, p *metadata.Partition) partitionView {
	v := partitionView{leader: protocol.NoNode, offline: []int32{}}
	switch {
	case image.Broker(p.Leader) == nil:
		v.code = protocol.LeaderNotAvailable
	case c.endpoint(image, p.Leader) == nil:
		v.code = protocol.ListenerNotFound
	default:
		v.leader = p.Leader
	}
	for _, id := range p.Replicas {
		if c.offline(image.Broker(id), p) {
			v.offline = append(v.offline, int32(id))
		}
	}
	return v
}

// offline tells whether a replica is out of reach: its broker gone, fenced or
// without this listener, or its directory failed.
func (c *call) offline(b *metadata.Broker, p *metadata.Partition) bool {
	return b == nil || b.Fenced || b.Endpoint(c.listener()) == nil || !online(b.LogDirs, p.Directory(b.ID))
}

// online tells whether a directory is among those that work (DirectoryId.isOnline).
// A broker that never named its directories is trusted.
func online(dirs []protocol.DirectoryID, dir protocol.DirectoryID) bool {
	switch dir {
	case protocol.DirectoryMigrating, protocol.DirectoryUnassigned:
		return true
	case protocol.DirectoryLost:
		return false
	}
	for _, working := range dirs {
		if working == dir {
			return true
		}
	}
	return len(dirs) == 0
}

// nodes gives ids as they stand on the wire, never null.
func nodes(ids []protocol.NodeID) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}

// anyLiveBroker is whom clients are told to take for the controller: every broker
// forwards, so any will do, and the load is spread (KIP-590). -1 if none lives. It
// is one of those that the same response lists; Apache Kafka 4.4.0 may also name
// one that lacks the listener (Metadata), or then nobody (DescribeCluster).
func (c *call) anyLiveBroker(image *metadata.Image) int32 {
	var live []int32
	for b := range image.Brokers() {
		if c.endpoint(image, b.ID) != nil {
			live = append(live, int32(b.ID))
		}
	}
	if len(live) == 0 {
		return int32(protocol.NoNode)
	}
	return live[c.Random()%uint64(len(live))]
}

// missingTopicCode is why a topic that is not there is not there.
func missingTopicCode(name string) protocol.ErrorCode {
	if protocol.CheckTopicName(name) != nil {
		return protocol.InvalidTopicException
	}
	return protocol.UnknownTopicOrPartition
}

// once gives the names of topics in the order of their first mention.
func once(names []string) []string {
	seen := make(map[string]bool, len(names))
	var out []string
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// sortedOnce is once, sorted.
func sortedOnce(names []string) []string {
	out := once(names)
	sort.Strings(out)
	return out
}

// mayCreateTopic tells whether the requester may create a topic of this name.
func (c *call) mayCreateTopic(name string) bool {
	return c.mayCluster(kmsg.ACLOperationCreate) || c.mayTopic(kmsg.ACLOperationCreate, name)
}
