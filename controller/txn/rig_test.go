package txn

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// rig is a coordinator under test with the shell's part around it: it applies and
// commits what is decided at once, keeps the markers that are asked for, draws
// producer ids, and holds the invariants after every step.
type rig struct {
	t       testing.TB
	c       *Coordinator
	replica *Coordinator // only replays: its durable state must be the same
	now     time.Time
	log     []machine.Record
	version int16
	drawn   protocol.ProducerID
	leader  protocol.LeaderEpoch
	hurried bool // the invariants are not looked at

	asked  map[string]WriteMarkers // by transactional id: what is to be written
	wanted bool                    // a producer id is
}

var began = time.UnixMilli(1_700_000_000_000)

func settings() Settings {
	return Settings{
		MaxTimeout: 15 * time.Minute, Expiration: 7 * 24 * time.Hour, TimeoutCheckInterval: 10 * time.Second, ExpiryCheckInterval: time.Hour,
	}
}

func newRig(t testing.TB, s Settings) *rig {
	r := &rig{t: t, now: began, version: Version2, drawn: 999}
	options := Options{Settings: s, Version: func() int16 { return r.version }}
	r.c, r.replica = New(options), New(options)
	r.activate()
	return r
}

func (r *rig) turn() machine.Turn {
	return machine.Turn{Now: r.now, Next: protocol.Offset(len(r.log))}
}

func (r *rig) activate() answer {
	r.leader++
	r.asked, r.wanted = map[string]WriteMarkers{}, false
	result, err := r.c.Activate(r.turn(), r.leader)
	return r.take(result, err)
}

// answer is what one step brought.
type answer struct {
	reply   any
	err     error
	records []machine.Record
	effects []any
	repeats bool // the records say what the log said before
}

// known tells whether a record is the last of its key.
func (r *rig) known(record machine.Record) bool {
	for _, before := range slices.Backward(r.log) {
		if bytes.Equal(before.Key, record.Key) {
			return bytes.Equal(before.Value, record.Value) && (before.Value == nil) == (record.Value == nil)
		}
	}
	return record.Value == nil
}

func (r *rig) take(result machine.Result, err error) (a answer) {
	r.t.Helper()
	if err != nil {
		return answer{err: err}
	}
	if refused, ok := result.Reply.(Refused); ok {
		defer func() { a.reply, a.err = nil, refused.Err }()
	}
	a.repeats = len(result.Records) > 0
	for _, record := range result.Records {
		a.repeats = a.repeats && r.known(record)
	}
	base := protocol.Offset(len(r.log))
	for _, c := range []*Coordinator{r.c, r.replica} {
		if err := c.Apply(base, r.leader, r.now.UnixMilli(), result.Records); err != nil {
			r.t.Fatal(err)
		}
	}
	r.log = append(r.log, result.Records...)
	r.c.Committed(protocol.Offset(len(r.log)))
	for _, effect := range result.Effects {
		switch effect := effect.(type) {
		case WriteMarkers:
			if len(effect.Partitions) == 0 {
				r.t.Fatal("markers for no partition")
			}
			r.asked[effect.TransactionalID] = effect
		case DrawProducerID:
			if r.wanted {
				r.t.Fatal("a producer id is asked for twice")
			}
			r.wanted = true
		default:
			r.t.Fatalf("an effect of type %T", effect)
		}
	}
	r.check()
	a.reply, a.records, a.effects = result.Reply, result.Records, result.Effects
	return a
}

// send has a request decided; where a producer id is needed it comes again with
// one, as api does it.
func (r *rig) send(request any) answer {
	r.t.Helper()
	result, err := r.c.Handle(r.turn(), request)
	a := r.take(result, err)
	if a.reply != (NeedsProducerID{}) {
		return a
	}
	if len(a.records) > 0 || len(a.effects) > 0 {
		r.t.Fatal("a request that needs a producer id has changed something")
	}
	r.drawn++
	switch again := request.(type) {
	case InitProducerID:
		again.Drawn = r.drawn
		return r.send(again)
	case EndTxn:
		again.Drawn = r.drawn
		return r.send(again)
	}
	r.t.Fatalf("%T needs a producer id", request)
	return a
}

