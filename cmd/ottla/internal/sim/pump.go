package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/cmd/ottla/internal/node"
	"ottla/protocol"
)

// pump ticks one part of a node as node.Run does: when its deadline comes, or when
// it is woken. A deadline that comes nearer without a wake is missed here as there.
type pump struct {
	host    *host
	part    node.Part
	timer   int // the number of the last one set; earlier ones do nothing
	second  int64
	inOne   int // ticks in this second
	pending bool
}

// tickPause is that of node.Run.
const tickPause = time.Millisecond

// mostTicks is more than any part needs in a second: the pause allows 1,000.
const mostTicks = 700

// look takes a wake.
func (p *pump) look() {
	select {
	case <-p.part.Woken:
		if !p.pending {
			p.pending = true
			p.host.after(p.host.random.Between(0, 100*time.Microsecond), p.part.Name+" is woken", func() {
				p.pending = false
				p.turn()
			})
		}
	default:
	}
}

// schedule sets the timer.
func (p *pump) schedule(delay time.Duration) {
	p.timer++
	timer := p.timer
	p.host.after(delay, p.part.Name+" is due", func() {
		if p.timer == timer {
			p.turn()
		}
	})
}

// turn is one round of node's pump.
func (p *pump) turn() {
	h := p.host
	if h.pumps == nil {
		return // stopped
	}
	now := h.s.Now
	deadline := p.part.Deadline(now)
	if !deadline.IsZero() && !deadline.After(now) {
		p.counted(now)
		incarnation := h.incarnation
		h.enter(func() { p.part.Tick(now) })
		if !h.runs(incarnation) {
			return
		}
		deadline = p.part.Deadline(now)
	}
	p.timer++ // whatever was set does not count any more
	if !deadline.IsZero() {
		p.schedule(max(deadline.Sub(now), tickPause) + h.random.Between(0, 50*time.Microsecond))
	}
}

func (p *pump) counted(now time.Time) {
	if p.second != now.Unix() {
		p.second, p.inOne = now.Unix(), 0
	}
	if p.inOne++; p.inOne > mostTicks {
		p.host.s.violate("%s: %s was ticked %d times in a second: its deadline does not go away", p.host.name, p.part.Name, p.inOne)
	}
}

// channel is a node's way to the active controller or to a broker, with a client that connects
// again when it is cut.
type channel struct {
	host  *host
	scope protocol.Scope
	key   int16 // of the requests to a broker
	conn  *conn
	queue []outgoing
	due   bool
}

type outgoing struct {
	req  kmsg.Request
	done func(kmsg.Response, error)
}

func (c *channel) send(req kmsg.Request, done func(kmsg.Response, error)) {
	c.queue = append(c.queue, outgoing{req, done})
	if !c.due {
		c.due = true
		c.host.after(c.host.random.Between(0, 100*time.Microsecond), "sends to the controller", c.flush)
	}
}

func (c *channel) flush() {
	c.due = false
	if c.conn == nil || !c.conn.open {
		c.conn = c.host.s.connectTo(c.host.name+"-channel", c.host, c.host.acceptSelf(c.scope), nil)
		if c.conn == nil {
			c.due = true
			c.host.after(50*time.Millisecond, "tries the controller again", c.flush)
			return
		}
		c.conn.internal = true
		h, incarnation := c.host, c.host.incarnation
		c.conn.within = func(run func()) {
			if h.runs(incarnation) {
				h.enter(run)
			}
		}
		c.conn.cuts = 0
		if h.s.plan.faults.channelCuts {
			c.conn.cuts = 20
		}
	}
	queue := c.queue
	c.queue = nil
	for _, o := range queue {
		c.conn.send(o.req, versionOf(o.req), 0, true, o.done)
	}
}

// versionOf is the highest version that both ends have.
func versionOf(req kmsg.Request) int16 {
	for _, row := range api.Registry() {
		if row.Key == protocol.APIKey(req.Key()) {
			return row.MaxVersion
		}
	}
	return 0
}
