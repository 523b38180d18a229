package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/offsets"
	"ottla/protocol"
)

// rig is a coordinator under test with the shell's part around it: it applies
// and commits what is decided at once, keeps parked requests, and holds the
// invariants after every step.
type rig struct {
	t       testing.TB
	c       *Coordinator
	replica *Coordinator // only replays: its durable state must be the same
	now     time.Time
	log     []machine.Record
	past    []func(*Coordinator) error // what the log has, to be taken again
	parked  map[machine.Token]int      // token → number of the request
	dropped map[machine.Token]bool
	count   int // requests parked so far
	random  func() uint64
	option  Options
	image   *metadata.Image

	generations map[string]int32
}

var began = time.UnixMilli(1_700_000_000_000)

func settings() Settings {
	return Settings{
		MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: 30 * time.Minute, InitialRebalanceDelay: 3 * time.Second,
		MaxSize: 1000, OffsetMetadataBytes: 4096, OffsetsRetention: 7 * 24 * time.Hour, OffsetsCheckInterval: 10 * time.Minute,
		Consumer: consumer.Settings{
			SessionTimeout:    consumer.Bounded{Ms: 45_000, Min: 45_000, Max: 60_000},
			HeartbeatInterval: consumer.Bounded{Ms: 5000, Min: 5000, Max: 15_000}, AssignmentInterval: consumer.Bounded{Max: 15_000},
			MaxSize: 1000, ClassicMaxSize: 1000, Assignors: []string{"uniform", "range"}, RegexRefreshMs: 600_000,
			Upgrade: true, Downgrade: true,
		},
	}
}

func newRig(t testing.TB, s Settings) *rig {
	r := &rig{t: t, now: began, parked: map[machine.Token]int{}, dropped: map[machine.Token]bool{}, generations: map[string]int32{}, image: metadata.Empty()}
	words := uint64(0)
	r.random = func() uint64 { words++; return words << 16 }
	r.option = Options{Settings: s, Random: func() uint64 { return r.random() }, Image: func() *metadata.Image { return r.image }}
	r.c, r.replica = New(r.option), New(r.option)
	r.activate()
	return r
}

func (r *rig) turn() machine.Turn {
	return machine.Turn{Now: r.now, Next: protocol.Offset(len(r.log))}
}

func (r *rig) activate() answers {
	result, err := r.c.Activate(r.turn(), 1)
	return r.take(result, err, 0)
}

// answers is what one step brought.
type answers struct {
	reply    kmsg.Response // of the request itself
	parked   int           // its number, if it was parked
	answered []answered    // requests that were parked before
	records  []machine.Record
}

type answered struct {
	number int
	reply  kmsg.Response
}

func (r *rig) take(result machine.Result, err error, parking int) answers {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	base, timestampMs := protocol.Offset(len(r.log)), r.now.UnixMilli()
	r.replay(func(c *Coordinator) error {
		if in := result.Transaction; in != nil {
			return c.ApplyTransactional(base, 1, timestampMs, in.ProducerID, in.ProducerEpoch, result.Records)
		}
		return c.Apply(base, 1, timestampMs, result.Records)
	})
	r.log = append(r.log, result.Records...)
	r.c.Committed(protocol.Offset(len(r.log)))
	a := answers{records: result.Records}
	switch reply := result.Reply.(type) {
	case nil:
	case machine.Parked:
		if _, used := r.parked[reply.Token]; used || r.dropped[reply.Token] {
			r.t.Fatalf("token %d is used twice", reply.Token)
		}
		r.count++
		r.parked[reply.Token], a.parked = r.count, r.count
	case kmsg.Response:
		a.reply = reply
	default:
		r.t.Fatalf("a reply of type %T", reply)
	}
	for _, effect := range result.Effects {
		respond := effect.(machine.Respond)
		number, waits := r.parked[respond.Token]
		if !waits {
			r.t.Fatalf("token %d is answered and does not wait", respond.Token)
		}
		if number == a.parked {
			r.t.Fatalf("request %d is parked and answered in one result", number)
		}
		delete(r.parked, respond.Token)
		r.dropped[respond.Token] = true
		a.answered = append(a.answered, answered{number, respond.Reply.(kmsg.Response)})
	}
	r.check()
	return a
}

func (r *rig) send(message kmsg.Request, client string) answers {
	r.t.Helper()
	result, err := r.c.Handle(r.turn(), Request{Message: message, ClientID: client, ClientHost: "/127.0.0.1"})
	return r.take(result, err, 0)
}

// advance lets time pass and serves the deadlines on the way.
func (r *rig) advance(d time.Duration) []answers {
	r.t.Helper()
	end := r.now.Add(d)
	var all []answers
	for rounds := 0; ; rounds++ {
		next := r.c.NextDeadline()
		if next.IsZero() || next.After(end) {
			break
		}
		if rounds > 100_000 {
			r.t.Fatalf("a deadline at %v is served and does not go away", next)
		}
		if next.After(r.now) {
			r.now = next
		}
		result, err := r.c.Tick(r.turn())
		all = append(all, r.take(result, err, 0))
	}
	r.now = end
	return all
}

// replay has both machines take what the log has taken.
func (r *rig) replay(take func(*Coordinator) error) {
	r.t.Helper()
	for _, c := range []*Coordinator{r.c, r.replica} {
		if err := take(c); err != nil {
			r.t.Fatal(err)
		}
	}
	r.past = append(r.past, take)
}

