package cluster

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// session is what is known of a broker that speaks to this controller. It is
// volatile.
type session struct {
	heard    time.Time
	metadata protocol.Offset // up to where the broker has replayed
	// shutdown is the end of the records that took the broker's leaderships
	// away; it may stop when the others have replayed them. NoOffset: it does
	// not want to stop.
	shutdown protocol.Offset
}

// brokerState is a broker's part in the cluster (BrokerControlState).
type brokerState uint8

const (
	stateFenced brokerState = iota
	stateUnfenced
	stateShuttingDown // its leaderships are on their way to others
	stateMayStop      // fenced, and may stop at once
)

// heartbeat prolongs a broker's session and moves it between fenced, unfenced
// and controlled shutdown (BrokerHeartbeatManager).
func (c *Controller) heartbeat(turn machine.Turn, req *kmsg.BrokerHeartbeatRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.BrokerHeartbeatResponse)
	response.IsFenced = true
	broker, err := c.broker(req.BrokerID, req.BrokerEpoch)
	if err != nil {
		response.ErrorCode = int16(err.Code)
		return machine.Result{Reply: response}
	}
	known := c.session(broker.ID)
	known.heard, known.metadata = turn.Now, protocol.Offset(req.CurrentMetadataOffset)
	caughtUp := protocol.BrokerEpoch(req.CurrentMetadataOffset) >= broker.Epoch
	before, after := stateOf(broker), c.nextState(broker, req, caughtUp)
	var records []schema.MetadataRecord
	if before != after {
		records = c.transition(broker, after)
	}
	if after == stateShuttingDown && known.shutdown == protocol.NoOffset {
		known.shutdown = turn.Next + protocol.Offset(len(records)) - 1
	}
	if after != stateShuttingDown {
		known.shutdown = protocol.NoOffset
	}
	if after == stateMayStop {
		// The next process need not wait for this session to end, as it must with
		// Apache Kafka: who was told that it may stop is no rival.
		delete(c.sessions, broker.ID)
	}
	records = append(records, c.noteDirectories(broker, req)...)
	response.IsCaughtUp = caughtUp
	response.IsFenced = after == stateFenced || after == stateMayStop
	response.ShouldShutdown = after == stateMayStop
	result := c.result(response, records...)
	result.Divisible = true
	return result
}

func (c *Controller) session(id protocol.NodeID) *session {
	if c.sessions[id] == nil {
		c.sessions[id] = &session{shutdown: protocol.NoOffset}
	}
	return c.sessions[id]
}

func stateOf(broker *metadata.Broker) brokerState {
	switch {
	case broker.Fenced:
		return stateFenced
	case broker.InControlledShutdown:
		return stateShuttingDown
	default:
		return stateUnfenced
	}
}

func (c *Controller) nextState(broker *metadata.Broker, req *kmsg.BrokerHeartbeatRequest, caughtUp bool) brokerState {
	switch stateOf(broker) {
	case stateFenced:
		switch {
		case req.WantShutdown:
			return stateMayStop
		case !req.WantFence && caughtUp:
			return stateUnfenced
		}
		return stateFenced
	case stateUnfenced:
		switch {
		case req.WantFence && req.WantShutdown:
			return stateMayStop
		case req.WantFence:
			return stateFenced
		case req.WantShutdown && c.leads(broker.ID):
			return stateShuttingDown
		case req.WantShutdown:
			return stateMayStop
		}
		return stateUnfenced
	default:
		if c.leads(broker.ID) || c.session(broker.ID).shutdown > c.lowestActive() {
			return stateShuttingDown
		}
		return stateMayStop
	}
}

// lowestActive is the offset up to which every broker that may lead has
// replayed the metadata.
func (c *Controller) lowestActive() protocol.Offset {
	lowest := protocol.Offset(math.MaxInt64)
	for broker := range c.image.Brokers() {
		if stateOf(broker) == stateUnfenced {
			lowest = min(lowest, c.session(broker.ID).metadata)
		}
	}
	return lowest
}

func (c *Controller) transition(broker *metadata.Broker, to brokerState) []schema.MetadataRecord {
	change := newRegistrationChange(broker)
	switch to {
	case stateUnfenced:
		change.Fenced = -1
		return append([]schema.MetadataRecord{change}, c.reconsider(returning(broker.ID), leaderless)...)
	case stateShuttingDown:
		change.InControlledShutdown = 1
		return append([]schema.MetadataRecord{change}, c.reconsider(leaving(broker.ID), inISR(broker.ID))...)
	default:
		if broker.Fenced {
			return nil
		}
		return c.fence(broker.ID)
	}
}

