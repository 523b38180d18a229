package client

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// How a request may fail without a response.
var (
	ErrClosed       = errors.New("the client is closed")
	ErrTimeout      = errors.New("no response came in time")
	ErrDisconnected = errors.New("the connection broke before the response")
	ErrUnreachable  = errors.New("the node cannot be reached")
	ErrBusy         = errors.New("too many requests wait for this node")
)

// Options of a Client; a zero value means its default.
type Options struct {
	ClientID         string        // in every request header
	SoftwareVersion  string        // of ApiVersions (KIP-511); default "0"
	RequestTimeout   time.Duration // of a Send with timeout 0; default 30 s (request.timeout.ms)
	ConnectTimeout   time.Duration // of the first exchange on a new connection; default 10 s
	BackoffMin       time.Duration // after a failure; doubled up to BackoffMax; default 50 ms (reconnect.backoff.ms)
	BackoffMax       time.Duration // default 1 s (reconnect.backoff.max.ms)
	MaxOutstanding   int           // default 1,000
	MaxResponseBytes int           // default 256 MiB
	// MaxVersion caps the version of an API, as while a feature is not
	// finalized; nil: the highest of Apache Kafka 4.4.0.
	MaxVersion func(key protocol.APIKey) int16
	// Random spreads the back-off over half its length; nil: no spread.
	Random func() uint64
	Logger *slog.Logger // nil: nothing is logged
}

