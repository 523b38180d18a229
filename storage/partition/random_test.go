package partition

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
)

// TestRandomEvents drives one core with whatever may happen, in any order, and
// holds the package's invariants after every event.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed)
		for step := range 400 {
			w.step()
			if broken := w.broken(); broken != "" {
				t.Fatalf("seed %d step %d: %s\n%+v", seed, step, broken, w.p.View())
			}
		}
	}
}

// world is one leader's surroundings, as far as a core can see them.
type world struct {
	random   *rand.Rand
	p        *Partition
	now      time.Time
	ends     Ends
	state    State
	fetched  map[protocol.NodeID]protocol.Offset // what each follower last said in this leadership
	alter    *AlterPartition
	lastHW   protocol.Offset
	lastRole Role
	lastTerm protocol.LeaderEpoch
}

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 7)), now: time.UnixMilli(0), fetched: map[protocol.NodeID]protocol.Offset{}}
	w.ends.End = protocol.Offset(w.random.IntN(20))
	w.ends.Durable = w.ends.End
	w.p = New(Options{NodeID: 1, LagTimeMax: time.Second, MinInSyncReplicas: 1 + w.random.IntN(2), FlushBeforeAck: w.random.IntN(2) == 0},
		protocol.Offset(w.random.IntN(20)), w.ends)
	w.state = State{Leader: 1, ISR: []protocol.NodeID{1, 2, 3}, Replicas: []protocol.NodeID{1, 2, 3}}
	return w
}

func (w *world) take(e Effects) {
	if e.Alter != nil {
		w.alter = e.Alter
	}
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.random.IntN(300)) * time.Millisecond)
	node := protocol.NodeID(2 + w.random.IntN(2))
	switch w.random.IntN(12) {
	case 0:
		w.change(w.random.IntN(4) == 0)
	case 1, 2, 3:
		epoch, err := w.p.CanAppend(w.random.IntN(2) == 0)
		if err != nil {
			return
		}
		w.ends.End += protocol.Offset(1 + w.random.IntN(5))
		effects, _ := w.p.Appended(w.now, epoch, w.ends, nil)
		w.take(effects)
	case 4:
		w.ends.Durable = w.ends.End
		w.take(w.p.Flushed(w.now, w.ends.Durable, nil))
	case 5, 6, 7, 8:
		if w.p.View().Role != Leader {
			return
		}
		offset := max(w.fetched[node], protocol.Offset(w.random.IntN(int(w.ends.End)+1)))
		effects, err := w.p.FollowerFetched(w.now, FollowerFetch{Replica: node, LeaderEpoch: w.p.LeaderEpoch(), BrokerEpoch: -1, Offset: offset, LeaderEnd: w.ends.End}, nil)
		if err == nil {
			w.fetched[node] = offset
		}
		w.take(effects)
	case 9:
		w.take(w.p.Tick(w.now))
	case 10:
		w.answer()
	case 11:
		w.p.SetOptions(w.now, Options{NodeID: 1, LagTimeMax: time.Second, MinInSyncReplicas: 1 + w.random.IntN(3), FlushBeforeAck: w.p.options.FlushBeforeAck}, nil)
	}
}

// change is a decision of the controller: another epoch, perhaps another leader.
func (w *world) change(follow bool) {
	w.state.PartitionEpoch++
	w.state.LeaderEpoch++
	w.state.ISR = slices.Clone(w.p.View().ISR)
	if len(w.state.ISR) == 0 {
		w.state.ISR = []protocol.NodeID{1, 2, 3}
	}
	if follow {
		w.state.Leader = 2
		w.p.Follow(w.now, w.state, w.ends)
		cut := max(w.p.HighWatermark(), w.ends.End-protocol.Offset(w.random.IntN(3)))
		w.ends.End, w.ends.Durable = cut, min(w.ends.Durable, cut)
		w.p.Truncated(w.ends)
		return
	}
	w.state.Leader = 1
	if w.p.View().Role != Leader {
		clear(w.fetched)
		w.state.ISR = []protocol.NodeID{1, 2, 3}
	}
	effects, _ := w.p.Lead(w.now, w.state, w.ends, nil)
	w.take(effects)
}

// answer is the controller's, to the newest wish or to an old one.
func (w *world) answer() {
	if w.alter == nil {
		return
	}
	codes := []protocol.ErrorCode{0, 0, 0, protocol.IneligibleReplica, protocol.InvalidUpdateVersion, protocol.RequestTimedOut}
	result := AlterResult{
		Error: codes[w.random.IntN(len(codes))], LeaderEpoch: w.alter.LeaderEpoch, PartitionEpoch: w.alter.PartitionEpoch + 1,
	}
	for _, member := range w.alter.ISR {
		result.ISR = append(result.ISR, member.ID)
	}
	if result.Error == 0 && w.p.pending == w.alter {
		w.state.PartitionEpoch = max(w.state.PartitionEpoch, result.PartitionEpoch)
	}
	w.take(w.p.ISRAltered(w.now, w.alter, result, nil))
}

// broken names the invariant that does not hold.
func (w *world) broken() string {
	view, hw := w.p.View(), w.p.HighWatermark()
	defer func() { w.lastHW, w.lastRole, w.lastTerm = hw, view.Role, view.LeaderEpoch }()
	if hw > w.ends.End {
		return "the high watermark is beyond the log end"
	}
	if view.Role != Leader {
		return ""
	}
	if !slices.Contains(view.MaximalISR, 1) {
		return "the leader is not in its maximal ISR"
	}
	for _, id := range view.ISR {
		if !slices.Contains(view.MaximalISR, id) {
			return "the ISR is not within the maximal ISR"
		}
	}
	sameTerm := w.lastRole == Leader && w.lastTerm == view.LeaderEpoch
	if sameTerm && hw < w.lastHW {
		return "the high watermark moved back"
	}
	if !sameTerm || hw == w.lastHW {
		return ""
	}
	// It moved: everyone in the maximal ISR has what is committed now.
	if w.p.options.FlushBeforeAck && hw > w.ends.Durable {
		return "the high watermark passed what is durable"
	}
	for _, id := range view.MaximalISR {
		if id != 1 && w.fetched[id] < hw {
			return "the high watermark passed a member of the maximal ISR"
		}
	}
	return ""
}
