package sim

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/protocol/server"
	"ottla/storage/vfs"

	"ottla/cmd/ottla/internal/seeded"
)

// host is a machine with its disk, and the process of one node on it.
type host struct {
	s      *Simulation
	id     int
	name   string
	random *seeded.Random
	disk   *vfs.Mem
	faults []*diskFault

	// The process.
	incarnation  int  // counts processes; what an earlier one scheduled is dropped
	up           bool // there is a process
	entered      int  // calls of the node under way
	node         *node.Node
	started      bool
	serving      bool // the broker's listeners are open
	stopping     bool
	fatal        error
	collapsing   bool // because of it
	brokers      *server.Server
	controllers  *server.Server
	pumps        []*seeded.Pump
	workers      seeded.Workers
	conns        []*conn
	channel      *channel
	peers        []*channel // to brokers: one for each API
	watched      watch
	slowTasks    time.Time // until then tasks are slow
	crashIn      int       // operations on the disk until the process dies; 0: not armed
	crashAs      end
	dying        bool // died within an operation: nothing that follows counts
	mustCut      bool // a failed fsync: only a power cut tells what is on the disk
	sawFault     bool // an operation failed in this process
	failedOnce   bool // or in an earlier one
	formatted    bool // it has started
	bootFailures int
	peeking      bool // it is the simulation that reads, not the node
}

// end is how a process ends.
type end int8

const (
	firstBoot end = iota // there was none
	cleanStop
	kill     // the process dies, the page cache lives
	powerCut // and what was not synced is lost
)

func (e end) String() string {
	return [...]string{"first start", "clean stop", "kill", "power cut"}[e]
}

func newHost(s *Simulation, id int) *host {
	h := &host{s: s, id: id, name: fmt.Sprintf("node%d", id+1), random: s.random.Fork()}
	h.disk = vfs.NewMem(h.random.Fork().Next)
	for _, dir := range append([]string{s.plan.metaDir}, s.plan.dirs...) {
		if err := h.disk.MkdirAll(dir); err != nil {
			panic(err)
		}
	}
	h.disk.SyncAll()
	return h
}

// runs tells whether a process is still there.
func (h *host) runs(incarnation int) bool { return h.up && h.incarnation == incarnation }

// after schedules something of the process.
func (h *host) after(delay time.Duration, what string, run func()) {
	incarnation := h.incarnation
	h.s.After(delay, h.name+" "+what, func() {
		if h.runs(incarnation) {
			run()
		}
	})
}

// power is what ends a call of a process that died within it.
type power struct{}

// enter runs a call of the node, and then looks at what it has done.
func (h *host) enter(run func()) {
	defer h.left(h.incarnation)
	h.entered++
	run()
}

// left takes care of a process that died in a call, and looks around otherwise.
func (h *host) left(incarnation int) {
	reason := recover()
	if reason != nil {
		if _, died := reason.(power); !died {
			panic(reason)
		}
	}
	h.entered--
	switch {
	case h.entered > 0 && reason != nil:
		panic(reason) // the outermost call takes care
	case h.entered > 0:
	case h.dying:
		h.s.counts.MidOperation++
		h.gone(h.crashAs)
	case h.runs(incarnation):
		h.look()
	}
}

// look is done after each call of the node: what it asked for is scheduled, and
// what must be true is checked.
func (h *host) look() {
	if !h.started {
		return
	}
	for _, p := range h.pumps {
		p.Look()
	}
	if err := h.s.noSpace.check(h); err != nil {
		h.s.Violate("%v", err)
	}
	kept := h.conns[:0]
	for _, c := range h.conns {
		if !c.hungUp {
			kept = append(kept, c)
			c.look()
		}
	}
	h.conns = kept
	if h.fatal != nil && !h.collapsing && (!h.stopping || h.serving) { // also while it waits to be let go
		h.stopping, h.collapsing = true, true
		h.after(h.random.Between(0, 20*time.Millisecond), "cannot go on", h.collapse)
	}
	h.observe()
}

