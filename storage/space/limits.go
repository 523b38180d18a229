package space

// Settings are what is configured, in bytes. A negative number is a share of the file system (see limitsFor); 0 switches a
// mark off.
type Settings struct {
	Free    int64 // ottla.disk.free.bytes: what must be left for clients to write
	Reserve int64 // ottla.disk.reserve.bytes: what must be left for the node's own topics to be written
}

// The marks where none are configured: a share of the file system, so that a small one is not all reserve, and at most so much.
const (
	freeShare    = 20
	mostFree     = 1 << 30
	reserveShare = 4 // of the clients' mark
	mostReserve  = 64 << 20
)

// limits are the marks of one file system, in bytes that must be left.
type limits struct {
	clients  int64 // less: no clients
	internal int64 // less: not even the node's own topics
}

// limitsFor derives the marks. The reserve is never above the clients' mark, where there is one.
func limitsFor(totalBytes int64, configured Settings) limits {
	l := limits{clients: configured.Free, internal: configured.Reserve}
	if l.clients < 0 {
		l.clients = min(totalBytes/freeShare, mostFree)
	}
	if l.internal < 0 {
		l.internal = min(l.clients/reserveShare, mostReserve)
	}
	if l.clients > 0 {
		l.internal = min(l.internal, l.clients)
	}
	return l
}

// hysteresis is the part of a mark that must be free above it before what was refused is allowed again.
const hysteresis = 4

// next is the state that follows when a look finds so many bytes left.
func (l limits) next(before State, usableBytes int64) State {
	refuses := func(mark int64, refused bool) bool {
		if refused {
			mark += mark / hysteresis
		}
		return mark > 0 && usableBytes < mark
	}
	switch {
	case refuses(l.internal, before >= Critical):
		return Critical
	case refuses(l.clients, before >= Low):
		return Low
	}
	return Roomy
}
