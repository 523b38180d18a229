package cluster

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// registerBroker admits a broker, fenced until its first heartbeats. Its epoch
// is the offset of its record (KIP-631).
func (c *Controller) registerBroker(turn machine.Turn, req *kmsg.BrokerRegistrationRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.BrokerRegistrationResponse)
	response.BrokerEpoch = -1
	if err := c.checkRegistration(turn, req); err != nil {
		response.ErrorCode = int16(err.Code)
		return machine.Result{Reply: response}
	}
	id := protocol.NodeID(req.BrokerID)
	record := schema.NewRegisterBrokerRecord()
	record.BrokerID, record.IncarnationID = id, req.IncarnationID
	record.Fenced, record.Rack = true, req.Rack
	for _, l := range req.Listeners {
		record.EndPoints = append(record.EndPoints, schema.BrokerEndpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range req.Features {
		record.Features = append(record.Features, schema.BrokerFeature{
			Name: f.Name, MinSupportedVersion: f.MinSupportedVersion, MaxSupportedVersion: f.MaxSupportedVersion,
		})
	}
	if c.image.MetadataVersion().SupportsDirectories() {
		for _, dir := range req.LogDirs {
			record.LogDirs = append(record.LogDirs, dir)
		}
	}
	var records []schema.MetadataRecord
	existing := c.image.Broker(id)
	if existing != nil && existing.IncarnationID == req.IncarnationID {
		// The same process again, as after a lost reply: it keeps its epoch.
		record.BrokerEpoch, record.Fenced, record.InControlledShutdown = existing.Epoch, existing.Fenced, existing.InControlledShutdown
	} else {
		clean := existing != nil && int64(existing.Epoch) == req.PreviousBrokerEpoch
		records = c.cleanUp(id, clean)
		record.BrokerEpoch = protocol.BrokerEpoch(turn.Next) + protocol.BrokerEpoch(len(records))
		delete(c.sessions, id)
	}
	response.BrokerEpoch = int64(record.BrokerEpoch)
	result := c.result(response, append(records, record)...)
	result.Divisible = true
	return result
}

// checkRegistration refuses what ClusterControlManager.registerBroker refuses.
// Only the code reaches the broker; the sentence is for the log.
func (c *Controller) checkRegistration(turn machine.Turn, req *kmsg.BrokerRegistrationRequest) *protocol.Error {
	if req.ClusterID != c.options.ClusterID {
		return protocol.Errorf(protocol.InconsistentClusterID, "expected cluster id %s, got %s", c.options.ClusterID, req.ClusterID)
	}
	id := protocol.NodeID(req.BrokerID)
	if existing := c.image.Broker(id); existing != nil && existing.IncarnationID != req.IncarnationID && !c.isThisProcess(id) && c.alive(id, turn.Now) {
		return protocol.Errorf(protocol.DuplicateBrokerRegistration, "another broker %d is alive", id)
	}
	if req.IsMigratingZkBroker {
		return protocol.Errorf(protocol.BrokerIDNotRegistered, "brokers with ZooKeeper are not served")
	}
	if c.image.MetadataVersion().SupportsDirectories() {
		if err := c.checkDirectories(id, req.LogDirs); err != nil {
			return err
		}
	}
	return c.checkFeatures(req.Features)
}

func (c *Controller) checkDirectories(id protocol.NodeID, dirs [][16]byte) *protocol.Error {
	if len(dirs) == 0 {
		return protocol.Errorf(protocol.InvalidRegistration, "no log directories")
	}
	seen := map[protocol.DirectoryID]bool{}
	for _, dir := range dirs {
		if seen[dir] || reserved(dir) {
			return protocol.Errorf(protocol.InvalidRegistration, "directory id %s is reserved or named twice", protocol.UUID(dir))
		}
		seen[dir] = true
	}
	for broker := range c.image.Brokers() {
		for _, dir := range broker.LogDirs {
			if broker.ID != id && seen[dir] {
				return protocol.Errorf(protocol.InvalidRegistration, "directory id %s belongs to broker %d", dir, broker.ID)
			}
		}
	}
	return nil
}

// isThisProcess tells the broker of this very process: where broker and
// controller share it, its earlier incarnation cannot be alive. Apache Kafka
// waits for the earlier session to end even then, which after a kill takes as
// long as broker.session.timeout.ms.
func (c *Controller) isThisProcess(id protocol.NodeID) bool { return id == c.options.NodeID }

// reserved tells ids that are never those of a directory (Uuid.RESERVED).
func reserved(dir protocol.DirectoryID) bool {
	for _, b := range dir[:15] {
		if b != 0 {
			return false
		}
	}
	return dir[15] < 100
}

// checkFeatures demands that the broker supports every finalized level, except
// of features that this build does not serve: those are kept for others.
func (c *Controller) checkFeatures(supported []kmsg.BrokerRegistrationRequestFeature) *protocol.Error {
	finalized := c.image.Features()
	ranges := map[string]Range{}
	for _, f := range supported {
		ranges[f.Name] = Range{f.MinSupportedVersion, f.MaxSupportedVersion}
	}
	if err := c.checkRanges(finalized, ranges); err != nil {
		return err
	}
	if _, ok := ranges[metadata.MetadataVersionFeature]; !ok { // only now, as in Apache Kafka
		return protocol.Errorf(protocol.InvalidRegistration, "the broker does not name %s", metadata.MetadataVersionFeature)
	}
	unnamed := map[string]Range{}
	for name := range finalized {
		if _, named := ranges[name]; !named {
			unnamed[name] = Range{}
		}
	}
	return c.checkRanges(finalized, unnamed)
}

func (c *Controller) checkRanges(finalized map[string]int16, ranges map[string]Range) *protocol.Error {
	for _, name := range sortedNames(ranges) {
		level, has := finalized[name], ranges[name]
		if served, ok := c.options.Features[name]; level != 0 && (!ok || level > served.Max) {
			continue
		}
		if level < has.Min || level > has.Max {
			return protocol.Errorf(protocol.UnsupportedVersion, "the broker supports levels %d to %d of %s, and level %d is finalized", has.Min, has.Max, name, level)
		}
	}
	return nil
}

// unregisterBroker forgets a broker. One that lives is told with its next
// heartbeat, and registers anew.
func (c *Controller) unregisterBroker(req *kmsg.UnregisterBrokerRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.UnregisterBrokerResponse)
	id := protocol.NodeID(req.BrokerID)
	broker := c.image.Broker(id)
	if broker == nil {
		response.ErrorCode = int16(protocol.BrokerIDNotRegistered)
		response.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Broker ID %d is not currently registered", id))
		return machine.Result{Reply: response}
	}
	gone := schema.NewUnregisterBrokerRecord()
	gone.BrokerID, gone.BrokerEpoch = id, broker.Epoch
	response.ErrorMessage = kmsg.StringPtr("") // as Kafka says that all is well
	result := c.result(response, append(c.cleanUp(id, false), gone)...)
	result.Divisible = true
	return result
}

