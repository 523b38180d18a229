package simbrokers

import (
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/cmd/ottla/internal/offline"
	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/config"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/server"
	"ottla/protocol/wire"
	"ottla/storage/fetcher"
	"ottla/storage/vfs"
)

const dataDir = "/data"

// machine is a computer with its disk, and the broker on it.
type machine struct {
	s      *Simulation
	id     protocol.NodeID
	random *seeded.Random
	config *config.BrokerConfig
	disk   *vfs.Mem

	// The process.
	incarnation int // counts processes; what an earlier one scheduled is dropped
	up          bool
	opened      bool // the logs are open, and all parts are ticked
	serving     bool // the listeners are open: it has been let in once
	stopping    bool
	pausedUntil time.Time
	node        *node.Node
	listeners   *server.Server
	pumps       []*seeded.Pump
	workers     seeded.Workers
	calls       []*call
	state       broker.State
	doom        seeded.Doom
	seen        *seen

	previous protocol.BrokerEpoch // what its registration must tell: of the clean stop before it, or -1
	epoch    protocol.BrokerEpoch // of its registration, -1 before
	// registering is the incarnation in its registration.
	registering protocol.IncarnationID
	suspect     bool // its disk has lost something, and it is not in sync everywhere since
}

// call is a request that the node has not answered yet.
type call struct {
	local *server.Local
	reply func(frame []byte)
}

func newMachine(s *Simulation, id protocol.NodeID) *machine {
	m := &machine{s: s, id: id, random: s.random.Fork(), previous: -1}
	overrides := append([]string{
		"process.roles=broker", fmt.Sprintf("node.id=%d", id), fmt.Sprintf("listeners=PLAINTEXT://h%d:9092", id),
		"controller.listener.names=CONTROLLER", "log.dirs=" + dataDir,
		fmt.Sprintf("controller.quorum.bootstrap.servers=c:%d,c:%d,c:%d", firstController, firstController+1, firstController+2),
	}, s.plan.overrides...)
	properties, err := config.FromOverrides(overrides)
	must(err)
	m.config, _, err = config.Broker(properties)
	must(err)
	m.disk = m.newDisk()
	return m
}

// newDisk is a disk that was just formatted for it.
func (m *machine) newDisk() *vfs.Mem {
	disk := vfs.NewMem(m.random.Fork().Next)
	must(disk.MkdirAll(dataDir))
	must(disk.SyncDir(path.Dir(dataDir)))
	must(offline.Format(m.s.Now, disk, m.random.Fork().Next, offline.FormatOptions{ClusterID: clusterID, NodeID: m.id, Dirs: []string{dataDir}}, io.Discard))
	return disk
}

// runs tells whether a process is still there.
func (m *machine) runs(incarnation int) bool { return m.up && m.incarnation == incarnation }

// Later is of seeded.Process.
func (m *machine) Later(delay time.Duration, what string, run func()) {
	incarnation := m.incarnation
	m.s.After(delay, fmt.Sprintf("%d %s", m.id, what), func() {
		if !m.runs(incarnation) {
			return
		}
		if m.s.Now.Before(m.pausedUntil) {
			m.Later(m.pausedUntil.Sub(m.s.Now), what, run)
			return
		}
		run()
	})
}

// Present is of seeded.Process.
func (m *machine) Present() (time.Time, bool) { return m.s.Now, m.pumps != nil }

// Within is of seeded.Process.
func (m *machine) Within(run func()) bool {
	incarnation := m.incarnation
	m.enter("is ticked", run)
	return m.runs(incarnation)
}

// TooOften is of seeded.Process.
func (m *machine) TooOften(part string, inOneSecond int) {
	m.s.Violate("%d: %s was ticked %d times in a second: its deadline does not go away", m.id, part, inOneSecond)
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
		m.Later(m.pausedUntil.Sub(m.s.Now), what, func() { m.enter(what, run) })
		return
	}
	if seeded.DiesIn(run) {
		m.die(m.doom.Left, m.doom.Back)
		return
	}
	if !m.up || m.node == nil {
		return
	}
	for _, p := range m.pumps {
		p.Look()
	}
	m.answer()
	m.observe()
}

// operation is the disk's hook.
func (m *machine) operation(op vfs.Operation) error {
	m.doom.Operation(m.disk, op, func() {
		m.s.counts.MidOperation++
		m.s.Linef("%d dies before %s", m.id, op)
		if m.doom.LosesPower {
			m.suspect = true
		}
	})
	return nil
}

