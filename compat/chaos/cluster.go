package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/harness"
	"ottla/compat/powercut"
)

// Cluster is what is put under faults: brokers, each on a machine of its own with a disk of its own, and controllers.
type Cluster struct {
	*harness.Cluster
	Network  *harness.Network
	Machines []*Machine // of the brokers
	// Flushed: records are flushed before they are acknowledged, so that the power of all machines may be cut at once.
	Flushed bool
	// LeaderKills is about how long it is from one kill -9 of a leader to the next, whatever else happens.
	LeaderKills time.Duration
}

// Machine is a broker and its disk.
type Machine struct {
	*harness.Member
	Disk *powercut.Disk
	Slow *harness.DiskCgroup
}

// The limits within which a cluster without faults is to be whole again. They are no measure, but what nobody would wait for.
const (
	wholeLimit = 120 * time.Second
	stepPause  = 200 * time.Millisecond
)

// siege is the faults of one run.
type siege struct {
	*run
	c      *Cluster
	random *rand.Rand
	client *kgo.Client

	// changing is held by who ends and starts processes, as long as one is missing on purpose.
	changing sync.Mutex
	busy     *Machine // is under a fault that is not over; leaders are killed elsewhere

	kills  []Outage // guarded by mu
	spans  []span   // of the other faults; guarded by mu
	paused []Paused // guarded by mu
}

type span struct{ begin, end int64 }

// besiege does the faults until the time is over, and waits until the cluster is whole.
func (r *run) besiege(ctx context.Context) (err error) {
	client, err := r.client()
	if err != nil {
		return err
	}
	defer client.Close()
	s := &siege{run: r, c: r.o.Cluster, random: rand.New(rand.NewPCG(r.o.Seed, 0)), client: client}
	if err := s.whole(ctx); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	end := time.Now().Add(r.o.Duration)
	killing := make(chan error, 1)
	killed, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { killing <- s.killLeaders(killed, end) }()
	if err = s.strike(ctx, end); err != nil {
		cancel()
	}
	err = errors.Join(err, <-killing, s.heal(ctx))
	r.outages, r.paused = s.judgeOutages(), s.paused
	return err
}

// strike does one fault after the other. Each kind comes before any comes again.
func (s *siege) strike(ctx context.Context, end time.Time) error {
	kinds := s.kinds()
	var order []int
	for s.o.Pause > 0 {
		if err := pause(ctx, time.Duration(float64(s.o.Pause)*(0.5+s.random.Float64()))); err != nil || time.Now().After(end) {
			return err
		}
		if len(order) == 0 {
			order = s.random.Perm(len(kinds))
		}
		kind := kinds[order[0]]
		order = order[1:]
		m := s.c.Machines[s.random.IntN(len(s.c.Machines))]
		harness.Progress("%.1f s: %s, %s", time.Since(s.began).Seconds(), kind.name, m.Name())
		begin := s.now()
		err := s.present(ctx, m)
		if err == nil {
			err = kind.do(ctx, m)
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w\n%s", kind.name, m.Name(), err, m.LogTail(20))
		}
		s.mu.Lock()
		s.faults[kind.name]++
		s.spans = append(s.spans, span{begin, s.now()})
		s.mu.Unlock()
	}
	return nil
}

// killLeaders kills the leader of some partition, again and again.
func (s *siege) killLeaders(ctx context.Context, end time.Time) error {
	random := rand.New(rand.NewPCG(s.o.Seed, 1))
	for next := time.Now(); ; {
		next = next.Add(s.c.LeaderKills)
		if err := pause(ctx, time.Until(next)); err != nil || time.Now().After(end) {
			return err
		}
		s.changing.Lock()
		var err error
		if s.o.Pause == 0 {
			err = s.whole(ctx)
		}
		if err == nil {
			err = s.killLeader(ctx, random)
		}
		s.changing.Unlock()
		if err != nil {
			return fmt.Errorf("a leader that was killed: %w", err)
		}
		if time.Now().After(next) {
			next = time.Now()
		}
	}
}

