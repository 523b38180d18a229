package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// TestRandomConsumers lets members of both protocols do anything at any time in
// groups that go from one to the other, with failovers and topics that come, grow
// and go, under the invariants of consumer.Group.Check and these: epochs of a
// group and of a member rise; no two members that are in the group believe that a
// partition is theirs; and once all is quiet and everybody sends heartbeats, the
// group is Stable and every partition that is wanted has one owner.
func TestRandomConsumers(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 6
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newMigration(t, seed).run() })
	}
}

type migration struct {
	*rig
	rand    *rand.Rand
	members []*actor
	asked   map[int]*actor
	epochs  map[string]int32 // of groups, and of members in them
	made    int              // topics
}

// actor is one client.
type actor struct {
	group, name, instance string
	regex, classic        bool
	assignor              string
	topics                []string

	member  string
	epoch   int32 // 0: it is to join
	owned   map[place]bool
	target  map[place]bool
	changed bool // it has not told its subscription yet
	told    bool // it has told what it owns since that changed
	busy    int
	others  []string
}

func newMigration(t *testing.T, seed uint64) *migration {
	r := rand.New(rand.NewPCG(seed, 848))
	s := settings()
	s.InitialRebalanceDelay = time.Second
	s.Consumer.AssignmentInterval.Ms = int32(r.IntN(3) * 1000)
	s.Consumer.MaxSize, s.Consumer.ClassicMaxSize = 4+r.IntN(4), 3+r.IntN(5)
	s.MaxSize = s.Consumer.ClassicMaxSize
	m := &migration{rig: newRig(t, s), rand: r, asked: map[int]*actor{}, epochs: map[string]int32{}}
	m.random = r.Uint64
	m.addTopic("t0", topicID("t0"), 3)
	m.addTopic("t1", topicID("t1"), 5)
	for i := range 7 {
		one := &actor{group: fmt.Sprint("g", i%5/4), name: fmt.Sprint("c", i), classic: i%4 == 3}
		if i%3 == 0 {
			one.instance = fmt.Sprint("i", i%4)
		}
		m.restart(one)
		m.members = append(m.members, one)
	}
	return m
}

// restart makes a client begin anew, perhaps with another subscription.
func (m *migration) restart(one *actor) {
	one.member, one.epoch, one.owned, one.target, one.busy = fmt.Sprint(one.name, "-", m.rand.IntN(1000)), 0, map[place]bool{}, map[place]bool{}, 0
	if one.classic {
		one.member = ""
	}
	m.subscribe(one)
}

// subscribe makes a client want something else, and say so next.
func (m *migration) subscribe(one *actor) {
	one.topics = [][]string{{"t0"}, {"t0", "t1"}, {"t1", "t2"}}[m.rand.IntN(3)]
	one.regex = !one.classic && m.rand.IntN(4) == 0
	one.assignor = []string{"", "range", "uniform"}[m.rand.IntN(3)]
	one.changed = true
}

func (m *migration) run() {
	for range 500 {
		m.step(m.members[m.rand.IntN(len(m.members))])
		m.check()
	}
	m.settleDown()
}

func (m *migration) step(one *actor) {
	switch n := m.rand.IntN(100); {
	case n < 3:
		for _, number := range m.fail() {
			m.asked[number].busy = 0
			delete(m.asked, number)
		}
		for at := range m.epochs {
			if strings.HasPrefix(at, "volatile ") {
				delete(m.epochs, at)
			}
		}
	case n < 20:
		m.elapse(time.Duration(m.rand.IntN(3000)) * time.Millisecond)
	case n < 22:
		m.elapse(time.Duration(m.rand.IntN(60)) * time.Second)
	case n < 25:
		m.changeTopics()
	case n < 29:
		m.leave(one)
		m.restart(one)
	case n < 32:
		m.restart(one) // it crashed
	case n < 35 && !one.classic:
		m.subscribe(one)
	case one.classic:
		m.classicStep(one)
	default:
		m.beat(one)
	}
}