// options are what the node is made of.
func (h *host) options() node.Options {
	incarnation := h.incarnation
	return node.Options{
		Config: h.config(), FS: h.disk, Random: h.random.Fork().Next, Logger: h.s.logger, Hostname: "h0",
		Workers: h.work, Send: h.send, SendTo: h.sendTo,
		Fatal: func(err error) {
			if h.runs(incarnation) && h.fatal == nil {
				h.s.Linef("%s: fatal: %v", h.name, err)
				h.fatal = err
			}
		},
		State: func(state broker.State) { h.state(state) },
	}
}

func (h *host) config() *config.BrokerConfig {
	properties, err := config.FromOverrides(h.s.plan.overrides)
	if err != nil {
		panic(err)
	}
	made, _, err := config.Broker(properties)
	if err != nil {
		panic(err)
	}
	return made
}

// boot starts a process.
func (h *host) boot(after end) {
	h.incarnation++
	h.up, h.started, h.serving, h.stopping, h.dying, h.sawFault = true, false, false, false, false, false
	h.collapsing = false
	h.fatal, h.workers, h.conns, h.pumps, h.channel, h.peers = nil, seeded.Workers{Inline: true}, nil, nil, nil, nil
	h.crashIn = 0
	if h.s.plan.faults.midOperation && h.s.phase == working && after != firstBoot && h.random.Chance(200) {
		h.armCrash(300)
	}
	h.disk.SetClock(func() time.Time { return h.s.Now })
	h.disk.OnOperation(h.operation)
	h.s.Linef("%s boots after a %s", h.name, after)
	h.checkFiles(after)
	h.enter(h.start)
}

// start is New and Start, as Run does them.
func (h *host) start() {
	n, err := node.New(h.s.Now, h.options())
	if err == nil {
		h.node = n
		err = n.Start(h.s.Now)
	}
	if err != nil {
		h.bootFailed(err)
		return
	}
	h.bootFailures, h.formatted = 0, true
	h.serve()
	h.checkBoot()
	h.workers.Inline, h.started = false, true
	for _, part := range h.node.Parts() {
		p := &seeded.Pump{Name: part.Name, Tick: part.Tick, Deadline: part.Deadline, Woken: part.Woken, Process: h, Random: h.random}
		h.pumps = append(h.pumps, p)
		p.Schedule(h.random.Between(0, time.Millisecond))
	}
}

// bootFailed excuses a start that the disk has spoilt, and tries again.
func (h *host) bootFailed(err error) {
	h.s.Linef("%s does not start: %v", h.name, err)
	if !h.sawFault {
		h.s.Violate("%s does not start: %v", h.name, err)
		return
	}
	h.up = false
	again := kill
	if h.mustCut {
		again = powerCut
	}
	h.replaceDisk(again)
	h.s.After(h.random.Between(time.Second, 3*time.Second), h.name+" is started again", func() { h.boot(again) })
}

func (h *host) serve() {
	options := server.Options{
		Supported: api.Supported, Logger: h.s.logger, Now: func() time.Time { return h.s.Now },
		ConnectionClosed: h.node.Handler().ConnectionClosed,
	}
	h.brokers = server.New(h.node.Handler(), options)
	h.controllers = server.New(h.node.Handler(), options)
	h.channel = &channel{host: h, scope: protocol.OnController}
}

// accept opens a connection; nil if nobody listens.
func (h *host) accept(scope protocol.Scope) *server.Local {
	switch {
	case !h.up || !h.started:
		return nil
	case scope == protocol.OnController:
		return h.controllers.Local(server.Listener{Name: "CONTROLLER", Protocol: config.Plaintext, Scope: scope})
	case !h.serving || h.stopping:
		return nil
	}
	return h.brokers.Local(server.Listener{Name: "PLAINTEXT", Protocol: config.Plaintext, Scope: scope})
}

