package server

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// PipeAddr is the address of both ends of an in-memory connection.
type PipeAddr struct{}

// Network gives the name of the network: memory.
func (PipeAddr) Network() string { return "memory" }

func (PipeAddr) String() string { return "memory" }

const pipeBytes = 256 << 10 // what each direction of a pipe holds before a writer waits

// NewPipe makes an in-memory connection, by which broker and controller of one
// process speak as they would across machines. Unlike net.Pipe it holds written
// bytes until they are read, so neither end waits for the other's read. Closing
// an end lets the other read what was written before, then io.EOF.
func NewPipe() (client, server net.Conn) {
	up, down := newPipeHalf(), newPipeHalf()
	return &pipeEnd{in: down, out: up}, &pipeEnd{in: up, out: down}
}

// pipeHalf is one direction.
type pipeHalf struct {
	mu            sync.Mutex
	changed       sync.Cond
	data          []byte // written and not yet read
	writerClosed  bool
	readerClosed  bool
	readDeadline  pipeDeadline
	writeDeadline pipeDeadline
}

func newPipeHalf() *pipeHalf {
	h := &pipeHalf{}
	h.changed.L = &h.mu
	return h
}

// pipeDeadline is a deadline and the timer that wakes waiters when it passes.
type pipeDeadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *pipeDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// setDeadline changes one of the half's deadlines and wakes who waits.
func (h *pipeHalf) setDeadline(d *pipeDeadline, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if wait := time.Until(at); !at.IsZero() && wait > 0 && !h.writerClosed && !h.readerClosed {
		d.timer = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changed.Broadcast()
		})
	}
	h.changed.Broadcast()
}

func (h *pipeHalf) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerClosed:
			return 0, net.ErrClosed
		case h.readDeadline.passed():
			return 0, os.ErrDeadlineExceeded
		case len(h.data) > 0:
			n := copy(p, h.data)
			if h.data = h.data[n:]; len(h.data) == 0 {
				h.data = nil // an idle pipe holds nothing
			}
			h.changed.Broadcast()
			return n, nil
		case h.writerClosed:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		h.changed.Wait()
	}
}

func (h *pipeHalf) write(p []byte) (written int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writerClosed:
			return written, net.ErrClosed
		case h.readerClosed:
			return written, io.ErrClosedPipe
		case h.writeDeadline.passed():
			return written, os.ErrDeadlineExceeded
		case len(p) == 0:
			return written, nil
		}
		if room := pipeBytes - len(h.data); room > 0 {
			n := min(room, len(p))
			h.data = append(h.data, p[:n]...)
			p, written = p[n:], written+n
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

// close marks one side closed and wakes who waits.
func (h *pipeHalf) close(side *bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*side = true
	for _, d := range []*pipeDeadline{&h.readDeadline, &h.writeDeadline} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	h.changed.Broadcast()
}

// pipeEnd is one end of a pipe.
type pipeEnd struct {
	in, out *pipeHalf
}

func (e *pipeEnd) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *pipeEnd) Write(p []byte) (int, error) { return e.out.write(p) }
func (e *pipeEnd) LocalAddr() net.Addr         { return PipeAddr{} }
func (e *pipeEnd) RemoteAddr() net.Addr        { return PipeAddr{} }

func (e *pipeEnd) Close() error {
	e.out.close(&e.out.writerClosed)
	e.in.close(&e.in.readerClosed)
	return nil
}

// CloseWrite says that nothing more will be written; reading goes on.
func (e *pipeEnd) CloseWrite() error {
	e.out.close(&e.out.writerClosed)
	return nil
}

func (e *pipeEnd) SetDeadline(t time.Time) error {
	e.in.setDeadline(&e.in.readDeadline, t)
	e.out.setDeadline(&e.out.writeDeadline, t)
	return nil
}

func (e *pipeEnd) SetReadDeadline(t time.Time) error {
	e.in.setDeadline(&e.in.readDeadline, t)
	return nil
}

func (e *pipeEnd) SetWriteDeadline(t time.Time) error {
	e.out.setDeadline(&e.out.writeDeadline, t)
	return nil
}
