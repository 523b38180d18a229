package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// state is where a classic group stands. A group that is not there is Dead.
type state uint8

const (
	stateEmpty state = iota
	statePreparing
	stateCompleting
	stateStable
)

// String gives the name that DescribeGroups and ListGroups show.
func (s state) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// consumerProtocol is the protocol type of consumers, the one whose metadata the
// coordinator reads.
const consumerProtocol = "consumer"

// classicGroup is a group whose members assign partitions among themselves.
type classicGroup struct {
	id string
	// written is durable: the last GroupMetadata record. Nil: only offsets made
	// the group. While the machine is active nothing reads it.
	written *schema.GroupMetadataValue
	membership
}

// membership is the volatile part: where the group stands now, which is ahead
// of what is written while it rebalances.
type membership struct {
	state, previous state
	stateMs         int64 // since when; -1: not known
	protocolType    string
	protocol        *string
	generation      int32
	leader          string // member id; "" is none

	members   map[string]*member
	order     []*member // by sequence
	sequence  uint64
	instances map[string]*member   // static members by instance id
	pending   map[string]*deadline // member ids given out and not yet used
	supported map[string]int       // how many members support a protocol
	joining   int                  // members whose JoinGroup is parked
	unsynced  int                  // members with pendingSync

	// topics that the members of this generation subscribe to; nil: not known.
	topics map[string]struct{}

	joinDeadline deadline // the end of PreparingRebalance
	syncDeadline deadline // until when all members must have sent SyncGroup
	initial      initialDelay
}

func newClassicGroup(id string, nowMs int64) *classicGroup {
	return &classicGroup{id: id, membership: membership{
		stateMs: nowMs, members: map[string]*member{}, instances: map[string]*member{},
		pending: map[string]*deadline{}, supported: map[string]int{},
	}}
}

// load builds the volatile part out of what was written: Stable or Empty.
func (g *classicGroup) load() {
	stateMs := g.stateMs
	fresh := newClassicGroup(g.id, stateMs)
	g.membership = fresh.membership
	value := g.written
	if value == nil {
		return
	}
	g.stateMs, g.protocolType, g.protocol, g.generation = value.CurrentStateTimestamp, value.ProtocolType, value.Protocol, value.Generation
	if value.Leader != nil {
		g.leader = *value.Leader
	}
	for _, m := range value.Members {
		if g.members[m.MemberID] != nil || m.GroupInstanceID != nil && g.instances[*m.GroupInstanceID] != nil {
			continue // no Kafka writes a member twice
		}
		rebalanceMs := m.RebalanceTimeout
		if rebalanceMs == -1 { // before version 1 a rebalance took a session
			rebalanceMs = m.SessionTimeout
		}
		g.add(&member{
			id: m.MemberID, instanceID: m.GroupInstanceID, clientID: m.ClientID, clientHost: m.ClientHost,
			rebalanceTimeoutMs: rebalanceMs, sessionTimeoutMs: m.SessionTimeout,
			protocols: []memberProtocol{{g.protocolName(), m.Subscription}}, assignment: m.Assignment,
		})
	}
	if len(g.members) > 0 {
		g.state = stateStable
	}
	g.readSubscriptions()
}

// protocolName is the selected protocol, "" while there is none.
func (g *classicGroup) protocolName() string {
	if g.protocol == nil {
		return ""
	}
	return *g.protocol
}

// moveTo changes the state.
func (g *classicGroup) moveTo(d *decision, next state) {
	g.previous, g.state, g.stateMs = g.state, next, d.nowMs()
}

// add takes a member in. Its protocols are supported, it waits for nothing yet.
func (g *classicGroup) add(m *member) {
	if g.leader == "" {
		g.leader = m.id
	}
	g.sequence++
	m.sequence = g.sequence
	g.order = append(g.order, m)
	g.enter(m)
}

// enter puts a member that is in order into everything else.
func (g *classicGroup) enter(m *member) {
	g.members[m.id] = m
	if m.instanceID != nil {
		g.instances[*m.instanceID] = m
	}
	g.count(m, 1)
}

