package metrics

import (
	"net"
	"sync"
)

// bounded is a listener that has so many connections at a time; the next wait in
// the system's queue.
type bounded struct {
	net.Listener
	places    chan struct{}
	closed    chan struct{}
	closeOnce sync.Once
}

// Accept waits for a place, then for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err //nolint:wrapcheck // net/http looks at it
	}
	return &place{Conn: conn, leave: sync.OnceFunc(func() { <-b.places })}, nil
}

// Close closes the listener; those who wait for a place are told.
func (b *bounded) Close() error {
	b.closeOnce.Do(func() { close(b.closed) })
	return b.Listener.Close() //nolint:wrapcheck // net/http looks at it
}

// place is a connection that gives its place back.
type place struct {
	net.Conn
	leave func()
}

func (p *place) Close() error {
	defer p.leave()
	return p.Conn.Close() //nolint:wrapcheck // net/http looks at it
}
