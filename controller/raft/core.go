package raft

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
)

// Role is what a replica is in its epoch.
type Role uint8

// The roles that are reachable so far.
const (
	Unattached Role = iota // knows no leader
	Leader
	Resigned // was leader and gave up: it does not lead this epoch again
	Follower // knows the leader and fetches from it; as an observer if it does not vote
)

func (r Role) String() string { return [...]string{"unattached", "leader", "resigned", "follower"}[r] }

// ElectionState is what must survive a restart (the file quorum-state).
type ElectionState struct {
	Epoch  protocol.LeaderEpoch
	Leader protocol.NodeID // NoNode: unknown
	Voted  ReplicaKey      // ID NoNode: none in this epoch
}

// Log is what the core must know of the log at the start.
type Log struct {
	End   protocol.Offset      // log end offset, all of it durable
	Epoch protocol.LeaderEpoch // epoch of the last batch, 0 if none
}

// Effects are for the shell to carry out, in the order of the fields.
type Effects struct {
	// Persist, if set, must be durable before anything else happens.
	Persist *ElectionState
	// Elected: this replica leads Persist.Epoch. The shell appends the leader
	// change as one batch at the log end, then calls Appended.
	Elected *LeaderChange
	// Refused, if set, is why this replica must stop: what the leader says
	// contradicts what is committed.
	Refused error
	// Truncate, if set, is where the log is to be cut; the shell then calls
	// Truncated with the end that it has.
	Truncate *protocol.Offset
	// Append: the records of the answer are to be appended and made durable; the
	// shell then calls Replicated.
	Append bool
	// Download, if set, begins: an empty file, to which chunks are appended.
	Download *SnapshotID
	// Chunk: the bytes of the answer are the next of the download.
	Chunk bool
	// Install, if set, is the download that is complete: it is to be put in place
	// and the log begun anew where it ends; the shell then calls Installed.
	Install *SnapshotID
	// Fetch, if set, is to be sent; what comes of it goes to Answered or Failed.
	Fetch *Fetch
	// HighWatermark, if not negative, is where committed records now end.
	HighWatermark protocol.Offset
}

func nothing() Effects { return Effects{HighWatermark: protocol.NoOffset} }

// LeaderChange is what the first batch of an epoch says.
type LeaderChange struct {
	Epoch  protocol.LeaderEpoch
	Leader protocol.NodeID
	Voters VoterSet
}

// Core is one replica's part in the quorum.
type Core struct {
	local   ReplicaKey
	state   ElectionState
	role    Role
	history voterHistory

	logEnd        protocol.Offset
	highWatermark protocol.Offset // NoOffset: not known yet in this epoch
	epochStart    protocol.Offset // first offset of the epoch that this replica leads
	durable       map[protocol.NodeID]protocol.Offset

	logEpoch protocol.LeaderEpoch // of the last batch
	fetching *fetching            // nil: this replica does not follow
}

// New makes the core of the replica local out of what the disk holds. voters is
// the set that the log starts from: the configuration's, or the snapshot's.
func New(local ReplicaKey, voters VoterSet, state ElectionState, log Log) *Core {
	core := &Core{
		local: local, state: state, logEnd: log.End, logEpoch: log.Epoch,
		highWatermark: protocol.NoOffset,
		durable:       map[protocol.NodeID]protocol.Offset{local.ID: log.End},
	}
	core.history.add(protocol.NoOffset, voters)
	if log.Epoch > core.state.Epoch {
		core.state = ElectionState{Epoch: log.Epoch, Leader: protocol.NoNode, Voted: ReplicaKey{ID: protocol.NoNode}}
	}
	return core
}

// Tick does what time demands. A voter that is alone elects itself at once: no
// other could be heard, so there is nothing to wait for.
// Who follows fetches.
func (c *Core) Tick(now time.Time) Effects {
	switch {
	case c.fetching != nil:
		return c.fetch(now)
	case c.role != Unattached || !c.Voters().OnlyVoter(c.local):
		return nothing()
	}
	return c.lead()
}

