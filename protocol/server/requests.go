package server

import (
	"math/bits"
	"sync/atomic"
	"time"

	"ottla/protocol"
)

const (
	maxCountedKey     = 127 // API keys beyond are counted as this one; Kafka's end at 92
	maxCountedVersion = 31  // versions beyond are counted as this one; Kafka's end at 18
	maxCountedError   = 158 // error codes beyond are counted as -1; Kafka's end at 133
	// timeBuckets are those of RequestStats.Times: eight to each power of two of
	// microseconds, up to 2^31.
	timeBuckets = 32 * 8
)

// RequestStats are the plain counters of the requests of one API, for metrics to
// read. A request counts when its reply is ready.
type RequestStats struct {
	Versions [maxCountedVersion + 1]atomic.Int64 // requests answered, by version
	Closed   atomic.Int64                        // requests answered by ending the connection
	Errors   [maxCountedError + 2]atomic.Int64   // error codes in replies, from -1 on; see Request.CountError
	Micros   atomic.Int64                        // time from the last byte of the request to the reply being ready, summed
	Times    [timeBuckets]atomic.Uint32          // requests by that time; see TimeBucketMillis. Wraps.
}

// requestTable has the counters of those APIs that were asked for; the last place
// is of fetches by followers.
type requestTable [maxCountedKey + 2]atomic.Pointer[RequestStats]

// of gives the counters for a request.
func (t *requestTable) of(r *Request) *RequestStats {
	at := max(0, min(int(r.Header.Key), maxCountedKey))
	if r.FromFollower {
		at = maxCountedKey + 1
	}
	stats := t[at].Load()
	if stats == nil {
		t[at].CompareAndSwap(nil, new(RequestStats))
		stats = t[at].Load()
	}
	return stats
}

// CountError counts an error code that the reply to the request holds. It is called
// before the reply is given, for each code, NONE too.
func (r *Request) CountError(code protocol.ErrorCode) {
	at := int(code) + 1
	if at < 0 || at > maxCountedError+1 {
		at = 0
	}
	r.Conn.server.requests.of(r).Errors[at].Add(1)
}

// EachError calls visit with the codes that there were, and how often.
func (s *RequestStats) EachError(visit func(code protocol.ErrorCode, count int64)) {
	for at := range s.Errors {
		if n := s.Errors[at].Load(); n > 0 {
			visit(protocol.ErrorCode(at-1), n)
		}
	}
}

func (t *requestTable) count(r *Request, now time.Time) {
	stats := t.of(r)
	micros := max(0, now.Sub(r.Received).Microseconds())
	stats.Versions[max(0, min(int(r.Header.Version), maxCountedVersion))].Add(1)
	stats.Micros.Add(micros)
	stats.Times[timeBucket(uint64(micros))].Add(1)
	if r.closing != nil {
		stats.Closed.Add(1)
	}
}

// timeBucket gives the bucket of a time in microseconds: below 8 each has its own,
// above there are eight to a power of two.
func timeBucket(micros uint64) int {
	if micros < 8 {
		return int(micros)
	}
	power := bits.Len64(micros) - 4 // the leading bit and three more are kept
	return min(power*8+int(micros>>power), timeBuckets-1)
}

// TimeBucketMillis gives the middle of a bucket of RequestStats.Times in
// milliseconds. It is wrong by at most a sixteenth.
func TimeBucketMillis(bucket int) float64 {
	if bucket < 16 {
		return float64(bucket) / 1000
	}
	power := bucket/8 - 1
	return (float64(int64(bucket-power*8)<<power) + float64(int64(1)<<power)/2) / 1000
}

// EachRequest calls visit with the counters of every API that was asked for, by
// key. Fetches of followers are told apart.
func (s *Server) EachRequest(visit func(key protocol.APIKey, follower bool, stats *RequestStats)) {
	for at := range s.requests {
		stats := s.requests[at].Load()
		switch {
		case stats == nil:
		case at > maxCountedKey:
			visit(protocol.Fetch, true, stats)
		default:
			visit(protocol.APIKey(at), false, stats)
		}
	}
}
