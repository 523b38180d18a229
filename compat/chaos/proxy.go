package chaos

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy passes requests on to a server, and can hold one that is chosen for as long as
// it likes: what the network does to a request now and then.
type Proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	hold *Held
}

// Held is a request that the proxy keeps back.
type Held struct {
	match   func(key, version int16) bool
	arrived chan struct{}
	release chan struct{}
}

// Arrived is closed when there is such a request, and it is held.
func (h *Held) Arrived() <-chan struct{} { return h.arrived }

// Release lets it go on to the server.
func (h *Held) Release() { close(h.release) }

// NewProxy listens on a port of its own, for a server's address.
func NewProxy(server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: listener, server: server}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close takes no more connections.
func (p *Proxy) Close() { _ = p.listener.Close() }

// HoldNext holds the next request that matches, and what follows it on its connection.
func (p *Proxy) HoldNext(match func(key, version int16) bool) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = &Held{match: match, arrived: make(chan struct{}), release: make(chan struct{})}
	return p.hold
}

// serve passes frames on until the server's end is closed. A client that hangs up takes
// back nothing that it has sent.
func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	go func() {
		defer func() { _ = client.Close() }()
		_, _ = io.Copy(client, server) // until one end is closed
	}()
	defer func() { _ = server.Close() }()
	for {
		var head [4]byte
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
		copy(frame, head[:])
		if _, err := io.ReadFull(client, frame[4:]); err != nil {
			return
		}
		p.wait(int16(binary.BigEndian.Uint16(frame[4:])), int16(binary.BigEndian.Uint16(frame[6:])))
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}

func (p *Proxy) wait(key, version int16) {
	p.mu.Lock()
	h := p.hold
	if h == nil || !h.match(key, version) {
		p.mu.Unlock()
		return
	}
	p.hold = nil
	p.mu.Unlock()
	close(h.arrived)
	<-h.release
}
