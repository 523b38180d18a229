package api

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/group"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
)

// groupSpread knows over how many partitions of __consumer_offsets groups are
// spread: those that the topic had when this node first saw it, as a Kafka broker
// counts them when it starts, so that partitions added later move no group away
// from its offsets. A topic that somebody made by hand with another number than
// offsets.topic.num.partitions works, too, where Apache Kafka answers
// COORDINATOR_NOT_AVAILABLE until its next start.
type groupSpread struct {
	mu         sync.Mutex
	topic      protocol.TopicID
	partitions int
}

func (s *groupSpread) over(topic *metadata.Topic, configured int) int {
	if topic == nil {
		return configured
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topic != topic.ID {
		s.topic, s.partitions = topic.ID, topic.PartitionCount()
	}
	return s.partitions
}

// groupPartition gives the partition of __consumer_offsets that holds a group.
func (c *call) groupPartition(id string) int32 {
	topic := c.Image().Topic(protocol.ConsumerOffsetsTopic)
	return shard.PartitionFor(id, c.handler.groupSpread.over(topic, int(c.Config.Int("offsets.topic.num.partitions"))))
}

// askGroup gives a request about one group to the coordinator of that group. done
// is called once, guarded, perhaps much later: whoever joins a group waits for the
// others.
func (c *call) askGroup(id string, message kmsg.Request, done func(resp kmsg.Response, err error)) {
	c.askGroupPartition(c.groupPartition(id), message, done)
}

func (c *call) askGroupPartition(partition int32, message kmsg.Request, done func(resp kmsg.Response, err error)) {
	request := group.Request{Message: message, ClientID: c.clientID(), ClientHost: javaAddress(c.request.Conn.RemoteAddr())}
	if _, ok := message.(*kmsg.ConsumerGroupHeartbeatRequest); ok {
		request.MayDescribe = c.describer()
	}
	c.Groups.Submit(c.now, partition, request, func(reply any, err error) {
		c.guard(func() {
			if err != nil {
				done(nil, err)
				return
			}
			done(reply.(kmsg.Response), nil)
		})
	})
}

// describer gives a func that tells which topics the requester may describe, also
// when the request has been answered; nil: all.
func (c *call) describer() func(topic string) bool {
	authorize := c.Authorize
	if authorize == (Permissive{}) {
		return nil
	}
	who := c.requester()
	return func(topic string) bool {
		return authorize.Allowed(who, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, topic)
	}
}

// relayGroup has the coordinator of a group answer a request, if the requester may
// do what it asks. Where a group must have a name it is asked for before anything
// else is looked at, as in Apache Kafka.
func (c *call) relayGroup(id string, operation kmsg.ACLOperation, req kmsg.Request) {
	switch {
	case !c.mayGroup(operation, id):
		c.reply(errorResponse(req, protocol.GroupAuthorizationFailed.Err()))
	case id == "":
		c.reply(errorResponse(req, protocol.InvalidGroupID.Err()))
	default:
		c.askGroup(id, req, func(resp kmsg.Response, err error) {
			if err != nil {
				resp = errorResponse(req, err)
			}
			c.reply(resp)
		})
	}
}

func (c *call) mayGroup(operation kmsg.ACLOperation, id string) bool {
	return c.may(operation, kmsg.ACLResourceTypeGroup, id)
}

// spreadGroups divides n groups by the partitions that hold them, and asks each
// partition once, whatever the number of groups. message makes the request about
// the groups at those places, place takes its answer or error, and finish is
// called once when all have been placed. Two calls of place may overlap, of
// different places.
func (c *call) spreadGroups(n int, id func(at int) string, message func(at []int) kmsg.Request,
	place func(at []int, resp kmsg.Response, err error), finish func(),
) {
	places := map[int32][]int{}
	for at := range n {
		partition := c.groupPartition(id(at))
		places[partition] = append(places[partition], at)
	}
	var left atomic.Int32
	left.Store(int32(len(places)) + 1) // one for this function
	done := func() {
		if left.Add(-1) == 0 {
			finish()
		}
	}
	for _, partition := range sortedKeys(places) {
		at := places[partition]
		c.askGroupPartition(partition, message(at), func(resp kmsg.Response, err error) {
			place(at, resp, err)
			done()
		})
	}
	done()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// javaAddress is a peer's address as groups show it: InetAddress.toString of an
// address without a name, "/127.0.0.1" or "/0:0:0:0:0:0:0:1".
func javaAddress(address net.Addr) string {
	if address == nil {
		return "/"
	}
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		host = address.String()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		if err == nil {
			host = ip.Unmap().String()
		}
		return "/" + host
	}
	bytes := ip.As16()
	parts := make([]string, 0, 8)
	for i := 0; i < len(bytes); i += 2 {
		digits := strings.TrimLeft(hex.EncodeToString(bytes[i:i+2]), "0")
		parts = append(parts, cmp.Or(digits, "0"))
	}
	text := "/" + strings.Join(parts, ":")
	if zone := ip.Zone(); zone != "" {
		text = fmt.Sprintf("%s%%%s", text, zone)
	}
	return text
}
