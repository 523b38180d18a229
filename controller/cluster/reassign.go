package cluster

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// alterPartitionReassignments gives partitions other replicas, or takes such a
// change back (KIP-455). What is added has to join the ISR before what is removed
// goes; where more is removed than added, all that stays has to be in sync.
func (c *Controller) alterPartitionReassignments(req *kmsg.AlterPartitionAssignmentsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	response.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	if len(req.Topics) == 0 {
		response.ErrorMessage = new(string) // as Apache Kafka has it
	}
	var records []schema.MetadataRecord
	propose := c.proposer()
	for _, asked := range req.Topics {
		answer := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		answer.Topic = asked.Topic
		for i := range asked.Partitions {
			one := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			one.Partition = asked.Partitions[i].Partition
			record, err := c.reassign(propose, asked.Topic, &asked.Partitions[i], req.AllowReplicationFactorChange)
			if err != nil {
				one.ErrorCode, one.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
			} else if record != nil {
				records = append(records, record)
			}
			answer.Partitions = append(answer.Partitions, one)
		}
		response.Topics = append(response.Topics, answer)
	}
	if len(records) > maxRecordsPerRequest {
		err := tooManyRecords()
		failed := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
		failed.ErrorCode, failed.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		return machine.Result{Reply: failed}
	}
	return c.result(response, records...)
}

type proposing = func(*metadata.Topic, int32, *metadata.Partition, brokerChange) *proposal

func (c *Controller) reassign(propose proposing, name string, asked *kmsg.AlterPartitionAssignmentsRequestTopicPartition, otherFactor bool) (*schema.PartitionChangeRecord, *protocol.Error) {
	topic := c.image.Topic(name)
	if topic == nil {
		return nil, protocol.Errorf(protocol.UnknownTopicOrPartition, "Unable to find a topic named %s.", name)
	}
	partition := topic.Partition(asked.Partition)
	if partition == nil {
		return nil, protocol.Errorf(protocol.UnknownTopicOrPartition, "Unable to find partition %s:%d.", name, asked.Partition)
	}
	proposed := propose(topic, asked.Partition, partition, nobody())
	var err *protocol.Error
	if asked.Replicas == nil {
		err = proposed.revert()
	} else if err = c.checkAssignment(nodeIDs(asked.Replicas), -1); err == nil {
		err = proposed.assign(nodeIDs(asked.Replicas), otherFactor)
	}
	if err != nil {
		return nil, err
	}
	proposed.directory = c.defaultDirectory
	return proposed.build(), nil
}

// assign makes target the replicas: what is not in it is removed, and stands at
// the end until then.
func (p *proposal) assign(target []protocol.NodeID, otherFactor bool) *protocol.Error {
	if !otherFactor && p.factor() != len(target) {
		return protocol.Errorf(protocol.InvalidReplicationFactor, "The replication factor is changed from %d to %d", p.factor(), len(target))
	}
	removing, adding := sortedWithout(p.now.Replicas, target), sortedWithout(target, p.now.Replicas)
	p.next.replicas = slices.Concat(target, removing)
	if len(removing) > 0 {
		p.next.removing = removing
	}
	if len(adding) > 0 {
		p.next.adding = adding
	}
	return nil
}

// factor is how many replicas the partition has or, while they are changed, will
// have.
func (p *proposal) factor() int {
	if p.now.IsReassigning() {
		return len(without(p.now.Replicas, p.now.RemovingReplicas...))
	}
	return len(p.now.Replicas)
}

func sortedWithout(ids, others []protocol.NodeID) []protocol.NodeID {
	rest := slices.Clone(without(ids, others...))
	slices.Sort(rest)
	return rest
}

// revert takes a change of replicas back (PartitionReassignmentRevert).
func (p *proposal) revert() *protocol.Error {
	if !p.now.IsReassigning() {
		return protocol.NoReassignmentInProgress.Err()
	}
	p.next.replicas = without(p.now.Replicas, p.now.AddingReplicas...)
	p.next.isr = without(p.now.ISR, p.now.AddingReplicas...)
	p.next.adding, p.next.removing = nil, nil
	if len(p.next.replicas) == 0 {
		return protocol.Errorf(protocol.InvalidReplicaAssignment, "Invalid replica assignment: addingReplicas contains all replicas.")
	}
	if len(p.next.isr) > 0 {
		return nil
	}
	if !p.rules.uncleanElection {
		return protocol.Errorf(protocol.InvalidReplicaAssignment,
			"Unable to revert partition assignment for %s:%d because it would require an unclean leader election.", p.topic.Name, p.n)
	}
	p.next.isr = []protocol.NodeID{p.next.replicas[0]}
	return nil
}

