package raft

import (
	"fmt"
	"time"

	"ottla/protocol"
)

// FollowSettings are what a replica needs that follows.
type FollowSettings struct {
	// Bootstrap is where to ask for the leader while it is not known or does not
	// answer (controller.quorum.bootstrap.servers, or the static voters). Their ids
	// are not nodes': -2, -3 and so on, as with Kafka.
	Bootstrap []Address
	// Listener names the endpoint of a voter that is used; "" is the first.
	Listener     string
	FetchTimeout time.Duration // controller.quorum.fetch.timeout.ms
	RetryBackoff time.Duration // controller.quorum.retry.backoff.ms
	Random       func() uint64 // chooses among Bootstrap
}

// Address is where to reach a node of the quorum.
type Address struct {
	ID   protocol.NodeID
	Host string
	Port uint16
}

func (a Address) String() string { return fmt.Sprintf("%d at %s:%d", a.ID, a.Host, a.Port) }

// place is the address without who is there.
func (a Address) place() Address { return Address{protocol.NoNode, a.Host, a.Port} }

// SnapshotID names a snapshot: it covers every offset below End, the last of
// which has Epoch (KIP-630).
type SnapshotID struct {
	End   protocol.Offset
	Epoch protocol.LeaderEpoch
}

// Fetch is a request to be sent: a Fetch, or a FetchSnapshot if Snapshot is set.
type Fetch struct {
	To            Address
	Epoch         protocol.LeaderEpoch // the current one
	Offset        protocol.Offset      // the log's end
	LastEpoch     protocol.LeaderEpoch // of the last batch
	HighWatermark protocol.Offset      // NoOffset: not known
	Snapshot      *SnapshotID
	Position      int64 // in the snapshot, bytes
}

// Answer is what the partition of a response says.
type Answer struct {
	Error  protocol.ErrorCode
	Leader protocol.NodeID      // NoNode: not known there
	Epoch  protocol.LeaderEpoch // of that leader; -1: nothing is said
	// LeaderAt is where that leader listens, nil if the answer does not say.
	LeaderAt *Endpoint

	HighWatermark protocol.Offset // NoOffset: the leader does not know it yet
	Records       bool            // some came along
	// Diverging, if set, is the last point at which the logs may agree, and LocalEnd
	// what this replica's log says of the same epoch: the largest epoch not above it,
	// and where that ends.
	Diverging *EpochEnd
	LocalEnd  EpochEnd
	// Snapshot, if set, is what to fetch instead of records; with a chunk, what it
	// is of.
	Snapshot *SnapshotID
	Size     int64 // of the whole snapshot, bytes
	Position int64 // of the chunk
	Bytes    int64 // of the chunk
}

// EpochEnd is where the batches of a leader epoch end.
type EpochEnd struct {
	Epoch protocol.LeaderEpoch
	End   protocol.Offset
}

// fetching is the state of a replica that follows. At most one request is on its
// way at a time.
type fetching struct {
	settings FollowSettings
	leaderAt *Address              // nil: not known
	believed time.Time             // until when the leader is asked first
	next     time.Time             // when to send again; zero: at once
	sent     *Fetch                // what is on its way
	resting  map[Address]time.Time // by place: a bootstrap server may be the leader
	turn     int                   // of Bootstrap
	download *download
	leaderHW protocol.Offset // as the leader last said
	current  bool            // this replica has had everything that was committed then
}

type download struct {
	id       SnapshotID
	position int64
}

// Follow makes this replica one that fetches from a leader. It comes after New,
// and after the voters that the log holds. A leader that quorum-state names is
// asked first, if it is known where it is.
func (c *Core) Follow(now time.Time, settings FollowSettings) {
	f := &fetching{settings: settings, resting: map[Address]time.Time{}, leaderHW: protocol.NoOffset}
	if n := len(settings.Bootstrap); n > 0 {
		f.turn = int(settings.Random() % uint64(n))
	}
	c.fetching = f
	if c.state.Leader != protocol.NoNode && c.state.Leader != c.local.ID {
		f.leaderAt = c.addressOf(c.state.Leader, nil)
	}
	if f.leaderAt == nil {
		c.state.Leader = protocol.NoNode
		return
	}
	c.role, f.believed = Follower, now.Add(settings.FetchTimeout)
}

