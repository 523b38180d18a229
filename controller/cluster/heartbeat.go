package cluster

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
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
	c.heard[broker.ID] = turn.Now
	var records []schema.MetadataRecord
	change := newRegistrationChange(broker)
	caughtUp := protocol.BrokerEpoch(req.CurrentMetadataOffset) >= broker.Epoch
	response.IsCaughtUp = caughtUp
	switch {
	case broker.Fenced && req.WantShutdown:
		response.ShouldShutdown = true
	case broker.Fenced && !req.WantFence && caughtUp:
		change.Fenced = -1
		response.IsFenced = false
		records = c.electFor(broker.ID)
	case broker.Fenced:
	case req.WantFence:
		change.Fenced = 1
		records = c.withoutLeader(broker.ID)
	case req.WantShutdown && !broker.InControlledShutdown:
		change.InControlledShutdown = 1
		records = c.withoutLeader(broker.ID)
		response.IsFenced = false
		response.ShouldShutdown = len(records) == 0
	default:
		response.IsFenced = false
		response.ShouldShutdown = req.WantShutdown && !c.leads(broker.ID)
	}
	c.noteDirectories(broker, req, change)
	if change.Fenced != 0 || change.InControlledShutdown != 0 || len(change.LogDirs) > 0 || change.CordonedLogDirs != nil {
		records = append([]schema.MetadataRecord{change}, records...)
	}
	return c.result(response, records...)
}

func newRegistrationChange(broker *metadata.Broker) *schema.BrokerRegistrationChangeRecord {
	change := schema.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch = broker.ID, broker.Epoch
	return change
}

// noteDirectories records directories that went offline (KIP-858) or were
// cordoned (KIP-1066).
func (c *Controller) noteDirectories(broker *metadata.Broker, req *kmsg.BrokerHeartbeatRequest, change *schema.BrokerRegistrationChangeRecord) {
	version := c.image.MetadataVersion()
	if version.SupportsDirectories() && len(req.OfflineLogDirs) > 0 {
		online := slices.DeleteFunc(slices.Clone(broker.LogDirs), func(dir protocol.DirectoryID) bool {
			return slices.Contains(req.OfflineLogDirs, [16]byte(dir))
		})
		if len(online) != len(broker.LogDirs) {
			change.LogDirs = online
		}
	}
	if !version.SupportsCordonedDirectories() {
		return
	}
	cordoned := []protocol.DirectoryID{}
	for _, dir := range req.CordonedLogDirs {
		cordoned = append(cordoned, dir)
	}
	slices.SortFunc(cordoned, func(a, b protocol.UUID) int { return slices.Compare(a[:], b[:]) })
	if broker.CordonedLogDirs == nil || !slices.Equal(cordoned, broker.CordonedLogDirs) {
		change.CordonedLogDirs = cordoned
	}
}

// Tick fences the brokers whose session is over, one decision for all.
func (c *Controller) Tick(turn machine.Turn) (machine.Result, error) {
	var records []schema.MetadataRecord
	for broker := range c.image.Brokers() {
		heard, alive := c.heard[broker.ID]
		if broker.Fenced || alive && turn.Now.Sub(heard) < c.options.SessionTimeout {
			continue
		}
		delete(c.heard, broker.ID)
		change := newRegistrationChange(broker)
		change.Fenced = 1
		records = append(append(records, change), c.withoutLeader(broker.ID)...)
	}
	return c.result(nil, records...), nil
}

// NextDeadline is when the next session of an unfenced broker ends.
func (c *Controller) NextDeadline() time.Time {
	var next time.Time
	for broker := range c.image.Brokers() {
		if broker.Fenced {
			continue
		}
		if end := c.heard[broker.ID].Add(c.options.SessionTimeout); next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}
