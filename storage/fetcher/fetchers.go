package fetcher

import (
	"time"

	"ottla/protocol"
)

// Fetchers are all fetchers of a node. All methods may be called from anywhere at any time.
type Fetchers struct {
	// Wake, if set before the first call, is called when NextDeadline became earlier. It must not block.
	Wake func()

	options Options
}

// New makes Fetchers that fetch nothing.
func New(options Options) *Fetchers {
	options.setDefaults()
	return &Fetchers{options: options}
}

// Assign has a partition fetched from its leader in a leader epoch, from where its log ends. It is to be called after
// Manager.Apply has made the replica a follower in that epoch. What is fetched in this epoch already goes on; a former
// assignment ends.
func (f *Fetchers) Assign(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, leader protocol.NodeID, epoch protocol.LeaderEpoch) {
	panic("not yet")
}

// Unassign ends the fetching of a partition: its leader is this node or nobody, or the replica is gone. It is to be
// called after the replica has its new role, or none: a step under way then has no effect any more.
func (f *Fetchers) Unassign(tp protocol.TopicPartition) { panic("not yet") }

// SetThrottle says how many bytes a second all throttled partitions of the node together may fetch while they are not
// in sync (follower.replication.throttled.rate); a negative number is no limit.
func (f *Fetchers) SetThrottle(bytesPerSecond int64) { panic("not yet") }

// Tick starts the steps that are due.
func (f *Fetchers) Tick(now time.Time) { panic("not yet") }

// NextDeadline is when Tick has something to do; zero: never.
func (f *Fetchers) NextDeadline() time.Time { panic("not yet") }

// Close ends all fetching. An answer that comes later is dropped.
func (f *Fetchers) Close() { panic("not yet") }

// Lag is how many records a partition was behind its leader's high watermark at the last answer; ok is false if it is
// not fetched, or was not answered yet.
func (f *Fetchers) Lag(tp protocol.TopicPartition) (records int64, ok bool) { panic("not yet") }