func (m *migration) elapse(d time.Duration) {
	for _, a := range m.advance(d) {
		m.hear(nil, a)
	}
}

func (m *migration) changeTopics() {
	switch name := fmt.Sprint("t", m.rand.IntN(3)); {
	case m.image.Topic(name) == nil:
		m.made++
		m.addTopic(name, topicID(fmt.Sprint(name, "/", m.made)), int32(1+m.rand.IntN(4)))
	case m.rand.IntN(4) == 0:
		m.removeTopic(name)
	default:
		topic := m.image.Topic(name)
		m.addTopic(name, topic.ID, int32(min(8, topic.PartitionCount()+1)))
	}
}

func (one *actor) instanceID() *string {
	if one.instance == "" {
		return nil
	}
	return &one.instance
}

// place is a partition as clients know it.
type place struct {
	topic     protocol.TopicID
	partition int32
}

// beat sends a heartbeat of the next generation.
func (m *migration) beat(one *actor) {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = 1, one.group, one.member, one.epoch, one.instanceID()
	if one.epoch == 0 || one.changed || m.rand.IntN(8) == 0 {
		one.changed = false
		r.RebalanceTimeoutMillis = 20_000
		r.SubscribedTopicNames, r.SubscribedTopicRegex = one.topics, text("")
		if one.regex {
			r.SubscribedTopicNames, r.SubscribedTopicRegex = []string{}, text("t[01]")
		}
		if one.assignor != "" {
			r.ServerAssignor = &one.assignor
		}
	}
	// What is not its any more it gives up now, or a little later.
	if one.epoch > 0 && m.rand.IntN(4) > 0 {
		for at := range one.owned {
			if !one.target[at] {
				delete(one.owned, at)
				one.told = false
			}
		}
	}
	if one.epoch == 0 || !one.told || m.rand.IntN(4) == 0 {
		r.Topics = one.ownedTopics()
		one.told = true
	}
	a := m.send(r, one.name)
	if m.rand.IntN(30) == 0 {
		one.changed, one.told = true, false // the answer is lost
		m.hear(nil, answers{answered: a.answered})
		return
	}
	m.hear(one, a)
}

func (one *actor) ownedTopics() []kmsg.ConsumerGroupHeartbeatRequestTopic {
	topics := map[protocol.TopicID][]int32{}
	for at := range one.owned {
		topics[at.topic] = append(topics[at.topic], at.partition)
	}
	all := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for id, partitions := range topics {
		all = append(all, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: id, Partitions: partitions})
	}
	return all
}

func (m *migration) leave(one *actor) {
	if one.classic {
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Version, r.Group = 3, one.group
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: one.member, InstanceID: one.instanceID()}}
		m.hear(one, m.send(r, one.name))
		return
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = 1, one.group, one.member, -1, one.instanceID()
	if one.instance != "" && m.rand.IntN(2) == 0 {
		r.MemberEpoch = -2
	}
	m.hear(nil, m.send(r, one.name))
	one.owned = map[place]bool{}
}

// classicStep does what a client of the classic protocol would do next: it gives
// up everything before it joins.
func (m *migration) classicStep(one *actor) {
	switch {
	case one.busy != 0:
	case one.epoch == 0:
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.Group, r.MemberID, r.InstanceID, r.ProtocolType = 9, one.group, one.member, one.instanceID(), consumerProtocol
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 20_000
		subscription := kmsg.ConsumerMemberMetadata{Version: 3, Topics: one.topics, Generation: -1}
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription.AppendTo(nil)}}
		one.owned, one.target = map[place]bool{}, map[place]bool{}
		m.hear(one, m.send(r, one.name))
	case m.rand.IntN(3) == 0 || one.target == nil:
		r := kmsg.NewPtrSyncGroupRequest()
		r.Version, r.Group, r.MemberID, r.InstanceID, r.Generation = 4, one.group, one.member, one.instanceID(), one.epoch
		for i, id := range one.others {
			var assignment kmsg.ConsumerMemberAssignment
			if i == 0 && m.image.Topic("t0") != nil {
				assignment.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t0", Partitions: []int32{0, 1}}}
			}
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: assignment.AppendTo(nil)})
		}
		m.hear(one, m.send(r, one.name))
	default:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.InstanceID, r.Generation = 4, one.group, one.member, one.instanceID(), one.epoch
		m.hear(one, m.send(r, one.name))
	}
}