// addressOf finds where a voter listens: as told, else as the voter set has it.
func (c *Core) addressOf(id protocol.NodeID, told *Endpoint) *Address {
	if told != nil {
		return &Address{id, told.Host, told.Port}
	}
	for _, voter := range c.Voters() {
		if voter.ID != id {
			continue
		}
		for _, e := range voter.Endpoints {
			if c.fetching.settings.Listener == "" || e.Name == c.fetching.settings.Listener {
				return &Address{id, e.Host, e.Port}
			}
		}
	}
	return nil
}

// LeaderAddress is where the leader listens, nil if that is not known.
func (c *Core) LeaderAddress() *Address {
	if c.fetching == nil {
		return nil
	}
	return c.fetching.leaderAt
}

// CaughtUp tells whether this replica has had, at some time since Follow,
// everything that its leader then said to be committed.
func (c *Core) CaughtUp() bool { return c.fetching == nil || c.fetching.current }

func (f *fetching) nextDeadline() time.Time {
	if f.sent != nil {
		return time.Time{}
	}
	if f.next.IsZero() {
		return time.Unix(0, 0) // at once
	}
	return f.next
}

// fetch sends the next request, if none is on its way.
func (c *Core) fetch(now time.Time) Effects {
	f := c.fetching
	if f.sent != nil || now.Before(f.next) {
		return nothing()
	}
	to, ok := f.target(now)
	if !ok {
		f.next = now.Add(max(f.settings.RetryBackoff, time.Millisecond))
		return nothing()
	}
	f.sent = &Fetch{To: to, Epoch: c.state.Epoch, Offset: c.logEnd, LastEpoch: c.logEpoch, HighWatermark: c.highWatermark}
	if f.download != nil && f.leaderAt != nil && to == *f.leaderAt {
		id := f.download.id
		f.sent.Snapshot, f.sent.Position = &id, f.download.position
	}
	effects := nothing()
	effects.Fetch = f.sent
	return effects
}

// target is the leader, as long as it is believed and not resting after a failure;
// else one of those that may know of another (KafkaRaftClient.
// maybeSendFetchToBestNode).
func (f *fetching) target(now time.Time) (Address, bool) {
	if f.leaderAt != nil && now.Before(f.believed) && !now.Before(f.resting[f.leaderAt.place()]) {
		return *f.leaderAt, true
	}
	for range f.settings.Bootstrap {
		to := f.settings.Bootstrap[f.turn%len(f.settings.Bootstrap)]
		f.turn++
		if !now.Before(f.resting[to.place()]) {
			return to, true
		}
	}
	return Address{}, false
}

// Failed says that a request had no answer, or none that makes sense.
func (c *Core) Failed(now time.Time, fetch *Fetch) {
	if f := c.fetching; f.sent == fetch {
		f.sent = nil
		f.rest(now, fetch.To)
	}
}

// rest leaves a node alone for a while.
func (f *fetching) rest(now time.Time, node Address) {
	for at, until := range f.resting {
		if !now.Before(until) {
			delete(f.resting, at)
		}
	}
	f.resting[node.place()] = now.Add(f.settings.RetryBackoff)
	f.next = time.Time{}
}

