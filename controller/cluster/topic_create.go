package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// createTopics decides each topic by itself: one that fails does not hinder the
// others. With validateOnly every check runs and nothing is decided.
func (c *Controller) createTopics(req *kmsg.CreateTopicsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	var records []schema.MetadataRecord
	planned := c.collisions()
	for i := range req.Topics {
		topic := &req.Topics[i]
		answer := kmsg.NewCreateTopicsResponseTopic()
		answer.Topic = topic.Topic
		made, err := c.planTopic(topic, planned, repeated(req.Topics, topic.Topic))
		if err == nil && len(records)+len(made.records) > maxRecordsPerRequest {
			err = protocol.Errorf(protocol.PolicyViolation, "Excessively large number of partitions per request.")
		}
		if err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
			answer.NumPartitions, answer.ReplicationFactor, answer.Configs = -1, -1, nil
		} else {
			records = append(records, made.records...)
			c.describe(&answer, topic, made)
			if req.ValidateOnly {
				answer.TopicID = protocol.ZeroUUID
			}
			planned.add(topic.Topic)
		}
		response.Topics = append(response.Topics, answer)
	}
	if req.ValidateOnly {
		records = nil
	}
	return c.result(response, records...)
}

func repeated(topics []kmsg.CreateTopicsRequestTopic, name string) bool {
	count := 0
	for i := range topics {
		if topics[i].Topic == name {
			count++
		}
	}
	return count > 1
}

// plannedTopic is a topic that passed every check.
type plannedTopic struct {
	id         protocol.TopicID
	partitions [][]protocol.NodeID
	records    []schema.MetadataRecord
}

func (c *Controller) planTopic(topic *kmsg.CreateTopicsRequestTopic, planned *collisions, repeated bool) (plannedTopic, *protocol.Error) {
	var made plannedTopic
	switch {
	case repeated:
		return made, protocol.Errorf(protocol.InvalidRequest, "Duplicate topic name.")
	case topic.Topic == protocol.ClusterMetadataTopic:
		return made, protocol.Errorf(protocol.InvalidRequest, "Creation of internal topic %s is prohibited.", topic.Topic)
	}
	if err := protocol.CheckTopicName(topic.Topic); err != nil {
		return made, err
	}
	if c.image.Topic(topic.Topic) != nil {
		return made, protocol.Errorf(protocol.TopicAlreadyExists, "Topic '%s' already exists.", topic.Topic)
	}
	if other, collides := planned.with(topic.Topic); collides {
		return made, protocol.Errorf(protocol.InvalidTopicException, "Topic '%s' collides with existing topic: %s", topic.Topic, other)
	}
	configs, err := topicConfigs(topic)
	if err != nil {
		return made, err
	}
	if made.partitions, err = c.assignment(topic); err != nil {
		return made, err
	}
	made.id = protocol.NewUUID(c.options.Random)
	record := schema.NewTopicRecord()
	record.Name, record.TopicID = topic.Topic, made.id
	made.records = append(made.records, record)
	for _, name := range sortedNames(configs) {
		value := configs[name]
		setting := schema.NewConfigRecord()
		setting.ResourceType, setting.ResourceName, setting.Name, setting.Value = int8(kmsg.ConfigResourceTypeTopic), topic.Topic, name, &value
		made.records = append(made.records, setting)
	}
	for n, replicas := range made.partitions {
		made.records = append(made.records, c.newPartition(made.id, int32(n), replicas))
	}
	return made, nil
}

// topicConfigs takes the settings of a request, the last of several winning.
func topicConfigs(topic *kmsg.CreateTopicsRequestTopic) (map[string]string, *protocol.Error) {
	configs := map[string]string{}
	var missing []string
	for _, setting := range topic.Configs {
		if setting.Value == nil {
			missing = append(missing, setting.Name)
			continue
		}
		configs[setting.Name] = *setting.Value
	}
	if len(missing) > 0 {
		return nil, protocol.Errorf(protocol.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(missing, ","))
	}
	if err := config.ValidateTopic(configs); err != nil {
		return nil, &protocol.Error{Code: protocol.CodeOf(err), Message: textOf(err)}
	}
	return configs, nil
}

func textOf(err error) string {
	if message := protocol.MessageOf(err); message != nil {
		return *message
	}
	return err.Error()
}

