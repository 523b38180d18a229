package cluster

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// createPartitions makes topics wider (KIP-195). Nothing makes them narrower.
func (c *Controller) createPartitions(req *kmsg.CreatePartitionsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	var records []schema.MetadataRecord
	counts := map[string]int{}
	for _, topic := range req.Topics {
		counts[topic.Topic]++
	}
	for i := range req.Topics {
		topic := &req.Topics[i]
		answer := kmsg.NewCreatePartitionsResponseTopic()
		answer.Topic = topic.Topic
		more, err := c.widen(topic)
		switch {
		case counts[topic.Topic] > 1:
			err = protocol.Errorf(protocol.InvalidRequest, "Duplicate topic name.")
		case err == nil && len(records)+len(more) > maxRecordsPerRequest:
			err = protocol.Errorf(protocol.PolicyViolation, "Excessively large number of additional partitions per request.")
		}
		if err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		} else {
			records = append(records, more...)
		}
		response.Topics = append(response.Topics, answer)
	}
	if req.ValidateOnly {
		records = nil
	}
	return c.result(response, records...)
}

func (c *Controller) widen(asked *kmsg.CreatePartitionsRequestTopic) ([]schema.MetadataRecord, *protocol.Error) {
	topic := c.image.Topic(asked.Topic)
	if topic == nil {
		return nil, protocol.UnknownTopicOrPartition.Err()
	}
	has := topic.PartitionCount()
	additional := int(asked.Count) - has
	switch {
	case additional == 0:
		return nil, protocol.Errorf(protocol.InvalidPartitions, "Topic already has %d partition(s).", has)
	case additional < 0:
		return nil, protocol.Errorf(protocol.InvalidPartitions,
			"The topic %s currently has %d partition(s); %d would not be an increase.", topic.Name, has, asked.Count)
	case additional > maxRecordsPerRequest:
		return nil, protocol.Errorf(protocol.PolicyViolation, "Excessively large number of additional partitions per request.")
	}
	assignment, err := c.widenAssignment(asked, topic, additional)
	if err != nil {
		return nil, err
	}
	var records []schema.MetadataRecord
	for i, replicas := range assignment {
		records = append(records, c.newPartition(topic.ID, int32(has+i), replicas))
	}
	return records, nil
}

func (c *Controller) widenAssignment(asked *kmsg.CreatePartitionsRequestTopic, topic *metadata.Topic, additional int) ([][]protocol.NodeID, *protocol.Error) {
	factor := len(topic.Partition(0).Replicas)
	if asked.Assignment == nil {
		placed, err := c.place(topic.PartitionCount(), additional, factor)
		if err != nil {
			return nil, protocol.Errorf(err.Code, "Unable to replicate the partition %d time(s): %s", factor, err.Message)
		}
		return placed, nil
	}
	if len(asked.Assignment) != additional {
		return nil, protocol.Errorf(protocol.InvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", additional, len(asked.Assignment))
	}
	assignment := make([][]protocol.NodeID, additional)
	for i, a := range asked.Assignment {
		assignment[i] = nodeIDs(a.Replicas)
		if err := c.checkReplicas(int32(topic.PartitionCount()+i), assignment[i], factor); err != nil {
			return nil, err
		}
	}
	return assignment, nil
}

// assignReplicasToDirs notes in which directory a broker keeps its replicas
// (KIP-858).
func (c *Controller) assignReplicasToDirs(req *kmsg.AssignReplicasToDirsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.AssignReplicasToDirsResponse)
	broker, err := c.broker(req.BrokerID, req.BrokerEpoch)
	if err == nil && !c.image.MetadataVersion().SupportsDirectories() {
		err = protocol.Errorf(protocol.UnsupportedVersion, "Directory assignment is not supported yet.")
	}
	if err != nil {
		response.ErrorCode = int16(err.Code)
		return machine.Result{Reply: response}
	}
	var records []schema.MetadataRecord
	for _, directory := range req.Directories {
		answer := kmsg.NewAssignReplicasToDirsResponseDirectory()
		answer.ID = directory.ID
		for _, asked := range directory.Topics {
			topicAnswer := kmsg.NewAssignReplicasToDirsResponseDirectoryTopic()
			topicAnswer.TopicID = asked.TopicID
			for _, p := range asked.Partitions {
				record, code := c.assignDirectory(broker, asked.TopicID, p.Partition, directory.ID)
				if record != nil {
					records = append(records, record)
				}
				partitionAnswer := kmsg.NewAssignReplicasToDirsResponseDirectoryTopicPartition()
				partitionAnswer.Partition, partitionAnswer.ErrorCode = p.Partition, int16(code)
				topicAnswer.Partitions = append(topicAnswer.Partitions, partitionAnswer)
			}
			answer.Topics = append(answer.Topics, topicAnswer)
		}
		response.Directories = append(response.Directories, answer)
	}
	return c.result(response, records...)
}

func (c *Controller) assignDirectory(broker *metadata.Broker, topicID protocol.TopicID, n int32, dir protocol.DirectoryID) (schema.MetadataRecord, protocol.ErrorCode) {
	topic := c.image.TopicByID(topicID)
	if topic == nil {
		return nil, protocol.UnknownTopicID
	}
	partition := topic.Partition(n)
	if partition == nil {
		return nil, protocol.UnknownTopicOrPartition
	}
	if !partition.HasReplica(broker.ID) {
		return nil, protocol.NotLeaderOrFollower
	}
	if partition.Directory(broker.ID) == dir {
		return nil, protocol.None
	}
	change := newPartitionChange(topic, n)
	change.Directories = make([]protocol.UUID, len(partition.Replicas))
	for i, replica := range partition.Replicas {
		change.Directories[i] = partition.Directory(replica)
		if replica == broker.ID {
			change.Directories[i] = dir
		}
	}
	return change, protocol.None
}
