package broker

import (
	"strconv"
	"strings"
	"sync/atomic"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/fetcher"
	"ottla/storage/replica"
)

// Throttles says which replication is limited while it catches up, as a reassignment of partitions asks for
// (ReplicationQuotaManager). Its methods may be called from anywhere.
type Throttles struct {
	nodeID       string
	image        atomic.Pointer[metadata.Image]
	leaderRate   atomic.Int64 // bytes a second; negative: no limit
	followerRate atomic.Int64
}

// NewThrottles limits nothing.
func NewThrottles(nodeID protocol.NodeID) *Throttles {
	t := &Throttles{nodeID: strconv.Itoa(int(nodeID))}
	t.leaderRate.Store(-1)
	t.followerRate.Store(-1)
	return t
}

// follow takes the rates of an Image; the lists of replicas are looked up when they are asked for.
func (t *Throttles) follow(image *metadata.Image, replicas *replica.Manager, fetchers *fetcher.Fetchers) {
	t.image.Store(image)
	if rate := runtimeLimit(image, t.nodeID, "leader.replication.throttled.rate"); t.leaderRate.Swap(rate) != rate {
		replicas.SetReplicationLimit(rate)
	}
	if rate := runtimeLimit(image, t.nodeID, "follower.replication.throttled.rate"); t.followerRate.Swap(rate) != rate && fetchers != nil {
		fetchers.SetThrottle(rate)
	}
}

// Leader tells whether what this node gives to followers of a partition is limited.
func (t *Throttles) Leader(tp protocol.TopicPartition, _ protocol.NodeID) bool {
	return t.leaderRate.Load() >= 0 && t.listed("leader.replication.throttled.replicas", tp)
}

// Follower tells whether what this node fetches of a partition is limited.
func (t *Throttles) Follower(tp protocol.TopicPartition) bool {
	return t.followerRate.Load() >= 0 && t.listed("follower.replication.throttled.replicas", tp)
}

// listed looks for partition:broker in a topic's list; * is all of them.
func (t *Throttles) listed(key string, tp protocol.TopicPartition) bool {
	image := t.image.Load()
	if image == nil {
		return false
	}
	list := image.Config(metadata.TopicConfig, tp.Topic)[key]
	if strings.TrimSpace(list) == "*" {
		return true
	}
	want := strconv.Itoa(int(tp.Partition)) + ":" + t.nodeID
	for one := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(one) == want {
			return true
		}
	}
	return false
}

// runtimeLimit is a setting of bytes a second that is made at run time only; -1: no limit.
func runtimeLimit(image *metadata.Image, own, key string) int64 {
	for _, broker := range [...]string{own, ""} {
		if text, ok := image.Config(metadata.BrokerConfig, broker)[key]; ok {
			if limit, err := strconv.ParseInt(text, 10, 64); err == nil && limit >= 0 {
				return limit
			}
		}
	}
	return -1
}