func (o Options) withDefaults() Options {
	durations := []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&o.RequestTimeout, 30 * time.Second}, {&o.ConnectTimeout, 10 * time.Second}, {&o.BackoffMin, 50 * time.Millisecond}, {&o.BackoffMax, time.Second}}
	for _, d := range durations {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	if o.MaxOutstanding <= 0 {
		o.MaxOutstanding = 1000
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = 256 << 20
	}
	if o.SoftwareVersion == "" {
		o.SoftwareVersion = "0"
	}
	if o.Random == nil {
		o.Random = func() uint64 { return 0 }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Stats are the plain counters of a client, for metrics to read.
type Stats struct {
	Connects  atomic.Int64 // connections that came to speak
	Failures  atomic.Int64 // attempts that failed and connections that broke
	Requests  atomic.Int64 // requests sent
	Responses atomic.Int64 // responses received
	BytesIn   atomic.Int64
	BytesOut  atomic.Int64
}

// Client sends requests to one node. It connects when there is something to send.
type Client struct {
	Stats Stats

	dial    func() (net.Conn, error)
	options Options
	wake    chan struct{} // the queue, the session or closed changed
	closing chan struct{}

	mu          sync.Mutex
	closed      bool
	queue       []*call
	outstanding int
	session     *session // nil while not connected
	nextID      int32
	backoff     time.Duration
	notBefore   time.Time // of the next attempt to connect
}

// call is one request on its way.
type call struct {
	req      kmsg.Request
	done     func(kmsg.Response, *wire.Frame, error)
	pooled   bool // the response's bytes go into a wire.Frame
	timer    *time.Timer
	key      int16
	version  int16 // once it was sent
	id       int32
	session  *session // that it was sent on, once it was
	finished bool
}

// New makes a client of the node that dial reaches. dial has its own time limit;
// it also does what must come before ApiVersions (TLS).
func New(dial func() (net.Conn, error), options Options) *Client {
	c := &Client{dial: dial, options: options.withDefaults(), wake: make(chan struct{}, 1), closing: make(chan struct{})}
	go c.run()
	return c
}

// Send sends req in the highest version that both sides and Options.MaxVersion
// have, and calls done once with the response or an error. req belongs to the
// client until then. timeout counts from now, connecting included; 0 means
// Options.RequestTimeout. A request whose time runs out after it was sent takes
// the connection with it, as its response would stand in the way of the others.
func (c *Client) Send(req kmsg.Request, timeout time.Duration, done func(kmsg.Response, error)) {
	c.send(&call{req: req, key: req.Key(), done: func(resp kmsg.Response, _ *wire.Frame, err error) { done(resp, err) }}, timeout)
}

// SendFetch is Send for a follower's Fetch: the response's record bytes lie in
// a pooled frame, which done must release when it needs them no more. The frame
// is nil with an error.
func (c *Client) SendFetch(req *kmsg.FetchRequest, timeout time.Duration, done func(*kmsg.FetchResponse, *wire.Frame, error)) {
	c.send(&call{req: req, key: req.Key(), pooled: true, done: func(resp kmsg.Response, frame *wire.Frame, err error) {
		fetched, _ := resp.(*kmsg.FetchResponse)
		done(fetched, frame, err)
	}}, timeout)
}

func (c *Client) send(call *call, timeout time.Duration) {
	if timeout <= 0 {
		timeout = c.options.RequestTimeout
	}
	c.mu.Lock()
	var refused error
	switch {
	case c.closed:
		refused = ErrClosed
	case c.outstanding >= c.options.MaxOutstanding:
		refused = ErrBusy
	default:
		c.outstanding++
		c.queue = append(c.queue, call)
		call.timer = time.AfterFunc(timeout, func() { c.timedOut(call) })
	}
	c.mu.Unlock()
	if refused != nil {
		call.done(nil, nil, refused)
		return
	}
	signal(c.wake)
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// finish calls back, unless that was done before; frame is released then.
func (c *Client) finish(call *call, resp kmsg.Response, frame *wire.Frame, err error) {
	c.mu.Lock()
	before := call.finished
	if !before {
		call.finished = true
		call.timer.Stop()
		c.outstanding--
	}
	c.mu.Unlock()
	switch {
	case !before:
		call.done(resp, frame, err)
	case frame != nil:
		frame.Release()
	}
}

func (c *Client) timedOut(call *call) {
	c.mu.Lock()
	s := call.session
	if call.finished {
		c.mu.Unlock()
		return
	}
	if s == nil {
		c.queue = without(c.queue, call)
	}
	c.mu.Unlock()
	c.finish(call, nil, nil, fmt.Errorf("%s: %w", protocol.APIKey(call.key), ErrTimeout))
	if s != nil {
		s.fail(fmt.Errorf("a %s request had no response in time", protocol.APIKey(call.key)))
	}
}

func without(calls []*call, gone *call) []*call {
	for i, one := range calls {
		if one == gone {
			return append(calls[:i:i], calls[i+1:]...)
		}
	}
	return calls
}

// Close breaks the connection and calls back every request that waits with
// ErrClosed. It may be called more than once, and within a callback.
func (c *Client) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	close(c.closing)
	queue, s := c.queue, c.session
	c.queue = nil
	c.mu.Unlock()
	for _, call := range queue {
		c.finish(call, nil, nil, ErrClosed)
	}
	if s != nil {
		s.fail(ErrClosed)
	}
}

// run connects when there is something to send, and writes.
func (c *Client) run() {
	for c.awaitWork() {
		s := c.current()
		if s == nil {
			s = c.connect()
		}
		if s != nil {
			s.write()
		}
	}
}

// awaitWork waits until something is to be sent; false if the client is closed.
func (c *Client) awaitWork() bool {
	for {
		c.mu.Lock()
		closed, work := c.closed, len(c.queue) > 0
		c.mu.Unlock()
		if closed || work {
			return !closed
		}
		select {
		case <-c.wake:
		case <-c.closing:
		}
	}
}

func (c *Client) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// connect makes a session, after the back-off; nil if that failed, which has
// then been told to all who wait.
func (c *Client) connect() *session {
	c.mu.Lock()
	wait := time.Until(c.notBefore)
	c.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.closing:
			return nil
		}
	}
	s, err := c.open()
	c.mu.Lock()
	if err == nil && !c.closed {
		c.session = s
		c.mu.Unlock()
		c.Stats.Connects.Add(1)
		go s.read()
		return s
	}
	c.backOff()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	if err == nil {
		_ = s.conn.Close() // it was never used
		err = ErrClosed
	}
	c.Stats.Failures.Add(1)
	c.options.Logger.Debug("connecting failed", "error", err)
	for _, call := range queue {
		c.finish(call, nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
	return nil
}

// backOff sets when the next attempt may come; the lock is held.
func (c *Client) backOff() {
	c.backoff = min(max(2*c.backoff, c.options.BackoffMin), c.options.BackoffMax)
	spread := time.Duration(c.options.Random() % uint64(c.backoff/2+1))
	c.notBefore = time.Now().Add(c.backoff - spread)
}
