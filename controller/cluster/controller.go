package cluster

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// maxRecordsPerRequest bounds what one request may decide, as Kafka does: its
// records are one atomic batch.
const maxRecordsPerRequest = 10_000

// Range is what this build serves of a feature.
type Range struct{ Min, Max int16 }

// Options is what node hands in.
type Options struct {
	NodeID         protocol.NodeID
	ClusterID      string
	Config         *config.BrokerConfig // defaults of topics, and what of a topic's configuration is served
	SessionTimeout time.Duration        // broker.session.timeout.ms
	Features       map[string]Range     // what this build serves; others in the log are kept and not checked
	KRaftVersion   func() int16         // the finalized kraft.version, which is in no record here; nil: 0
	Random         func() uint64        // topic ids, placement
}

// Controller is the machine. See the package comment.
type Controller struct {
	options Options
	delta   *metadata.Delta // carried over while a metadata transaction is open
	image   *metadata.Image // everything decided so far
	written bool            // a record of the log itself was applied: no bootstrap is due

	sessions map[protocol.NodeID]*session // volatile: brokers that were heard
	lastTick time.Time                    // volatile: shows when the controller was held up
}

// Request is what Handle takes: a message of the protocol, authorised.
type Request struct {
	Message kmsg.Request
}

// New makes an empty controller.
func New(options Options) *Controller {
	return &Controller{options: options, image: metadata.Empty(), sessions: map[protocol.NodeID]*session{}}
}

var _ machine.Machine = (*Controller)(nil)

// Restore implements machine.Machine.
func (c *Controller) Restore(end protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	c.delta, c.image, c.written = nil, metadata.Empty(), end > 0
	return c.apply(end-1, 0, epoch, timestampMs, records)
}

// Apply implements machine.Machine.
func (c *Controller) Apply(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	c.written = true
	return c.apply(base+protocol.Offset(len(records))-1, 1, epoch, timestampMs, records)
}

// apply replays records up to the one at offset last. step is 1 where each
// record has an offset of its own, 0 in a snapshot.
func (c *Controller) apply(last, step protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	if c.delta == nil {
		c.delta = metadata.NewDelta(c.image)
	}
	offset := last - step*protocol.Offset(len(records)-1)
	for _, r := range records {
		decoded, _, err := schema.DecodeMetadata(r.Value)
		if err == nil {
			err = c.delta.Replay(offset, epoch, decoded)
		}
		if err != nil {
			return fmt.Errorf("metadata record at offset %d: %w", offset, err)
		}
		offset += step
	}
	if c.delta.InTransaction() {
		return nil
	}
	c.image = c.delta.Build(metadata.Provenance{Offset: last, Epoch: epoch, TimestampMs: timestampMs})
	c.delta = nil
	return nil
}

// Committed implements machine.Machine: nothing here waits for it.
func (c *Controller) Committed(protocol.Offset) {}

// Activate implements machine.Machine. A log without records gets what the
// format prepared, in one metadata transaction, as Kafka does.
func (c *Controller) Activate(turn machine.Turn, _ protocol.LeaderEpoch) (machine.Result, error) {
	c.sessions, c.lastTick = map[protocol.NodeID]*session{}, turn.Now
	for broker := range c.image.Brokers() {
		if !broker.Fenced {
			c.session(broker.ID).heard = turn.Now
		}
	}
	if c.delta != nil { // a predecessor died inside a metadata transaction
		reason := "the controller that began it is gone"
		abort := schema.NewAbortTransactionRecord()
		abort.Reason = &reason
		return c.result(nil, abort), nil
	}
	if c.written {
		return machine.Result{}, nil
	}
	return c.result(nil, c.bootstrap()...), nil
}

// bootstrap is what the first controller of a cluster writes.
func (c *Controller) bootstrap() []schema.MetadataRecord {
	version := c.image.MetadataVersion()
	var records []schema.MetadataRecord
	if version.SupportsTransactions() {
		name := "Bootstrap records"
		begin := schema.NewBeginTransactionRecord()
		begin.Name = &name
		records = append(records, begin)
	}
	c.image.Records(version, func(r schema.MetadataRecord, _ int16) { records = append(records, r) })
	if c.image.Feature(metadata.ELRVersionFeature) > 0 {
		// With eligible leader replicas min.insync.replicas is the cluster's
		// affair and no longer each broker's own (KIP-966).
		value := fmt.Sprint(c.options.Config.Int("min.insync.replicas"))
		minimum := schema.NewConfigRecord()
		minimum.ResourceType, minimum.Name, minimum.Value = int8(kmsg.ConfigResourceTypeBroker), "min.insync.replicas", &value
		records = append(records, minimum)
	}
	if version.SupportsTransactions() {
		records = append(records, schema.NewEndTransactionRecord())
	}
	return records
}

// Resign implements machine.Machine.
func (c *Controller) Resign() { c.sessions = map[protocol.NodeID]*session{} }

// Handle implements machine.Machine: request is a Request, the reply a
// kmsg.Response.
func (c *Controller) Handle(turn machine.Turn, request any) (machine.Result, error) {
	switch message := request.(Request).Message.(type) {
	case *kmsg.BrokerRegistrationRequest:
		return c.registerBroker(turn, message), nil
	case *kmsg.BrokerHeartbeatRequest:
		return c.heartbeat(turn, message), nil
	case *kmsg.ControllerRegistrationRequest:
		return c.registerController(message), nil
	case *kmsg.AllocateProducerIDsRequest:
		return c.allocateProducerIDs(message), nil
	case *kmsg.AssignReplicasToDirsRequest:
		return c.assignReplicasToDirs(message), nil
	case *kmsg.CreateTopicsRequest:
		return c.createTopics(message), nil
	case *kmsg.DeleteTopicsRequest:
		return c.deleteTopics(message), nil
	case *kmsg.CreatePartitionsRequest:
		return c.createPartitions(message), nil
	case *kmsg.IncrementalAlterConfigsRequest:
		return c.incrementalAlterConfigs(message), nil
	case *kmsg.AlterConfigsRequest:
		return c.alterConfigs(message), nil
	case *kmsg.ElectLeadersRequest:
		return c.electLeaders(message)
	case *kmsg.AlterPartitionAssignmentsRequest:
		return c.alterPartitionReassignments(message), nil
	case *kmsg.ListPartitionReassignmentsRequest:
		return c.listPartitionReassignments(message), nil
	case *kmsg.UpdateFeaturesRequest:
		return c.updateFeatures(message), nil
	case *kmsg.UnregisterBrokerRequest:
		return c.unregisterBroker(message), nil
	default:
		return machine.Result{}, protocol.Errorf(protocol.UnsupportedVersion, "the controller does not serve %T", message)
	}
}

// result encodes records in the versions of the finalized metadata.version.
func (c *Controller) result(reply kmsg.Response, records ...schema.MetadataRecord) machine.Result {
	version := c.image.MetadataVersion()
	result := machine.Result{Reply: reply}
	for _, r := range records {
		result.Records = append(result.Records, machine.Record{Value: schema.EncodeMetadata(r, version.RecordVersion(r))})
	}
	return result
}

// Image is everything decided so far.
func (c *Controller) Image() *metadata.Image { return c.image }
