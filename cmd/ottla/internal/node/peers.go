package node

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/server"
)

// dialTimeout bounds an attempt to connect to another broker.
const dialTimeout = 10 * time.Second

// peers are the connections to the brokers of the cluster, this one included:
// that is in memory, and the same bytes go over it. Each API has a connection of
// its own to each broker, so that none waits for another's reply.
type peers struct {
	runner *runner
	config *config.BrokerConfig

	mu     sync.Mutex
	open   map[peerKey]*client.Client
	closed bool
}

type peerKey struct {
	node protocol.NodeID
	api  int16
}

// send is a broker.SendTo.
func (p *peers) send(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	p.mu.Lock()
	peer := p.open[peerKey{to, req.Key()}]
	if peer == nil && !p.closed {
		peer = client.New(p.dialer(to), client.Options{
			ClientID:       "node-" + strconv.Itoa(int(p.config.NodeID)),
			RequestTimeout: millis(int64(p.config.Int("request.timeout.ms"))),
			Random:         SecureRandom, Logger: p.runner.logger,
		})
		p.open[peerKey{to, req.Key()}] = peer
	}
	p.mu.Unlock()
	if peer == nil {
		done(nil, client.ErrClosed)
		return
	}
	peer.Send(req, 0, done)
}

// dialer connects to the listener between brokers.
func (p *peers) dialer(to protocol.NodeID) func() (net.Conn, error) {
	name := p.config.InterBrokerListener
	if to == p.config.NodeID {
		return func() (net.Conn, error) {
			near, far := server.NewPipe()
			// The controllers' server, so that it has the memory of the cluster's own
			// traffic: producers that hold theirs wait for what goes over this.
			p.runner.controllers.ServeConn(far, server.Listener{Name: name, Protocol: p.config.Protocols[name], Scope: protocol.OnBroker, Secure: true})
			return near, nil
		}
	}
	return func() (net.Conn, error) {
		known := p.runner.node.Image().Broker(to)
		if known == nil {
			return nil, fmt.Errorf("broker %d is not known", to)
		}
		at := known.Endpoint(name)
		if at == nil {
			return nil, fmt.Errorf("broker %d has no listener %s", to, name)
		}
		return net.DialTimeout("tcp", net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port))), dialTimeout)
	}
}

func (p *peers) close() {
	p.mu.Lock()
	open := p.open
	p.open, p.closed = nil, true
	p.mu.Unlock()
	for _, peer := range open {
		peer.Close()
	}
}
