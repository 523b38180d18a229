package server

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol/wire"
)

// Request is one request of a connection, and the place of its reply in the
// connection's order. Exactly one of Reply, ReplyFetch, ReplyNothing and
// CloseConnection is called on it, once, from any goroutine.
type Request struct {
	Header   wire.RequestHeader
	Body     []byte      // what wire.DecodeRequest takes; nil if Unsupported by Apache Kafka too
	Frame    *wire.Frame // holds Body; nil unless Produce. See the package's duties of a handler
	Received time.Time
	Conn     *Conn
	// Unsupported marks an ApiVersions request of a version that is not served,
	// to be answered by a version 0 response (KIP-511).
	Unsupported bool
	// FromFollower is set by the handler of a Fetch, for the counters.
	FromFollower bool

	// The rest belongs to the connection; mu of Conn guards it.
	next    *Request
	ready   bool
	charged int64 // of the listener's budget, given back with the reply
	mute    time.Duration
	bytes   []byte
	fetch   *wire.FetchResponse
	chunks  []wire.Chunk
	size    int64 // of memory that the reply holds
	closing error // close instead of replying
}

// Reply answers with resp, whose version the caller has set. It is encoded at
// once; resp belongs to the caller again.
func (r *Request) Reply(resp kmsg.Response) {
	r.bytes = wire.AppendResponse(nil, r.Header.CorrelationID, resp)
	r.size = int64(len(r.bytes))
	r.done()
}

// ReplyFetch answers with resp and takes over its regions: they are released
// when they are sent, or when they will not be.
func (r *Request) ReplyFetch(resp *wire.FetchResponse) {
	r.fetch, r.chunks = resp, resp.Chunks(r.Header.CorrelationID)
	for _, chunk := range r.chunks {
		r.size += int64(len(chunk.Bytes))
		if chunk.Region != nil {
			r.size += int64(len(chunk.Region.Bytes))
		}
	}
	r.done()
}

// ReplyNothing is the reply to a Produce with acks=0: no byte is sent.
func (r *Request) ReplyNothing() { r.done() }

// CloseConnection sends the replies before this one and then closes the
// connection, as Kafka does where it cannot answer.
func (r *Request) CloseConnection(reason error) {
	if reason == nil {
		reason = errors.New("the handler closed the connection")
	}
	r.closing = reason
	r.done()
}

// HoldReading keeps the connection from reading a further request until this
// one has its reply. It may be called only within Handle and before the reply;
// after the reply it does nothing.
func (r *Request) HoldReading() {
	c := r.Conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.ready {
		c.held = r
	}
}

// Mute makes the reply carry a throttle: it is sent at once, and for so long no
// further request is taken from the connection (KIP-219). Call it before the
// reply.
func (r *Request) Mute(throttle time.Duration) { r.mute = throttle }

// enqueue gives a request its place in the order of replies.
func (c *Conn) enqueue(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	if c.tail == nil {
		c.head = r
	} else {
		c.tail.next = r
	}
	c.tail = r
	c.outstanding++
	c.handling = r
}

// done makes the reply ready and wakes whom it concerns.
func (r *Request) done() {
	c := r.Conn
	c.server.requests.count(r, c.server.options.Now())
	c.mu.Lock()
	if r.ready {
		c.mu.Unlock()
		panic("server: a request was answered twice")
	}
	r.ready = true
	charged := r.charged
	r.charged = 0
	c.queuedBytes += r.size
	if r.mute > 0 {
		if until := c.server.options.Now().Add(r.mute); until.After(c.mutedUntil) {
			c.mutedUntil = until
		}
	}
	wakeReader := c.held == r
	if wakeReader {
		c.held = nil
	}
	wakeWriter := c.head == r && c.handling != r
	dead := c.dead
	c.mu.Unlock()
	if dead {
		r.releaseReply()
	}
	if charged > 0 {
		c.stats.budget.release(charged)
	}
	if wakeReader {
		signal(c.readerWake)
	}
	if wakeWriter {
		signal(c.writerWake)
	}
}

// drop gives back what a request that was never handed over holds.
func (r *Request) drop() {
	if r.Frame != nil {
		r.Frame.Release()
		r.Frame = nil
	}
	if r.charged > 0 {
		r.Conn.stats.budget.release(r.charged)
		r.charged = 0
	}
}
