package shard

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"ottla/protocol"
)

var storySeeds = flag.Int("seeds", 150, "how many stories TestStories tells")

// story is a random life of three partitions: requests, other people at the log,
// followers, leadership that comes and goes, full disks, power cuts. A key's
// value only rises, so that what moved back is seen.
type story struct {
	*rig
	random  *rand.Rand
	durable bool // flush-before-ack, so a power cut may come
	parts   [3]part
	all     []*question
	full    bool
}

type part struct {
	epoch    protocol.LeaderEpoch
	replicas []protocol.NodeID
	led      bool
	follower protocol.Offset            // what the follower has
	floor    map[string]int             // what was acknowledged of each key
	puts     map[protocol.Offset]string // what was acknowledged at each offset
}

// question is a request with what must be true of its answer.
type question struct {
	outcome
	p       int32
	atLeast int
}

func newStory(t *testing.T, seed uint64) *story {
	s := &story{random: rand.New(rand.NewPCG(seed, 7)), rig: newRig(t, func(o *Options) {
		o.LoadBytes, o.MaxQueued, o.MaxPending = 20_000, 200, 500
	})}
	s.durable = seed%2 == 0
	if s.durable {
		s.shut(true)
		s.logs.FlushMessages = 1
		s.open()
	}
	for p := range s.parts {
		s.parts[p] = part{replicas: [][]protocol.NodeID{{1}, {1, 2}, {1}}[p], floor: map[string]int{}, puts: map[protocol.Offset]string{}}
	}
	return s
}

func (s *story) key() string { return fmt.Sprintf("k%d", s.random.IntN(4)) }

func (s *story) submit() {
	p := int32(s.random.IntN(len(s.parts)))
	q := &question{p: p}
	q.t = s.t
	known := &s.parts[p]
	switch n := s.random.IntN(100); {
	case n < 45:
		key := s.key()
		q.what, q.atLeast = add{key}, known.floor[key]+1
	case n < 65:
		key := s.key()
		q.what, q.atLeast = get{key}, known.floor[key]
	case n < 75:
		q.what = put{"other-" + s.key(), fmt.Sprint(len(s.all))}
	case n < 83:
		q.what = wait{s.key()}
	case n < 86:
		q.what = many{s.random.IntN(50), s.random.IntN(200)}
	case n < 89:
		q.what = one{1 + s.random.IntN(20), s.random.IntN(200)}
	case n < 92:
		q.what = alarm{time.Duration(s.random.IntN(3000)) * time.Millisecond}
	case n < 95:
		q.what = remove{"other-" + s.key()}
	default:
		q.what = refuse{}
	}
	s.all = append(s.all, q)
	s.shards.Submit(s.now, p, q.what, func(reply any, err error) {
		q.done(reply, err)
		s.learn(q, reply, err)
	})
}

// learn holds an answer against what was acknowledged before it was asked.
func (s *story) learn(q *question, reply any, err error) {
	known := &s.parts[q.p]
	if err != nil {
		switch code := protocol.CodeOf(err); code {
		case protocol.InvalidRequest:
		case protocol.UnknownServerError:
			if _, large := q.what.(one); !large {
				s.t.Errorf("%v got %v", q.what, err)
			}
		default:
			if !code.Retriable() {
				s.t.Errorf("%v got %v", q.what, err)
			}
		}
		return
	}
	key, n := "", 0
	switch asked := q.what.(type) {
	case add:
		key, n = asked.key, reply.(int)
	case get:
		key = asked.key
		n, _ = strconv.Atoi(reply.(string))
	case put:
		known.puts[reply.(protocol.Offset)] = asked.key + "=" + asked.value
		return
	default:
		return
	}
	if n < q.atLeast {
		s.t.Errorf("partition %d: %v gives %d, though at least %d was acknowledged before", q.p, q.what, n, q.atLeast)
	}
	known.floor[key] = max(known.floor[key], n)
}

// elect gives the partition a leader, and tells the shards, perhaps later.
func (s *story) elect(p int32) {
	s.refill(false)
	known := &s.parts[p]
	known.epoch++
	known.led = s.random.IntN(3) > 0 || len(known.replicas) == 1
	leader := protocol.NodeID(2)
	if known.led {
		leader = 1
	}
	s.role(p, leader, known.epoch, int32(known.epoch), known.replicas, known.replicas...)
	for range s.random.IntN(3) {
		s.submit()
	}
	if known.led {
		s.shards.Load(s.now, p, known.epoch)
	} else {
		s.shards.Unload(s.now, p, known.epoch)
	}
	if known.led && s.random.IntN(4) == 0 {
		known.led = false
		s.shards.Unload(s.now, p, known.epoch) // the replica failed, say
	}
}

