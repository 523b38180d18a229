package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Handler answers requests. Handle runs on the connection's reader goroutine
// and leads to exactly one Reply, ReplyFetch, ReplyNothing or CloseConnection
// on req, before or after it returns. It must not block for long: the
// connection's further requests wait behind it.
type Handler interface {
	Handle(req *Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(req *Request)

// Handle calls f.
func (f HandlerFunc) Handle(req *Request) { f(req) }

// Server runs the connections of a node's listeners.
type Server struct {
	options  Options
	handler  Handler
	closing  chan struct{} // closed by Close
	nextID   atomic.Int64
	requests requestTable
	running  sync.WaitGroup // connections and accept loops

	mu        sync.Mutex
	closed    bool
	listeners map[string]*Stats
	accepting map[net.Listener]struct{}
	conns     map[*Conn]struct{}
	perIP     map[netip.Addr]int
	entered   int // connections, those included that are about to start

	perListener map[string]int // the same, by listener
}

// New makes a Server without listeners.
func New(handler Handler, options Options) *Server {
	return &Server{
		options: options.withDefaults(), handler: handler, closing: make(chan struct{}),
		listeners: map[string]*Stats{}, accepting: map[net.Listener]struct{}{}, conns: map[*Conn]struct{}{}, perIP: map[netip.Addr]int{},
		perListener: map[string]int{},
	}
}

// ErrClosed is what Serve returns after Close.
var ErrClosed = errors.New("the server is closed")

// Serve accepts connections until Close, then returns ErrClosed. Nothing else
// ends it: when accepting fails, as with too many open files, it waits a little
// and goes on. It closes socket.
func (s *Server) Serve(socket net.Listener, listener Listener) error {
	if !s.startAccepting(socket) {
		return errors.Join(ErrClosed, socket.Close())
	}
	defer s.running.Done()
	stats := s.stats(listener.Name)
	pace := pacer{perSecond: s.options.ConnectionsPerSecond}
	pause := time.Duration(0)
	for {
		conn, err := socket.Accept()
		if err != nil {
			if s.isClosed() {
				return ErrClosed
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.options.Logger.Warn("accepting a connection failed; trying again", "listener", listener.Name, "pause", pause, "error", err)
			s.sleep(pause)
			continue
		}
		pause = 0
		if !s.enter(conn, listener.Name, true) {
			stats.Refused.Add(1)
			_ = conn.Close() // refused: nothing was said that could be lost
		} else {
			s.start(conn, listener, stats)
		}
		s.sleep(pace.next(time.Now()))
	}
}

func (s *Server) startAccepting(socket net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.accepting[socket] = struct{}{}
	s.running.Add(1)
	return true
}

// sleep waits, or until Close.
func (s *Server) sleep(pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

// ServeConn serves one connection, also an in-memory one, in the background; the
// limits on the number of connections do not apply. After Close it closes conn.
func (s *Server) ServeConn(conn net.Conn, listener Listener) {
	if s.enter(conn, listener.Name, false) {
		s.start(conn, listener, s.stats(listener.Name))
	} else {
		_ = conn.Close() // nobody reads what closing says
	}
}

// enter puts a connection on the books, if it is not closed and, where limited,
// the limits allow.
func (s *Server) enter(conn net.Conn, listener string, limited bool) bool {
	ip, hasIP := ipOf(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || limited && s.full(listener, ip, hasIP) {
		return false
	}
	s.perListener[listener]++
	if hasIP {
		s.perIP[ip]++
	}
	s.entered++
	s.running.Add(1)
	return true
}

// SetLimits replaces the limits on the number of connections.
func (s *Server) SetLimits(limits Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Limits = limits.withDefaults()
}

// full tells whether a limit refuses a further connection; the lock is held.
func (s *Server) full(listener string, ip netip.Addr, hasIP bool) bool {
	if s.entered >= s.options.MaxConnections {
		return true
	}
	if limit, own := s.options.MaxConnectionsOf[listener]; own && s.perListener[listener] >= limit {
		return true
	}
	if !hasIP {
		return false
	}
	limit, special := s.options.MaxConnectionsPerIPOverrides[ip.String()]
	if !special {
		limit = s.options.MaxConnectionsPerIP
	}
	return s.perIP[ip] >= limit
}

func ipOf(conn net.Conn) (netip.Addr, bool) {
	address, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	ip := address.AddrPort().Addr().Unmap()
	return ip, ip.IsValid()
}

// start runs a counted connection.
func (s *Server) start(socket net.Conn, listener Listener, stats *Stats) {
	if tcp, ok := socket.(*net.TCPConn); ok {
		s.tune(tcp)
	}
	go s.begin(socket, listener, stats).run()
}

// begin makes a counted connection and puts it on the books.
func (s *Server) begin(socket net.Conn, listener Listener, stats *Stats) *Conn {
	c := newConn(s, socket, listener, stats, s.nextID.Add(1))
	stats.Accepted.Add(1)
	stats.Open.Add(1)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	draining := s.closed
	s.mu.Unlock()
	if draining {
		c.drain()
	}
	return c
}

func (s *Server) tune(tcp *net.TCPConn) {
	// A socket that refuses its options fails at the first read or write.
	if s.options.SendBufferBytes > 0 {
		_ = tcp.SetWriteBuffer(s.options.SendBufferBytes)
	}
	if s.options.ReceiveBufferBytes > 0 {
		_ = tcp.SetReadBuffer(s.options.ReceiveBufferBytes)
	}
}

// ended takes a connection off the books.
func (s *Server) ended(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.entered--
	s.perListener[c.listener.Name]--
	if ip, ok := ipOf(c.socket); ok {
		if s.perIP[ip]--; s.perIP[ip] <= 0 {
			delete(s.perIP, ip)
		}
	}
	s.mu.Unlock()
	c.stats.Open.Add(-1)
	c.tellClosed()
	s.running.Done()
}

func (s *Server) stats(name string) *Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.listeners[name]
	if found == nil {
		found = &Stats{budget: &budget{limit: s.options.MemoryBytes, stallPatience: stallPatience}}
		s.listeners[name] = found
	}
	return found
}

// EachListener calls visit with the counters of every listener, by name.
func (s *Server) EachListener(visit func(name string, stats *Stats)) {
	s.mu.Lock()
	names := make([]string, 0, len(s.listeners))
	for name := range s.listeners {
		names = append(names, name)
	}
	s.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		visit(name, s.stats(name))
	}
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close stops accepting and reading, lets requests that were read be answered
// until ctx ends, and then cuts what is left. When it returns, no goroutine of
// the server is running. It fails if connections had to be cut.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	for socket := range s.accepting {
		_ = socket.Close() // accepting ends either way
	}
	conns := s.snapshot()
	s.mu.Unlock()
	for _, c := range conns {
		c.drain()
	}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	conns = s.snapshot()
	s.mu.Unlock()
	for _, c := range conns {
		c.fail(fmt.Errorf("the server was closed: %w", context.Cause(ctx)))
	}
	<-done
	if len(conns) > 0 {
		return fmt.Errorf("%d connections were cut with requests unanswered: %w", len(conns), context.Cause(ctx))
	}
	return nil
}

// snapshot lists the connections; the lock is held.
func (s *Server) snapshot() []*Conn {
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// pacer spreads connections over time: a second's worth may come at once.
type pacer struct {
	perSecond int
	due       time.Time // when the last admitted connection is paid for
}

// next gives how long to wait before accepting again.
func (p *pacer) next(now time.Time) time.Duration {
	if floor := now.Add(-time.Second); p.due.Before(floor) {
		p.due = floor
	}
	p.due = p.due.Add(time.Second / time.Duration(p.perSecond))
	return p.due.Sub(now)
}