// assignment gives the replicas of each partition: the request's own, or
// placed here.
func (c *Controller) assignment(topic *kmsg.CreateTopicsRequestTopic) ([][]protocol.NodeID, *protocol.Error) {
	if len(topic.ReplicaAssignment) > 0 {
		return c.manualAssignment(topic)
	}
	if topic.ReplicationFactor < -1 || topic.ReplicationFactor == 0 {
		return nil, protocol.Errorf(protocol.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if topic.NumPartitions < -1 || topic.NumPartitions == 0 {
		return nil, protocol.Errorf(protocol.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	count, factor := topic.NumPartitions, topic.ReplicationFactor
	if count == -1 {
		count = c.options.Config.Int("num.partitions")
	}
	if factor == -1 {
		factor = int16(c.options.Config.Int("default.replication.factor"))
	}
	if count > maxRecordsPerRequest {
		return nil, protocol.Errorf(protocol.PolicyViolation, "Excessively large number of partitions per request.")
	}
	placed, err := c.place(0, int(count), int(factor))
	if err != nil {
		return nil, protocol.Errorf(err.Code, "Unable to replicate the partition %d time(s): %s", factor, err.Message)
	}
	return placed, nil
}

func (c *Controller) manualAssignment(topic *kmsg.CreateTopicsRequestTopic) ([][]protocol.NodeID, *protocol.Error) {
	if topic.ReplicationFactor != -1 {
		return nil, protocol.Errorf(protocol.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if topic.NumPartitions != -1 {
		return nil, protocol.Errorf(protocol.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	partitions := make([][]protocol.NodeID, len(topic.ReplicaAssignment))
	factor := -1
	for _, a := range topic.ReplicaAssignment {
		if a.Partition >= 0 && int(a.Partition) < len(partitions) && partitions[a.Partition] != nil {
			return nil, protocol.Errorf(protocol.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		if a.Partition < 0 || int(a.Partition) >= len(partitions) {
			return nil, protocol.Errorf(protocol.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		replicas := nodeIDs(a.Replicas)
		if err := c.checkReplicas(a.Partition, replicas, factor); err != nil {
			return nil, err
		}
		factor = len(replicas)
		partitions[a.Partition] = replicas
	}
	return partitions, nil
}

// checkReplicas judges a manual assignment. factor is that of the partitions
// before, -1 for the first.
func (c *Controller) checkReplicas(partition int32, replicas []protocol.NodeID, factor int) *protocol.Error {
	if len(replicas) == 0 {
		return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, id := range sorted {
		if c.image.Broker(id) == nil {
			return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if i > 0 && sorted[i-1] == id {
			return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if factor >= 0 && factor != len(replicas) {
		return protocol.Errorf(protocol.InvalidReplicaAssignment,
			"The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).",
			len(replicas), factor)
	}
	if !slices.ContainsFunc(replicas, c.eligible) {
		return protocol.Errorf(protocol.InvalidReplicaAssignment,
			"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", partition)
	}
	return nil
}

func nodeIDs(ids []int32) []protocol.NodeID {
	nodes := make([]protocol.NodeID, len(ids))
	for i, id := range ids {
		nodes[i] = protocol.NodeID(id)
	}
	return nodes
}

// newPartition is the record of a partition that begins its life: all its live
// replicas are in sync with nothing, and the first of them leads.
func (c *Controller) newPartition(topic protocol.TopicID, n int32, replicas []protocol.NodeID) *schema.PartitionRecord {
	record := schema.NewPartitionRecord()
	record.TopicID, record.PartitionID, record.Replicas = topic, n, replicas
	record.LeaderEpoch, record.PartitionEpoch = 0, 0
	record.ISR = slices.DeleteFunc(slices.Clone(replicas), func(id protocol.NodeID) bool { return !c.eligible(id) })
	record.Leader = record.ISR[0]
	record.RemovingReplicas, record.AddingReplicas = []protocol.NodeID{}, []protocol.NodeID{}
	if c.image.MetadataVersion().SupportsDirectories() {
		record.Directories = make([]protocol.UUID, len(replicas))
		for i, id := range replicas {
			record.Directories[i] = c.defaultDirectory(id)
		}
	}
	return record
}

// defaultDirectory is a broker's only directory, else unassigned: the broker
// chooses and reports it.
func (c *Controller) defaultDirectory(id protocol.NodeID) protocol.DirectoryID {
	broker := c.image.Broker(id)
	switch {
	case broker == nil || len(broker.LogDirs) == 0:
		return protocol.DirectoryMigrating
	case len(broker.LogDirs) == 1:
		return broker.LogDirs[0]
	default:
		return protocol.DirectoryUnassigned
	}
}

// describe fills what a reply says of a created topic (KIP-525).
func (c *Controller) describe(answer *kmsg.CreateTopicsResponseTopic, topic *kmsg.CreateTopicsRequestTopic, made plannedTopic) {
	configs, _ := topicConfigs(topic)
	resolved := config.ResolveTopic(topic.Topic, configs, c.image.Config(int8(kmsg.ConfigResourceTypeBroker), ""),
		c.image.Config(int8(kmsg.ConfigResourceTypeBroker), fmt.Sprint(c.options.NodeID)), c.options.Config)
	answer.TopicID, answer.NumPartitions = made.id, int32(len(made.partitions))
	answer.ReplicationFactor = int16(len(made.partitions[0]))
	answer.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	for _, entry := range config.DescribeTopic(resolved, nil) {
		setting := kmsg.NewCreateTopicsResponseTopicConfig()
		setting.Name, setting.Value, setting.ReadOnly = entry.Name, entry.Value, entry.ReadOnly
		setting.Source, setting.IsSensitive = int8(entry.Source), entry.Sensitive
		answer.Configs = append(answer.Configs, setting)
	}
}

// collisions finds names that metrics could not tell apart: they differ only in
// '.' and '_'.
type collisions struct {
	image *metadata.Image
	names map[string]string // normalised → name; made when first needed
}

func (c *Controller) collisions() *collisions { return &collisions{image: c.image} }

func normalised(name string) string { return strings.ReplaceAll(name, ".", "_") }

func (c *collisions) with(name string) (other string, collides bool) {
	if !strings.ContainsAny(name, "._") {
		return "", false
	}
	if c.names == nil {
		c.names = map[string]string{}
		for topic := range c.image.Topics() {
			c.add(topic.Name)
		}
	}
	other, collides = c.names[normalised(name)]
	return other, collides
}

func (c *collisions) add(name string) {
	if c.names != nil {
		c.names[normalised(name)] = name
	}
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