// NextDeadline tells when Tick has work; zero for never.
func (c *Core) NextDeadline() time.Time {
	if c.fetching == nil {
		return time.Time{}
	}
	return c.fetching.nextDeadline()
}

func (c *Core) lead() Effects {
	// Never an epoch that this replica may have led before: with records of
	// that epoch lost, one (epoch, offset) could name two records (KAFKA-10527).
	c.state = ElectionState{
		Epoch: c.state.Epoch + 1, Leader: c.local.ID, Voted: ReplicaKey{ID: protocol.NoNode},
	}
	c.role = Leader
	c.epochStart = c.logEnd
	persist := c.state
	return Effects{
		Persist:       &persist,
		Elected:       &LeaderChange{c.state.Epoch, c.local.ID, c.Voters()},
		HighWatermark: protocol.NoOffset,
	}
}

// Appended says that this replica's log ends at end and is durable up to
// durableEnd.
func (c *Core) Appended(end, durableEnd protocol.Offset) Effects {
	if end < c.logEnd || durableEnd > end {
		panic(fmt.Sprintf("raft: log end went from %d to %d, durable to %d", c.logEnd, end, durableEnd))
	}
	c.logEnd = end
	c.durable[c.local.ID] = durableEnd
	return c.advance()
}

// Acknowledged says that another voter holds everything below end durably.
func (c *Core) Acknowledged(voter ReplicaKey, end protocol.Offset) Effects {
	if c.role == Leader && c.Voters().Has(voter) && end <= c.logEnd {
		c.durable[voter.ID] = max(c.durable[voter.ID], end)
	}
	return c.advance()
}

// advance moves the high watermark to what a majority holds. Records of earlier
// epochs commit only together with the first one of the leader's own epoch.
func (c *Core) advance() Effects {
	voters := c.Voters()
	if c.role != Leader || len(voters) == 0 {
		return nothing()
	}
	ends := make([]protocol.Offset, len(voters))
	for i, voter := range voters {
		ends[i] = c.durable[voter.ID]
	}
	slices.Sort(ends)
	majority := ends[(len(ends)-1)/2]
	if majority <= c.epochStart || majority <= c.highWatermark {
		return nothing()
	}
	c.highWatermark = majority
	return Effects{HighWatermark: majority}
}

// VotersAppended says that the record at offset brought a voter set.
func (c *Core) VotersAppended(offset protocol.Offset, voters VoterSet) { c.history.add(offset, voters) }

// Truncated says that the log was cut back to end, before which the last batch
// has epoch.
func (c *Core) Truncated(end protocol.Offset, epoch protocol.LeaderEpoch) {
	if c.highWatermark > end {
		panic(fmt.Sprintf("raft: log cut to %d below the high watermark %d", end, c.highWatermark))
	}
	if end < c.logEnd {
		c.logEpoch = epoch
	}
	c.logEnd = min(c.logEnd, end)
	c.durable[c.local.ID] = min(c.durable[c.local.ID], end)
	c.history.truncate(end)
}

// Resign gives up the leadership of this epoch.
func (c *Core) Resign() {
	if c.role == Leader {
		c.role = Resigned
	}
}

// Role, Epoch, LeaderID, Voters and HighWatermark tell the state as it is.
func (c *Core) Role() Role { return c.role }

// Epoch is the current epoch.
func (c *Core) Epoch() protocol.LeaderEpoch { return c.state.Epoch }

// LeaderID is the leader of the epoch, NoNode if unknown.
func (c *Core) LeaderID() protocol.NodeID { return c.state.Leader }

// Voters is the voter set in force.
func (c *Core) Voters() VoterSet { return c.history.latest() }

// HighWatermark is where committed records end, NoOffset if not known.
func (c *Core) HighWatermark() protocol.Offset { return c.highWatermark }
