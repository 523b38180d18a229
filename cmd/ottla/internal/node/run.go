package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/memory"
	"ottla/cmd/ottla/internal/metrics"
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/server"
	"ottla/storage/vfs"
)

const (
	// leaveTimeout bounds the controlled shutdown, replyTimeout what is then
	// left to be answered.
	leaveTimeout = 5 * time.Second
	replyTimeout = 5 * time.Second
	// tickPause keeps a part whose deadline is already over from being ticked
	// without a break.
	tickPause = time.Millisecond
)

// Run runs a node on this machine until ctx is done, which is a clean stop, or
// until it cannot go on.
// level, if not nil, is what logger logs; administrators may change it.
func Run(ctx context.Context, node *config.BrokerConfig, logger *slog.Logger, level *slog.LevelVar) error {
	r := &runner{logger: logger, running: make(chan struct{}), left: make(chan struct{}), fatal: make(chan error, 1), exit: os.Exit}
	defer r.watches.close()
	started := time.Now()
	r.memory = memory.Granted(os.ReadFile)
	memory.LimitHeap(r.memory)
	collectAsUsual := memory.CollectLess()
	sockets, bound, err := bind(node)
	if err != nil {
		return err
	}
	defer sockets.close()
	if err := r.openMetrics(node); err != nil {
		return err
	}
	defer r.closeMetrics()
	profiles, err := openProfiles(node, logger)
	if err != nil {
		return err
	}
	defer profiles.close()
	if r.perIP, err = addresses(node.MaxConnectionsPerIP); err != nil {
		return err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("this machine's name cannot be had: %w", err)
	}
	r.node, err = New(started, Options{
		Config: bound, FS: vfs.OS(), Random: SecureRandom, Clock: time.Now, Logger: logger, Hostname: hostname,
		Workers: r.work, SideBySide: sideBySide, Send: r.send, SendTo: r.sendTo, ToQuorum: r.toQuorum, QuorumServes: r.quorumServes, FetchFrom: r.fetchFrom, Fatal: r.fail, State: r.state,
		Settings: r.settings, Level: level, MemoryBytes: r.memory, KeepReserve: true, Runner: r.directoryRunner(bound),
	})
	if err != nil {
		return withAdvice(err)
	}
	r.peers = &peers{runner: r, config: bound, open: map[peerKey]*client.Client{}}
	if started, err := r.start(ctx); err != nil || !started {
		r.peers.close()
		return withAdvice(err)
	}
	r.watched.Store(r.node)
	r.node.DirectoryStalled() // since the start looked
	serving := r.open(ctx, bound, sockets)
	r.work(collectAsUsual)
	if serving {
		logger.Info("Kafka Server started", "nodeId", int32(bound.NodeID), "listeners", sockets.String(), "startupMs", time.Since(started).Milliseconds())
	}
	select {
	case <-ctx.Done():
		logger.Info("stopping")
	case err = <-r.fatal:
		logger.Error("the node cannot go on", "error", err)
	}
	return errors.Join(err, r.stop(err == nil))
}

// runner is what a running node needs besides itself: goroutines and sockets.
type runner struct {
	node   *Node
	logger *slog.Logger
	memory int64 // bytes that this process may use; 0: unknown

	watches watches              // of log directories that may hang
	watched atomic.Pointer[Node] // the node, once it has started
	exit    func(status int)

	brokers, controllers *server.Server
	perIP                map[string]int                      // max.connections.per.ip.overrides
	effective            atomic.Pointer[config.BrokerConfig] // with the run-time settings
	limiting             sync.Mutex
	controller           *client.Client  // to the active controller: here, this process
	peers                *peers          // the connections to brokers
	metrics              *metrics.Server // nil: nobody is served any

	pumps      sync.WaitGroup
	tasks      sync.WaitGroup
	stopPumps  context.CancelFunc
	runningOne sync.Once
	running    chan struct{} // closed when the broker may serve
	leftOne    sync.Once
	left       chan struct{} // closed when the controller has let it go
	fatal      chan error
}

