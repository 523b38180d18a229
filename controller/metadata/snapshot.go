package metadata

import (
	"ottla/protocol"
	"ottla/protocol/schema"
)

// Records writes the Image out as the records of a snapshot at the level given,
// in the order in which Kafka writes one: features (metadata.version first),
// brokers, controllers, topics with their partitions, configs, quotas, producer
// ids, ACLs, SCRAM credentials, delegation tokens. Replaying them into an empty
// Image gives an equal one, except for what an older level has no place for.
// Emit must not keep a record if it changes it.
func (i *Image) Records(version MetadataVersion, emit func(record schema.MetadataRecord, version int16)) {
	write := func(record schema.MetadataRecord) { emit(record, version.RecordVersion(record)) }
	i.writeFeatures(version, write)
	i.writeNodes(version, write)
	i.writeTopics(version, write)
	for _, config := range i.configs.All() {
		for _, record := range config.records {
			write(record)
		}
	}
	for quota := range i.ClientQuotas() {
		write(quota)
	}
	if i.nextProducerID >= 0 {
		// Kafka's image does not know to whom the last block went either.
		record := schema.NewProducerIdsRecord()
		record.BrokerID, record.NextProducerID = protocol.NoNode, i.nextProducerID
		write(record)
	}
	for entry := range i.ACLs() {
		write(entry)
	}
	if version.SupportsScram() {
		for credential := range i.ScramCredentials() {
			write(credential)
		}
	}
	if version.SupportsDelegationTokens() {
		for token := range i.DelegationTokens() {
			write(token)
		}
	}
}

func (i *Image) writeFeatures(version MetadataVersion, write func(schema.MetadataRecord)) {
	if version != 0 {
		record := schema.NewFeatureLevelRecord()
		if kept, ok := i.features.Get(MetadataVersionFeature); ok {
			record.UnknownTags = kept.UnknownTags
		}
		record.Name, record.FeatureLevel = MetadataVersionFeature, int16(version)
		write(record)
	}
	for name, record := range i.features.All() {
		if name != MetadataVersionFeature {
			write(record)
		}
	}
}

func (i *Image) writeNodes(version MetadataVersion, write func(schema.MetadataRecord)) {
	for broker := range i.Brokers() {
		write(broker.record(version.info().registerBroker))
	}
	if version.SupportsControllerRegistration() {
		for controller := range i.Controllers() {
			write(controller.record())
		}
	}
}

func (i *Image) writeTopics(version MetadataVersion, write func(schema.MetadataRecord)) {
	for topic := range i.Topics() {
		record := schema.NewTopicRecord()
		record.Name, record.TopicID, record.UnknownTags = topic.Name, topic.ID, topic.UnknownTags
		write(record)
		for n, partition := range topic.Partitions() {
			write(partition.Record(topic.ID, n, version))
		}
	}
}

// Record is the partition as a PartitionRecord that can be written at the level
// given.
func (p *Partition) Record(topic protocol.TopicID, n int32, version MetadataVersion) *schema.PartitionRecord {
	record := schema.NewPartitionRecord()
	record.PartitionID, record.TopicID = n, topic
	record.Replicas, record.ISR = p.Replicas, p.ISR
	record.RemovingReplicas, record.AddingReplicas = p.RemovingReplicas, p.AddingReplicas
	record.Leader, record.LeaderRecoveryState = p.Leader, p.LeaderRecoveryState
	record.LeaderEpoch, record.PartitionEpoch = p.LeaderEpoch, p.PartitionEpoch
	record.UnknownTags = p.UnknownTags
	if version.SupportsDirectories() {
		record.Directories = p.Directories
	}
	if version.SupportsELR() {
		if len(p.ELR) > 0 {
			record.EligibleLeaderReplicas = p.ELR
		}
		if len(p.LastKnownELR) > 0 {
			record.LastKnownELR = p.LastKnownELR
		}
	}
	return record
}
