package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/offsets"
	"ottla/protocol"
)

// TestRandom lets clients of all kinds do anything at any time, with failovers
// between, under the invariants of the rig and these: who syncs in a generation
// gets an assignment that was made in it, a heartbeat or commit of another
// generation is never taken, committed offsets are the last ones that were taken,
// and once all is quiet every request has been answered.
func TestRandom(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			newChaos(t, seed).run()
		})
	}
}

type chaos struct {
	*rig
	rand    *rand.Rand
	clients []*client
	asked   map[int]*client // parked requests by number
	sent    int             // requests parked
	answers int

	commits   map[string]int64 // group/topic/partition → the offset that was taken last
	offset    int64
	failovers int
}

// client is what one consumer knows.
type client struct {
	group, name, instance string
	member                string
	generation            int32
	leader                bool
	members               []string
	busy                  int // number of the request that it waits for, 0: none
	version               int16
}

func newChaos(t *testing.T, seed uint64) *chaos {
	s := settings()
	r := rand.New(rand.NewPCG(seed, 4))
	s.MaxSize = 3 + r.IntN(6)
	s.InitialRebalanceDelay = time.Duration(r.IntN(3)) * time.Second
	s.OffsetsRetention = time.Hour * 24 * 365
	c := &chaos{rig: newRig(t, s), rand: r, asked: map[int]*client{}, commits: map[string]int64{}}
	c.random = r.Uint64
	for i := range 8 {
		one := &client{group: fmt.Sprint("g", i%2), name: fmt.Sprint("c", i), generation: -1, version: int16(r.IntN(10))}
		if i%3 == 0 {
			one.instance = fmt.Sprint("i", i%4) // two may have the same
			one.version = 5 + int16(r.IntN(5))
		}
		c.clients = append(c.clients, one)
	}
	return c
}

func (c *chaos) run() {
	for range 400 {
		c.step(c.clients[c.rand.IntN(len(c.clients))])
	}
	// Quiet: everyone leaves or times out, and nobody waits any more.
	for range 20 {
		c.elapse(10 * time.Minute)
	}
	if len(c.parked) != 0 {
		c.t.Fatalf("%d requests wait for ever", len(c.parked))
	}
	for id, g := range c.c.groups {
		if g.classic.state != stateEmpty {
			c.t.Fatalf("%s is %v with nobody there", id, g.classic.state)
		}
	}
	if c.sent != c.answers {
		c.t.Fatalf("%d requests were parked, %d answered", c.sent, c.answers)
	}
}

func (c *chaos) step(one *client) {
	switch n := c.rand.IntN(100); {
	case n < 4:
		c.failovers++
		for _, number := range c.fail() {
			c.answers++
			c.asked[number].busy = 0
			delete(c.asked, number)
		}
	case n < 24:
		c.elapse(time.Duration(c.rand.IntN(4000)) * time.Millisecond)
	case n < 26:
		c.elapse(time.Duration(c.rand.IntN(90)) * time.Second)
	case n < 30: // it starts anew
		*one = client{group: one.group, name: one.name, instance: one.instance, generation: -1, version: one.version}
	case n < 55:
		c.join(one)
	case n < 72:
		c.sync(one)
	case n < 82:
		c.beat(one)
	case n < 93:
		c.commit(one)
	case n < 96:
		c.leave(one)
	default:
		m := kmsg.NewPtrDeleteGroupsRequest()
		m.Version, m.Groups = 2, []string{one.group}
		reply := c.send(m, one.name).reply.(*kmsg.DeleteGroupsResponse)
		if reply.Groups[0].ErrorCode == 0 {
			for at := range c.commits {
				if strings.HasPrefix(at, one.group+"/") {
					delete(c.commits, at)
				}
			}
		}
	}
	c.checkOffsets()
}

func (c *chaos) elapse(d time.Duration) {
	for _, a := range c.advance(d) {
		c.learn(nil, a)
	}
}

func (one *client) instanceID() *string {
	if one.instance == "" {
		return nil
	}
	return &one.instance
}

func (c *chaos) join(one *client) {
	m := kmsg.NewPtrJoinGroupRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID = one.version, one.group, one.member, one.instanceID()
	m.SessionTimeoutMillis, m.RebalanceTimeoutMillis, m.ProtocolType = 10_000, int32(5000+c.rand.IntN(60_000)), consumerProtocol
	for _, name := range [][]string{{"range"}, {"sticky", "range"}, {"range", "sticky"}}[c.rand.IntN(3)] {
		m.Protocols = append(m.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: sub(fmt.Sprint("t", c.rand.IntN(2)))})
	}
	c.learn(one, c.send(m, one.name))
}

