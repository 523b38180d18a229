package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/server"
	"ottla/protocol/wire"
)

// Handler answers the requests of all listeners of a node. It implements
// server.Handler.
type Handler struct {
	node  *Node
	table []API // the rows of the registry that this node has

	sessions  sessions
	polls     polls
	creations creations

	groupSpread groupSpread
}

// New makes the Handler of a node.
func New(node Node) *Handler {
	if node.Authorize == nil {
		node.Authorize = Permissive{}
	}
	if node.Logger == nil {
		node.Logger = slog.New(slog.DiscardHandler)
	}
	if node.BrokerEpoch == nil {
		node.BrokerEpoch = func() protocol.BrokerEpoch { return -1 }
	}
	return &Handler{node: &node, table: tableOf(&node), sessions: newSessions(&node), polls: polls{byConn: map[*server.Conn]map[*call]func(){}}}
}

// Handle implements server.Handler.
func (h *Handler) Handle(req *server.Request) {
	c := &call{Node: h.node, handler: h, request: req, now: req.Received, version: req.Header.Version}
	if req.Unsupported {
		c.guard(func() { apiVersionsUnsupported(c) })
		return
	}
	row := h.find(req.Header.Key)
	if row == nil || !row.serves(req.Conn.Scope(), req.Header.Version) {
		c.close(fmt.Errorf("%w: %s %d is not served on listener %s",
			wire.ErrUnsupportedVersion, req.Header.Key, req.Header.Version, req.Conn.ListenerName()))
		return
	}
	c.guard(func() {
		message, err := wire.DecodeRequest(req.Header, req.Body)
		if err != nil {
			c.close(err)
			return
		}
		row.serve(c, message)
	})
}

func (h *Handler) find(key protocol.APIKey) *API { return find(h.table, key) }

// call is one request under way: who asks, when, and where the reply goes. A
// handler answers it once, by reply, replyFetch, replyNothing or close, now or in
// a callback; a callback's body goes through guard.
type call struct {
	*Node
	handler  *Handler
	request  *server.Request
	now      time.Time   // when the request was received
	version  int16       // of the request, and so of the response
	answered atomic.Bool // for guard
}

// reply answers with resp, in the version of the request.
func (c *call) reply(resp kmsg.Response) {
	resp.SetVersion(c.version)
	countErrors(c.request, resp)
	c.request.Reply(resp)
	c.answered.Store(true)
}

// replyFetch is reply for the one message that kmsg does not encode.
func (c *call) replyFetch(resp *wire.FetchResponse) {
	resp.Version = c.version
	countFetchErrors(c.request, resp)
	c.request.ReplyFetch(resp)
	c.answered.Store(true)
}

// replyNothing is the answer to a Produce that wants none.
func (c *call) replyNothing() {
	c.request.ReplyNothing()
	c.answered.Store(true)
}

// close ends the connection: Kafka's answer where no response can say it.
func (c *call) close(reason error) {
	c.Logger.Debug("closing a connection", "api", c.request.Header.Key, "version", c.version,
		"listener", c.request.Conn.ListenerName(), "peer", c.request.Conn.RemoteAddr(), "reason", reason)
	c.request.CloseConnection(reason)
	c.answered.Store(true)
}

// clientID gives the client's name of itself, "" if it has none.
func (c *call) clientID() string {
	if c.request.Header.ClientID == nil {
		return ""
	}
	return *c.request.Header.ClientID
}

// listener gives the name of the listener that the request came in on.
func (c *call) listener() string { return c.request.Conn.ListenerName() }

// requester gives who sent the request.
func (c *call) requester() Requester {
	conn := c.request.Conn
	host := ""
	if address := conn.RemoteAddr(); address != nil {
		var err error
		if host, _, err = net.SplitHostPort(address.String()); err != nil {
			host = address.String()
		}
	}
	return Requester{Principal: conn.Principal(), Host: host, Listener: conn.ListenerName(), Secure: conn.Secure()}
}

var errNoController = errors.New("this node has no way to the controller")

// askController gives a request to the controller: to this node's own core if it
// came in on a controller's listener, else through the channel between nodes. done
// is called once, guarded.
func (c *call) askController(req kmsg.Request, done func(kmsg.Response, error)) {
	guarded := func(resp kmsg.Response, err error) { c.guard(func() { done(resp, err) }) }
	switch onController := c.request.Conn.Scope() == protocol.OnController; {
	case onController && c.Submit != nil:
		c.Submit(c.now, req, guarded)
	case !onController && c.ForwardFor != nil:
		who := c.requester()
		c.ForwardFor(broker.Sender{Principal: who.Principal, Host: who.Host, ClientID: c.clientID()}, req, guarded)
	case !onController && c.Forward != nil:
		c.Forward(req, guarded)
	default:
		done(nil, errNoController)
	}
}

// endpoint gives where a live broker listens for those who came in on this
// request's listener; nil if it is not known, fenced, or has no such listener.
func (c *call) endpoint(image *metadata.Image, id protocol.NodeID) *wire.NodeEndpoint {
	b := image.Broker(id)
	if b == nil || b.Fenced {
		return nil
	}
	return c.address(b)
}

// address is where a broker listens for those who came in on this request's
// listener; nil if it has no such listener.
func (c *call) address(b *metadata.Broker) *wire.NodeEndpoint {
	at := b.Endpoint(c.listener())
	if at == nil {
		return nil
	}
	return &wire.NodeEndpoint{ID: b.ID, Host: at.Host, Port: int32(at.Port), Rack: b.Rack}
}
