package consumer

import (
	"time"

	"ottla/controller/machine"
)

// Turn is one decision about a group: what it sees, and what it decides. Nothing
// happens to the group until the caller has Applied the Records; a Turn that
// ended in an error is thrown away. A decision after which the group is another
// one (an upgrade, a downgrade) is one Turn, too.
type Turn struct {
	Now      time.Time
	Topics   *Topics
	Settings *Settings
	// Resolving: an alarm of this group's regular expressions is set already.
	Resolving bool

	Records []machine.Record
	Alarms  []Alarm
	Classic *Downgraded // the group has become a classic one

	looked bool // at the topics of now
}

// Sender is who sent a request.
type Sender struct {
	ClientID   string // of the request's header
	ClientHost string // as Java prints an InetAddress
}

// Kind is what an alarm is for.
type Kind uint8

// Alarms of a member, but for Regex, which is the group's.
const (
	Session   Kind = iota // it has been silent for too long
	Rebalance             // it has not given up in time what it is to give up
	Join                  // a classic member has not joined the rebalance in time
	Sync                  // a classic member has not sent its SyncGroup in time
	Regex                 // regular expressions are to be looked up (Group.Resolve)
)

// Timer names an alarm within its group.
type Timer struct {
	Kind   Kind
	Member string
}

// Alarm sets, moves or cancels what time will demand.
type Alarm struct {
	Timer
	AfterMs int32
	Epoch   int32 // Rebalance: of the member; if it has gone on, nothing happens
	Keep    bool  // one that is set stays as it is
	Cancel  bool
}

func (t *Turn) arm(kind Kind, member string, afterMs int32) {
	t.Alarms = append(t.Alarms, Alarm{Timer: Timer{kind, member}, AfterMs: afterMs})
}

func (t *Turn) armIfUnset(kind Kind, member string, afterMs int32) {
	t.Alarms = append(t.Alarms, Alarm{Timer: Timer{kind, member}, AfterMs: afterMs, Keep: true})
}

func (t *Turn) cancel(kind Kind, member string) {
	t.Alarms = append(t.Alarms, Alarm{Timer: Timer{kind, member}, Cancel: true})
}

// cancelAll cancels everything that time would demand of a member.
func (t *Turn) cancelAll(member string) {
	for _, kind := range []Kind{Session, Rebalance, Join, Sync} {
		t.cancel(kind, member)
	}
}

func (t *Turn) nowMs() int64 { return t.Now.UnixMilli() }

// Settle notes what a decision has looked at, once it stands.
func (g *Group) Settle(t *Turn) {
	if t.looked {
		g.seen = t.Topics.image
	}
}

// Wake sets the alarms of a group that was loaded: each member has a whole session
// to show up, and as long as it is entitled to for giving up partitions.
func (g *Group) Wake(t *Turn) {
	session := t.sessionTimeoutMs(g.id)
	for _, id := range g.memberIDs() {
		m := g.members[id]
		t.arm(Session, id, session)
		if m.State == Revoking {
			t.Alarms = append(t.Alarms, Alarm{Timer: Timer{Rebalance, id}, AfterMs: m.RebalanceTimeoutMs, Epoch: m.Epoch})
		}
	}
}

// Expire does what an alarm of a member demands: the member is removed.
func (g *Group) Expire(t *Turn, alarm Alarm) {
	m := g.members[alarm.Member]
	if m == nil || alarm.Kind == Rebalance && m.Epoch != alarm.Epoch {
		return
	}
	g.fence(t, m)
}