func (g *classicGroup) count(m *member, step int) {
	for _, name := range distinct(m.protocols) {
		if g.supported[name] += step; g.supported[name] == 0 {
			delete(g.supported, name)
		}
	}
}

func (g *classicGroup) place(m *member) int {
	at, found := slices.BinarySearchFunc(g.order, m.sequence, func(m *member, sequence uint64) int { return cmp.Compare(m.sequence, sequence) })
	if !found {
		panic(fmt.Sprintf("group: member %q of %q has no place in its order", m.id, g.id))
	}
	return at
}

// update gives a member what it joins with now.
func (g *classicGroup) update(m *member, protocols []memberProtocol, rebalanceTimeoutMs, sessionTimeoutMs int32) {
	g.count(m, -1)
	m.protocols, m.rebalanceTimeoutMs, m.sessionTimeoutMs = protocols, rebalanceTimeoutMs, sessionTimeoutMs
	g.count(m, 1)
}

// setPendingSync notes whether a member is still to send its SyncGroup.
func (g *classicGroup) setPendingSync(m *member, pending bool) {
	switch {
	case pending && !m.pendingSync:
		g.unsynced++
	case !pending && m.pendingSync:
		g.unsynced--
	}
	m.pendingSync = pending
}

// allJoined tells that a rebalance waits for nobody any more.
func (g *classicGroup) allJoined() bool { return len(g.members) == g.joining && len(g.pending) == 0 }

// rebalanceTimeoutMs is the longest that a member may take to join.
func (g *classicGroup) rebalanceTimeoutMs() (longest int32) {
	for _, m := range g.order {
		longest = max(longest, m.rebalanceTimeoutMs)
	}
	return longest
}

// supports tells whether a member with these protocols may join.
func (g *classicGroup) supports(protocolType string, protocols []memberProtocol) bool {
	if g.state == stateEmpty {
		return protocolType != "" && len(protocols) > 0
	}
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p memberProtocol) bool {
		return g.supported[p.name] == len(g.members)
	})
}

// selectProtocol lets each member vote for the protocol it likes best among
// those that all support. Of equal votes the name that sorts first wins; in
// Kafka it is a hash table's order.
func (g *classicGroup) selectProtocol() string {
	votes := map[string]int{}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if g.supported[p.name] == len(g.members) {
				votes[p.name]++
				break
			}
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// validate checks who speaks: a static member by its instance id first.
func (g *classicGroup) validate(memberID string, instanceID *string) protocol.ErrorCode {
	if instanceID != nil {
		switch m := g.instances[*instanceID]; {
		case m == nil:
			return protocol.UnknownMemberID
		case m.id != memberID:
			return protocol.FencedInstanceID
		}
	}
	if g.members[memberID] == nil {
		return protocol.UnknownMemberID
	}
	return protocol.None
}

// write writes what is durable of the group.
func (g *classicGroup) write(d *decision) { d.write(groupKey(g.id), g.value(), groupMetadataVersion) }

// value is what is durable of the group as it stands now.
func (g *classicGroup) value() *schema.GroupMetadataValue {
	value := schema.NewGroupMetadataValue()
	value.ProtocolType, value.Protocol, value.Generation, value.CurrentStateTimestamp = g.protocolType, g.protocol, g.generation, g.stateMs
	if g.leader != "" {
		leader := g.leader
		value.Leader = &leader
	}
	for _, m := range g.order {
		value.Members = append(value.Members, schema.GroupMetadataMemberMetadata{
			MemberID: m.id, GroupInstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost,
			RebalanceTimeout: m.rebalanceTimeoutMs, SessionTimeout: m.sessionTimeoutMs,
			Subscription: m.metadata(g.protocolName()), Assignment: m.assignment,
		})
	}
	return value
}

func groupKey(id string) *schema.GroupMetadataKey {
	key := schema.NewGroupMetadataKey()
	key.Group = id
	return key
}
