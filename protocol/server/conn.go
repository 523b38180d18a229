package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// AnonymousPrincipal is who an unauthenticated connection speaks as.
const AnonymousPrincipal = "User:ANONYMOUS"

// Conn is one connection, as handlers see it.
type Conn struct {
	server   *Server
	socket   net.Conn
	raw      syscall.RawConn // of a TCP connection, for sendfile; else nil
	listener Listener
	stats    *Stats
	id       int64
	reader   *bufio.Reader
	closed   chan struct{} // closed by fail: nothing more is read or written
	draining atomic.Bool   // nothing more is read

	lastUse    atomic.Int64 // Unix nanoseconds of the last request or reply
	readUntil  standing     // the reader's
	writeUntil standing     // of whoever sends
	readerWake chan struct{}
	writerWake chan struct{}

	mu              sync.Mutex
	head, tail      *Request // in the order they came
	outstanding     int
	queuedBytes     int64
	held            *Request // reading waits for its reply
	handling        *Request // it is with the handler; if it is answered meanwhile, the reader sends the reply
	writing         bool     // the reader or the writer sends a batch of replies
	mutedUntil      time.Time
	finished        bool // the reader has ended; the writer closes after the last reply
	dead            bool // the writer has ended
	reason          error
	principal       string
	softwareName    string
	softwareVersion string

	told sync.Once // ConnectionClosed was called
}

func newConn(s *Server, socket net.Conn, listener Listener, stats *Stats, id int64) *Conn {
	c := &Conn{
		server: s, socket: socket, listener: listener, stats: stats, id: id,
		reader: bufio.NewReaderSize(socket, readBufferBytes), closed: make(chan struct{}),
		readerWake: make(chan struct{}, 1), writerWake: make(chan struct{}, 1), principal: AnonymousPrincipal,
	}
	if tcp, ok := socket.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	c.touch()
	return c
}

// ListenerName gives the name of the listener the connection came in on.
func (c *Conn) ListenerName() string { return c.listener.Name }

// SecurityProtocol gives the listener's security protocol, as in PLAINTEXT.
func (c *Conn) SecurityProtocol() string { return c.listener.Protocol }

// Scope gives the kind of listener.
func (c *Conn) Scope() protocol.Scope { return c.listener.Scope }

// Secure tells whether the bytes are encrypted on the way.
func (c *Conn) Secure() bool { return c.listener.Secure }

// RemoteAddr gives the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// LocalAddr gives our own address on the connection.
func (c *Conn) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// ID gives a number that no other connection of this server has.
func (c *Conn) ID() int64 { return c.id }

// Principal gives who the peer is: AnonymousPrincipal until it authenticated.
func (c *Conn) Principal() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}

// SetPrincipal says who the peer proved to be.
func (c *Conn) SetPrincipal(principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.principal = principal
}

// ClientSoftware gives what ApiVersions said of the client (KIP-511), or two
// empty strings.
func (c *Conn) ClientSoftware() (name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.softwareName, c.softwareVersion
}

// SetClientSoftware keeps what ApiVersions says of the client.
func (c *Conn) SetClientSoftware(name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.softwareName, c.softwareVersion = name, version
}

// Reason gives why the connection ended, or nil while it has not.
func (c *Conn) Reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// run is the reader goroutine; it starts the writer and outlives it.
func (c *Conn) run() {
	defer c.server.ended(c)
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writeLoop()
	}()
	err := c.readLoop()
	c.finish(err)
	<-written
}

// Why reading ends without anybody's fault.
var (
	errIdle     = errors.New("the connection was idle")
	errDraining = errors.New("the server is closing")
)

// readLoop hands requests to the handler until it cannot go on.
func (c *Conn) readLoop() error {
	for {
		if err := c.waitToRead(); err != nil {
			return err
		}
		req, err := c.readRequest()
		if err != nil {
			return err
		}
		if err := c.waitMute(); err != nil {
			req.drop()
			return err
		}
		c.handOver(req)
	}
}

// handOver gives a request its place in the order of replies, and to the handler.
func (c *Conn) handOver(req *Request) {
	c.enqueue(req)
	c.touch()
	c.stats.Requests.Add(1)
	frame := req.Frame
	c.server.handler.Handle(req)
	if frame != nil {
		frame.Release()
	}
	c.replyNow()
}

// finish is called once, when reading has ended: replies that are due are still
// sent, unless the socket is broken.
func (c *Conn) finish(err error) {
	defer c.tellClosed()
	c.server.options.Logger.Debug("reading ended", "listener", c.listener.Name, "peer", c.socket.RemoteAddr(), "connection", c.id, "reason", err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errDraining):
	case errors.Is(err, errIdle):
		c.stats.IdleClosed.Add(1)
	case errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrUnknownAPI), errors.Is(err, wire.ErrUnsupportedVersion):
		c.stats.Malformed.Add(1)
	default:
		c.fail(err)
		return
	}
	c.mu.Lock()
	c.finished = true
	if c.reason == nil {
		c.reason = err
	}
	c.mu.Unlock()
	signal(c.writerWake)
}

