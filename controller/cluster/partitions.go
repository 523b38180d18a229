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
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	excessive := c.excessiveWidening(req.Topics, count)
	for i := range req.Topics {
		topic := &req.Topics[i]
		repeated := count[topic.Topic] > 1
		if count[topic.Topic] == 0 {
			continue // answered already
		}
		count[topic.Topic] = 0
		answer := kmsg.NewCreatePartitionsResponseTopic()
		answer.Topic = topic.Topic
		var more []schema.MetadataRecord
		err := excessive
		switch {
		case err != nil:
		case repeated:
			err = protocol.Errorf(protocol.InvalidRequest, "Duplicate topic name.")
		default:
			more, err = c.widen(topic)
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

// excessiveWidening refuses a request as a whole that asks for too much.
func (c *Controller) excessiveWidening(topics []kmsg.CreatePartitionsRequestTopic, count map[string]int) *protocol.Error {
	total := 0
	for i := range topics {
		topic := c.image.Topic(topics[i].Topic)
		if topic == nil || count[topics[i].Topic] > 1 {
			continue
		}
		total += max(int(topics[i].Count)-topic.PartitionCount(), 0)
		if total > maxRecordsPerRequest {
			return protocol.Errorf(protocol.PolicyViolation, "Excessively large number of additional partitions per request.")
		}
	}
	return nil
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
	if !c.image.MetadataVersion().SupportsDirectories() {
		err = protocol.Errorf(protocol.UnsupportedVersion, "Directory assignment is not supported yet.")
	}
	if err != nil {
		response.ErrorCode = int16(err.Code)
		return machine.Result{Reply: response}
	}
	var (
		records []schema.MetadataRecord
		offline = map[*metadata.Partition]bool{}
		propose = c.proposer()
	)
	for _, directory := range req.Directories {
		answer := kmsg.NewAssignReplicasToDirsResponseDirectory()
		answer.ID = directory.ID
		for _, asked := range directory.Topics {
			topicAnswer := kmsg.NewAssignReplicasToDirsResponseDirectoryTopic()
			topicAnswer.TopicID = asked.TopicID
			for _, p := range asked.Partitions {
				topic, partition, code := c.replicaOf(broker, asked.TopicID, p.Partition)
				if code == protocol.None {
					change := propose(topic, p.Partition, partition, nobody())
					change.dirs = directoriesWith(partition, broker.ID, directory.ID)
					if record := change.build(); record != nil {
						records = append(records, record)
					}
					if !online(broker, directory.ID) {
						offline[partition] = true
					}
				}
				partitionAnswer := kmsg.NewAssignReplicasToDirsResponseDirectoryTopicPartition()
				partitionAnswer.Partition, partitionAnswer.ErrorCode = p.Partition, int16(code)
				topicAnswer.Partitions = append(topicAnswer.Partitions, partitionAnswer)
			}
			answer.Topics = append(answer.Topics, topicAnswer)
		}
		response.Directories = append(response.Directories, answer)
	}
	if len(offline) > 0 {
		records = append(records, c.reconsider(leaving(broker.ID), func(p *metadata.Partition) bool { return offline[p] })...)
	}
	result := c.result(response, records...)
	result.Divisible = true
	return result
}

// replicaOf finds a partition that the broker has a replica of.
func (c *Controller) replicaOf(broker *metadata.Broker, id protocol.TopicID, n int32) (*metadata.Topic, *metadata.Partition, protocol.ErrorCode) {
	topic := c.image.TopicByID(id)
	if topic == nil {
		return nil, nil, protocol.UnknownTopicID
	}
	partition := topic.Partition(n)
	switch {
	case partition == nil:
		return nil, nil, protocol.UnknownTopicOrPartition
	case !partition.HasReplica(broker.ID):
		return nil, nil, protocol.NotLeaderOrFollower
	}
	return topic, partition, protocol.None
}

// directoriesWith are the directories of a partition's replicas with one of
// them changed.
func directoriesWith(partition *metadata.Partition, id protocol.NodeID, dir protocol.DirectoryID) []protocol.DirectoryID {
	dirs := make([]protocol.DirectoryID, len(partition.Replicas))
	for i, replica := range partition.Replicas {
		dirs[i] = partition.Directory(replica)
		if replica == id {
			dirs[i] = dir
		}
	}
	return dirs
}