// completeReassignment ends a change of replicas if all that was added is in sync;
// where fewer replicas are left than there were, all of them, so that none goes that
// has what another lacks (PartitionReassignmentReplicas.maybeCompleteReassignment).
func (p *proposal) completeReassignment() {
	if len(p.next.adding) == 0 && len(p.next.removing) == 0 {
		return
	}
	isr, replicas := without(p.next.isr, p.next.removing...), without(p.next.replicas, p.next.removing...)
	if len(isr) == 0 || len(replicas) == 0 || !containsAll(isr, p.next.adding) {
		return
	}
	if len(p.next.adding) < len(p.next.removing) && !containsAll(isr, replicas) {
		return
	}
	p.next.isr, p.next.replicas, p.next.adding, p.next.removing = isr, replicas, nil, nil
}

// noteReplicas puts other replicas into change. A leader epoch ends when a replica
// goes, so that it cannot go on by what it knew.
func (p *proposal) noteReplicas(change *schema.PartitionChangeRecord) {
	if change.Leader == noLeaderChange && !containsAll(p.next.replicas, p.now.Replicas) {
		change.Leader = p.now.Leader
	}
	if !slices.Equal(p.next.replicas, p.now.Replicas) {
		change.Replicas = p.next.replicas
		if p.version.SupportsDirectories() {
			p.dirs = p.directories()
		}
	}
	if !slices.Equal(p.next.removing, p.now.RemovingReplicas) {
		change.RemovingReplicas = nonNil(p.next.removing)
	}
	if !slices.Equal(p.next.adding, p.now.AddingReplicas) {
		change.AddingReplicas = nonNil(p.next.adding)
	}
}

// directories are those of the replicas that will be: what is known stays.
func (p *proposal) directories() []protocol.DirectoryID {
	dirs := make([]protocol.DirectoryID, len(p.next.replicas))
	for i, id := range p.next.replicas {
		switch {
		case p.now.HasReplica(id):
			dirs[i] = p.now.Directory(id)
		case p.directory != nil:
			dirs[i] = p.directory(id)
		default:
			dirs[i] = protocol.DirectoryUnassigned
		}
	}
	return dirs
}

// listPartitionReassignments tells what is being changed, of all partitions or of
// those named.
func (c *Controller) listPartitionReassignments(req *kmsg.ListPartitionReassignmentsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	add := func(topic *metadata.Topic, wanted func(yield func(int32, *metadata.Partition) bool)) {
		answer := kmsg.NewListPartitionReassignmentsResponseTopic()
		answer.Topic = topic.Name
		for n, partition := range wanted {
			if partition == nil || !partition.IsReassigning() {
				continue
			}
			one := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
			one.Partition, one.Replicas = n, plainIDs(partition.Replicas)
			one.AddingReplicas, one.RemovingReplicas = plainIDs(partition.AddingReplicas), plainIDs(partition.RemovingReplicas)
			answer.Partitions = append(answer.Partitions, one)
		}
		if len(answer.Partitions) > 0 {
			response.Topics = append(response.Topics, answer)
		}
	}
	if req.Topics == nil {
		for topic := range c.image.Topics() {
			add(topic, topic.Partitions())
		}
	}
	for _, asked := range req.Topics {
		if topic := c.image.Topic(asked.Topic); topic != nil {
			add(topic, func(yield func(int32, *metadata.Partition) bool) {
				for _, n := range asked.Partitions {
					if !yield(n, topic.Partition(n)) {
						return
					}
				}
			})
		}
	}
	return machine.Result{Reply: response}
}

func plainIDs(ids []protocol.NodeID) []int32 {
	plain := make([]int32, len(ids))
	for i, id := range ids {
		plain[i] = int32(id)
	}
	return plain
}
