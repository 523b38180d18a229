package node

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/server"
)

// dialTimeout bounds an attempt to connect to another broker.
const dialTimeout = 10 * time.Second

// quorumDialTimeout bounds an attempt to connect to a controller: there are others.
const quorumDialTimeout = 2 * time.Second

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

// peerKey is what a connection is to, and what for. A controller is known by its
// address, a broker by its id: where that listens may change.
type peerKey struct {
	node    protocol.NodeID
	address string
	fetcher int // 1 and up: the fetcher that has it for itself
	api     int16
}

// send is a broker.SendTo.
func (p *peers) send(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error)) {
	peer := p.broker(to, req.Key())
	if peer == nil {
		done(nil, client.ErrClosed)
		return
	}
	peer.Send(req, 0, done)
}

// broker is the connection to a broker for one API; nil after close.
func (p *peers) broker(to protocol.NodeID, api int16) *client.Client {
	return p.client(peerKey{node: to, api: api}, p.dialer(to))
}

// toQuorum is a ToQuorum.
func (p *peers) toQuorum(to raft.Address, req kmsg.Request, timeout time.Duration, done func(kmsg.Response, error)) {
	address := addressOf(to)
	peer := p.client(peerKey{node: protocol.NoNode, address: address, api: req.Key()}, func() (net.Conn, error) {
		return net.DialTimeout("tcp", address, quorumDialTimeout)
	})
	if peer == nil {
		done(nil, client.ErrClosed)
		return
	}
	peer.Send(req, timeout, done)
}

func addressOf(node raft.Address) string {
	return net.JoinHostPort(node.Host, strconv.Itoa(int(node.Port)))
}

// quorumServes is a QuorumServes: the connection of the heartbeats is always there.
func (p *peers) quorumServes(by raft.Address, key protocol.APIKey) (lowest, highest int16, known bool) {
	p.mu.Lock()
	peer := p.open[peerKey{node: protocol.NoNode, address: addressOf(by), api: int16(protocol.BrokerHeartbeat)}]
	p.mu.Unlock()
	if peer == nil {
		return 0, 0, false
	}
	return peer.Serves(key)
}

func (p *peers) client(key peerKey, dial func() (net.Conn, error)) *client.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[key] == nil && !p.closed {
		p.open[key] = client.New(dial, client.Options{
			ClientID:       "node-" + strconv.Itoa(int(p.config.NodeID)),
			RequestTimeout: millis(int64(p.config.Int("request.timeout.ms"))),
			Random:         SecureRandom, Logger: p.runner.logger,
		})
	}
	return p.open[key]
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
