package simcluster

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/session"
	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/fetcher"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"

	"ottla/cmd/ottla/internal/seeded"
)

const dataDir = "/data"

var topicID = protocol.TopicID{7}

// machine is a computer with its disk, and the broker on it.
type machine struct {
	s      *Simulation
	id     protocol.NodeID
	random *seeded.Random
	disk   *vfs.Mem

	// The process.
	incarnation int // counts processes; what an earlier one scheduled is dropped
	up          bool
	pausedUntil time.Time
	stopping    bool
	store       *store.Store
	manager     *replica.Manager
	fetchers    *fetcher.Fetchers
	sessions    *session.Cache
	epoch       protocol.BrokerEpoch
	needed      int    // the version of the metadata that has the registration
	image       *image // that was applied; nil: none yet
	tickAt      time.Time
	workers     seeded.Workers
	doom        seeded.Doom

	lastClean bool
	seen      map[protocol.TopicPartition]*seen
	// suspect is up to where a partition's log may lack what it had acknowledged, since its disk lost something.
	suspect map[protocol.TopicPartition]protocol.Offset
}

func newMachine(s *Simulation, id protocol.NodeID) *machine {
	m := &machine{s: s, id: id, random: s.random.Fork(), lastClean: true, suspect: map[protocol.TopicPartition]protocol.Offset{}}
	m.format()
	return m
}