// report tells the coordinator of markers; none named: all that it asked for.
func (r *rig) report(id string, partitions ...protocol.TopicPartition) answer {
	r.t.Helper()
	asked, ok := r.asked[id]
	if !ok {
		return answer{}
	}
	if len(partitions) == 0 {
		partitions = asked.Partitions
	}
	return r.send(MarkersWritten{
		TransactionalID: id, Producer: asked.Producer, CoordinatorEpoch: asked.CoordinatorEpoch, Partitions: partitions,
	})
}

// reportAll writes all markers and draws what is wanted, until nothing is asked.
func (r *rig) reportAll() (all []answer) {
	r.t.Helper()
	for len(r.asked) > 0 || r.wanted {
		for _, id := range slices.Sorted(maps.Keys(r.asked)) {
			all = append(all, r.report(id))
			delete(r.asked, id)
		}
		if r.wanted {
			r.wanted = false
			r.drawn++
			all = append(all, r.send(ProducerIDDrawn{r.drawn}))
		}
	}
	return all
}

// advance lets time pass and serves the deadlines on the way.
func (r *rig) advance(d time.Duration, after func() []answer) []answer {
	r.t.Helper()
	end := r.now.Add(d)
	var all []answer
	for rounds := 0; ; rounds++ {
		next := r.c.NextDeadline()
		if next.After(end) {
			break
		}
		if rounds > 100_000 {
			r.t.Fatalf("a deadline at %v is served and does not go away", next)
		}
		if next.After(r.now) {
			r.now = next
		}
		result, err := r.c.Tick(r.turn())
		all = append(all, r.take(result, err))
		if after != nil {
			all = append(all, after()...)
		}
	}
	r.now = end
	return all
}

// fail drops the coordinator's state and loads it again from the log, as a shell
// does after a failed write or under another leader.
func (r *rig) fail() answer {
	r.t.Helper()
	if err := r.c.Restore(0, 0, 0, nil); err != nil {
		r.t.Fatal(err)
	}
	if err := r.c.Apply(0, 1, r.now.UnixMilli(), r.log); err != nil {
		r.t.Fatal(err)
	}
	return r.activate()
}

// durable is everything durable as text.
func durable(c *Coordinator) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(c.transactions)) {
		fmt.Fprintf(&b, "%q %+v\n", id, c.transactions[id].durable)
	}
	return b.String()
}

// check holds the invariants.
func (r *rig) check() {
	r.t.Helper()
	if r.hurried {
		return
	}
	if got, want := durable(r.c), durable(r.replica); got != want {
		r.t.Fatalf("the replayed state differs:\n%s\nwhat is active:\n%s", want, got)
	}
	for id, t := range r.c.transactions {
		m := &t.durable
		switch {
		case t.id != id:
			r.t.Fatalf("%q is under %q", t.id, id)
		case (m.state == Ongoing) != (r.c.ongoing[id] == t):
			r.t.Fatalf("%q is %s, and among those Ongoing: %t", id, m.state, r.c.ongoing[id] != nil)
		case m.state.preparing() != (len(t.unmarked) > 0):
			r.t.Fatalf("%q is %s, %d markers are to be written", id, m.state, len(t.unmarked))
		case m.producer.ID < 0 || m.producer.Epoch < 0:
			r.t.Fatalf("%q has producer %v", id, m.producer)
		case !slices.IsSortedFunc(m.partitions, protocol.TopicPartition.Compare):
			r.t.Fatalf("%q has partitions out of order: %v", id, m.partitions)
		case len(m.partitions) > 0 && m.state != Ongoing && !m.state.preparing():
			r.t.Fatalf("%q is %s and has partitions", id, m.state)
		}
		for tp := range t.unmarked {
			if !m.has(tp) {
				r.t.Fatalf("%q has no %v, for which a marker is awaited", id, tp)
			}
		}
	}
	for id := range r.c.ongoing {
		if r.c.transactions[id] == nil {
			r.t.Fatalf("%q is Ongoing and not known", id)
		}
	}
}