func (c *Controller) registerController(req *kmsg.ControllerRegistrationRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.ControllerRegistrationResponse)
	if !c.image.MetadataVersion().SupportsControllerRegistration() {
		response.ErrorCode = int16(protocol.UnsupportedVersion)
		response.ErrorMessage = kmsg.StringPtr("The current MetadataVersion is too old to support controller registrations.")
		return machine.Result{Reply: response}
	}
	response.ErrorMessage = kmsg.StringPtr("") // as Kafka says that all is well
	record := schema.NewRegisterControllerRecord()
	record.ControllerID, record.IncarnationID, record.ZkMigrationReady = protocol.NodeID(req.ControllerID), req.IncarnationID, req.ZkMigrationReady
	for _, l := range req.Listeners {
		record.EndPoints = append(record.EndPoints, schema.ControllerEndpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range req.Features {
		record.Features = append(record.Features, schema.ControllerFeature{
			Name: f.Name, MinSupportedVersion: f.MinSupportedVersion, MaxSupportedVersion: f.MaxSupportedVersion,
		})
	}
	return c.result(response, record)
}

// producerIDBlock is how many ids a broker gets at a time (ProducerIdsBlock).
const producerIDBlock = 1000

func (c *Controller) allocateProducerIDs(req *kmsg.AllocateProducerIDsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
	if _, err := c.broker(req.BrokerID, req.BrokerEpoch); err != nil {
		response.ErrorCode = int16(err.Code)
		return machine.Result{Reply: response}
	}
	start := max(c.image.NextProducerID(), 0)
	if start > 1<<63-1-producerIDBlock {
		response.ErrorCode = int16(protocol.UnknownServerError)
		return machine.Result{Reply: response}
	}
	record := schema.NewProducerIdsRecord()
	record.BrokerID, record.BrokerEpoch = protocol.NodeID(req.BrokerID), protocol.BrokerEpoch(req.BrokerEpoch)
	record.NextProducerID = start + producerIDBlock
	response.ProducerIDStart, response.ProducerIDLen = int64(start), producerIDBlock
	return c.result(response, record)
}

// broker gives a registered broker whose epoch is the one given.
func (c *Controller) broker(id int32, epoch int64) (*metadata.Broker, *protocol.Error) {
	broker := c.image.Broker(protocol.NodeID(id))
	if broker == nil {
		return nil, protocol.Errorf(protocol.StaleBrokerEpoch, "broker %d is not registered", id)
	}
	if int64(broker.Epoch) != epoch {
		return nil, protocol.Errorf(protocol.StaleBrokerEpoch, "the epoch of broker %d is %d, not %d", id, broker.Epoch, epoch)
	}
	return broker, nil
}
