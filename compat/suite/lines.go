package suite

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Lines are the connections of one client written in Go, which can be cut all at once, as when its process dies.
type Lines struct {
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

// ErrCut is why a client that is dead cannot connect.
var ErrCut = errors.New("this client is dead")

// Dial is DialContext for libraries that hand over no context.
func (l *Lines) Dial(network, addr string) (net.Conn, error) {
	return l.DialContext(context.Background(), network, addr)
}

// DialContext connects; after Kill it fails with ErrCut.
func (l *Lines) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		if err == nil {
			_ = conn.Close()
		}
		return nil, ErrCut
	}
	if err == nil {
		l.open = append(l.open, conn)
	}
	return conn, err
}

// Kill closes all connections, and allows no more.
func (l *Lines) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, conn := range l.open {
		_ = conn.Close()
	}
}
