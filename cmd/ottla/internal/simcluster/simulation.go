package simcluster

import (
	"io"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"

	"ottla/cmd/ottla/internal/seeded"
)

const topicName = "orders"

// The ends of the network besides the machines.
const (
	controllerEnd = 0
	clientEnd     = 99
)

// Simulation is one run.
type Simulation struct {
	seeded.Scheduler
	seed        uint64
	random      *seeded.Random
	plan        plan
	tps         []protocol.TopicPartition
	network     *seeded.Network
	controller  *controller
	machines    []*machine
	producers   []*producer
	consumers   []*consumer
	producerIDs protocol.ProducerID

	ending bool // no more faults and no new batches
	over   bool

	pool        *compress.Pool
	truth       truth
	acked       []acknowledged
	deletedUpTo map[protocol.TopicPartition]protocol.Offset
	counts      Counts
}

// Counts is what a run has seen, for the test to say that it was not idle.
type Counts struct {
	Events, Kills, PowerCuts, Wipes, Stops, Pauses, Cuts, Elections, Unclean, Acknowledged, Truncations, Deletes, Reassigned, MidOperation int
}

// epochOfTime is when every run begins.
var epochOfTime = time.UnixMilli(1_800_000_000_000)

// New makes the run of a seed; lines, if not nil, gets a line for each event.
func New(seed uint64, lines io.Writer) *Simulation {
	r := seeded.NewRandom(seed, 0x7654321)
	s := &Simulation{seed: seed, random: r, plan: newPlan(r.Fork()), deletedUpTo: map[protocol.TopicPartition]protocol.Offset{}}
	s.Scheduler = seeded.NewScheduler(epochOfTime, lines)
	for i := range s.plan.partitions {
		s.tps = append(s.tps, protocol.TopicPartition{Topic: topicName, Partition: int32(i)})
	}
	s.truth, s.pool = newTruth(), compress.NewPool()
	s.network = &seeded.Network{
		Scheduler: &s.Scheduler, Random: r.Fork(), Latency: s.plan.latency, Drop: s.plan.drop, Duplicate: s.plan.duplicate, Late: s.plan.late,
		Cut: map[[2]int]time.Time{}, At: s.at,
	}
	s.controller = newController(s)
	for id := range protocol.NodeID(s.plan.machines) {
		s.machines = append(s.machines, newMachine(s, id+1))
	}
	return s
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

// safe tells whether nothing that was acknowledged may be lost.
func (s *Simulation) safe() bool { return s.plan.kind != wild }

// mostEvents ends a run that does not end by itself.
const mostEvents = 400_000

// Run runs to the end, or to the first violation.
func (s *Simulation) Run() (counts Counts) {
	defer func() {
		if reason := recover(); reason != nil {
			text, known := reason.(string)
			if !known || len(text) < 10 || text[:9] != "invariant" {
				panic(reason)
			}
			s.Violate("%s", text)
			counts = s.counts
		}
	}()
	for _, m := range s.machines {
		m.boot()
	}
	s.controllerTicks()
	s.populate()
	s.faults()
	s.After(s.plan.length, "the faults end", s.heal)
	for !s.over && s.Failure == nil && s.Step() {
		s.observe()
		if s.Count > mostEvents {
			s.Violate("it does not end within %d events", mostEvents)
		}
	}
	s.counts.Events, s.counts.Unclean, s.counts.Acknowledged = s.Count, s.controller.unclean, len(s.acked)
	return s.counts
}

func (s *Simulation) populate() {
	for _, tp := range s.tps {
		for range s.plan.producers {
			p := &producer{s: s, random: s.random.Fork(), tp: tp, acks: -1, number: len(s.producers)}
			if s.random.Chance(250) {
				p.acks = 1
			}
			s.producers = append(s.producers, p)
			p.start()
		}
		c := &consumer{s: s, random: s.random.Fork(), tp: tp, epoch: protocol.NoLeaderEpoch}
		s.consumers = append(s.consumers, c)
		c.start()
	}
}

func (s *Simulation) controllerTicks() {
	s.After(50*time.Millisecond, "controller looks around", func() {
		s.controller.tick()
		s.controllerTicks()
	})
}

func (s *Simulation) acknowledge(a acknowledged) {
	s.acked = append(s.acked, a)
	s.Linef("acknowledged: %s %d %v", a.tp, a.base, a.values)
}

// consumed holds what a consumer has read against what was committed.
func (s *Simulation) consumed(tp protocol.TopicPartition, b record.Batch) {
	if s.safe() {
		s.commit(tp, b, "a consumer")
	}
}
