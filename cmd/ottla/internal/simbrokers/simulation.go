package simbrokers

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/wire"
)

const topicName = "orders"

// The ends of the network besides the brokers, from 1 on. Controllers listen at a port with the number of their end.
const (
	replicas        = 3 // of a partition, at first
	members         = 3 // of the quorum
	minISR          = 2
	firstController = 101
	clientEnd       = 99
)

// plan is what a seed chooses.
type plan struct {
	machines    int
	partitions  int
	transactors int
	overrides   []string // properties of every broker
	latency     time.Duration
	drop        int // messages in a thousand
	duplicate   int
	late        int
	session     time.Duration
	commit      time.Duration // most that the other controllers take to have a batch, usually
	forget      int           // in a thousand: the log begins at a snapshot that was just taken
	snapshot    int64         // bytes between snapshots of the controllers
	calm        time.Duration // between faults, at most
	shift       time.Duration // between leaders that are moved, at most
	pace        time.Duration // of transactors, at most
	length      time.Duration // of the part with faults
	wipes       bool          // disks are lost
	reassigns   bool          // partitions get other replicas, more of them or fewer
	renewal     time.Duration // between the making and the deletion of a topic, at most; 0: there is none that is deleted
}

func newPlan(r *seeded.Random) plan {
	p := plan{
		partitions:  1 + r.Below(3),
		transactors: r.Below(3),
		latency:     r.Between(500*time.Microsecond, 8*time.Millisecond),
		drop:        seeded.Pick(r, 0, 2, 20),
		duplicate:   seeded.Pick(r, 0, 2, 20),
		late:        seeded.Pick(r, 0, 5, 30),
		session:     r.Between(800*time.Millisecond, 3*time.Second),
		commit:      r.Between(time.Millisecond, 60*time.Millisecond),
		forget:      seeded.Pick(r, 0, 500, 1000),
		snapshot:    seeded.Pick(r, int64(1000), 5000, 1<<20),
		calm:        r.Between(100*time.Millisecond, 2*time.Second),
		shift:       seeded.Pick(r, 100*time.Millisecond, time.Second, time.Minute),
		pace:        seeded.Pick(r, 2*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond),
		length:      r.Between(8*time.Second, 20*time.Second),
		machines:    3,
	}
	set := func(perMille int, name string, values ...any) {
		if r.Chance(perMille) {
			p.overrides = append(p.overrides, fmt.Sprintf("%s=%v", name, values[r.Below(len(values))]))
		}
	}
	set(1000, "broker.session.timeout.ms", p.session.Milliseconds())
	set(1000, "broker.heartbeat.interval.ms", 100, 200)
	set(1000, "replica.lag.time.max.ms", 500, 1500, 3000)
	set(1000, "replica.fetch.backoff.ms", 50, 200)
	set(1000, "replica.socket.timeout.ms", 1000, 2000)
	set(1000, "request.timeout.ms", 1500, 3000)
	set(1000, "controller.quorum.fetch.timeout.ms", 600, 2000)
	set(1000, "controller.quorum.request.timeout.ms", 700, 1500)
	set(600, "controller.quorum.fetch.max.bytes", 200, 3000)
	set(600, "controller.quorum.fetch.snapshot.max.bytes", 100, 2000)
	set(600, "metadata.log.max.record.bytes.between.snapshots", 500, 3000)
	set(300, "metadata.log.max.snapshot.interval.ms", 1000)
	set(300, "internal.metadata.log.segment.bytes", 2000)
	set(500, "replica.high.watermark.checkpoint.interval.ms", 100, 500)
	set(500, "log.flush.offset.checkpoint.interval.ms", 100, 1000)
	set(500, "num.replica.fetchers", 1, 2)
	for _, prefix := range []string{"offsets.topic.", "transaction.state.log."} {
		set(1000, prefix+"num.partitions", 1, 2)
		set(1000, prefix+"replication.factor", replicas)
	}
	set(1000, "transaction.state.log.min.isr", minISR)
	set(500, "add.partitions.to.txn.retry.backoff.max.ms", 20, 1000)
	p.wipes = r.Chance(600)
	if p.reassigns = r.Chance(600); p.reassigns {
		p.machines = seeded.Pick(r, 3, 4)
	}
	if r.Chance(600) {
		p.renewal = seeded.Pick(r, 300*time.Millisecond, time.Second, 4*time.Second)
	}
	if p.reassigns || p.renewal > 0 {
		set(1000, "log.segment.delete.delay.ms", 0, 100, 2000)
	}
	return p
}