// open serves: first the controller's listeners, then the parts are pumped, so
// that the broker registers, and then the broker's listeners. It tells whether
// it came so far before ctx ended or something failed.
func (r *runner) open(ctx context.Context, node *config.BrokerConfig, sockets sockets) bool {
	r.controllers = server.New(r.node.Handler(), r.serverOptions(node, protocol.OnController))
	r.brokers = server.New(r.node.Handler(), r.serverOptions(node, protocol.OnBroker))
	r.limit() // by what was set at run time, before this start
	r.showMetrics()
	if node.Controller {
		r.controller = client.New(r.dialController(node), client.Options{
			ClientID: "node-" + strconv.Itoa(int(node.NodeID)), RequestTimeout: millis(int64(node.Int("request.timeout.ms"))),
			Random: SecureRandom, Logger: r.logger,
		})
	}
	for _, s := range sockets {
		if s.listener.Scope == protocol.OnController {
			go r.serve(r.controllers, s)
		}
	}
	pumping, cancel := context.WithCancel(context.Background())
	r.stopPumps = cancel
	for _, part := range r.node.Parts() {
		r.pumps.Go(func() { pump(pumping, part) })
	}
	select {
	case <-r.running:
	case <-ctx.Done():
		return false
	case err := <-r.fatal:
		r.fail(err)
		return false
	}
	for _, s := range sockets {
		if s.listener.Scope == protocol.OnBroker {
			go r.serve(r.brokers, s)
		}
	}
	return true
}

func (r *runner) serve(on *server.Server, s socket) {
	if err := on.Serve(s.Listener, s.listener); !errors.Is(err, server.ErrClosed) {
		r.fail(fmt.Errorf("listener %s: %w", s.listener.Name, err))
	}
}

// stop ends in the order of the package comment.
func (r *runner) stop(clean bool) error {
	var failures []error
	if clean {
		r.node.Leave()
		select {
		case <-r.left:
		case err := <-r.fatal: // nobody lets go whose controller is gone, and nothing is clean
			r.logger.Error("the node cannot go on", "error", err)
			failures, clean = append(failures, err), false
		case <-time.After(r.leaveTimeout()):
			r.logger.Warn("the controller did not let this broker go in time", "timeout", r.leaveTimeout())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- r.brokers.Close(ctx) }()
	failures = append(failures, r.node.Release(time.Now()))
	select {
	case err := <-answered:
		if err != nil {
			r.logger.Warn("connections were cut", "error", err)
		}
	case <-time.After(2 * replyTimeout):
		r.logger.Warn("connections are left that wait for a disk", "timeout", 2*replyTimeout)
	}
	r.stopPumps()
	r.pumps.Wait()
	if r.controller != nil {
		r.controller.Close()
	}
	r.peers.close()
	if err := r.controllers.Close(ctx); err != nil {
		r.logger.Warn("connections of the controller were cut", "error", err)
	}
	r.closeMetrics()
	r.tasks.Wait()
	failures = append(failures, r.node.Stop(time.Now(), clean))
	return errors.Join(failures...)
}

// pump ticks one part when its deadline comes or when it is woken.
func pump(ctx context.Context, part Part) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-part.Woken:
		}
		now := time.Now()
		deadline := part.Deadline(now)
		if !deadline.IsZero() && !deadline.After(now) {
			part.Tick(now)
			now = time.Now()
			deadline = part.Deadline(now)
		}
		if deadline.IsZero() {
			timer.Stop()
			continue
		}
		timer.Reset(max(deadline.Sub(now), tickPause))
	}
}

func (r *runner) state(state broker.State) {
	r.logger.Debug("broker", "state", state.String())
	switch state {
	case broker.Running:
		r.runningOne.Do(func() { close(r.running) })
	case broker.Stopped:
		r.leftOne.Do(func() { close(r.left) })
	}
}

func (r *runner) fail(err error) {
	select {
	case r.fatal <- err:
	default: // the first reason counts
	}
}

// work runs a task of the storage on a goroutine of its own. There are as many
// at a time as the parts hand out: flushes, recoveries and removals.
func (r *runner) work(task func()) { r.tasks.Go(task) }

// sideBySideMost is how many tasks run at once: enough for a disk that gathers
// what is synced at the same time.
const sideBySideMost = 16

func sideBySide(tasks []func()) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(sideBySideMost, len(tasks)) {
		workers.Go(func() {
			for at := next.Add(1) - 1; int(at) < len(tasks); at = next.Add(1) - 1 {
				tasks[at]()
			}
		})
	}
	workers.Wait()
}

func (r *runner) send(req kmsg.Request, done func(kmsg.Response, error)) {
	r.controller.Send(req, 0, done)
}

func (r *runner) sendTo(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	r.peers.send(to, req, done)
}

