package server

import (
	"log/slog"
	"time"

	"ottla/protocol"
)

// Listener is what a connection inherits from the listener it came in on.
type Listener struct {
	Name     string         // as in listeners=NAME://…
	Protocol string         // security protocol, as in PLAINTEXT
	Scope    protocol.Scope // which APIs it serves
	Secure   bool           // the bytes are encrypted on the way
}

// Options are the limits of a Server. A zero number or time means its default.
type Options struct {
	// MaxRequestBytes is socket.request.max.bytes: a longer frame ends the
	// connection.
	MaxRequestBytes int
	// MemoryBytes is queued.max.request.bytes, for each listener: requests being
	// read or not yet answered may hold so many bytes. A single request larger
	// than that is read when nothing else is held.
	MemoryBytes int64
	// IdleTimeout is connections.max.idle.ms.
	IdleTimeout time.Duration
	// FrameTimeout is how long the rest of a frame may take to come, and a reply
	// to go, plus a second for every 128 KiB.
	FrameTimeout time.Duration
	// Limits bound the number of connections; SetLimits changes them.
	Limits
	// ConnectionsPerSecond is max.connection.creation.rate, for each listener:
	// beyond it, accepting waits.
	ConnectionsPerSecond int
	// MaxOutstanding is how many requests of one connection may be unanswered
	// before its reading stops.
	MaxOutstanding int
	// MaxQueuedReplyBytes is how many bytes of encoded replies one connection
	// may hold before its reading stops.
	MaxQueuedReplyBytes int64
	// SendBufferBytes and ReceiveBufferBytes are socket.send.buffer.bytes and
	// socket.receive.buffer.bytes; not positive: the operating system's.
	SendBufferBytes, ReceiveBufferBytes int

	// Supported says which requests there are on a kind of listener. A request
	// of any other key or version ends the connection, except ApiVersions, which
	// is handed over with Request.Unsupported. nil: all of Apache Kafka 4.4.0.
	Supported func(scope protocol.Scope, key protocol.APIKey, version int16) bool
	// ConnectionClosed, if not nil, is called once for each connection from which
	// nothing more will be read, so that no request goes on waiting for the sake
	// of a peer that is gone: its reply is sent if it comes, and then the
	// connection ends. It must not block.
	ConnectionClosed func(*Conn)
	// Logger gets what an operator may need; nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock of Request.Received and of mutes; nil: time.Now.
	Now func() time.Time
}

// Limits bound the number of connections. What is refused is closed at once; what is
// open stays open.
type Limits struct {
	// MaxConnections is max.connections, over all listeners. 0 is the default;
	// negative takes none.
	MaxConnections int
	// MaxConnectionsOf is listener.name.<listener>.max.connections, by the name of
	// the listener; one that is not in it has no limit of its own.
	MaxConnectionsOf map[string]int
	// MaxConnectionsPerIP is max.connections.per.ip. 0 is the default; negative
	// takes only what the overrides allow.
	MaxConnectionsPerIP int
	// MaxConnectionsPerIPOverrides is max.connections.per.ip.overrides, by the
	// text of the address.
	MaxConnectionsPerIPOverrides map[string]int
}

func (l Limits) withDefaults() Limits {
	if l.MaxConnections == 0 {
		l.MaxConnections = DefaultMaxConnections
	}
	if l.MaxConnectionsPerIP == 0 {
		l.MaxConnectionsPerIP = DefaultMaxConnectionsPerIP
	}
	return l
}

// The defaults of Options.
const (
	DefaultMaxRequestBytes      = 100 << 20 // socket.request.max.bytes
	DefaultMemoryBytes          = 256 << 20
	DefaultIdleTimeout          = 10 * time.Minute // connections.max.idle.ms
	DefaultFrameTimeout         = 30 * time.Second
	DefaultMaxConnections       = 20_000
	DefaultMaxConnectionsPerIP  = 10_000
	DefaultConnectionsPerSecond = 5_000
	DefaultMaxOutstanding       = 100
	DefaultMaxQueuedReplyBytes  = 16 << 20
)

const (
	bytesPerSecondAtLeast = 128 << 10   // slower than this over a frame, a peer is taken for dead
	stallPatience         = time.Second // as long as a frame may stand still while others wait for memory
	patientFrameBytes     = 1 << 20     // longer frames are allocated only when
	prefixFrameBytes      = 64 << 10    // so much of them has come
	readBufferBytes       = 2 << 10     // most small requests whole; every connection has one
	writeBufferBytes      = 64 << 10
	copiedRegionBytes     = 32 << 10 // file regions up to this are read and sent with the fields around them
)

func orDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

func (o Options) withDefaults() Options {
	orDefault(&o.MaxRequestBytes, DefaultMaxRequestBytes)
	orDefault(&o.MemoryBytes, DefaultMemoryBytes)
	orDefault(&o.IdleTimeout, DefaultIdleTimeout)
	orDefault(&o.FrameTimeout, DefaultFrameTimeout)
	o.Limits = o.Limits.withDefaults()
	orDefault(&o.ConnectionsPerSecond, DefaultConnectionsPerSecond)
	orDefault(&o.MaxOutstanding, DefaultMaxOutstanding)
	orDefault(&o.MaxQueuedReplyBytes, DefaultMaxQueuedReplyBytes)
	if o.Supported == nil {
		o.Supported = supportedByKafka
	}
	if o.ConnectionClosed == nil {
		o.ConnectionClosed = func(*Conn) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func supportedByKafka(scope protocol.Scope, key protocol.APIKey, version int16) bool {
	api := protocol.APIOf(key)
	return api != nil && api.Scope&scope != 0 && version >= api.MinVersion && version <= api.MaxVersion
}

// patience is how long so many bytes may take on the wire.
func (o *Options) patience(bytes int64) time.Duration {
	return o.FrameTimeout + time.Duration(bytes)*time.Second/bytesPerSecondAtLeast
}