// Simulation is one run.
type Simulation struct {
	seeded.Scheduler
	seed        uint64
	random      *seeded.Random
	plan        plan
	network     *seeded.Network
	controllers *controllers
	machines    []*machine
	producers   []*producer
	transactors []*transactor
	readers     []*reader
	created     bool // the topic is there, as far as the admin knows
	ending      bool // no more faults and no new batches
	over        bool
	logger      *slog.Logger
	pool        *compress.Pool
	acked       []acknowledged
	consumed    map[place]string   // what readers were given
	gone        []protocol.TopicID // of topics that were deleted
	losing      *seeded.Random     // decides who loses its disk at a bad moment
	counts      Counts
}

// Counts is what runs have seen, for the test to say that they were not idle.
type Counts struct {
	Kills, PowerCuts, CleanStops, Pauses, Cuts, MidOperation int
	Failovers, Lost                                          int // batches of metadata that the next leader did not have
	Divergences, Snapshots                                   int // answers to observers
	Images, Roles, Registrations, Unclean, Acknowledged      int
	Transactions, Restarts, Reloads                          int
	Wipes, WipesOutside, WipesInWish                         int // disks lost: all of them, of who was in sync nowhere, while a wish was under way
	Deletions, Reassignments, Removed, Aside                 int // topics; of partitions; replicas that went; directories set aside at a start
	Read                                                     int // records by readers
}

func (c *Counts) add(o Counts) {
	for _, pair := range []struct {
		to   *int
		from int
	}{
		{&c.Kills, o.Kills},
		{&c.PowerCuts, o.PowerCuts},
		{&c.CleanStops, o.CleanStops},
		{&c.Pauses, o.Pauses},
		{&c.Cuts, o.Cuts},
		{&c.MidOperation, o.MidOperation},
		{&c.Failovers, o.Failovers},
		{&c.Lost, o.Lost},
		{&c.Divergences, o.Divergences},
		{&c.Snapshots, o.Snapshots},
		{&c.Images, o.Images},
		{&c.Roles, o.Roles},
		{&c.Registrations, o.Registrations},
		{&c.Unclean, o.Unclean},
		{&c.Acknowledged, o.Acknowledged},
		{&c.Transactions, o.Transactions},
		{&c.Restarts, o.Restarts},
		{&c.Reloads, o.Reloads},
		{&c.Wipes, o.Wipes},
		{&c.WipesOutside, o.WipesOutside},
		{&c.WipesInWish, o.WipesInWish},
		{&c.Deletions, o.Deletions},
		{&c.Reassignments, o.Reassignments},
		{&c.Removed, o.Removed},
		{&c.Aside, o.Aside},
		{&c.Read, o.Read},
	} {
		*pair.to += pair.from
	}
}

var startOfTime = time.UnixMilli(1_800_000_000_000)

const mostEvents = 1_000_000

// poison makes who looks at a frame that he let go see it at once, in all runs.
var poison = sync.OnceFunc(func() { wire.PoisonFrames(true) })

// Run runs a seed to its end, or to the first violation; lines, if not nil, gets a line for each event.
func Run(seed uint64, lines io.Writer) (seeded.Result, Counts) {
	poison()
	r := seeded.NewRandom(seed, 0x0b0e5)
	s := &Simulation{seed: seed, random: r, plan: newPlan(r.Fork()), pool: compress.NewPool(), consumed: map[place]string{}}
	s.Scheduler = seeded.NewScheduler(startOfTime, lines)
	s.logger = s.Logger()
	s.Linef("plan: %+v", s.plan)
	s.network = &seeded.Network{
		Scheduler: &s.Scheduler, Random: r.Fork(), Latency: s.plan.latency, Drop: s.plan.drop, Duplicate: s.plan.duplicate, Late: s.plan.late,
		Cut: map[[2]int]time.Time{}, At: s.at,
	}
	s.controllers = newControllers(s)
	for id := range protocol.NodeID(s.plan.machines) {
		s.machines = append(s.machines, newMachine(s, id+1))
	}
	for _, m := range s.machines {
		m.boot()
	}
	s.populate()
	s.faults()
	s.After(s.plan.length, "the faults end", s.heal)
	for !s.over && s.Failure == nil && s.Step() {
		if s.Count > mostEvents {
			s.Violate("it does not end within %d events", mostEvents)
		}
	}
	s.counts.Acknowledged = len(s.acked)
	return s.Result(seed), s.counts
}

func (s *Simulation) machine(end int) *machine {
	if end < 1 || end > len(s.machines) {
		return nil
	}
	return s.machines[end-1]
}

// at is of seeded.Network: only the machines come and go.
func (s *Simulation) at(end int) seeded.Resident {
	if m := s.machine(end); m != nil {
		return m
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