func (c *chaos) sync(one *client) {
	m := kmsg.NewPtrSyncGroupRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = 4, one.group, one.member, one.instanceID(), one.generation
	if one.leader {
		for _, id := range one.members {
			m.GroupAssignment = append(m.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
				MemberID: id, MemberAssignment: fmt.Appendf(nil, "%s/%d", one.group, one.generation),
			})
		}
	}
	c.learn(one, c.send(m, one.name))
}

func (c *chaos) beat(one *client) {
	m := kmsg.NewPtrHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = 4, one.group, one.member, one.instanceID(), one.generation
	reply := c.send(m, one.name).reply.(*kmsg.HeartbeatResponse)
	if g := c.c.classicGroup(one.group); reply.ErrorCode == 0 && (g.generation != one.generation || g.members[one.member] == nil) {
		c.t.Fatalf("a heartbeat of generation %d was taken in %d", one.generation, g.generation)
	}
}

func (c *chaos) commit(one *client) {
	c.offset++
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = 9, one.group, one.member, one.instanceID(), one.generation
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = int32(c.rand.IntN(2)), c.offset
	m.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	g := c.c.classicGroup(one.group)
	reply := c.send(m, one.name).reply.(*kmsg.OffsetCommitResponse)
	if reply.Topics[0].Partitions[0].ErrorCode != 0 {
		return
	}
	if one.generation >= 0 && (g == nil || g.generation != one.generation || g.members[one.member] == nil) {
		c.t.Fatalf("a commit of generation %d was taken", one.generation)
	}
	c.commits[fmt.Sprintf("%s/t/%d", one.group, p.Partition)] = c.offset
}

func (c *chaos) leave(one *client) {
	m := kmsg.NewPtrLeaveGroupRequest()
	m.Version, m.Group = 3, one.group
	m.Members = []kmsg.LeaveGroupRequestMember{{MemberID: one.member, InstanceID: one.instanceID()}}
	c.learn(one, c.send(m, one.name))
}

// learn gives the answers to the clients that asked.
func (c *chaos) learn(one *client, a answers) {
	if a.parked != 0 {
		c.sent++
		one.busy = a.parked
		c.asked[a.parked] = one
	}
	if a.reply != nil && one != nil {
		c.hear(one, a.reply)
	}
	for _, other := range a.answered {
		c.answers++
		asker := c.asked[other.number]
		delete(c.asked, other.number)
		if asker.busy == other.number {
			asker.busy = 0
			c.hear(asker, other.reply)
		}
	}
}

func (c *chaos) hear(one *client, reply kmsg.Response) {
	switch r := reply.(type) {
	case *kmsg.JoinGroupResponse:
		switch protocol.ErrorCode(r.ErrorCode) {
		case protocol.None:
			c.joined(one, r)
		case protocol.MemberIDRequired:
			one.member = r.MemberID
		case protocol.UnknownMemberID, protocol.FencedInstanceID:
			one.member, one.generation = "", -1
		}
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return
		}
		want := fmt.Sprintf("%s/%d", one.group, one.generation)
		if got := string(r.MemberAssignment); got != "" && got != want {
			c.t.Fatalf("%s in %s got the assignment %q", one.name, want, got)
		}
	}
}

func (c *chaos) joined(one *client, r *kmsg.JoinGroupResponse) {
	one.member, one.generation, one.leader = r.MemberID, r.Generation, r.LeaderID == r.MemberID
	one.members = nil
	for _, m := range r.Members {
		one.members = append(one.members, m.MemberID)
	}
	if len(r.Members) > 0 && !slices.Contains(one.members, one.member) {
		c.t.Fatalf("the leader %s is not among its members", one.name)
	}
}

// checkOffsets wants the committed offsets to be those that were taken last.
func (c *chaos) checkOffsets() {
	found := 0
	for _, group := range c.c.offsets.Groups() {
		c.c.offsets.Each(group, func(topic string, partition int32, o offsets.Offset) {
			found++
			if want := c.commits[fmt.Sprintf("%s/%s/%d", group, topic, partition)]; int64(o.Offset) != want {
				c.t.Fatalf("%s %s-%d is %d, %d was committed", group, topic, partition, o.Offset, want)
			}
		})
	}
	if found != len(c.commits) {
		c.t.Fatalf("%d offsets are committed, %d were", found, len(c.commits))
	}
}