// Answered takes what came of a request. An answer to another request than the
// last is ignored.
func (c *Core) Answered(now time.Time, fetch *Fetch, answer Answer) Effects {
	f := c.fetching
	if f.sent != fetch {
		return nothing()
	}
	f.sent, f.next = nil, time.Time{}
	effects, usable := c.hear(now, answer)
	switch {
	case usable && answer.Error == protocol.None && fetch.Snapshot != nil:
		c.believe(now)
		c.takeChunk(fetch, answer, &effects)
	case usable && answer.Error == protocol.None:
		c.believe(now)
		c.takeRecords(now, answer, &effects)
	case usable && fetch.Snapshot != nil && answer.Error == protocol.SnapshotNotFound:
		c.believe(now)
		f.download = nil // the leader has deleted it: the next Fetch tells of a newer one
	case effects.Persist == nil: // it told nothing new
		f.rest(now, fetch.To)
	}
	return effects
}

// believe: the leader answered as one.
func (c *Core) believe(now time.Time) {
	c.fetching.believed = now.Add(c.fetching.settings.FetchTimeout)
}

// hear learns of leaders and epochs (KafkaRaftClient.handleCommonResponse). usable
// tells whether the rest of the answer is the leader's of this epoch.
func (c *Core) hear(now time.Time, answer Answer) (effects Effects, usable bool) {
	effects = nothing()
	switch {
	case answer.Epoch < 0:
		// Nothing is said of a leader: a leader that is well known leaves it out.
		return effects, c.role == Follower
	case answer.Epoch < c.state.Epoch || answer.Error == protocol.UnknownLeaderEpoch:
		return effects, false // it is behind us
	case answer.Epoch == c.state.Epoch && c.role == Follower:
		if answer.Leader != protocol.NoNode && answer.Leader != c.state.Leader {
			effects.Refused = fmt.Errorf("node %d is said to lead epoch %d, which node %d led", answer.Leader, answer.Epoch, c.state.Leader)
			return effects, false
		}
		if answer.Leader == c.state.Leader {
			if answer.LeaderAt != nil {
				c.fetching.leaderAt = c.addressOf(answer.Leader, answer.LeaderAt)
			}
			if answer.Error != protocol.None && !now.Before(c.fetching.believed) {
				c.believe(now) // another node confirms it: it is asked again
			}
		}
		return effects, answer.Error == protocol.None || answer.Error == protocol.SnapshotNotFound
	}
	// Only the leader itself answers so; Apache Kafka's stumbles over who has its id.
	if answer.Leader == c.local.ID && (answer.Error == protocol.None || answer.Error == protocol.UnknownServerError) {
		effects.Refused = fmt.Errorf("the leader of epoch %d of the metadata quorum has this node's id, %d: each node needs one of its own", answer.Epoch, c.local.ID)
		return effects, false
	}
	if answer.Epoch == c.state.Epoch && answer.Leader == protocol.NoNode {
		return effects, false
	}
	effects.Persist = c.turnTo(now, answer)
	return effects, false
}

// turnTo follows another leader, or none that is known yet, in the epoch of answer.
// It gives nil if that is no news: of a leader that cannot be reached one may hear
// again and again.
func (c *Core) turnTo(now time.Time, answer Answer) *ElectionState {
	f := c.fetching
	voted := c.state.Voted
	if answer.Epoch > c.state.Epoch {
		voted = ReplicaKey{ID: protocol.NoNode}
	}
	c.role, f.leaderAt, f.download = Unattached, nil, nil
	leader := answer.Leader
	if leader == c.local.ID {
		leader = protocol.NoNode // it led once; it does not lead now
	}
	if leader != protocol.NoNode {
		f.leaderAt = c.addressOf(leader, answer.LeaderAt)
	}
	if f.leaderAt == nil {
		leader = protocol.NoNode // who cannot be reached cannot be followed
	} else {
		c.role = Follower
		c.believe(now)
	}
	state := ElectionState{Epoch: answer.Epoch, Leader: leader, Voted: voted}
	if state == c.state {
		return nil
	}
	c.state = state
	return &state
}