// fail drops the coordinator's state and loads it again from the log, as a shell
// does: whatever waits is answered by the shell. It tells what that was.
func (r *rig) fail() []int {
	r.t.Helper()
	lost := slices.Sorted(maps.Values(r.parked))
	for token := range r.parked {
		r.dropped[token] = true
	}
	r.parked = map[machine.Token]int{}
	if err := r.c.Restore(0, 0, 0, nil); err != nil {
		r.t.Fatal(err)
	}
	for _, take := range r.past {
		if err := take(r.c); err != nil {
			r.t.Fatal(err)
		}
	}
	r.generations = map[string]int32{} // those that nobody wrote are forgotten
	r.activate()
	return lost
}

// durable is everything durable as text.
func durable(c *Coordinator) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		fmt.Fprintf(&b, "group %q", id)
		if g := c.groups[id].consumer; g != nil {
			var t consumer.Turn
			g.WriteAll(&t)
			for _, r := range t.Records {
				fmt.Fprintf(&b, " %q=%x", r.Key, r.Value)
			}
		} else if w := c.groups[id].classic.written; w != nil {
			fmt.Fprintf(&b, " %s", w.AppendJSON(nil, groupMetadataVersion))
		}
		b.WriteString("\n")
	}
	for _, id := range c.offsets.Groups() {
		c.offsets.Each(id, func(topic string, partition int32, o offsets.Offset) {
			fmt.Fprintf(&b, "offset %q %s-%d %+v\n", id, topic, partition, o)
		})
		c.offsets.EachAny(id, func(topic string, partition int32) {
			if c.offsets.Open(id, topic, partition) {
				fmt.Fprintf(&b, "offset %q %s-%d pending\n", id, topic, partition)
			}
		})
	}
	return b.String()
}

// check holds the invariants.
func (r *rig) check() {
	r.t.Helper()
	if got, want := durable(r.c), durable(r.replica); got != want {
		r.t.Fatalf("the replayed state differs:\n%s\nwhat is active:\n%s", want, got)
	}
	waiting := map[machine.Token]bool{}
	for id, g := range r.c.groups {
		if g.consumer != nil {
			r.checkConsumer(id)
			continue
		}
		r.checkGroup(g.classic, waiting)
		if before := r.generations[id]; g.classic.generation < before {
			r.t.Fatalf("the generation of %q went back from %d to %d", id, before, g.classic.generation)
		}
		r.generations[id] = g.classic.generation
	}
	for id := range r.generations {
		if r.c.classicGroup(id) == nil {
			delete(r.generations, id)
		}
	}
	for token, number := range r.parked {
		if !waiting[token] {
			r.t.Fatalf("request %d waits and nothing will answer it", number)
		}
	}
	if len(waiting) != len(r.parked) {
		r.t.Fatalf("%d requests wait in the core, %d in the shell", len(waiting), len(r.parked))
	}
}

// checkGroup holds what must be true of one group, and notes which requests wait.
func (r *rig) checkGroup(g *classicGroup, waiting map[machine.Token]bool) {
	r.t.Helper()
	joining, unsynced, supported, static := 0, 0, map[string]int{}, 0
	for i, m := range g.order {
		if g.members[m.id] != m || i > 0 && g.order[i-1].sequence >= m.sequence {
			r.t.Fatalf("member %s of %q is out of order", m.id, g.id)
		}
		if m.join.token != 0 {
			joining++
			waiting[m.join.token] = true
		}
		if m.sync.token != 0 {
			waiting[m.sync.token] = true
		}
		if m.pendingSync {
			unsynced++
		}
		if m.instanceID != nil {
			static++
			if g.instances[*m.instanceID] != m {
				r.t.Fatalf("instance %s of %q is another member's", *m.instanceID, g.id)
			}
		}
		for _, p := range m.protocols {
			supported[p.name]++
		}
		if m.session.index == 0 && !m.waits() {
			r.t.Fatalf("the session of %s in %q never ends", m.id, g.id)
		}
		if g.state == stateCompleting && m.join.token != 0 || g.state != stateCompleting && m.sync.token != 0 || g.state == stateStable && m.join.token != 0 {
			r.t.Fatalf("member %s of %q waits in state %v", m.id, g.id, g.state)
		}
	}
	if len(g.members) != len(g.order) || joining != g.joining || unsynced != g.unsynced || static != len(g.instances) || !maps.Equal(supported, g.supported) {
		r.t.Fatalf("group %q has lost count: %d/%d members, %d/%d joining, %d/%d unsynced", g.id, len(g.members), len(g.order), joining, g.joining, unsynced, g.unsynced)
	}
	for id, t := range g.pending {
		if t.index == 0 || g.members[id] != nil {
			r.t.Fatalf("pending member %s of %q", id, g.id)
		}
	}
	switch {
	case g.state == stateEmpty != (len(g.members) == 0) && g.state != statePreparing:
		r.t.Fatalf("group %q is %v with %d members", g.id, g.state, len(g.members))
	case len(g.members) > 0 && g.members[g.leader] == nil:
		r.t.Fatalf("group %q is led by %q, who is not in it", g.id, g.leader)
	case g.state == statePreparing && g.joinDeadline.index == 0:
		r.t.Fatalf("the rebalance of %q never ends", g.id)
	case g.state == stateCompleting && g.unsynced > 0 && g.syncDeadline.index == 0:
		r.t.Fatalf("group %q waits for SyncGroup for ever", g.id)
	case (g.state == stateCompleting || g.state == stateStable) && len(g.members) > 0 && g.supported[g.protocolName()] != len(g.members):
		r.t.Fatalf("not all members of %q support its protocol %q", g.id, g.protocolName())
	}
}