// catchUp has the follower of partition 1 fetch.
func (s *story) catchUp(all bool) {
	known := &s.parts[1]
	view, err := s.replicas.Describe(tpOf(1))
	if err != nil || view.View.Leader != 1 {
		return
	}
	end := view.LogEndOffset
	known.follower = min(max(known.follower, view.HighWatermark), end)
	if left := int(end - known.follower); left > 0 && !all {
		known.follower += protocol.Offset(s.random.IntN(left + 1))
	} else {
		known.follower = end
	}
	s.follow(1, 2, known.epoch, known.follower)
}

func (s *story) refill(full bool) {
	s.full = full
	if full {
		s.disk.SetCapacity(1)
	} else {
		s.disk.SetCapacity(0)
	}
}

// restart ends the process one way or another, and begins anew.
func (s *story) restart() {
	s.refill(false)
	disk := s.disk
	switch n := s.random.IntN(3); {
	case n == 0:
		s.shut(true)
	case n == 1 && s.durable:
		disk = s.disk.Crash()
		s.shut(false)
	default:
		disk = s.disk.Kill()
		s.shut(false)
	}
	s.disk = disk
	s.open()
	for p := range s.parts {
		s.parts[p].follower = 0
		if s.parts[p].epoch > 0 {
			s.elect(int32(p))
		}
	}
}

func (s *story) act() {
	switch n := s.random.IntN(1000); {
	case n < 700:
		s.submit()
	case n < 780:
		s.replicas.Exclusive(tpOf(int32(s.random.IntN(len(s.parts)))), func() {
			for range s.random.IntN(30) {
				s.submit()
			}
			if s.random.IntN(3) == 0 {
				s.now = s.now.Add(time.Duration(s.random.IntN(6000)) * time.Millisecond)
				s.shards.Tick(s.now)
			}
		})
	case n < 860:
		s.catchUp(false)
	case n < 940:
		s.now = s.now.Add(time.Duration(s.random.IntN(2000)) * time.Millisecond)
		s.replicas.Tick(s.now)
		for range s.random.IntN(30) {
			s.shards.Tick(s.now)
		}
	case n < 947:
		s.elect(int32(s.random.IntN(len(s.parts))))
	case n < 950:
		s.refill(true)
	case n < 970:
		s.refill(false)
	case n < 980:
		s.shards.SetMaxBatchBytes(500 + s.random.IntN(3000))
	case n < 985:
		s.shards.Broadcast(s.now, add{s.key()})
	case n < 988:
		s.restart()
	}
}

// heal lets everything come to rest, and looks at it.
func (s *story) heal() {
	s.refill(false)
	for p := range int32(len(s.parts)) {
		known := &s.parts[p]
		known.epoch++
		known.led = true
		s.role(p, 1, known.epoch, int32(known.epoch), known.replicas, known.replicas...)
		s.shards.Load(s.now, p, known.epoch)
	}
	for range 100 {
		s.advance(time.Second)
		s.catchUp(true)
	}
	for p := range int32(len(s.parts)) {
		known := &s.parts[p]
		for key, floor := range known.floor {
			o := s.ask(p, get{key})
			if n, _ := strconv.Atoi(fmt.Sprint(o.reply)); !o.isDone() || o.err != nil || n < floor {
				s.t.Errorf("partition %d: %s is %v %v, acknowledged was %d", p, key, o.reply, o.err, floor)
			}
		}
		if live, replayed := s.toy(p).dump(), s.replayed(p, known.epoch); live != replayed {
			s.t.Errorf("partition %d, live:\n%sreplayed:\n%s", p, live, replayed)
		}
		s.checkPuts(p)
		s.shards.Unload(s.now, p, known.epoch+1) // who is still parked
	}
	for _, q := range s.all {
		if !q.isDone() {
			s.t.Errorf("partition %d: %#v was never answered", q.p, q.what)
		}
	}
}

func (s *story) checkPuts(p int32) {
	found := map[protocol.Offset]string{}
	for _, b := range s.batches(p) {
		for r, err := range recordsOf(b, s.pool) {
			s.must(err)
			found[r.Offset] = string(r.Key) + "=" + string(r.Value)
		}
	}
	for offset, want := range s.parts[p].puts {
		if found[offset] != want {
			s.t.Errorf("partition %d, offset %d: acknowledged %s, the log has %q", p, offset, want, found[offset])
		}
	}
}

func TestStories(t *testing.T) {
	acknowledged, refused := 0, 0
	for seed := range uint64(*storySeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newStory(t, seed)
			for p := range int32(len(s.parts)) {
				s.elect(p)
			}
			for range 600 {
				s.act()
			}
			s.heal()
			for _, q := range s.all {
				if q.err == nil {
					acknowledged++
				} else {
					refused++
				}
			}
		})
	}
	t.Logf("%d acknowledged, %d refused", acknowledged, refused)
	if acknowledged < refused/2 {
		t.Error("the stories say little: most requests were refused")
	}
}
