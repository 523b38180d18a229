package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// Local is a connection without a socket or goroutines, for whoever drives a
// node step by step (package sim): Deliver is a turn of the reader, Take one of
// the writer. Everything between, from the bytes of a request to those of its
// reply, is the code that serves sockets. One goroutine at a time may call it;
// replies may become ready from any.
type Local struct {
	conn   *Conn
	socket *localSocket
	ended  bool
}

// Local opens a connection on a listener; nil after Close. As for ServeConn, the
// limits on the number of connections do not apply.
func (s *Server) Local(listener Listener) *Local {
	socket := &localSocket{}
	if !s.enter(socket, listener.Name, false) {
		return nil
	}
	return &Local{conn: s.begin(socket, listener, s.stats(listener.Name)), socket: socket}
}

// Blocked tells that the reader would not take a request now: too much is
// unanswered, a reply holds reading, or a throttle is not over.
func (l *Local) Blocked() bool {
	c := l.conn
	c.mu.Lock()
	muted := c.mutedUntil.After(c.server.options.Now())
	c.mu.Unlock()
	return muted || c.blocked()
}

// Deliver hands over one request, without its length. An error is what ends a
// connection's reading: replies that are due are still sent. It does not ask
// Blocked.
func (l *Local) Deliver(frame []byte) error {
	if l.ended {
		return net.ErrClosed
	}
	req, err := l.request(frame)
	if err != nil {
		l.conn.finish(err)
		return err
	}
	l.conn.handOver(req)
	return nil
}

// request is readRequest for bytes that are all there. The budget is charged and
// not waited for, as nobody else could run meanwhile.
func (l *Local) request(frame []byte) (*Request, error) {
	c := l.conn
	if len(frame) > c.server.options.MaxRequestBytes {
		return nil, fmt.Errorf("%w: a request of %d bytes, at most %d are taken", wire.ErrMalformed, len(frame), c.server.options.MaxRequestBytes)
	}
	req, err := c.admit(frame, int64(len(frame)))
	if err != nil {
		return nil, err
	}
	peeked, _ := wire.PeekRequest(frame)
	if peeked.Key == protocol.Produce {
		req.Frame = wire.NewFrame(len(frame), nil)
		copy(req.Frame.Bytes, frame)
		frame = req.Frame.Bytes
	}
	if err := c.open(req, frame); err != nil {
		req.drop()
		return nil, err
	}
	return req, nil
}

// Ready tells that Take has something to do.
func (l *Local) Ready() bool {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return !l.ended && (c.head != nil && c.head.ready || c.finished && c.head == nil)
}

// Unanswered counts the requests that were delivered and whose replies were not
// taken.
func (l *Local) Unanswered() int {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	return l.conn.outstanding
}

// Take writes the replies that stand ready, and gives their bytes. The error says
// that the connection ended, after those bytes.
func (l *Local) Take() ([]byte, error) {
	if l.ended {
		return nil, net.ErrClosed
	}
	batch, over := l.conn.takeReady()
	if over {
		reason := l.conn.Reason()
		l.Close()
		return nil, errors.Join(io.EOF, reason)
	}
	if batch == nil {
		return nil, nil
	}
	_, err := l.conn.writeBatch(batch)
	written := l.socket.written
	l.socket.written = nil
	if err != nil {
		l.conn.fail(err)
		l.Close()
	}
	return written, err
}

// Close ends the connection: replies that were not taken are dropped.
func (l *Local) Close() {
	if l.ended {
		return
	}
	l.ended = true
	l.conn.fail(net.ErrClosed)
	l.conn.abandon()
	l.conn.server.ended(l.conn)
}

// localSocket keeps what is written.
type localSocket struct{ written []byte }

func (s *localSocket) Write(p []byte) (int, error) {
	s.written = append(s.written, p...)
	return len(p), nil
}

func (s *localSocket) Read([]byte) (int, error)         { return 0, io.EOF }
func (s *localSocket) Close() error                     { return nil }
func (s *localSocket) LocalAddr() net.Addr              { return PipeAddr{} }
func (s *localSocket) RemoteAddr() net.Addr             { return PipeAddr{} }
func (s *localSocket) SetDeadline(time.Time) error      { return nil }
func (s *localSocket) SetReadDeadline(time.Time) error  { return nil }
func (s *localSocket) SetWriteDeadline(time.Time) error { return nil }