func (m *migration) hear(one *actor, a answers) {
	if a.parked != 0 {
		one.busy, m.asked[a.parked] = a.parked, one
	}
	if a.reply != nil && one != nil {
		m.learn(one, a.reply)
	}
	for _, other := range a.answered {
		asker := m.asked[other.number]
		delete(m.asked, other.number)
		if asker != nil && asker.busy == other.number {
			asker.busy = 0
			m.learn(asker, other.reply)
		}
	}
}

func (m *migration) learn(one *actor, reply kmsg.Response) {
	switch r := reply.(type) {
	case *kmsg.ConsumerGroupHeartbeatResponse:
		m.learnBeat(one, r)
	case *kmsg.JoinGroupResponse:
		switch protocol.ErrorCode(r.ErrorCode) {
		case protocol.None:
			one.member, one.epoch, one.others = r.MemberID, r.Generation, nil
			for _, other := range r.Members {
				one.others = append(one.others, other.MemberID)
			}
		case protocol.MemberIDRequired:
			one.member = r.MemberID
		case protocol.RebalanceInProgress:
		default:
			m.restart(one)
		}
	case *kmsg.SyncGroupResponse:
		switch protocol.ErrorCode(r.ErrorCode) {
		case protocol.None:
			var assignment kmsg.ConsumerMemberAssignment
			if len(r.MemberAssignment) > 0 && assignment.ReadFrom(r.MemberAssignment) != nil {
				m.t.Fatalf("an assignment %x", r.MemberAssignment)
			}
			one.owned = map[place]bool{}
			for _, topic := range assignment.Topics {
				for _, partition := range topic.Partitions {
					if known := m.image.Topic(topic.Topic); known != nil {
						one.owned[place{known.ID, partition}] = true
					}
				}
			}
		case protocol.RebalanceInProgress:
			one.owned, one.epoch = map[place]bool{}, 0
		default:
			m.restart(one)
		}
	case *kmsg.HeartbeatResponse:
		switch protocol.ErrorCode(r.ErrorCode) {
		case protocol.None:
		case protocol.RebalanceInProgress:
			one.owned, one.epoch = map[place]bool{}, 0
		default:
			m.restart(one)
		}
	}
}

func (m *migration) learnBeat(one *actor, r *kmsg.ConsumerGroupHeartbeatResponse) {
	switch code := protocol.ErrorCode(r.ErrorCode); code {
	case protocol.None:
	case protocol.FencedMemberEpoch, protocol.UnknownMemberID, protocol.GroupIDNotFound, protocol.FencedInstanceID:
		m.restart(one)
		return
	case protocol.UnreleasedInstanceID, protocol.GroupMaxSizeReached, protocol.UnknownServerError:
		return
	default:
		m.t.Fatalf("%s is told %v", one.name, code)
	}
	one.epoch = r.MemberEpoch
	if r.Assignment == nil {
		return
	}
	one.target = map[place]bool{}
	for _, topic := range r.Assignment.Topics {
		for _, partition := range topic.Partitions {
			at := place{topic.TopicID, partition}
			one.target[at] = true
			if !one.owned[at] {
				one.owned[at], one.told = true, false
			}
		}
	}
}

