package simbrokers

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/cluster"
	contract "ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// withISR is the controller's core and AlterPartition, which that does not serve yet: a small and strict model of what Apache
// Kafka's decides (ReplicationControlManager.alterPartition).
type withISR struct {
	*cluster.Controller
	s *Simulation
}

// Handle is of machine.Machine.
func (w withISR) Handle(turn contract.Turn, request any) (contract.Result, error) {
	if req, ok := request.(cluster.Request).Message.(*kmsg.AlterPartitionRequest); ok {
		return w.alterPartition(req), nil
	}
	if message := request.(cluster.Request).Message; w.s.tooLate(message) {
		return contract.Result{Reply: refusal(message, protocol.RequestTimedOut)}, nil
	}
	return w.Controller.Handle(turn, request)
}

func (w withISR) alterPartition(req *kmsg.AlterPartitionRequest) (result contract.Result) {
	image := w.Image()
	resp := kmsg.NewPtrAlterPartitionResponse()
	result.Reply = resp
	from := image.Broker(protocol.NodeID(req.BrokerID))
	if from == nil || int64(from.Epoch) != req.BrokerEpoch {
		resp.ErrorCode = int16(protocol.StaleBrokerEpoch)
		return result
	}
	for _, t := range req.Topics {
		topic := kmsg.NewAlterPartitionResponseTopic()
		topic.TopidID = t.TopicID
		for i := range t.Partitions {
			p := kmsg.NewAlterPartitionResponseTopicPartition()
			p.Partition = t.Partitions[i].Partition
			change, code := w.alter(image, protocol.NodeID(req.BrokerID), t.TopicID, &t.Partitions[i])
			p.ErrorCode = int16(code)
			if code == protocol.None {
				now := image.TopicByID(t.TopicID).Partition(p.Partition)
				next, err := now.Merge(change)
				must(err)
				result.Records = append(result.Records, contract.Record{
					Value: schema.EncodeMetadata(change, image.MetadataVersion().RecordVersion(change)),
				})
				if next.Leader != now.Leader {
					p.ErrorCode = int16(protocol.NewLeaderElected)
					topic.Partitions = append(topic.Partitions, p)
					continue
				}
				p.LeaderID, p.LeaderEpoch, p.PartitionEpoch = int32(next.Leader), int32(next.LeaderEpoch), next.PartitionEpoch
				for _, id := range next.ISR {
					p.ISR = append(p.ISR, int32(id))
				}
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return result
}

// alter decides about one wish (validateAlterPartitionData).
func (w withISR) alter(image *metadata.Image, from protocol.NodeID, id protocol.TopicID, wish *kmsg.AlterPartitionRequestTopicPartition) (*schema.PartitionChangeRecord, protocol.ErrorCode) {
	topic := image.TopicByID(id)
	if topic == nil || topic.Partition(wish.Partition) == nil {
		return nil, protocol.UnknownTopicID
	}
	now := topic.Partition(wish.Partition)
	switch {
	case wish.LeaderEpoch > int32(now.LeaderEpoch) || wish.PartitionEpoch > now.PartitionEpoch:
		return nil, protocol.NotController
	case wish.LeaderEpoch < int32(now.LeaderEpoch):
		return nil, protocol.FencedLeaderEpoch
	case from != now.Leader:
		return nil, protocol.InvalidRequest
	case wish.PartitionEpoch < now.PartitionEpoch:
		return nil, protocol.InvalidUpdateVersion
	}
	change := schema.NewPartitionChangeRecord()
	change.TopicID, change.PartitionID = id, wish.Partition
	for _, member := range wish.NewEpochISR {
		known := image.Broker(protocol.NodeID(member.BrokerID))
		if !now.HasReplica(protocol.NodeID(member.BrokerID)) {
			return nil, protocol.InvalidRequest
		}
		if known == nil || known.Fenced || known.InControlledShutdown || member.BrokerEpoch != -1 && int64(known.Epoch) != member.BrokerEpoch {
			return nil, protocol.IneligibleReplica
		}
		change.ISR = append(change.ISR, known.ID)
	}
	if !slices.Contains(change.ISR, from) {
		return nil, protocol.InvalidRequest
	}
	after := complete(now, change)
	change.EligibleLeaderReplicas = []protocol.NodeID{}
	if len(change.ISR) < minISR {
		for _, id := range after {
			if !slices.Contains(change.ISR, id) && (slices.Contains(now.ISR, id) || slices.Contains(now.ELR, id)) {
				change.EligibleLeaderReplicas = append(change.EligibleLeaderReplicas, id)
			}
		}
	}
	return change, protocol.None
}

// complete ends a change of replicas once all that are added are in sync, and gives the replicas that there are then
// (PartitionReassignmentReplicas.maybeCompleteReassignment). With a replica that goes the leader's epoch ends, or its leadership.
func complete(now *metadata.Partition, change *schema.PartitionChangeRecord) []protocol.NodeID {
	leaves := func(id protocol.NodeID) bool { return slices.Contains(now.RemovingReplicas, id) }
	isr, rest := slices.DeleteFunc(slices.Clone(change.ISR), leaves), slices.DeleteFunc(slices.Clone(now.Replicas), leaves)
	wanted := now.AddingReplicas
	if len(wanted) < len(now.RemovingReplicas) {
		wanted = rest // with fewer replicas than before all must be in sync
	}
	missing := slices.ContainsFunc(wanted, func(id protocol.NodeID) bool { return !slices.Contains(isr, id) })
	if !now.IsReassigning() || missing || len(isr) == 0 {
		return now.Replicas
	}
	change.ISR, change.Replicas, change.AddingReplicas, change.RemovingReplicas = isr, rest, []protocol.NodeID{}, []protocol.NodeID{}
	for _, id := range rest {
		change.Directories = append(change.Directories, now.Directory(id))
	}
	if len(rest) < len(now.Replicas) {
		change.Leader = now.Leader
	}
	if leaves(now.Leader) {
		change.Leader = rest[slices.IndexFunc(rest, func(id protocol.NodeID) bool { return slices.Contains(isr, id) })]
	}
	return rest
}