func (s *siege) killLeader(ctx context.Context, random *rand.Rand) error {
	partitions, err := s.partitions(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // nobody knows a leader now
	}
	var led []partition
	for _, p := range partitions {
		if p.topic == topics[plain].name {
			led = append(led, p)
		}
	}
	if len(led) == 0 {
		return nil
	}
	leader := led[random.IntN(len(led))].Leader
	m := s.machine(leader)
	if m == nil || m == s.busy || ended(m.Process()) {
		return nil
	}
	kill := Outage{At: s.now()}
	for _, p := range led {
		if p.Leader == leader {
			kill.partitions = append(kill.partitions, partitionOf(p.topic, p.Partition))
		}
	}
	if err := m.Kill(); err != nil {
		return err
	}
	s.mu.Lock()
	s.kills = append(s.kills, kill)
	s.faults["kill -9 of a leader"]++
	s.mu.Unlock()
	if err := pause(ctx, time.Duration(500+random.IntN(5000))*time.Millisecond); err != nil {
		return err
	}
	return s.start(ctx, m)
}

func (s *siege) machine(id int32) *Machine {
	for _, m := range s.c.Machines {
		if int32(m.ID) == id {
			return m
		}
	}
	return nil
}

func ended(p *harness.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// revive starts a broker if a fault has ended it.
func (s *siege) revive(ctx context.Context, m *Machine) error {
	if !ended(m.Process()) {
		return nil
	}
	return s.start(ctx, m)
}

// present starts a broker that has ended although no fault had it any more.
func (s *siege) present(ctx context.Context, m *Machine) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if ended(m.Process()) {
		s.odd("%s has ended by itself: %s", m.Name(), complaint(m))
	}
	return s.revive(ctx, m)
}

// start starts a broker. Where it is Apache Kafka's and does not start, that is told, and what follows is what an operator does: once more,
// then without its copy of the metadata, which the controllers have, and at last with an empty disk, since others have the records.
//
// Apache Kafka 4.4.0 needs the second after a power cut that took its copy of the metadata, which it does not flush: the file
// quorum-state names the leader of the quorum, but no voter is known, and an answer of the leader ends the process ("Expected to be
// Follower, but the current state is UnattachedState").
func (s *siege) start(ctx context.Context, m *Machine) error {
	err := m.Start(ctx)
	for _, remedy := range []struct {
		name string
		do   func() error
	}{
		{"tried once more", func() error { return nil }},
		{"without __cluster_metadata-0", func() error { return os.RemoveAll(filepath.Join(m.DataDir(), "__cluster_metadata-0")) }},
		{"with an empty disk", func() error { return errors.Join(os.RemoveAll(m.DataDir()), m.Format()) }},
	} {
		if err == nil || m.Kind == harness.Ottla || ctx.Err() != nil {
			return err
		}
		s.odd("%s did not start (%s); %s", m.Name(), complaint(m), remedy.name)
		if err := remedy.do(); err != nil {
			return err
		}
		err = m.Start(ctx)
	}
	return err
}

// complaint is the last error that a broker has told, with the line after it.
func complaint(m *Machine) string {
	lines := strings.Split(m.LogTail(400), "\n")
	for n, line := range slices.Backward(lines) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "FATAL") {
			if n+1 < len(lines) {
				line += " " + lines[n+1]
			}
			return line[:min(len(line), 400)]
		}
	}
	return lines[len(lines)-1]
}