// boot starts a process on the disk.
func (m *machine) boot() {
	m.incarnation++
	m.up, m.opened, m.serving, m.stopping, m.state = true, false, false, false, broker.Starting
	m.workers = seeded.Workers{Inline: true}
	m.pausedUntil, m.calls, m.seen, m.epoch, m.registering = time.Time{}, nil, newSeen(), -1, protocol.IncarnationID{}
	m.s.Linef("%d boots", m.id)
	m.disk.SetClock(func() time.Time { return m.s.Now })
	m.disk.OnOperation(m.operation)
	m.enter("begins", func() {
		made, err := node.New(m.s.Now, m.options())
		if err == nil {
			m.node = made
			err = made.Begin(m.s.Now)
		}
		if err != nil {
			m.s.Violate("%d does not start: %v", m.id, err)
			return
		}
		m.pump(made.Quorum())
		m.workers.Inline = false
	})
}

func (m *machine) pump(part node.Part) {
	p := &seeded.Pump{Name: part.Name, Tick: part.Tick, Deadline: part.Deadline, Woken: part.Woken, Process: m, Random: m.random}
	if !m.opened {
		p.Deadline = func(now time.Time) time.Time {
			if m.opened {
				return time.Time{} // another one ticks it now
			}
			return part.Deadline(now)
		}
		p.Tick = func(now time.Time) {
			part.Tick(now)
			if m.node.CaughtUp() {
				m.pumps = nil // what open reads must not move
				m.Later(m.random.Between(0, time.Millisecond), "has the metadata", func() { m.enter("opens", m.open) })
			}
		}
	}
	m.pumps = append(m.pumps, p)
	p.Schedule(m.random.Between(0, time.Millisecond))
}

func (m *machine) open() {
	m.workers.Inline = true
	if err := m.node.Open(m.s.Now); err != nil {
		m.s.Violate("%d does not open: %v", m.id, err)
		return
	}
	m.opened, m.workers.Inline = true, false
	m.listeners = server.New(m.node.Handler(), server.Options{
		Supported: api.Supported, Logger: m.s.logger, Now: func() time.Time { return m.s.Now }, ConnectionClosed: m.node.Handler().ConnectionClosed,
	})
	for _, part := range m.node.Parts() {
		m.pump(part)
	}
}

func (m *machine) options() node.Options {
	incarnation := m.incarnation
	return node.Options{
		Config: m.config, FS: m.disk, Random: m.random.Fork().Next, Logger: m.s.logger, Hostname: fmt.Sprintf("h%d", m.id),
		Workers: m.work, SendTo: m.sendTo, ToQuorum: m.toQuorum, FetchFrom: m.fetchFrom,
		Fatal: func(err error) {
			if m.runs(incarnation) {
				m.s.Violate("%d cannot go on: %v", m.id, err)
			}
		},
		State: func(state broker.State) {
			m.s.Linef("%d is %s", m.id, state)
			switch m.state = state; state {
			case broker.Running:
				m.serving = true
			case broker.Stopped:
				m.Later(m.random.Between(0, 5*time.Millisecond), "is let go", m.stop)
			}
		},
	}
}

func (m *machine) work(run func()) {
	m.workers.Give(run, func(do func()) {
		m.Later(m.random.Between(0, m.s.plan.latency/4), "works", func() { m.enter("works", do) })
	})
}

// stop ends a process in order that the controllers have let go.
func (m *machine) stop() {
	died := seeded.DiesIn(func() {
		must(m.node.Release(m.s.Now))
		m.workers.Inline = true
		for do := m.workers.Next(); do != nil; do = m.workers.Next() {
			do()
		}
		m.pumps = nil
		if err := m.node.Stop(m.s.Now, true); err != nil {
			m.s.Violate("%d does not stop in order: %v", m.id, err)
		}
	})
	if died {
		m.die(m.doom.Left, m.doom.Back)
		return
	}
	m.s.counts.CleanStops++
	m.s.Linef("%d has stopped", m.id)
	m.end(m.disk.Kill(), m.epoch)
}

// end leaves a disk to the next process, whose registration tells of an epoch or of -1.
func (m *machine) end(disk *vfs.Mem, previous protocol.BrokerEpoch) {
	m.disk.OnOperation(nil)
	m.disk, m.previous, m.up, m.opened, m.serving = disk, previous, false, false, false
	m.node, m.listeners, m.pumps, m.doom = nil, nil, nil, seeded.Doom{}
	m.incarnation++
}

// die ends the process, and boots another one later.
func (m *machine) die(disk *vfs.Mem, back time.Duration) {
	m.end(disk, -1)
	m.s.After(back, "a machine boots", func() {
		if !m.up {
			m.boot()
		}
	})
}