// acceptSelf opens a connection from the node to itself: what it says to itself goes
// over the server of the controllers, which stays until the last reply is sent.
func (h *host) acceptSelf(scope protocol.Scope) *server.Local {
	switch {
	case !h.up || !h.started:
		return nil
	case scope == protocol.OnController:
		return h.accept(scope)
	}
	return h.controllers.Local(server.Listener{Name: "PLAINTEXT", Protocol: config.Plaintext, Scope: scope, Secure: true})
}

func (h *host) state(state broker.State) {
	h.s.Linef("%s: broker %s", h.name, state)
	switch state {
	case broker.Running:
		h.serving = true
	case broker.Stopped:
		h.after(h.random.Between(0, 5*time.Millisecond), "is let go", h.drain)
	}
}

// work is node.Options.Workers.
func (h *host) work(run func()) {
	h.workers.Give(run, func(do func()) {
		delay := h.random.Between(0, time.Millisecond)
		if h.s.Now.Before(h.slowTasks) {
			delay = h.random.Between(0, h.s.plan.faults.slowDelays)
		}
		h.after(delay, "works", func() { h.enter(do) })
	})
}

func deleteOne[T comparable](list []T, one T) []T {
	for i := range list {
		if list[i] == one {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// armCrash lets the process die within one of its next operations on the disk.
func (h *host) armCrash(within int) {
	h.crashIn = 1 + h.random.Below(within)
	h.crashAs = kill
	if h.mustCut || h.s.plan.faults.cuts && (!h.s.plan.faults.kills || h.random.Chance(500)) {
		h.crashAs = powerCut
	}
}

// operation is the disk's hook: faults, and deaths in the middle of things.
func (h *host) operation(op vfs.Operation) error {
	if h.peeking {
		return nil
	}
	if h.dying {
		return errors.New("the process is dead")
	}
	if h.crashIn > 0 && op.Kind.Changes() {
		if h.crashIn--; h.crashIn == 0 && h.entered > 0 {
			h.s.Linef("%s dies (%s) before %s", h.name, h.crashAs, op)
			h.replaceDisk(h.crashAs)
			h.dying = true
			panic(power{})
		}
	}
	if err := h.s.noSpace.strike(h, op); err != nil {
		h.sawFault, h.failedOnce = true, true
		h.s.counts.DiskFaults++
		h.s.Linef("%s: %s finds no room", h.name, op)
		return err
	}
	for _, f := range h.faults {
		if err := f.strike(h, op); err != nil {
			h.sawFault, h.failedOnce = true, true
			h.s.counts.DiskFaults++
			if f.err == errIO && op.Kind == vfs.OpSync {
				h.mustCut = true
			}
			h.s.Linef("%s: %s fails: %v", h.name, op, err)
			return err
		}
	}
	return nil
}

// replaceDisk puts in the place of the disk what the end of the process leaves.
func (h *host) replaceDisk(how end) {
	old := h.disk
	if how == powerCut {
		h.disk = old.Crash()
		h.mustCut = false
		h.s.model.powerWasCut(h)
	} else {
		h.disk = old.Kill()
	}
	if how != kill || h.crashIn == 0 {
		old.OnOperation(nil)
	}
}

// die ends the process at once.
func (h *host) die(how end) {
	if !h.up {
		return
	}
	if h.mustCut {
		how = powerCut
	}
	h.replaceDisk(how)
	h.gone(how)
}

// gone is what the death of a process leaves to be done. The disk is the new one.
func (h *host) gone(how end) {
	switch how {
	case kill:
		h.s.counts.Kills++
	case powerCut:
		h.s.counts.Cuts++
	}
	h.up, h.serving, h.started, h.dying = false, false, false, false
	for _, c := range h.conns {
		if c.hungUp {
			continue
		}
		c.hungUp = true
		c.loseDown = h.random.Chance(500)
		h.s.At(c.later(&c.downAt), c.name+" loses its connection", c.broken)
	}
	h.conns = nil
	h.s.Linef("%s is gone: %s", h.name, how)
	h.s.After(h.random.Between(10*time.Millisecond, 3*time.Second), h.name+" is switched on", func() {
		if !h.up {
			h.boot(how)
		}
	})
}

// stop begins a clean stop, as Run does it.
func (h *host) stop() {
	if !h.up || !h.started || h.stopping {
		return
	}
	h.stopping = true
	h.s.Linef("%s is stopped", h.name)
	h.enter(h.node.Leave)
	h.after(5*time.Second, "was not let go in time", func() {
		if h.serving && h.fatal == nil {
			h.s.Violate("%s: the controller did not let the broker go within 5 s", h.name)
		}
	})
}

// drain answers what was read, and reads no more.
func (h *host) drain() {
	h.serving = false
	if h.fatal != nil {
		return
	}
	for _, c := range h.conns {
		if !c.internal {
			c.loseUp = true
		}
	}
	h.enter(func() { h.check(h.node.Release(h.s.Now)) })
	h.after(h.random.Between(0, 5*time.Millisecond), "looks whether all is answered", func() { h.drained(0) })
}

func (h *host) drained(tries int) {
	for _, c := range h.conns {
		if c.internal || c.local.Unanswered() == 0 || c.hungUp {
			continue
		}
		if tries > 500 {
			h.s.Violate("%s stops, and the requests of %s are not answered", h.name, c)
			return
		}
		h.after(10*time.Millisecond, "waits for the last replies", func() { h.drained(tries + 1) })
		return
	}
	h.shut(true)
}

// collapse is the end of a process that cannot go on: as Run, without a marker.
func (h *host) collapse() {
	if !h.sawFault {
		h.s.Violate("%s cannot go on though the disk is well: %v", h.name, h.fatal)
		return
	}
	h.enter(func() { h.check(h.node.Release(h.s.Now)) })
	if h.up {
		h.shut(false)
	}
}

// shut stops the node; nothing else runs any more.
func (h *host) shut(clean bool) {
	incarnation := h.incarnation
	h.workers.Inline = true
	for _, channel := range append([]*channel{h.channel}, h.peers...) {
		if c := channel.conn; c != nil && c.open && h.runs(incarnation) {
			c.hungUp = true
			h.enter(c.local.Close)
			c.broken()
		}
	}
	for do := h.workers.Next(); do != nil && h.runs(incarnation); do = h.workers.Next() {
		h.enter(do)
	}
	if !h.runs(incarnation) {
		return
	}
	h.pumps = nil
	h.enter(func() { h.check(h.node.Stop(h.s.Now, clean)) })
	if !h.runs(incarnation) {
		return
	}
	how := kill
	if clean && h.fatal == nil && !h.sawFault {
		how = cleanStop
		h.s.counts.CleanStops++
		h.s.model.stoppedCleanly(h)
	}
	if h.mustCut || h.s.plan.faults.cuts && h.s.phase == working && h.random.Chance(300) || h.s.phase == reading && h.s.plan.ending.cut {
		h.replaceDisk(powerCut)
	}
	h.gone(how)
}

// check takes the result of an ending; only a disk that failed excuses an error.
func (h *host) check(err error) {
	if err == nil {
		return
	}
	h.s.Linef("%s: %v", h.name, err)
	if !h.sawFault {
		h.s.Violate("%s does not stop in order: %v", h.name, err)
	}
}

// directoryOf gives the log directory that a file lies in.
func directoryOf(dirs []string, name string) string {
	name = path.Clean("/" + name)
	for _, dir := range dirs {
		if name == dir || len(name) > len(dir) && name[:len(dir)+1] == dir+"/" {
			return dir
		}
	}
	return ""
}

// sendTo is broker.SendTo: each API has a connection of its own, as in node.
func (h *host) sendTo(_ protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	for _, p := range h.peers {
		if p.key == req.Key() {
			p.send(req, done)
			return
		}
	}
	p := &channel{host: h, scope: protocol.OnBroker, key: req.Key()}
	h.peers = append(h.peers, p)
	p.send(req, done)
}

// send is broker.Send.
func (h *host) send(req kmsg.Request, done func(kmsg.Response, error)) { h.channel.send(req, done) }
