package cluster

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// createTopics decides each topic by itself: one that fails does not hinder the
// others, unless the request as a whole asks for too much. With validateOnly
// every check runs and nothing is decided.
func (c *Controller) createTopics(req *kmsg.CreateTopicsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	var records []schema.MetadataRecord
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	excessive := c.excessiveCreation(req.Topics, count)
	defaults := c.topicDefaults()
	for i := range req.Topics {
		topic := &req.Topics[i]
		repeated := count[topic.Topic] > 1
		if count[topic.Topic] == 0 {
			continue // answered already
		}
		count[topic.Topic] = 0
		answer := kmsg.NewCreateTopicsResponseTopic()
		answer.Topic = topic.Topic
		var made plannedTopic
		err := excessive
		if err == nil {
			made, err = c.planTopic(topic, repeated)
		}
		if err != nil {
			refuseCreation(&answer, err)
		} else {
			records = append(records, made.records...)
			describe(&answer, defaults, topic.Topic, made)
		}
		response.Topics = append(response.Topics, answer)
	}
	if len(records) > maxRecordsPerRequest {
		for i := range response.Topics {
			refuseCreation(&response.Topics[i], tooManyRecords())
		}
	}
	if req.ValidateOnly || len(records) > maxRecordsPerRequest {
		records = nil
	}
	return c.result(response, records...)
}

// tooManyRecords refuses a request as a whole.
func tooManyRecords() *protocol.Error {
	return protocol.Errorf(protocol.PolicyViolation, "Unable to perform excessively large batch operation.")
}

func refuseCreation(answer *kmsg.CreateTopicsResponseTopic, err *protocol.Error) {
	name := answer.Topic
	*answer = kmsg.NewCreateTopicsResponseTopic()
	answer.Topic, answer.ErrorCode, answer.ErrorMessage = name, int16(err.Code), protocol.MessageOf(err)
	answer.NumPartitions, answer.ReplicationFactor, answer.Configs = -1, -1, nil
}

// excessiveCreation refuses a request as a whole that asks for too many
// partitions, whatever may be wrong with its topics otherwise.
func (c *Controller) excessiveCreation(topics []kmsg.CreateTopicsRequestTopic, count map[string]int) *protocol.Error {
	total := 0
	for i := range topics {
		topic := &topics[i]
		switch {
		case count[topic.Topic] > 1 || topic.Topic == protocol.ClusterMetadataTopic:
		case len(topic.ReplicaAssignment) > 0:
			total += len(topic.ReplicaAssignment)
		case topic.NumPartitions == -1:
			total += int(c.options.Config.Int("num.partitions"))
		case topic.NumPartitions > 0:
			total += int(topic.NumPartitions)
		}
		if total > maxRecordsPerRequest {
			return protocol.Errorf(protocol.PolicyViolation, "Excessively large number of partitions per request.")
		}
	}
	return nil
}

// plannedTopic is a topic that passed every check.
type plannedTopic struct {
	id         protocol.TopicID
	configs    map[string]string
	partitions [][]protocol.NodeID
	records    []schema.MetadataRecord
}

func (c *Controller) planTopic(topic *kmsg.CreateTopicsRequestTopic, repeated bool) (plannedTopic, *protocol.Error) {
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
	if other, collides := c.collision("", topic.Topic); collides {
		return made, protocol.Errorf(protocol.InvalidTopicException, "Topic '%s' collides with existing topic: %s", topic.Topic, other)
	}
	var err *protocol.Error
	if made.configs, err = topicConfigs(topic); err != nil {
		return made, err
	}
	if made.partitions, err = c.assignment(topic); err != nil {
		return made, err
	}
	made.id = protocol.NewUUID(c.options.Random)
	record := schema.NewTopicRecord()
	record.Name, record.TopicID = topic.Topic, made.id
	made.records = append(made.records, record)
	for _, name := range sortedNames(made.configs) {
		value := made.configs[name]
		setting := schema.NewConfigRecord()
		setting.ResourceType, setting.ResourceName, setting.Name, setting.Value = topicResource, topic.Topic, name, &value
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
	assigned := map[int32][]protocol.NodeID{}
	factor := -1
	for _, a := range topic.ReplicaAssignment {
		if assigned[a.Partition] != nil {
			return nil, protocol.Errorf(protocol.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		replicas := nodeIDs(a.Replicas)
		if err := c.checkReplicas(a.Partition, replicas, factor); err != nil {
			return nil, err
		}
		factor = len(replicas)
		assigned[a.Partition] = replicas
	}
	partitions := make([][]protocol.NodeID, len(assigned))
	for i := range partitions {
		if partitions[i] = assigned[int32(i)]; partitions[i] == nil {
			return nil, protocol.Errorf(protocol.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	return partitions, nil
}

// checkReplicas judges the manual assignment of a new partition: some of its
// brokers must be active. factor is that of the partitions before, -1 for the first.
func (c *Controller) checkReplicas(partition int32, replicas []protocol.NodeID, factor int) *protocol.Error {
	if err := c.checkAssignment(replicas, factor); err != nil {
		return err
	}
	if !slices.ContainsFunc(replicas, c.active) {
		return protocol.Errorf(protocol.InvalidReplicaAssignment,
			"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", partition)
	}
	return nil
}

// checkAssignment judges a list of replicas by itself.
func (c *Controller) checkAssignment(replicas []protocol.NodeID, factor int) *protocol.Error {
	if len(replicas) == 0 {
		return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, id := range sorted {
		switch broker := c.image.Broker(id); {
		case broker == nil:
			return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		case cordoned(broker):
			return protocol.Errorf(protocol.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but all its log directories are cordoned.", id)
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
	record.ISR = slices.DeleteFunc(slices.Clone(replicas), func(id protocol.NodeID) bool { return !c.active(id) })
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
func describe(answer *kmsg.CreateTopicsResponseTopic, defaults *config.TopicDefaults, name string, made plannedTopic) {
	answer.TopicID, answer.NumPartitions = made.id, int32(len(made.partitions))
	answer.ReplicationFactor = int16(len(made.partitions[0]))
	answer.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	for _, entry := range config.DescribeTopic(defaults.Topic(name, made.configs), nil) {
		setting := kmsg.NewCreateTopicsResponseTopicConfig()
		setting.Name, setting.Value, setting.ReadOnly = entry.Name, entry.Value, entry.ReadOnly
		if given, set := made.configs[entry.Name]; set { // as it was written, as from Apache Kafka
			setting.Value = &given
		}
		setting.Source, setting.IsSensitive = int8(entry.Source), entry.Sensitive
		answer.Configs = append(answer.Configs, setting)
	}
}

// collision finds an existing topic whose name metrics could not tell from
// prefix+rest: they differ only in '.' and '_'. Of prefix it is known that
// topics begin with it.
func (c *Controller) collision(prefix, rest string) (other string, collides bool) {
	at := strings.IndexAny(rest, "._")
	if at < 0 {
		// Without any such character, or as it was asked for, it is no collision.
		return prefix + rest, prefix != "" && c.image.Topic(prefix+rest) != nil
	}
	for _, separator := range []string{".", "_"} {
		longer := prefix + rest[:at] + separator
		for topic := range c.image.TopicsFrom(longer) {
			if strings.HasPrefix(topic.Name, longer) {
				other, collides = c.collision(longer, rest[at+1:])
			}
			break
		}
		if collides {
			return other, true
		}
	}
	return "", false
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