// takeRecords is the answer of the leader to a Fetch.
func (c *Core) takeRecords(now time.Time, answer Answer, effects *Effects) {
	f := c.fetching
	switch {
	case answer.Diverging != nil:
		end := answer.LocalEnd.End
		if answer.LocalEnd.Epoch == answer.Diverging.Epoch {
			end = min(end, answer.Diverging.End)
		}
		if end < c.highWatermark {
			effects.Refused = fmt.Errorf("the leader %d of epoch %d asks to cut the metadata log to offset %d, "+
				"but everything below %d is committed", c.state.Leader, c.state.Epoch, end, c.highWatermark)
			return
		}
		if end >= c.logEnd {
			f.next = now.Add(f.settings.RetryBackoff)
			return // there is nothing to cut: the next answer may well be the same
		}
		effects.Truncate = &end
	case answer.Snapshot != nil:
		if answer.Snapshot.End < max(c.highWatermark, 0) || answer.Snapshot.Epoch < 0 {
			f.next = now.Add(f.settings.RetryBackoff)
			return // it holds less than what is committed here; the next Fetch will tell
		}
		f.download = &download{id: *answer.Snapshot}
		effects.Download = answer.Snapshot
	default:
		f.leaderHW = answer.HighWatermark
		effects.Append = true
	}
}

// takeChunk is the answer of the leader to a FetchSnapshot.
func (c *Core) takeChunk(fetch *Fetch, answer Answer, effects *Effects) {
	d := c.fetching.download
	switch {
	case d == nil || d.id != *fetch.Snapshot:
		return
	case answer.Snapshot == nil || *answer.Snapshot != d.id || answer.Position != d.position || answer.Bytes == 0 && answer.Size != d.position:
		c.fetching.download = nil // not what was asked for: from the beginning
		return
	}
	d.position += answer.Bytes
	effects.Chunk = true
	if d.position >= answer.Size {
		id := d.id
		effects.Install = &id
	}
}

// Replicated says that this replica's log ends at end, with a batch of epoch, all
// durable, after it took what the leader sent.
func (c *Core) Replicated(end protocol.Offset, epoch protocol.LeaderEpoch) Effects {
	if end < c.logEnd || end > c.logEnd && epoch < c.logEpoch {
		panic(fmt.Sprintf("raft: log end went from %d (epoch %d) to %d (epoch %d)", c.logEnd, c.logEpoch, end, epoch))
	}
	if end > c.logEnd {
		c.logEnd, c.logEpoch = end, epoch
	}
	return c.learn()
}

// learn moves the high watermark to what the leader says and the log has.
func (c *Core) learn() Effects {
	f, effects := c.fetching, nothing()
	if f.leaderHW == protocol.NoOffset {
		return effects
	}
	if committed := min(f.leaderHW, c.logEnd); committed > c.highWatermark {
		c.highWatermark, effects.HighWatermark = committed, committed
	}
	f.current = f.current || c.highWatermark >= f.leaderHW
	return effects
}

// Hold sends nothing before a moment, as while there is no room for an answer.
func (c *Core) Hold(until time.Time) { c.fetching.next = until }

// DownloadFailed says that the snapshot that was downloaded is not one. It is
// downloaded anew.
func (c *Core) DownloadFailed(now time.Time) {
	c.fetching.download = nil
	c.fetching.next = now.Add(c.fetching.settings.RetryBackoff)
}

// Installed says that a snapshot took the place of the log, which begins and ends
// where it ends now. voters is the set in it. Everything in it is committed.
func (c *Core) Installed(id SnapshotID, voters VoterSet) Effects {
	if id.End < c.highWatermark {
		panic(fmt.Sprintf("raft: a snapshot of offset %d below the high watermark %d was installed", id.End, c.highWatermark))
	}
	c.fetching.download = nil
	c.logEnd, c.logEpoch = id.End, id.Epoch
	c.durable[c.local.ID] = id.End
	if voters != nil {
		c.history = nil
		c.history.add(protocol.NoOffset, voters)
	}
	effects := nothing()
	c.highWatermark, effects.HighWatermark = id.End, id.End
	c.fetching.current = c.fetching.current || c.fetching.leaderHW != protocol.NoOffset && id.End >= c.fetching.leaderHW
	return effects
}
