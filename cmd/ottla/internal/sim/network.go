package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/server"
	"ottla/protocol/wire"

	"ottla/cmd/ottla/internal/seeded"
)

// errCut is what a client sees when its connection ended before the reply.
var errCut = errors.New("the connection ended")

// conn is a connection to a host, with both of its ends. Each direction keeps the
// order of what it carries, as TCP does; different connections know no order.
type conn struct {
	s      *Simulation
	name   string
	host   *host
	random *seeded.Random
	// within runs what is the client's own: directly, or within its process.
	within func(run func())

	local       *server.Local // the node's end
	incarnation int
	stalled     [][]byte // requests that wait until the node reads on
	writing     bool     // a turn of the node's writer is scheduled
	hungUp      bool     // the node's end is closed
	internal    bool     // from the node itself

	open         bool // the client's end
	inflight     []*exchange
	lastID       int32
	upAt, downAt time.Time // when the last message of each direction comes
	loseUp       bool      // after a cut: what is under way is lost
	loseDown     bool
	onCut        func()
	cuts         int // per mille of messages after which it is cut
}

// exchange is a request under way.
type exchange struct {
	id   int32
	key  int16
	req  kmsg.Request
	done func(kmsg.Response, error)
	over bool
}

// connect opens a connection to a host's listener; nil if nobody listens there.
func (s *Simulation) connect(name string, h *host, scope protocol.Scope, onCut func()) *conn {
	return s.connectTo(name, h, h.accept(scope), onCut)
}

// connectTo is connect for an end that was accepted already; nil stays nil.
func (s *Simulation) connectTo(name string, h *host, local *server.Local, onCut func()) *conn {
	if local == nil {
		return nil
	}
	c := &conn{
		s: s, name: name, host: h, random: s.random.Fork(), within: func(run func()) { run() },
		local: local, incarnation: h.incarnation, open: true, onCut: onCut, cuts: s.plan.network.cut,
	}
	h.conns = append(h.conns, c)
	return c
}

func (c *conn) latency() time.Duration {
	n := c.s.plan.network
	if c.random.Chance(n.slow) {
		return c.random.Between(n.high, 50*n.high+100*time.Millisecond)
	}
	return c.random.Between(n.low, n.high)
}

// later gives when a message comes that is sent now, after those sent before.
func (c *conn) later(last *time.Time) time.Time {
	at := c.s.Now.Add(c.latency())
	if !at.After(*last) {
		at = last.Add(1)
	}
	*last = at
	return at
}

// send sends a request. done is called once, not from here: with the response, or
// with errCut. wantsReply is false for a Produce with acks=0; done is called when it
// was sent then.
func (c *conn) send(req kmsg.Request, version int16, timeout time.Duration, wantsReply bool, done func(kmsg.Response, error)) {
	req.SetVersion(version)
	c.lastID++
	x := &exchange{id: c.lastID, key: req.Key(), req: req, done: done}
	clientID := c.name
	header := wire.RequestHeader{Key: protocol.APIKey(req.Key()), Version: version, CorrelationID: x.id, ClientID: &clientID}
	frame := wire.AppendRequest(nil, header, req)[wire.LengthBytes:]
	c.s.counts.Requests++
	c.s.Linef("%s sends %s v%d #%d: %d bytes %016x", c.name, header.Key, version, x.id, len(frame), seeded.HashOf(frame))
	if wantsReply {
		c.inflight = append(c.inflight, x)
		if timeout > 0 {
			healed := c.s.phase != working
			c.s.After(timeout, c.name+" looks whether it waits for too long", func() {
				if x.over || !c.open {
					return
				}
				c.s.Linef("%s waits no longer for #%d", c.name, x.id)
				if healed {
					c.s.Violate("%s: %s #%d was not answered within %v, though no fault is left", c.name, header.Key, x.id, timeout)
				}
				c.cut()
			})
		}
	}
	c.s.At(c.later(&c.upAt), c.name+" -> "+c.host.name, func() { c.arrive(frame) })
	if !wantsReply {
		c.s.After(0, c.name+" has sent", func() { done(nil, nil) })
	}
	if c.s.phase == working && c.random.Chance(c.cuts) {
		c.s.After(c.random.Between(0, 2*c.s.plan.network.high), c.name+" is cut", c.cut)
	}
}