// toQuorum is node.ToQuorum.
func (m *machine) toQuorum(to raft.Address, req kmsg.Request, timeout time.Duration, done func(kmsg.Response, error)) {
	end := int(to.Port)
	req.SetVersion(protocol.APIOf(protocol.APIKey(req.Key())).MaxVersion)
	if registration, ok := req.(*kmsg.BrokerRegistrationRequest); ok {
		m.registering = registration.IncarnationID
	}
	if wish, ok := req.(*kmsg.AlterPartitionRequest); ok {
		m.s.wishes(wish)
	}
	m.s.network.Call(int(m.id), end, kmsg.NameForKey(req.Key()), timeout, func(reply func(any)) {
		m.s.controllers.serve(end, req, reply)
	}, func(answer any, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		if resp, ok := answer.(*kmsg.BrokerRegistrationResponse); ok && resp.ErrorCode == 0 {
			m.epoch = protocol.BrokerEpoch(resp.BrokerEpoch)
			m.s.counts.Registrations++
		}
		done(answer.(kmsg.Response), nil)
	})
}

// requestTimeout is that of requests between brokers.
const requestTimeout = 2 * time.Second

// sendTo is broker.SendTo.
func (m *machine) sendTo(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	m.s.ask(int(m.id), int(to), req, func(frame []byte, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		_, resp, err := wire.ReadResponse(frame, req)
		done(resp, err)
	})
}

// fetchFrom is node.FetchFrom.
func (m *machine) fetchFrom(leader protocol.NodeID, _ int, req kmsg.Request, done fetcher.Done) {
	m.s.ask(int(m.id), int(leader), req, func(bytes []byte, err error) {
		if err != nil {
			done(m.s.Now, nil, nil, err)
			return
		}
		frame := wire.NewFrame(len(bytes), nil)
		copy(frame.Bytes, bytes)
		_, resp, err := wire.ReadResponse(frame.Bytes, req)
		if fetched, ok := resp.(*kmsg.FetchResponse); ok && err == nil {
			done(m.s.Now, fetched, frame, nil)
			return
		}
		done(m.s.Now, resp, nil, err) // of another kind, it keeps what it needs until then
		frame.Release()
	})
}

// ask sends a request to a broker; what comes back is the frame of the response.
func (s *Simulation) ask(from, to int, req kmsg.Request, done func(frame []byte, err error)) {
	req.SetVersion(protocol.APIOf(protocol.APIKey(req.Key())).MaxVersion)
	s.send(from, to, req, false, done)
}

// send is ask for a request in a version. What must come at most once comes by a connection that does not bring it twice, nor after it
// was closed.
func (s *Simulation) send(from, to int, req kmsg.Request, once bool, done func(frame []byte, err error)) {
	client := fmt.Sprintf("node-%d", from)
	header := wire.RequestHeader{Key: protocol.APIKey(req.Key()), Version: req.GetVersion(), CorrelationID: 1, ClientID: &client}
	frame := wire.AppendRequest(nil, header, req)[wire.LengthBytes:]
	arrived := false
	s.network.Call(from, to, fmt.Sprintf("%s %016x", header.Key, seeded.HashOf(frame)), requestTimeout, func(reply func(any)) {
		if once && arrived {
			return
		}
		arrived = true
		s.machine(to).accept(frame, func(frame []byte) { reply(frame) })
	}, func(answer any, err error) {
		arrived = true
		bytes, _ := answer.([]byte)
		done(bytes, err)
	})
}

// accept takes a request, over a connection of its own.
func (m *machine) accept(frame []byte, reply func(frame []byte)) {
	if !m.serving {
		return
	}
	local := m.listeners.Local(server.Listener{Name: "PLAINTEXT", Protocol: config.Plaintext, Scope: protocol.OnBroker})
	if err := local.Deliver(slices.Clone(frame)); err != nil {
		m.s.Violate("%d refuses to read a request: %v", m.id, err)
	}
	m.calls = append(m.calls, &call{local, reply})
}

// answer sends the replies that are there.
func (m *machine) answer() {
	for _, c := range slices.Clone(m.calls) {
		if !c.local.Ready() {
			continue
		}
		bytes, _ := c.local.Take() // it may hang up, behind what it says
		c.local.Close()
		m.calls = slices.DeleteFunc(m.calls, func(each *call) bool { return each == c })
		if len(bytes) > wire.LengthBytes {
			c.reply(bytes[wire.LengthBytes:])
		}
	}
}
