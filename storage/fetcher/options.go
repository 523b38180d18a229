package fetcher

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/replica"
)

// Options are what Fetchers need. Zero values take the defaults named, which are Apache Kafka's.
type Options struct {
	NodeID protocol.NodeID
	// BrokerEpoch gives the epoch of this node's registration of the moment, -1 before it: nothing is fetched then, since
	// a leader could not tell this process from the one before (KIP-903). nil: there are no registrations.
	BrokerEpoch func() protocol.BrokerEpoch
	Replicas    *replica.Manager

	// Send sends a request (Fetch or ListOffsets) to a broker, over a connection that is the fetcher's own: the leader
	// holds a fetch back and others wait behind it. fetcher counts the fetchers of one broker from 0. done is called
	// once, with the time of the moment, possibly before Send returns; it does no I/O and does not block. The record
	// bytes of a FetchResponse may lie in frame, which done takes over; it is nil with an error, and may be nil.
	Send func(leader protocol.NodeID, fetcher int, req kmsg.Request, done Done)
	// Workers runs a step elsewhere: appends wait for the disk. A step of one fetcher must not wait for those of
	// another for long. nil: inline.
	Workers func(task func())

	Count            int           // num.replica.fetchers: connections to one broker; 1
	MaxBytes         int           // replica.fetch.max.bytes: of one partition; 1 MiB
	MinBytes         int           // replica.fetch.min.bytes; 1
	MaxWait          time.Duration // replica.fetch.wait.max.ms; 500 ms
	ResponseMaxBytes int           // replica.fetch.response.max.bytes; 10 MiB
	Backoff          time.Duration // replica.fetch.backoff.ms: pause of a partition, or of a broker, after an error; 1 s

	// Throttled tells whether a partition is among follower.replication.throttled.replicas of its topic; nil: none is.
	Throttled func(tp protocol.TopicPartition) bool

	Logger *slog.Logger // nil: silent
}

// Done takes the answer to a request: resp and perhaps a frame, or an error.
type Done func(now time.Time, resp kmsg.Response, frame *wire.Frame, err error)

// brokerEpoch tells whether this node may fetch, and what it then tells.
func (o *Options) brokerEpoch() (epoch protocol.BrokerEpoch, registered bool) {
	if o.BrokerEpoch == nil {
		return -1, true
	}
	epoch = o.BrokerEpoch()
	return epoch, epoch >= 0
}

func (o *Options) setDefaults() {
	o.Count = max(o.Count, 1)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<20)
	o.MinBytes = cmp.Or(o.MinBytes, 1)
	o.MaxWait = cmp.Or(o.MaxWait, 500*time.Millisecond)
	o.ResponseMaxBytes = cmp.Or(o.ResponseMaxBytes, 10<<20)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	if o.Workers == nil {
		o.Workers = func(task func()) { task() }
	}
	if o.Throttled == nil {
		o.Throttled = func(protocol.TopicPartition) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
