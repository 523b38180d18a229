package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/api"
	"ottla/protocol"
)

// Present is of seeded.Process.
func (h *host) Present() (time.Time, bool) { return h.s.Now, h.pumps != nil }

// Later is of seeded.Process.
func (h *host) Later(delay time.Duration, what string, run func()) { h.after(delay, what, run) }

// Within is of seeded.Process.
func (h *host) Within(run func()) bool {
	incarnation := h.incarnation
	h.enter(run)
	return h.runs(incarnation)
}

// TooOften is of seeded.Process.
func (h *host) TooOften(part string, inOneSecond int) {
	h.s.Violate("%s: %s was ticked %d times in a second: its deadline does not go away", h.name, part, inOneSecond)
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
