package sim

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"ottla/protocol/wire"

	"ottla/cmd/ottla/internal/seeded"
)

// Options say what to run.
type Options struct {
	Seed uint64
	// Script: not the seed chooses what is done, see scriptPlan.
	Script bool
	// NoSpace, if not nil, is the only fault.
	NoSpace *NoSpace
	// Trace gets one line an event; nil: only the hash is kept.
	Trace io.Writer
}

// Result is what became of a seed.
type Result struct {
	seeded.Result
	Counts Counts
	// NeedingRoom is how many operations might have found none; only counted with NoSpace.
	NeedingRoom int
}

// Counts say what happened, so that a run that does nothing is noticed.
type Counts struct {
	Acknowledged, Unknown, Refused int // records written
	Read                           int // records read by consumers
	Requests                       int
	Kills, Cuts, CleanStops        int
	MidOperation                   int // of the kills and cuts, those within an operation on the disk
	DiskFaults, CutConnections     int
	TopicsCreated, TopicsDeleted   int
	LostByCut                      int // acknowledged records that a power cut was allowed to take
	Committed, Aborted, Copied     int // transactions; records copied in transactions
	Checked                        int // times that all files were held against what must be true of them
	CompactedLoads                 int // coordinators that were loaded from a log which compaction had taken something from
	ForgottenIDs                   int // transactional ids that were used again after they had expired
	Forgotten                      int // batches sent again that a restarted node did not know for duplicates
}

// Add sums.
func (c *Counts) Add(o Counts) {
	for _, pair := range []struct {
		to   *int
		from int
	}{
		{&c.Acknowledged, o.Acknowledged},
		{&c.Unknown, o.Unknown},
		{&c.Refused, o.Refused},
		{&c.Read, o.Read},
		{&c.Requests, o.Requests},
		{&c.Kills, o.Kills},
		{&c.Cuts, o.Cuts},
		{&c.CleanStops, o.CleanStops},
		{&c.MidOperation, o.MidOperation},
		{&c.DiskFaults, o.DiskFaults},
		{&c.CutConnections, o.CutConnections},
		{&c.TopicsCreated, o.TopicsCreated},
		{&c.TopicsDeleted, o.TopicsDeleted},
		{&c.LostByCut, o.LostByCut},
		{&c.Forgotten, o.Forgotten},
		{&c.Committed, o.Committed},
		{&c.Aborted, o.Aborted},
		{&c.Copied, o.Copied},
		{&c.CompactedLoads, o.CompactedLoads},
		{&c.Checked, o.Checked},
		{&c.ForgottenIDs, o.ForgottenIDs},
	} {
		*pair.to += pair.from
	}
}

// Simulation is one run.
type Simulation struct {
	seeded.Scheduler
	seed     uint64
	script   bool
	random   *seeded.Random
	plan     plan
	hosts    []*host
	clients  []client
	admin    *admin
	model    model
	history  txHistory
	noSpace  noSpace
	logger   *slog.Logger
	phase    phase
	finished bool // the ending has seen everything
	counts   Counts
}

// phase is how far the run is.
type phase int8

const (
	working phase = iota // clients work, faults strike
	healing              // no faults any more, nothing new is written
	reading              // everything is answered; all is read and compared
)

// client is one of the simulated clients.
type client interface {
	start()
	// idle tells what the client still waits for in the healing phase; "" for nothing.
	idle() string
}

// startOfTime is when every run begins, plus what the seed adds.
var startOfTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// maxEvents ends a run that does not end by itself.
const maxEvents = 3_000_000

// poison makes who looks at a frame that he let go see it at once, in all runs.
var poison = sync.OnceFunc(func() { wire.PoisonFrames(true) })

// Run runs a seed to its end or to the first broken invariant.
func Run(o Options) (result Result) {
	poison()
	s := &Simulation{seed: o.Seed, script: o.Script, random: seeded.NewRandom(o.Seed, 0x1234567), noSpace: noSpace{NoSpace: o.NoSpace}}
	s.Scheduler = seeded.NewScheduler(startOfTime.Add(s.random.Between(0, time.Hour)), o.Trace)
	s.logger = s.Logger()
	defer func() {
		if reason := recover(); reason != nil {
			s.Failure = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
		result = Result{
			Result: s.Result(o.Seed),
			Counts: s.counts, NeedingRoom: s.noSpace.seen,
		}
	}()
	s.set()
	for s.Failure == nil && !s.finished {
		if !s.Step() {
			s.Violate("nothing is left to happen, and the run is not over")
		}
		if s.Count > maxEvents {
			s.Violate("the run does not end: %d events, %s", s.Count, s.waiting())
		}
	}
	return result
}

// set puts the stage up.
func (s *Simulation) set() {
	if s.script {
		s.plan = scriptPlan()
		s.scripted()
	} else {
		s.plan = newPlan(s.random.Fork())
	}
	s.noSpace.alone(&s.plan)
	s.Linef("plan: %s", s.plan.String())
	s.model.init(s)
	h := newHost(s, 0)
	s.hosts = append(s.hosts, h)
	h.boot(firstBoot)
	s.admin = newAdmin(s, h)
	s.clients = append(s.clients, s.admin)
	for i := range s.plan.producers {
		s.clients = append(s.clients, newProducer(s, h, i))
	}
	for i := range s.plan.consumers {
		s.clients = append(s.clients, newConsumer(s, h, i))
	}
	for i := range s.plan.seekers {
		s.clients = append(s.clients, newSeeker(s, h, i))
	}
	for i := range s.plan.transactions.transactors {
		s.clients = append(s.clients, newTransactor(s, h, i))
	}
	for i := range s.plan.transactions.readers {
		s.clients = append(s.clients, newTxReader(s, h, i))
	}
	for _, c := range s.clients {
		c.start()
	}
	s.planFaults()
	s.After(s.plan.duration, "the faults end", s.heal)
}
