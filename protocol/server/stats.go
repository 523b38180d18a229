package server

import "sync/atomic"

// Stats are the plain counters of one listener, for metrics to read.
type Stats struct {
	Accepted      atomic.Int64 // connections taken
	Refused       atomic.Int64 // connections closed at once by a limit
	Open          atomic.Int64 // connections at the moment
	Requests      atomic.Int64 // requests handed to the handler
	Malformed     atomic.Int64 // connections ended for what they sent
	IdleClosed    atomic.Int64 // connections ended by the idle timeout
	BytesIn       atomic.Int64 // bytes of whole requests, their lengths included
	BytesOut      atomic.Int64 // bytes of replies, their lengths included
	SendfileBytes atomic.Int64 // of BytesOut, those that went by sendfile
	WriteFailed   atomic.Int64 // connections ended because a reply did not go out

	budget *budget
}

// MemoryHeld gives the bytes that requests of this listener hold at the moment.
func (s *Stats) MemoryHeld() int64 { return s.budget.held() }