// format gives the machine a new, empty disk.
func (m *machine) format() {
	m.disk = vfs.NewMem(m.random.Fork().Next)
	must(m.disk.MkdirAll(dataDir))
	must(m.disk.SyncDir(path.Dir(dataDir)))
	must(logdir.WriteMetaProperties(m.disk, dataDir, logdir.MetaProperties{
		ClusterID: "cluster", NodeID: m.id, DirectoryID: protocol.DirectoryID{9, byte(m.id), byte(m.random.Next())},
	}))
	m.disk.SyncAll()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// after schedules something of the process; a pause makes it later.
func (m *machine) after(delay time.Duration, what string, run func()) {
	incarnation := m.incarnation
	m.s.After(delay, fmt.Sprintf("%d %s", m.id, what), func() {
		if m.up && m.incarnation == incarnation {
			m.enter(what, run)
		}
	})
}

// Incarnation is of seeded.Resident.
func (m *machine) Incarnation() int { return m.incarnation }

// Arrive is of seeded.Resident.
func (m *machine) Arrive(run func()) {
	if m.up {
		m.enter("arrives", run)
	}
}

// enter runs something in the process, and looks at what it has done.
func (m *machine) enter(what string, run func()) {
	if m.s.Now.Before(m.pausedUntil) {
		m.after(m.pausedUntil.Sub(m.s.Now), what, run)
		return
	}
	if seeded.DiesIn(run) {
		m.die(m.doom.Left, m.doom.Back)
	}
	if m.up {
		m.schedule()
	}
}

// operation is the disk's hook.
func (m *machine) operation(op vfs.Operation) error {
	m.doom.Operation(m.disk, op, func() {
		m.s.counts.MidOperation++
		m.s.Linef("%d dies before %s", m.id, op)
		if m.doom.LosesPower {
			m.loses()
		}
	})
	return nil
}

// schedule has the parts ticked when they want it.
func (m *machine) schedule() {
	if m.manager == nil {
		return
	}
	next := m.manager.NextDeadline()
	for _, at := range []time.Time{m.fetchers.NextDeadline(), m.store.NextDeadline()} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if next.Before(m.s.Now) {
		next = m.s.Now
	}
	if !m.tickAt.IsZero() && !next.Before(m.tickAt) {
		return
	}
	m.tickAt = next
	m.after(next.Sub(m.s.Now)+m.random.Between(0, 200*time.Microsecond), "ticks", func() {
		if m.tickAt.After(m.s.Now) {
			return
		}
		m.tickAt = time.Time{}
		m.manager.Tick(m.s.Now)
		m.fetchers.Tick(m.s.Now)
		m.store.Tick(m.s.Now)
	})
}

func (m *machine) work(run func()) {
	m.workers.Give(run, func(do func()) { m.after(m.random.Between(0, m.s.plan.latency/4), "works", do) })
}

func (m *machine) logOptions() log.Options {
	o := log.DefaultOptions()
	o.MinInSyncReplicas, o.SegmentBytes, o.IndexIntervalBytes = m.s.plan.minISR, m.s.plan.segment, 200
	if m.s.plan.kind == flush {
		o.FlushMessages = 1
	}
	return o
}

// boot starts a process on the disk.
func (m *machine) boot() {
	m.incarnation++
	m.up, m.stopping, m.workers = true, false, seeded.Workers{Inline: true}
	m.image, m.epoch, m.tickAt, m.pausedUntil = nil, -1, time.Time{}, time.Time{}
	m.seen = map[protocol.TopicPartition]*seen{}
	m.s.Linef("%d boots", m.id)
	m.disk.OnOperation(m.operation)
	opened, _, err := store.Open(m.s.Now, store.Options{
		FS: m.disk, Dirs: []string{dataDir}, MetadataDir: dataDir, NodeID: m.id, Files: segment.NewFileCache(m.disk, 100),
		Random: m.random.Fork().Next, LogOptions: func(string) log.Options { return m.logOptions() }, Workers: m.work,
		CheckpointInterval: 700 * time.Millisecond,
	})
	if err != nil {
		m.s.Violate("%d cannot open its disk: %v", m.id, err)
		m.up = false
		return
	}
	m.store = opened
	m.manager = replica.New(m.s.Now, replica.Options{
		NodeID: m.id, Store: opened, LagTimeMax: m.s.plan.lagMax, CheckpointInterval: 300 * time.Millisecond,
		Pool: m.s.pool, Known: func(protocol.TopicPartition) bool { return true }, Brokers: m.broker, AlterPartition: m.alterPartition, Workers: m.work,
	})
	m.fetchers = fetcher.New(fetcher.Options{
		NodeID: m.id, BrokerEpoch: func() protocol.BrokerEpoch { return m.epoch }, Replicas: m.manager, Send: m.send, Workers: m.work,
		MaxBytes: m.s.plan.maxBytes, MaxWait: m.s.plan.maxWait, Backoff: m.s.plan.backoff, ResponseMaxBytes: 4 * m.s.plan.maxBytes,
	})
	m.sessions = session.NewCache(session.Options{Random: m.random.Fork().Next, Slots: 3})
	m.workers.Inline = false
	m.register()
	m.schedule()
}

// broker is partition.Brokers: what the metadata that was applied says.
func (m *machine) broker(id protocol.NodeID) partition.Broker {
	if m.image == nil {
		return partition.Broker{}
	}
	b, known := m.image.brokers[id]
	return partition.Broker{Alive: known && !b.fenced, ShuttingDown: b.shuttingDown, Epoch: b.epoch}
}

type registration struct {
	epoch  protocol.BrokerEpoch
	needed int
}

func (m *machine) register() {
	clean, incarnation := m.lastClean, m.incarnation
	m.s.network.Call(int(m.id), controllerEnd, "register", 100*time.Millisecond, func(reply func(any)) {
		if m.incarnation != incarnation || !m.up {
			return // one process of a machine is too late
		}
		epoch, version := m.s.controller.register(m.id, incarnation, clean)
		reply(registration{epoch, version})
	}, func(answer any, err error) {
		if err != nil {
			m.register()
			return
		}
		m.lastClean = false
		registered := answer.(registration)
		if m.epoch < registered.epoch {
			m.epoch, m.needed = registered.epoch, registered.needed
			m.heartbeat()
		}
	})
}

func (m *machine) applied() int {
	if m.image == nil {
		return -1
	}
	return m.image.version
}

// heartbeat tells the controller that the broker lives, and brings what is new of the metadata.
func (m *machine) heartbeat() {
	epoch, applied := m.epoch, m.applied()
	m.s.network.Call(int(m.id), controllerEnd, "heartbeat", 100*time.Millisecond, func(reply func(any)) {
		if m.s.controller.heartbeat(m.id, epoch, applied, m.needed) {
			reply(m.s.controller.images[max(applied, m.needed-1)+1:])
		}
	}, func(answer any, err error) {
		if err == nil {
			m.follow(answer.([]*image))
		}
		if m.up {
			m.after(m.random.Between(m.s.plan.heartbeat/4, m.s.plan.heartbeat), "heartbeat", m.heartbeat)
		}
	})
}

// follow applies images in their order, or only the newest.
func (m *machine) follow(images []*image) {
	if len(images) > 1 && m.random.Chance(500) {
		images = images[len(images)-1:]
	}
	for _, next := range images {
		if next.version <= m.applied() {
			continue
		}
		before := m.image
		m.image = next
		for _, tp := range m.s.tps {
			state := next.partitions[tp]
			if before != nil && before.partitions[tp].PartitionEpoch == state.PartitionEpoch && !m.random.Chance(100) {
				continue
			}
			m.apply(tp, state)
		}
	}
	if m.stopping && m.image.brokers[m.id].shuttingDown {
		m.stop()
	}
}

func (m *machine) apply(tp protocol.TopicPartition, state partition.State) {
	if !slices.Contains(state.Replicas, m.id) {
		must(m.manager.Remove(m.s.Now, tp, true))
		m.fetchers.Unassign(tp)
		delete(m.seen, tp)
		delete(m.suspect, tp)
		return
	}
	if err := m.manager.Apply(m.s.Now, tp, state, protocol.DirectoryUnassigned, true); err != nil {
		m.s.Violate("%d cannot take its role for %s: %v", m.id, tp, err)
		return
	}
	if state.Leader == m.id || state.Leader == protocol.NoNode {
		m.fetchers.Unassign(tp)
		return
	}
	m.fetchers.Assign(m.s.Now, tp, state.TopicID, state.Leader, state.LeaderEpoch)
}

// alterPartition is replica.Options.AlterPartition.
func (m *machine) alterPartition(tp protocol.TopicPartition, wish *partition.AlterPartition, answer func(time.Time, partition.AlterResult)) {
	epoch := m.epoch
	delay := m.random.Between(0, 5*time.Millisecond)
	if joins := m.s.machines[wish.ISR[len(wish.ISR)-1].ID-1]; m.random.Chance(30) && m.s.loseWhileJoining(m.random, joins) {
		delay = m.random.Between(50*time.Millisecond, 600*time.Millisecond)
	}
	m.after(delay, "asks for an ISR", func() {
		m.s.network.Call(int(m.id), controllerEnd, fmt.Sprintf("%s isr %v", tp, wish.ISR), 100*time.Millisecond, func(reply func(any)) {
			reply(m.s.controller.alter(m.id, epoch, tp, wish))
		}, func(result any, err error) {
			if err != nil {
				answer(m.s.Now, partition.AlterResult{Error: protocol.NetworkException})
				return
			}
			answer(m.s.Now, result.(partition.AlterResult))
		})
	})
}

// send is fetcher.Options.Send.
func (m *machine) send(leader protocol.NodeID, _ int, req kmsg.Request, done fetcher.Done) {
	timeout := m.s.plan.maxWait + 20*m.s.plan.latency
	to := m.s.machine(int(leader))
	m.s.network.Call(int(m.id), int(leader), kmsg.NameForKey(req.Key()), timeout, func(reply func(any)) {
		switch req := req.(type) {
		case *kmsg.FetchRequest:
			asked := *req
			asked.Version = 17
			to.serveFetch(&asked, func(resp *kmsg.FetchResponse) { reply(resp) })
		case *kmsg.ListOffsetsRequest:
			reply(to.serveOffsets(req))
		}
	}, func(answer any, err error) {
		if err != nil {
			done(m.s.Now, nil, nil, err)
			return
		}
		resp, fetched := answer.(*kmsg.FetchResponse)
		if !fetched {
			done(m.s.Now, answer.(kmsg.Response), nil, nil)
			return
		}
		framed, frame := inFrame(resp)
		done(m.s.Now, framed, frame, nil)
	})
}

// inFrame puts the records of a response into a pooled frame, as a connection does.
func inFrame(resp *kmsg.FetchResponse) (*kmsg.FetchResponse, *wire.Frame) {
	framed := *resp
	framed.Topics = slices.Clone(resp.Topics)
	size := 0
	for i := range framed.Topics {
		framed.Topics[i].Partitions = slices.Clone(framed.Topics[i].Partitions)
		for _, p := range framed.Topics[i].Partitions {
			size += len(p.RecordBatches)
		}
	}
	frame := wire.NewFrame(size, nil)
	rest := frame.Bytes
	for i := range framed.Topics {
		for j := range framed.Topics[i].Partitions {
			p := &framed.Topics[i].Partitions[j]
			n := copy(rest, p.RecordBatches)
			p.RecordBatches, rest = rest[:n:n], rest[n:]
		}
	}
	return &framed, frame
}

// stop ends the process in order.
func (m *machine) stop() {
	m.workers.Inline = true
	for do := m.workers.Next(); do != nil; do = m.workers.Next() {
		do()
	}
	m.fetchers.Close()
	must(m.manager.Close(m.s.Now))
	must(m.store.Close(m.s.Now, true, m.epoch))
	m.s.Linef("%d has stopped", m.id)
	m.end(m.disk.Kill(), true)
}

// end leaves a disk to the next process.
func (m *machine) end(disk *vfs.Mem, clean bool) {
	m.disk, m.lastClean, m.up = disk, clean, false
	m.manager, m.fetchers, m.store, m.seen, m.doom = nil, nil, nil, nil, seeded.Doom{}
	m.incarnation++
}