func newRegistrationChange(broker *metadata.Broker) *schema.BrokerRegistrationChangeRecord {
	change := schema.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch = broker.ID, broker.Epoch
	return change
}

// noteDirectories records directories that went offline (KIP-858), whose
// partitions this broker can no longer lead, and such as are cordoned (KIP-1066).
func (c *Controller) noteDirectories(broker *metadata.Broker, req *kmsg.BrokerHeartbeatRequest) []schema.MetadataRecord {
	var records []schema.MetadataRecord
	version := c.image.MetadataVersion()
	if version.SupportsDirectories() && len(req.OfflineLogDirs) > 0 {
		failed := func(dir protocol.DirectoryID) bool { return slices.Contains(req.OfflineLogDirs, [16]byte(dir)) }
		rest := slices.DeleteFunc(slices.Clone(broker.LogDirs), failed)
		if len(rest) != len(broker.LogDirs) {
			records = c.reconsider(leaving(broker.ID), func(partition *metadata.Partition) bool {
				dir := partition.Directory(broker.ID)
				return slices.Contains(broker.LogDirs, dir) && failed(dir)
			})
			change := newRegistrationChange(broker)
			change.LogDirs = rest
			records = append(records, change)
		}
	}
	if !version.SupportsCordonedDirectories() {
		return records
	}
	cordoned := []protocol.DirectoryID{}
	for _, dir := range req.CordonedLogDirs {
		cordoned = append(cordoned, dir)
	}
	if broker.CordonedLogDirs == nil || !sameSet(cordoned, broker.CordonedLogDirs) {
		change := newRegistrationChange(broker)
		change.CordonedLogDirs = cordoned
		records = append(records, change)
	}
	return records
}

func sameSet(a, b []protocol.DirectoryID) bool {
	for _, dir := range a {
		if !slices.Contains(b, dir) {
			return false
		}
	}
	return len(a) == len(b)
}

// Tick fences the brokers whose session is over, one decision for all.
func (c *Controller) Tick(turn machine.Turn) (machine.Result, error) {
	c.excuse(turn.Now)
	for broker := range c.image.Brokers() {
		if broker.Fenced || c.alive(broker.ID, turn.Now) {
			continue
		}
		delete(c.sessions, broker.ID)
		// One at a time: who leads in its place depends on who is left, which
		// only Apply changes. The next deadline is now, for the others.
		result := c.result(nil, c.fence(broker.ID)...)
		result.Divisible = true
		return result, nil
	}
	return machine.Result{}, nil
}

// excuse keeps brokers from paying for the controller's own absence: while it was
// held up, as by a slow disk or a decision with thousands of partitions, no
// heartbeat could be heard, so that time is nobody's silence. It is by how much
// Tick comes late, each time: one may be held up again and again.
func (c *Controller) excuse(now time.Time) {
	if absent := now.Sub(c.lastTick) - c.tickInterval(); !c.lastTick.IsZero() && absent > 0 {
		for _, known := range c.sessions {
			if known.heard = known.heard.Add(absent); known.heard.After(now) {
				known.heard = now
			}
		}
	}
	c.lastTick = now
}

// tickInterval is how often Tick comes while there are sessions, so that an
// absence shows.
func (c *Controller) tickInterval() time.Duration { return c.options.SessionTimeout / 4 }

// alive tells whether a broker was heard within its session timeout.
func (c *Controller) alive(id protocol.NodeID, now time.Time) bool {
	known := c.sessions[id]
	return known != nil && now.Sub(known.heard) < c.options.SessionTimeout
}

// NextDeadline is when the next session of an unfenced broker ends, or when Tick
// looks in.
func (c *Controller) NextDeadline() time.Time {
	var next time.Time
	for broker := range c.image.Brokers() {
		if broker.Fenced {
			continue
		}
		end := time.Unix(0, 0) // it has no session at all: due
		if known := c.sessions[broker.ID]; known != nil {
			end = known.heard.Add(c.options.SessionTimeout)
		}
		if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	if look := c.lastTick.Add(c.tickInterval()); !next.IsZero() && look.Before(next) {
		return look
	}
	return next
}