// arrive takes a request to the node.
func (c *conn) arrive(frame []byte) {
	if c.loseUp || c.hungUp || !c.host.runs(c.incarnation) {
		return
	}
	c.stalled = append(c.stalled, frame)
	c.read()
}

// read is the node's reader: it takes requests as long as it may.
func (c *conn) read() {
	for len(c.stalled) > 0 && !c.hungUp && !c.local.Blocked() {
		frame := c.stalled[0]
		c.stalled = c.stalled[1:]
		c.host.enter(func() {
			if err := c.local.Deliver(frame); err != nil {
				c.s.Violate("%s: the node refuses to read a request: %v", c.name, err)
			}
		})
		if !c.host.runs(c.incarnation) {
			return
		}
	}
}

// look schedules a turn of the node's writer if there is something to write.
func (c *conn) look() {
	if c.writing || c.hungUp || !c.local.Ready() {
		return
	}
	c.writing = true
	c.s.After(c.random.Between(0, 200*time.Microsecond), c.host.name+" writes to "+c.name, func() {
		c.writing = false
		if c.hungUp || !c.host.runs(c.incarnation) {
			return
		}
		var bytes []byte
		var err error
		c.host.enter(func() { bytes, err = c.local.Take() })
		if !c.host.runs(c.incarnation) {
			return
		}
		if len(bytes) > 0 {
			c.s.At(c.later(&c.downAt), c.host.name+" -> "+c.name, func() { c.receive(bytes) })
		}
		if err != nil {
			c.s.Linef("%s hangs up on %s: %v", c.host.name, c.name, err)
			c.hungUp = true
			c.s.At(c.later(&c.downAt), c.name+" is hung up on", c.broken)
			return
		}
		c.read()
		c.look()
	})
}

// receive takes replies to the client.
func (c *conn) receive(bytes []byte) {
	for c.open && !c.loseDown && len(bytes) > 0 {
		size := int(binary.BigEndian.Uint32(bytes))
		frame := bytes[wire.LengthBytes : wire.LengthBytes+size]
		bytes = bytes[wire.LengthBytes+size:]
		if len(c.inflight) == 0 {
			c.s.Violate("%s: a reply that nobody asked for", c.name)
			return
		}
		x := c.inflight[0]
		c.inflight = c.inflight[1:]
		shape := kmsg.RequestForKey(x.key)
		shape.SetVersion(x.req.GetVersion())
		id, resp, err := wire.ReadResponse(frame, shape)
		if err != nil || id != x.id {
			c.s.Violate("%s: the reply %d to request %d (%s v%d) cannot be read: %v", c.name, id, x.id, protocol.APIKey(x.key), x.req.GetVersion(), err)
			return
		}
		c.s.Linef("%s gets %s #%d: %d bytes %016x", c.name, protocol.APIKey(x.key), x.id, len(frame), seeded.HashOf(frame))
		x.over = true
		c.within(func() { x.done(resp, nil) })
	}
}

// cut breaks the connection: at once for the client, a little later for the node.
// What is under way in either direction comes or is lost.
func (c *conn) cut() {
	if !c.open {
		return
	}
	c.s.counts.CutConnections++
	c.loseUp, c.loseDown = c.random.Chance(500), true
	c.s.After(c.latency(), c.host.name+" sees that "+c.name+" is gone", func() {
		if c.hungUp || !c.host.runs(c.incarnation) {
			return
		}
		c.hungUp = true
		c.host.enter(c.local.Close)
	})
	c.broken()
}

// close ends the connection in order, from the client.
func (c *conn) close() {
	if c.open {
		c.cut()
	}
}

// broken tells the client.
func (c *conn) broken() {
	if !c.open {
		return
	}
	c.open, c.loseDown = false, true
	inflight := c.inflight
	c.inflight = nil
	for _, x := range inflight {
		x.over = true
		c.within(func() { x.done(nil, errCut) })
	}
	if c.onCut != nil {
		c.within(c.onCut)
	}
}

func (c *conn) String() string { return fmt.Sprintf("%s, %d unanswered", c.name, len(c.inflight)) }