// heal ends what faults may have left, and waits until the cluster is whole.
func (s *siege) heal(ctx context.Context) error {
	if err := s.c.Network.Heal(); err != nil {
		return err
	}
	for _, m := range s.c.Machines {
		if err := s.revive(ctx, m); err != nil {
			return err
		}
	}
	for _, m := range s.c.Controllers {
		if ended(m.Process()) {
			if err := m.Start(ctx); err != nil {
				return err
			}
		}
	}
	begin := time.Now()
	if err := s.whole(ctx); err != nil {
		s.odd("after the last fault: %v", err)
		return ctx.Err()
	}
	s.wholeAfter = time.Since(begin)
	return nil
}

// partition is one of any topic, as a broker knows it.
type partition struct {
	topic string
	kmsg.MetadataResponseTopicPartition
}

// partitions asks a broker, or the first that answers, for all of them.
func (s *siege) partitions(ctx context.Context, from *Machine) (all []partition, err error) {
	of := s.c.Machines
	if from != nil {
		of = []*Machine{from}
	}
	for _, m := range of {
		if m == s.busy && from == nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, 3*time.Second)
		resp, asked := kmsg.NewPtrMetadataRequest().RequestWith(asking, s.client.Broker(m.ID))
		cancel()
		if asked != nil {
			err = fmt.Errorf("%s: %w", m.Name(), asked)
			continue
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				all = append(all, partition{*t.Topic, p})
			}
		}
		return all, nil
	}
	return nil, err
}

// whole waits until all brokers agree, twice, that all replicas are in sync.
func (s *siege) whole(ctx context.Context) error {
	agreed, last := 0, error(nil)
	for began := time.Now(); agreed < 2; {
		if last = s.wholeNow(ctx); last == nil {
			agreed++
		} else {
			agreed = 0
		}
		if time.Since(began) > wholeLimit {
			return fmt.Errorf("the cluster is not whole after %s: %w", wholeLimit, last)
		}
		if err := pause(ctx, time.Second); err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}

func (s *siege) wholeNow(ctx context.Context) error {
	for _, m := range s.c.Machines {
		all, err := s.partitions(ctx, m)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%s knows no topics", m.Name())
		}
		for _, p := range all {
			if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
				return fmt.Errorf("%s knows of %s-%d the leader %d, of the replicas %v in sync %v", m.Name(), p.topic, p.Partition, p.Leader, p.Replicas, p.ISR)
			}
		}
	}
	return nil
}

// alone has a fault to itself: the cluster is whole before and after, and no leader is killed meanwhile. What only a disk has lost is
// then nowhere else missing; of more than that no broker without flush before acknowledgement can promise anything.
func (s *siege) alone(ctx context.Context, do func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.whole(ctx); err != nil {
		s.odd("%v", err)
		return ctx.Err()
	}
	if err := do(); err != nil {
		return err
	}
	if err := s.whole(ctx); err != nil {
		s.odd("%v", err)
	}
	return ctx.Err()
}

// under has a fault on a machine while leaders elsewhere may be killed, until lift ends it.
func (s *siege) under(ctx context.Context, m *Machine, begin func() error, atLeast, atMost time.Duration, lift func() error) error {
	s.changing.Lock()
	s.busy = m
	err := begin()
	s.changing.Unlock()
	if err == nil {
		err = pause(ctx, atLeast+time.Duration(s.random.Int64N(int64(atMost-atLeast))))
	}
	err = errors.Join(err, lift())
	s.changing.Lock()
	defer s.changing.Unlock()
	s.busy = nil
	if err != nil {
		return err
	}
	return s.revive(ctx, m)
}

// lostPower brings a machine back whose power was cut: with what the disk has, under another boot id.
func (s *siege) lostPower(ctx context.Context, m *Machine) error {
	if err := m.Disk.Remount(); err != nil {
		return err
	}
	if m.Kind == harness.Ottla {
		if err := powercut.OtherBoot(m.DataDir()); err != nil {
			return err
		}
	}
	return s.start(ctx, m)
}

// others are all machines but one.
func (s *siege) others(m *Machine) []*Machine {
	return slices.DeleteFunc(slices.Clone(s.c.Machines), func(o *Machine) bool { return o == m })
}