// tellClosed tells, once, that nothing more will be read.
func (c *Conn) tellClosed() { c.told.Do(func() { c.server.options.ConnectionClosed(c) }) }

// fail ends the connection at once. The first reason stays.
func (c *Conn) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return
	default:
	}
	if c.reason == nil {
		c.reason = reason
	}
	close(c.closed)
	_ = c.socket.Close() // ends a blocked read and write
}

// drain stops reading; what was read is still answered.
func (c *Conn) drain() {
	c.draining.Store(true)
	_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // a socket that refuses is closed already
	signal(c.readerWake)
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (c *Conn) touch() { c.lastUse.Store(time.Now().UnixNano()) }

// waitToRead waits until another request may be taken: few enough unanswered,
// few enough reply bytes waiting, no reply that holds reading, no mute.
func (c *Conn) waitToRead() error {
	for {
		if c.draining.Load() {
			return errDraining
		}
		if !c.blocked() {
			select {
			case <-c.closed: // by a reply, though the buffer may have further requests
				return net.ErrClosed
			default:
			}
			return c.waitMute()
		}
		select {
		case <-c.readerWake:
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

// blocked tells that no further request may be taken, a mute apart.
func (c *Conn) blocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held != nil || c.outstanding >= c.server.options.MaxOutstanding || c.queuedBytes > c.server.options.MaxQueuedReplyBytes
}

// waitMute waits until a throttle is over (KIP-219).
func (c *Conn) waitMute() error {
	for {
		c.mu.Lock()
		left := c.mutedUntil.Sub(c.server.options.Now())
		c.mu.Unlock()
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-c.readerWake:
		case <-c.closed:
			timer.Stop()
			return net.ErrClosed
		}
		timer.Stop()
		if c.draining.Load() {
			return errDraining
		}
	}
}

// readRequest takes one frame off the socket.
func (c *Conn) readRequest() (*Request, error) {
	prefix, err := c.awaitFrame()
	if err != nil {
		return nil, err
	}
	size := int64(int32(binary.BigEndian.Uint32(prefix)))
	if size < 0 || size > int64(c.server.options.MaxRequestBytes) {
		return nil, fmt.Errorf("%w: a request of %d bytes, at most %d are taken", wire.ErrMalformed, size, c.server.options.MaxRequestBytes)
	}
	if err := c.frameDeadline(size + wire.LengthBytes); err != nil {
		return nil, err
	}
	_, _ = c.reader.Discard(wire.LengthBytes) // they were peeked
	// As much of the frame as the read buffer takes must have come before the
	// budget is asked, and the API must be one we have.
	start, err := c.reader.Peek(int(min(size, readBufferBytes)))
	if err != nil {
		return nil, c.cutShort(err)
	}
	req, err := c.admit(start, size)
	if err != nil {
		return nil, err
	}
	bytes, err := c.readFrame(req, int(size))
	if err != nil {
		return nil, err
	}
	if err := c.open(req, bytes); err != nil {
		req.drop()
		return nil, err
	}
	return req, nil
}

// admit looks at the first bytes of a frame: whether its API is one we have.
func (c *Conn) admit(start []byte, size int64) (*Request, error) {
	peeked, ok := wire.PeekRequest(start)
	if !ok {
		return nil, fmt.Errorf("%w: a request of %d bytes has no header", wire.ErrMalformed, size)
	}
	supported := c.server.options.Supported(c.listener.Scope, peeked.Key, peeked.Version)
	if !supported && peeked.Key != protocol.ApiVersions {
		return nil, fmt.Errorf("%w: %s %d is not served on listener %s", wire.ErrUnsupportedVersion, peeked.Key, peeked.Version, c.listener.Name)
	}
	return &Request{Conn: c, Unsupported: !supported}, nil
}

// open decodes the header of a frame that has come.
func (c *Conn) open(req *Request, frame []byte) (err error) {
	req.Received = c.server.options.Now()
	c.stats.BytesIn.Add(int64(len(frame)) + wire.LengthBytes)
	req.Header, req.Body, err = wire.ReadRequestHeader(frame)
	if errors.Is(err, wire.ErrUnsupportedVersion) && req.Header.Key == protocol.ApiVersions {
		req.Unsupported, err = true, nil
	}
	return err
}

// awaitFrame waits for the length of the next frame, as long as the connection
// may be idle. One with unanswered requests is not idle.
func (c *Conn) awaitFrame() ([]byte, error) {
	wait := c.server.options.IdleTimeout
	for {
		if c.reader.Buffered() >= wire.LengthBytes {
			return c.reader.Peek(wire.LengthBytes)
		}
		if err := c.idleDeadline(wait); err != nil {
			return nil, err
		}
		prefix, err := c.reader.Peek(wire.LengthBytes)
		if err == nil {
			return prefix, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, c.cutShort(err)
		}
		if c.draining.Load() {
			return nil, errDraining
		}
		c.mu.Lock()
		busy := c.outstanding > 0
		c.mu.Unlock()
		unused := time.Since(time.Unix(0, c.lastUse.Load()))
		switch {
		case busy:
			wait = c.server.options.IdleTimeout
		case unused < c.server.options.IdleTimeout:
			wait = c.server.options.IdleTimeout - unused
		default:
			return nil, errIdle
		}
	}
}

// frameDeadline gives the rest of a frame, so many bytes, its time; nothing is to
// be done if they have come.
func (c *Conn) frameDeadline(bytes int64) error {
	if int64(c.reader.Buffered()) >= bytes {
		return nil
	}
	return c.deadline(time.Now(), c.server.options.patience(bytes))
}

// standing is a deadline that was set. Moving one costs more than a small request
// does otherwise, so it is left where it is as long as it will do.
type standing struct{ until time.Time }

// renew tells whether the deadline has to be set to until, so that there is at
// least wait, and at most an eighth more.
func (s *standing) renew(now time.Time, wait time.Duration) bool {
	longest := wait + wait/8
	if left := s.until.Sub(now); left >= wait && left <= longest {
		return false
	}
	s.until = now.Add(longest)
	return true
}

// deadline sets when reading gives up, unless the connection drains.
func (c *Conn) deadline(now time.Time, wait time.Duration) error {
	if c.readUntil.renew(now, wait) {
		return c.setReadDeadline()
	}
	return nil
}

// idleDeadline is deadline for the wait between frames. That of a frame will do: if
// it passes, awaitFrame asks for what is left.
func (c *Conn) idleDeadline(wait time.Duration) error {
	now := time.Now()
	if left := c.readUntil.until.Sub(now); left <= wait && left >= min(wait, c.server.options.FrameTimeout)/2 {
		return nil
	}
	c.readUntil.until = now.Add(wait)
	return c.setReadDeadline()
}

func (c *Conn) setReadDeadline() error {
	if err := c.socket.SetReadDeadline(c.readUntil.until); err != nil {
		return err
	}
	if c.draining.Load() { // set after the flag, the past deadline may have been overwritten
		return errDraining
	}
	return nil
}

// cutShort names the end of a connection in the middle of a frame.
func (c *Conn) cutShort(err error) error {
	switch {
	case c.draining.Load():
		return errDraining
	case errors.Is(err, io.EOF) && c.reader.Buffered() == 0:
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the connection ended in the middle of a request", wire.ErrMalformed)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: the rest of a request did not come in time", wire.ErrMalformed)
	}
	return err
}

// readFrame reads size bytes into memory that the budget grants, and leaves in
// req what is to be given back. Produce requests come in pooled frames.
func (c *Conn) readFrame(req *Request, size int) ([]byte, error) {
	var prefix []byte
	if size > patientFrameBytes {
		prefix = make([]byte, prefixFrameBytes)
		if _, err := io.ReadFull(c.reader, prefix); err != nil {
			return nil, c.cutShort(err)
		}
	}
	memory := c.stats.budget
	if !memory.acquire(int64(size), c.closed) {
		return nil, net.ErrClosed
	}
	if err := c.frameDeadline(int64(size - len(prefix))); err != nil { // waiting for memory was not the peer's fault
		memory.release(int64(size))
		return nil, err
	}
	var bytes []byte
	if c.isProduce(prefix) {
		req.Frame = wire.NewFrame(size, func() { memory.release(int64(size)) })
		bytes = req.Frame.Bytes
	} else {
		req.charged = int64(size)
		bytes = make([]byte, size)
	}
	copied := copy(bytes, prefix)
	if err := c.readRest(bytes[copied:]); err != nil {
		req.drop()
		return nil, c.cutShort(err)
	}
	return bytes, nil
}

// errStalled ends a connection for the sake of those that wait for memory.
var errStalled = errors.New("memory is short, and the rest of a request does not come")

// readRest reads what is missing of a frame whose memory is granted.
func (c *Conn) readRest(into []byte) error {
	if c.reader.Buffered() >= len(into) {
		_, err := io.ReadFull(c.reader, into)
		return err
	}
	arrival := c.stats.budget.arrive(time.Now(), func() { c.fail(errStalled) })
	defer c.stats.budget.arrived(arrival)
	for len(into) > 0 {
		n, err := c.reader.Read(into)
		into = into[n:]
		if err != nil && len(into) > 0 {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		arrival.progress(time.Now(), n)
	}
	return nil
}

// isProduce looks at the frame's first bytes, which are in prefix or else still
// in the read buffer.
func (c *Conn) isProduce(prefix []byte) bool {
	if prefix == nil {
		prefix, _ = c.reader.Peek(8) // was there before
	}
	h, ok := wire.PeekRequest(prefix)
	return ok && h.Key == protocol.Produce
}