// dialController connects to this process's own controller listener in memory:
// the same bytes as to another machine.
func (r *runner) dialController(node *config.BrokerConfig) func() (net.Conn, error) {
	name := node.ControllerListenerNames[0]
	return func() (net.Conn, error) {
		near, far := server.NewPipe()
		r.controllers.ServeConn(far, server.Listener{Name: name, Protocol: node.Protocols[name], Scope: protocol.OnController, Secure: true})
		return near, nil
	}
}

func (r *runner) serverOptions(node *config.BrokerConfig, scope protocol.Scope) server.Options {
	budget := node.Long("queued.max.request.bytes")
	if budget <= 0 {
		budget = share(node.Long("ottla.request.memory.bytes"), r.memory, requestShare, mostRequestBytes)
	}
	if scope == protocol.OnController {
		budget = node.Long("ottla.cluster.memory.bytes")
	}
	return server.Options{
		MaxRequestBytes: int(node.Int("socket.request.max.bytes")), MemoryBytes: budget,
		IdleTimeout:     millis(node.Long("connections.max.idle.ms")),
		Limits:          limits(node, r.perIP),
		SendBufferBytes: int(node.Int("socket.send.buffer.bytes")), ReceiveBufferBytes: int(node.Int("socket.receive.buffer.bytes")),
		Supported: api.Supported, ConnectionClosed: r.node.Handler().ConnectionClosed, Logger: r.logger,
	}
}

// atMost takes Kafka's "no limit" as our default: a node without limits dies by
// the first flood. Kafka's 0, which takes no connection, is negative there.
func atMost(configured int32, fallback int) int {
	switch configured {
	case math.MaxInt32:
		return fallback
	case 0:
		return -1
	}
	return int(configured)
}

// addresses gives the exceptions of max.connections.per.ip by address: they may
// name hosts.
func addresses(exceptions map[string]int32) (map[string]int, error) {
	byAddress := map[string]int{}
	for host, most := range exceptions {
		found, err := net.LookupHost(host)
		if err != nil {
			return nil, fmt.Errorf("max.connections.per.ip.overrides names a host whose address cannot be had: %w", err)
		}
		for _, text := range found {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("max.connections.per.ip.overrides: %w", err)
			}
			byAddress[address.Unmap().String()] = int(most)
		}
	}
	return byAddress, nil
}

// SecureRandom gives words from the system's source of randomness.
func SecureRandom() uint64 {
	var word [8]byte
	if _, err := rand.Read(word[:]); err != nil {
		panic("the system has no randomness: " + err.Error())
	}
	return binary.LittleEndian.Uint64(word[:])
}

// socket is a bound listener.
type socket struct {
	net.Listener
	listener server.Listener
}

type sockets []socket

// bind opens every listener before anything on disk is touched: a port that is
// taken is the commonest reason for which a start fails. A port 0 becomes the
// one that the system chose, also where it is advertised.
func bind(node *config.BrokerConfig) (sockets, *config.BrokerConfig, error) {
	bound := *node
	bound.Listeners = append([]config.Listener{}, node.Listeners...)
	bound.AdvertisedListeners = append([]config.Listener{}, node.AdvertisedListeners...)
	bound.AdvertisedControllers = append([]config.Listener{}, node.AdvertisedControllers...)
	var open sockets
	for i, l := range bound.Listeners {
		on, err := net.Listen("tcp", net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))))
		if err != nil {
			open.close()
			return nil, nil, fmt.Errorf("listener %s://%s:%d cannot be opened: %w", l.Name, l.Host, l.Port, err)
		}
		scope := protocol.OnBroker
		for _, name := range node.ControllerListenerNames {
			if name == l.Name {
				scope = protocol.OnController
			}
		}
		if l.Port == 0 {
			bound.Listeners[i].Port = int32(on.Addr().(*net.TCPAddr).Port)
			advertise(bound.AdvertisedListeners, bound.Listeners[i])
			advertise(bound.AdvertisedControllers, bound.Listeners[i])
		}
		open = append(open, socket{on, server.Listener{Name: l.Name, Protocol: l.Protocol, Scope: scope}})
	}
	return open, &bound, nil
}

func advertise(listeners []config.Listener, bound config.Listener) {
	for i := range listeners {
		if listeners[i].Name == bound.Name && listeners[i].Port == 0 {
			listeners[i].Port = bound.Port
		}
	}
}

func (s sockets) close() {
	for _, one := range s {
		_ = one.Close() // closed already where it was served
	}
}

func (s sockets) String() string {
	text := ""
	for i, one := range s {
		if i > 0 {
			text += ","
		}
		text += one.listener.Name + "://" + one.Addr().String()
	}
	return text
}