// check holds the invariants.
func (m *migration) check() {
	m.t.Helper()
	owners := map[string]map[place]string{}
	for id, g := range m.c.groups {
		if g.consumer == nil {
			for at := range m.epochs {
				if strings.HasPrefix(at, id+" ") {
					delete(m.epochs, at)
				}
			}
			continue
		}
		described := g.consumer.Describe(m.c.turn(&decision{now: m.now}, id))
		m.rises(id+" ", described.Epoch)
		present := map[string]int32{}
		for _, member := range described.Members {
			present[member.MemberID] = member.MemberEpoch
			if member.MemberEpoch > 0 {
				m.rises(id+" "+member.MemberID, member.MemberEpoch)
			} else {
				delete(m.epochs, id+" "+member.MemberID)
			}
		}
		for at := range m.epochs {
			if name, found := strings.CutPrefix(at, id+" "); found && name != "" {
				if _, here := present[name]; !here {
					delete(m.epochs, at)
				}
			}
		}
		for _, one := range m.members {
			// Whoever is behind was sent away, or has died, and does not know.
			if epoch, here := present[one.member]; one.group == id && here && one.epoch > 0 && epoch > 0 && !one.classic {
				if owners[id] == nil {
					owners[id] = map[place]string{}
				}
				for at := range one.owned {
					if other := owners[id][at]; other != "" {
						m.t.Fatalf("%v has both %s and %s", at, other, one.name)
					}
					owners[id][at] = one.name
				}
			}
		}
	}
	for at := range m.epochs {
		group, _, _ := strings.Cut(at, " ")
		if m.c.groups[group] == nil {
			delete(m.epochs, at)
		}
	}
}

func (m *migration) rises(what string, epoch int32) {
	if before := m.epochs[what]; epoch < before {
		m.t.Fatalf("%s went back from epoch %d to %d", what, before, epoch)
	}
	m.epochs[what] = epoch
}

// settleDown lets the members of the next generation alone, and wants them to end
// up with everything.
func (m *migration) settleDown() {
	for range 60 {
		m.elapse(2 * time.Second)
		for _, one := range m.members {
			if !one.classic {
				m.beat(one)
				m.check()
			}
		}
	}
	for id, g := range m.c.groups {
		if g.consumer == nil {
			continue
		}
		described := g.consumer.Describe(m.c.turn(&decision{now: m.now}, id))
		if described.State != "Stable" && described.State != "Empty" {
			m.t.Fatalf("%s is %s after two quiet minutes: %+v", id, described.State, described)
		}
		wanted, had := map[place]bool{}, map[place]int{}
		for _, member := range described.Members {
			topics := member.SubscribedTopics
			if member.SubscribedTopicRegex != nil && *member.SubscribedTopicRegex != "" {
				topics = append(slices.Clone(topics), "t0", "t1")
			}
			for _, name := range topics {
				if topic := m.image.Topic(name); topic != nil {
					for n := range topic.Partitions() {
						wanted[place{topic.ID, n}] = true
					}
				}
			}
			for _, topic := range member.Assignment.TopicPartitions {
				for _, n := range topic.Partitions {
					had[place{topic.TopicID, n}]++
				}
			}
		}
		if len(had) != len(wanted) {
			m.t.Fatalf("%s: %d partitions are wanted, %d are had: %+v", id, len(wanted), len(had), described)
		}
		for at, owners := range had {
			if owners != 1 || !wanted[at] {
				m.t.Fatalf("%s: %v has %d owners", id, at, owners)
			}
		}
	}
}

// checkConsumer holds what must be true of a consumer group.
func (r *rig) checkConsumer(id string) {
	r.t.Helper()
	if err := r.c.groups[id].consumer.Check(); err != nil {
		r.t.Fatal(err)
	}
	for key, a := range r.c.alarms {
		if a.index == 0 || key != (alarmKey{key.group, a.set.Timer}) {
			r.t.Fatalf("the alarm %+v does not ring", key)
		}
	}
}
